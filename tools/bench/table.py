"""All rounds of all contenders: spreads, and ratios within a round."""

import statistics

from contenders import PAIRS

HIGHER_IS_BETTER = {"gbit_per_s": True, "messages_per_s": True, "half_rtt_us": False, "time_us": False}
SMALL, LARGE = 64, 64 * 1024

# What stands for a test where a contender has none of that name: (test, at which sizes it may, at which size it is looked up).
STAND_INS = {
    "write": [("send", None), ("copy", None), ("packets", "large"), ("packets", "small"), ("seal", "large")],
    "read": [("send", None), ("copy", None), ("packets", "large"), ("seal", "large")],
    "send": [("copy", None), ("packets", "large"), ("packets", "small"), ("seal", "large")],
    "tagged-latency": [("send-latency", None), ("ping", 8)],
}


def metric_of(test, size):
    """By which a test is compared: small messages by their number."""
    if test.endswith("latency") or test == "ping":
        return "half_rtt_us"
    if test == "mpi-allreduce":
        return "time_us"
    return "messages_per_s" if size <= SMALL and test != "mpi-bandwidth" else "gbit_per_s"


class Table:
    def __init__(self):
        self.samples = {}  # (contender, test, size) -> {round: row}
        self.skipped = {}  # contender -> why nothing of it was measured
        self.failures = []  # (contender, round, why), of contenders that were measured in other rounds

    def add(self, contender, number, rows):
        for row in rows:
            self.samples.setdefault((contender, row["test"], row["size"]), {})[number] = row

    def fail(self, contender, number, why):
        self.failures.append({"contender": contender, "round": number, "why": why})

    def settle(self):
        """A contender that failed in every round was not measured."""
        measured = {contender for contender, _, _ in self.samples}
        for failure in self.failures:
            if failure["contender"] not in measured:
                self.skipped.setdefault(failure["contender"], failure["why"])
        self.failures = [f for f in self.failures if f["contender"] in measured]

    def rows(self):
        out = []
        for (contender, test, size), rounds in self.samples.items():
            row = {"contender": contender, "test": test, "size": size}
            for key in sorted({k for one in rounds.values() for k in one} - {"test", "size"}):
                values = [one[key] for one in rounds.values() if key in one]
                row[key] = {"rounds": values, "min": min(values), "median": statistics.median(values), "max": max(values)}
            out.append(row)
        return out

    def counterpart(self, theirs, test, size):
        """Their rounds that our test at our size is compared with."""
        if (theirs, test, size) in self.samples:
            return self.samples[theirs, test, size]
        metric = metric_of(test, size)
        for name, where in STAND_INS.get(test, []):
            if where is None:
                found = self.samples.get((theirs, name, size))
            elif where == "large":
                found = size >= LARGE and self.largest(theirs, name, metric)
            elif where == "small":
                found = size <= SMALL and self.samples.get((theirs, name, SMALL))
            else:
                found = size == where and self.samples.get((theirs, name, where))
            if found and all(metric in row for row in found.values()):
                return found
        return None

    def largest(self, contender, test, metric):
        """The rounds at the size with the best figure: packets and blocks have sizes of their own."""
        found = [rounds for (c, t, _), rounds in self.samples.items()
                 if (c, t) == (contender, test) and all(metric in row for row in rounds.values())]
        return max(found, key=lambda rounds: statistics.median(row[metric] for row in rounds.values()), default=None)

    def ratios(self):
        """How many times as good as the other we are, round by round."""
        out = []
        for ours, others in PAIRS:
            for theirs in others:
                for (contender, test, size), mine in self.samples.items():
                    rounds = self.counterpart(theirs, test, size) if contender == ours else None
                    if not rounds:
                        continue
                    metric = metric_of(test, size)
                    times = [mine[n][metric] / rounds[n][metric] for n in mine if n in rounds and rounds[n][metric] > 0
                             and mine[n][metric] > 0]
                    if not times:
                        continue
                    if not HIGHER_IS_BETTER[metric]:
                        times = [1 / t for t in times]
                    out.append({"ours": ours, "theirs": theirs, "test": test, "size": size, "metric": metric,
                                "min": min(times), "median": statistics.median(times), "max": max(times)})
        return out
