"""One HTML file that needs nothing else: ratios, charts as SVG, figures, and where they were measured.

The charts are drawn here: axes, lines and labels are less than what a plotting library would add to every report.
"""

import html
import math

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 340, 70, 190, 20, 46
STYLE = """body{font:15px/1.45 system-ui,sans-serif;max-width:1100px;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:.6em 0 1.4em}td,th{padding:.15em .7em;text-align:right;border-bottom:1px solid #ddd;
font-variant-numeric:tabular-nums}td:first-child,th:first-child{text-align:left}.win{color:#106010}.lose{color:#a01010}
small{color:#777}svg{display:block;margin:.5em 0 1.5em}text{font:12px system-ui,sans-serif;fill:#333}
.grid{stroke:#e4e4e4}.axis{stroke:#888}h2{margin-top:2em}"""
UNITS = {"gbit_per_s": "Gbit/s", "messages_per_s": "messages/s", "half_rtt_us": "half round trip, us", "time_us": "us"}


def size_text(size):
    for unit, scale in (("M", 1 << 20), ("k", 1 << 10)):
        if size >= scale and size % scale == 0:
            return f"{size // scale}{unit}"
    return str(size)


def number(x):
    if x == 0:
        return "0"
    digits = max(0, 2 - math.floor(math.log10(abs(x))))
    return f"{x:,.{min(digits, 3)}f}"


def colour(index):
    return f"hsl({(210 + 137 * index) % 360},70%,{38 + 8 * (index % 3)}%)"


class LogAxis:
    """Powers of `base` between the smallest and the largest value, on so many pixels."""

    def __init__(self, values, start, end, base=10):
        self.low = math.floor(math.log(min(values), base) + 1e-9)
        self.high = max(math.ceil(math.log(max(values), base) - 1e-9), self.low + 1)
        self.start, self.end, self.base = start, end, base

    def at(self, value):
        share = (math.log(value, self.base) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        step = max(1, (self.high - self.low) // 12)
        return [self.base ** n for n in range(self.low, self.high + 1, step)]


def chart(title, lines, x_name, y_name, x_labels=None):
    """`lines`: name -> [(x, y)]. With `x_labels` x counts them; otherwise x is a size in bytes, on an axis of powers of 2."""
    lines = {name: [(x, y) for x, y in points if y > 0] for name, points in lines.items()}
    lines = {name: sorted(points) for name, points in lines.items() if points}
    if not lines:
        return ""
    ys = LogAxis([y for points in lines.values() for _, y in points], HEIGHT - BOTTOM, TOP)
    right = WIDTH - RIGHT
    if x_labels:
        def at(x):
            return LEFT + 20 + x * (right - LEFT - 40) / max(len(x_labels) - 1, 1)
        ticks = list(enumerate(x_labels))
    else:
        xs = LogAxis([x for points in lines.values() for x, _ in points], LEFT, right, 2)
        at, ticks = xs.at, [(t, size_text(int(t))) for t in xs.ticks() if t >= 1]
    out = [f'<h3>{html.escape(title)}</h3><svg viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}" role="img" '
           f'aria-label="{html.escape(title)}">']
    for value in ys.ticks():
        y = ys.at(value)
        out.append(f'<line class="grid" x1="{LEFT}" x2="{right}" y1="{y:.1f}" y2="{y:.1f}"/>'
                   f'<text x="{LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{value:g}</text>')
    for value, label in ticks:
        x = at(value)
        out.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}"/>'
                   f'<text x="{x:.1f}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{label}</text>')
    out.append(f'<path class="axis" fill="none" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{right}"/>'
               f'<text x="{(LEFT + right) / 2}" y="{HEIGHT - 8}" text-anchor="middle">{x_name}</text>'
               f'<text x="14" y="{HEIGHT / 2}" text-anchor="middle" transform="rotate(-90 14 {HEIGHT / 2})">{y_name}</text>')
    for index, (name, points) in enumerate(lines.items()):
        path = " ".join(f"{at(x):.1f},{ys.at(y):.1f}" for x, y in points)
        ours = name.startswith(("uet", "mpi-uet"))
        out.append(f'<polyline fill="none" stroke="{colour(index)}" stroke-width="{2.6 if ours else 1.3}" points="{path}">'
                   f'<title>{name}</title></polyline>')
        out += [f'<circle cx="{at(x):.1f}" cy="{ys.at(y):.1f}" r="{3 if ours else 2}" fill="{colour(index)}">'
                f'<title>{name}, {size_text(x) if not x_labels else x_labels[x]}: {number(y)}</title></circle>' for x, y in points]
        out.append(f'<text x="{right + 10}" y="{TOP + 12 + 15 * index}" style="fill:{colour(index)}'
                   f'{";font-weight:bold" if ours else ""}">{name}</text>')
    return "".join(out) + "</svg>"


def ratio_tables(ratios):
    out = []
    for pair in dict.fromkeys((r["ours"], r["theirs"]) for r in ratios):
        rows = [r for r in ratios if (r["ours"], r["theirs"]) == pair]
        sizes = sorted({r["size"] for r in rows})
        out.append(f"<h3>{pair[0]} beside {pair[1]}</h3><table><tr><th>times as good</th>"
                   + "".join(f"<th>{size_text(s)}</th>" for s in sizes) + "</tr>")
        for test in dict.fromkeys(r["test"] for r in rows):
            cells = {r["size"]: r for r in rows if r["test"] == test}
            out.append(f"<tr><td>{test}</td>")
            for size in sizes:
                r = cells.get(size)
                out.append(f'<td class="{"win" if r["median"] >= 1 else "lose"}" title="{UNITS[r["metric"]]}">{r["median"]:.2f} '
                           f'<small>{r["min"]:.2f} to {r["max"]:.2f}</small></td>' if r else "<td></td>")
            out.append("</tr>")
        out.append("</table>")
    return "".join(out)


