"""The matrix as one page that needs nothing but itself; logs, captures and event logs of the cells lie beside it."""

import html
import os

MARKS = {"pass": "pass", "fail": "FAIL", "unsupported": "–", "not run": "not run"}
TAIL = 2500  # bytes of a log that the page itself shows of a cell that is not a pass

HEAD = """<!DOCTYPE html>
<html lang="en"><head><meta charset="utf-8"><title>uet-interop</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
body{font:15px/1.45 system-ui,sans-serif;margin:2em;color:#222;background:#fff}
h1{font-size:1.4em}h2{font-size:1.1em;margin-top:2em}
.wide{overflow-x:auto}table{border-collapse:collapse}td,th{padding:.2em .6em;border:1px solid #ccc;text-align:left;vertical-align:top}
thead th{position:sticky;top:0;background:#eee}.cells td{text-align:center}.cells a{color:inherit;text-decoration:none;display:block}
td.pass{background:#d5efd9}td.fail{background:#b3261e;color:#fff;font-weight:600}td.not{background:#fbeec2}td.unsupported{color:#888}
pre{font:13px/1.4 ui-monospace,monospace;overflow-x:auto;background:#f5f5f5;padding:.6em;white-space:pre-wrap}
details{border:1px solid #ccc;border-left:.5em solid #999;margin:.4em 0;padding:.3em .8em}
details.pass{border-left-color:#2a7a3a}details.fail{border-left-color:#b3261e}details.not{border-left-color:#c90}
summary{cursor:pointer}details:target{outline:2px solid #36c}
@media(prefers-color-scheme:dark){body{background:#181818;color:#ddd}thead th{background:#333}pre{background:#242424}
td,th,details{border-color:#444}td.pass{background:#1d4a26}td.not{background:#5a4a10}}
</style></head><body>
"""
# A link from the matrix opens what it leads to.
TAIL_SCRIPT = """<script>
function open_target(){const e=document.getElementById(decodeURIComponent(location.hash.slice(1)));if(e&&e.tagName==="DETAILS")e.open=true}
addEventListener("hashchange",open_target);open_target();
</script></body></html>
"""


def text(value):
    return html.escape(str(value))


def css(verdict):
    return verdict.split()[0]


def name_of(cell):
    return f"{cell['scenario']}--{cell['server']}--{cell['client']}"


def row(cells, tag="td"):
    return "<tr>" + "".join(f"<{tag}>{c}</{tag}>" for c in cells) + "</tr>\n"


def summary(report):
    counts = report["summary"]
    verdicts = "<table>" + row(map(text, counts), "th") + row(counts.values()) + "</table>\n"
    who = "<table>" + row(["implementation", "what it is", "speaks", "leg", "version"], "th")
    who += "".join(row([text(i[k]) for k in ("name", "title", "wire", "leg", "version")]) for i in report["implementations"])
    return verdicts + "<h2>Implementations</h2>\n<div class=\"wide\">" + who + "</table></div>\n"


def matrix(report):
    """A row for each pair that could be played, a column for each scenario."""
    cells = {(c["scenario"], c["server"], c["client"]): c for c in report["cells"]}
    out = "<h2>Matrix</h2>\n<div class=\"wide\"><table class=\"cells\"><thead><tr><th>server</th><th>client</th>"
    out += "".join(f"<th title=\"{text(s['title'])}\">{text(s['name'])}</th>" for s in report["scenarios"]) + "</tr></thead>\n"
    hidden = 0
    for server, client in report["pairs"]:
        line = [cells[s["name"], server, client] for s in report["scenarios"]]
        if all(c["verdict"] == "unsupported" for c in line):
            hidden += 1
            continue
        out += f"<tr><th>{text(server)}</th><th>{text(client)}</th>"
        for cell in line:
            mark = text(MARKS[cell["verdict"]])
            if cell["verdict"] != "unsupported":
                mark = f"<a href=\"#{text(name_of(cell))}\">{mark}</a>"
            out += f"<td class=\"{css(cell['verdict'])}\" title=\"{text(cell['reason'])}\">{mark}</td>"
        out += "</tr>\n"
    out += "</table></div>\n"
    if hidden:
        out += f"<p>{hidden} pairs are left out in which everything is unsupported: their reasons are in matrix.json.</p>\n"
    return out


def tail_of(path):
    with open(path, "rb") as file:
        file.seek(max(0, os.path.getsize(path) - TAIL))
        return file.read().decode(errors="replace")


def section(cell, folder):
    where = f"cells/{name_of(cell)}"
    out = f"<details class=\"{css(cell['verdict'])}\" id=\"{text(name_of(cell))}\"><summary><b>{text(cell['verdict'])}</b> "
    out += f"{text(cell['scenario'])}: server {text(cell['server'])}, client {text(cell['client'])}</summary>\n"
    if cell["reason"]:
        out += f"<p>{text(cell['reason'])}</p>\n"
    out += f"<p>{cell['seconds']} s."
    if cell["sessions"]:
        out += " Began anew: " + "; ".join(map(text, cell["sessions"])) + "."
    if cell["faults"]:
        out += " The network: " + ", ".join(f"{v} {text(k)}" for k, v in cell["faults"].items()) + "."
    out += "</p>\n<p>" + " · ".join(
        f"<a href=\"{text(where)}/{text(f)}\">{'<b>viewer</b>' if f == 'view.html' else text(f)}</a>"
        for f in sorted(cell["files"], key=lambda f: (f != "view.html", f))) + "</p>\n"
    if cell["verdict"] != "pass":
        for name in cell["files"]:
            if name.endswith(".log"):
                out += f"<p>The end of {text(name)}:</p><pre>{text(tail_of(os.path.join(folder, where, name)))}</pre>\n"
    return out + "</details>\n"


def write_page(report, folder):
    page = HEAD + f"<h1>uet-interop</h1>\n<p>{text(report['time'])}, {report['seconds']} s.</p>\n" + summary(report) + matrix(report)
    page += "<h2>Scenarios</h2>\n<table>" + "".join(row([text(s["name"]), text(s["title"])]) for s in report["scenarios"])
    page += "</table>\n<h2>Cells</h2>\n"
    order = {"fail": 0, "not run": 1, "pass": 2}
    shown = [c for c in report["cells"] if c["verdict"] != "unsupported"]
    page += "".join(section(c, folder) for c in sorted(shown, key=lambda c: order[c["verdict"]]))
    with open(os.path.join(folder, "index.html"), "w", encoding="utf-8") as file:
        file.write(page + TAIL_SCRIPT)
