#!/usr/bin/env python3
"""Single flows of any size, speed, delay and packet size against the store-and-forward bound, and collectives against their
critical path. The bounds are computed here, not read from the program. Prints TAP.

    closed_form_test.py UET_SIM
"""

import itertools
import json
import subprocess
import sys
import tempfile
from pathlib import Path

SIM = sys.argv[1]
HEADER = 64
results = []


def check(name, ok, why=""):
    results.append(ok)
    print(f"{'ok' if ok else 'not ok'} {len(results)} - {name}{'' if ok else ' # ' + why}", flush=True)


def run(*args):
    done = subprocess.run([SIM, "run", "--json", *map(str, args)], capture_output=True, text=True, timeout=300)
    return json.loads(done.stdout) if done.stdout.startswith("{") else {"error": done.stderr}


class Net:
    def __init__(self, gbps=100, hop_ns=1000, mtu=4086):
        self.gbps, self.hop_us, self.mtu = gbps, hop_ns / 1000, mtu
        self.options = ["--link-gbps", gbps, "--hop-ns", hop_ns, "--mtu-payload", mtu]

    def wire_us(self, data):
        return data * 8 / self.gbps / 1000

    def one_way(self, size, hops):
        n = -(-size // self.mtu)
        full, last = self.wire_us(self.mtu + HEADER), self.wire_us(size - (n - 1) * self.mtu + HEADER)
        if n == 1:
            return hops * (last + self.hop_us)
        return (n - 1) * full + (hops - 1) * (full + self.hop_us) + last + self.hop_us

    def solo(self, size, hops):
        return self.one_way(size, hops) + hops * (self.wire_us(HEADER) + self.hop_us)


# Hosts of the 3-tier tree with 16 hosts: 1 is on the leaf of 0, 2 in its pod, 13 far away.
PLACES = {1: 2, 2: 4, 13: 6}


def single(folder, net, size, destination, options):
    path = Path(folder) / "one.cm"
    path.write_text(f"Nodes 16\nConnections 1\n0->{destination} id 1 start 0 size {size}\n")
    r = run("--matrix", path, "--tiers", 3, *net.options, *options)
    return r["fct_us"]["max"] if r.get("completed") == 1 else float("nan")


def worst_of(folder, nets, options, is_exact=False):
    worst, where = 1.0, ""
    for net in nets:
        for size in (1, 63, net.mtu - 1, net.mtu, net.mtu + 1, 10 * net.mtu + 7, 100_000, 3_000_001):
            for destination, hops in PLACES.items():
                if 0 < size % net.mtu < net.mtu / 2 and net.mtu < size < 20 * net.mtu and hops > 2 and not is_exact:
                    continue  # a short last packet on a path of its own may overtake the one before: faster than the formula
                figure = single(folder, net, size, destination, options) / net.solo(size, hops)
                if not abs(figure - 1) <= abs(worst - 1):
                    worst, where = figure, f"{figure:.5f}: {net.options} {size} bytes over {hops} hops"
    return worst, where


NETS = [Net(10, 500, 1024), Net(25, 100, 1500), Net(40, 2000, 8192), Net(200, 1000, 4086), Net(400, 600, 4096),
        Net(800, 5000, 9000), Net(100, 500, 1024), Net(1, 10_000, 4086)]

with tempfile.TemporaryDirectory() as folder:
    # Covers: CC system test "single flow": the bound holds for speeds, delays and sizes of other fabrics too.
    for net in NETS:
        name = " ".join(map(str, net.options))
        for cc, low, high in (("nscc", 0.999, 1.001), ("none", 0.999, 1.001), ("rccc", 0.999, 1.015), ("both", 0.999, 1.015)):
            figure, where = worst_of(folder, [net], ["--cc", cc])
            check(f"single flows, {cc}, {name}: {figure:.5f}", low <= figure <= high, where)
    for lb in ("oblivious", "reps", "mixed", "single"):
        figure, where = worst_of(folder, [Net(200, 500, 2048)], ["--lb", lb], is_exact=lb == "single")
        check(f"single flows, {lb}: {figure:.5f}", 0.999 <= figure <= 1.001, where)

    # Few packets fit into the shortest round trip: a probe that counted as a full packet would leave too small a window.
    net = Net(100, 100, 448)
    worst = max(single(folder, net, size, d, []) / net.solo(size, h) for size in (100_000, 1_000_001) for d, h in PLACES.items())
    check(f"single flows of 512-byte packets, 100 ns a hop: {worst:.5f}", 0.999 <= worst <= 1.005)

    # Collectives: eight hosts on two leaves (radix 4 has two hosts a leaf, so a ring passes each leaf border once).
    net, hosts, size = Net(), 8, 8_000_000
    per_leaf = 2
    hops = [2 if h % per_leaf + 1 < per_leaf else 4 for h in range(hosts)]  # from h to its right neighbour

    def ring(steps):
        """The slowest chain of `steps` neighbours; its last step also waits for the acknowledgement."""
        chunk = size // hosts
        chains = []
        for first in range(hosts):
            way = [hops[(first + k) % hosts] for k in range(steps)]
            chains.append(sum(net.one_way(chunk, w) for w in way[:-1]) + net.solo(chunk, way[-1]))
        return max(chains)

    def tree():
        """Up along the deepest way, then down again; every step carries everything."""
        def hops_of(a, b):
            return 2 if a // per_leaf == b // per_leaf else 4
        up = [0.0] * hosts
        for h in range(hosts - 1, 0, -1):
            up[(h - 1) // 2] = max(up[(h - 1) // 2], up[h] + net.one_way(size, hops_of(h, (h - 1) // 2)))
        have, end = [up[0]] + [0.0] * (hosts - 1), 0.0
        for h in range(1, hosts):
            parent, way = (h - 1) // 2, hops_of((h - 1) // 2, h)
            have[h] = have[parent] + net.one_way(size, way)
            end = max(end, have[parent] + net.solo(size, way))
        return end

    def check_job(pattern, bound, most, critical=True):
        r = run("--pattern", pattern, "--hosts", hosts, "--bytes", size, "--tiers", 2)
        job = r.get("job_us") or float("nan")
        check(f"{pattern}: job {job:.1f} us of {bound:.1f} us", 0.999 <= job / bound <= most, str(r)[:300])
        if critical:
            check(f"{pattern}: the program computes the same critical path", abs(r["job_bound_us"] / bound - 1) < 1e-6,
                  f"{r['job_bound_us']} against {bound}")

    check_job("ring-allreduce", ring(2 * (hosts - 1)), 1.05)
    check_job("all-gather", ring(hosts - 1), 1.05)
    check_job("reduce-scatter", ring(hosts - 1), 1.05)
    # Two children share the link of their parent, in both directions: each step may take twice its time.
    check_job("tree-allreduce", tree(), 2.1)
    # All to all: every host sends and receives 7/8 of its data; no host is alone, so paths collide.
    parts = (hosts - 1) * (size // hosts + HEADER * -(-(size // hosts) // net.mtu))
    check_job("all-to-all", net.wire_us(parts) + 3 * (net.wire_us(net.mtu + HEADER) + 1), 1.25, critical=False)
    # Eight micro-batches through seven links: the last enters when the first host has sent seven.
    batch = size // 8
    chain = sum(net.one_way(batch, h) for h in hops[:hosts - 1])
    check_job("pipeline", 7 * net.wire_us(batch + HEADER * -(-batch // net.mtu)) + chain, 1.1, critical=False)

print(f"1..{len(results)}")
sys.exit(0 if all(results) else 1)