def by_size(rows, tests, metric):
    lines = {}
    for row in rows:
        if row["test"] in tests and metric in row:
            lines.setdefault(row["contender"], []).append((row["size"], row[metric]["median"]))
    return lines


def charts(rows):
    out = []
    for title, tests in (("Writes", ("write", "send", "copy")), ("Reads", ("read",)), ("Sends", ("send",)),
                         ("MPI, 16 messages in flight", ("mpi-bandwidth",)), ("Packets without UET", ("packets",)),
                         ("Cipher alone", ("seal",))):
        if title == "Writes":  # kernel TCP and memcpy have no writes, but belong beside them
            rows_of_chart = [r for r in rows if r["test"] != "send" or r["contender"].startswith("kernel")]
        else:
            rows_of_chart = rows
        out.append(chart(title, by_size(rows_of_chart, tests, "gbit_per_s"), "bytes of a message", "Gbit/s"))
    out.append(chart("Rate of sends", by_size(rows, ("send",), "messages_per_s"), "bytes of a message", "messages/s"))
    for title, tests, metric in (("Latency", ("tagged-latency", "send-latency", "ping"), "half_rtt_us"),
                                 ("Latency of MPI", ("mpi-latency",), "half_rtt_us"),
                                 ("All-reduce of two ranks", ("mpi-allreduce",), "time_us")):
        out.append(chart(title, by_size(rows, tests, metric), "bytes of a message", UNITS[metric]))
    return "".join(out) + percentiles(rows)


def percentiles(rows):
    labels = ("median", "p90", "p99", "p99.9")
    lines, smallest = {}, {}
    for row in rows:
        if "half_rtt_us" in row and "p99" in row and row["size"] <= smallest.get(row["contender"], 1 << 60):
            smallest[row["contender"]] = row["size"]
            lines[row["contender"]] = [(i, row["half_rtt_us" if label == "median" else label]["median"])
                                       for i, label in enumerate(labels) if label == "median" or label in row]
    return chart("Latency of the smallest message, by percentile", lines, "percentile", UNITS["half_rtt_us"], labels)


def figures(rows):
    out = ["<table><tr><th>contender</th><th>test</th><th>bytes</th><th>figure</th><th>min</th><th>median</th><th>max</th>"
           "<th>p99</th><th>p99.9</th></tr>"]
    for row in rows:
        for metric, unit in UNITS.items():
            if metric not in row:
                continue
            s = row[metric]
            tail = "".join(f"<td>{number(row[p]['median']) if p in row and metric == 'half_rtt_us' else ''}</td>"
                           for p in ("p99", "p99.9"))
            out.append(f"<tr><td>{row['contender']}</td><td>{row['test']}</td><td>{size_text(row['size'])}</td><td>{unit}</td>"
                       f"<td>{number(s['min'])}</td><td>{number(s['median'])}</td><td>{number(s['max'])}</td>{tail}</tr>")
    return "".join(out) + "</table>"


def listing(pairs):
    return "<table>" + "".join(f"<tr><td>{html.escape(str(k))}</td><td style='text-align:left'>{html.escape(str(v))}</td></tr>"
                               for k, v in pairs) + "</table>"


def page(result):
    env = result["environment"]
    warning = ""
    if env["load_at_start"] > 0.5:
        warning = (f"<p><b>The machine was busy: load {env['load_at_start']:.1f} at the start, {env['load_at_end']:.1f} at the "
                   "end.</b> Ratios of one round still hold better than the figures.</p>")
    return f"""<!doctype html><html lang="en"><head><meta charset="utf-8"><title>uet bench, {env['commit']}</title>
<style>{STYLE}</style></head><body><h1>uet bench</h1>
<p>{html.escape(env['cpu'])}, Linux {html.escape(env['kernel'])}, commit {env['commit']}{' with changes' if
env['uncommitted_changes'] else ''}, {result['rounds']} rounds in turns.</p>{warning}
<h2>Ratios</h2><p>How many times as good as the other: above 1 the first is faster. Median of the rounds, beside it the least and
the most of them; messages up to 64 bytes by their rate, larger ones by bandwidth, latencies by their median. A bare port and a
cipher have packet sizes of their own; messages of 64 KiB and more are held against their best.</p>{ratio_tables(result['ratios'])}
<h2>Charts</h2>{charts(result['rows'])}
<h2>Who is compared</h2>{listing((c['name'], c['what']) for c in result['contenders'])}
<h2>Not measured</h2>{listing((s['contender'], s['why']) for s in result['skipped']) if result['skipped'] else '<p>Nothing.</p>'}
{('<p>Failed in single rounds:</p>' + listing((f"{f['contender']}, round {f['round']}", f['why']) for f in result['failures']))
 if result['failures'] else ''}
<h2>Figures</h2><p>Over the rounds: the least, the median and the most. Percentiles are medians over the rounds.</p>
{figures(result['rows'])}
<h2>Environment</h2>{listing(env.items())}</body></html>
"""
