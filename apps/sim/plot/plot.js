// The page of uet-sim plot. Data: what html_report.cc writes, one entry for each run; all runs stand in each chart.
(function () {
"use strict";
var runs = JSON.parse(document.getElementById("data").textContent).runs;
// Orange and red are kept for faults.
var COLORS = ["#1f77b4", "#2ca02c", "#9467bd", "#8c564b"], DOWN = "#d62728", SLOW = "#ff7f0e";
var WIDTH = 680, HEIGHT = 330, LEFT = 62, RIGHT = 16, TOP = 14, BOTTOM = 46, SEGMENTS_MAX = 400;
var root = d3.select("main"), LABEL_MAX = 30, longest_run = d3.max(runs, function (r) { return r.ended; }) || 1, ended = longest_run;
runs.forEach(function (r, i) { r.color = COLORS[i]; r.letter = "ABCD"[i]; });

function said(v) { return Array.isArray(v) ? v.join(", ") || "none" : v === undefined || v === null ? "none" : String(v); }
function differing(keys, value) {
  return keys.filter(function (k) { return runs.some(function (r) { return value(r, k) !== value(runs[0], k); }); });
}
// What sets a run apart from the others: "lb mixed".
(function () {
  var keys = d3.set(d3.merge(runs.map(function (r) { return d3.keys(r.run); }))).values();
  var apart = differing(keys, function (r, k) { return said(r.run[k]); });
  runs.forEach(function (r) {
    r.label = runs.length === 1 ? "" : r.letter + ": " + (apart.map(function (k) { return k + " " + said(r.run[k]); }).join(", ") || "the same again");
  });
})();

function key(to, entries) {
  entries.forEach(function (e) { var s = to.append("span").attr("class", "key"); s.append("i").style("background", e[1]); s.append("span").text(e[0]); });
}
function run_key(to) {
  var is_short = runs.every(function (r) { return r.label.length <= LABEL_MAX; });
  if (runs.length > 1) key(to, runs.map(function (r) { return [is_short ? r.label : r.letter, r.color]; }));
}

// --- What was run, and its figures ---
function names() {
  var t = d3.select("#names").append("table");
  if (runs.length > 1) {
    var head = t.append("tr");
    head.append("th");
    runs.forEach(function (r) { key(head.append("th"), [[r.label, r.color]]); });
  }
  function row(name, values, kind) {
    var differs = values.some(function (v) { return v !== values[0]; }), tr = t.append("tr").attr("class", differs ? "differs" : null);
    tr.append("td").text(name);
    if (!differs && runs.length > 1) return tr.append("td").attr({ colspan: runs.length, "class": kind }).text(values[0]);
    values.forEach(function (v) { tr.append("td").attr("class", kind).text(v); });
  }
  function of(f) { return runs.map(f); }
  ["traffic", "fabric", "transport", "faults"].forEach(function (k) { row(k, of(function (r) { return r[k]; })); });
  row("seed", of(function (r) { return String(r.run.seed); }));
  d3.set(d3.merge(runs.map(function (r) { return r.figures.map(function (f) { return f[0]; }); }))).values().forEach(function (name) {
    row(name, of(function (r) { return (r.figures.filter(function (f) { return f[0] === name; })[0] || ["", "-"])[1]; }));
  });
  row("command", of(function (r) { return r.command; }), "command");
  // Runs of very different length: the time axes may end with any of them.
  if (runs.every(function (r) { return r.ended > 0.8 * longest_run; })) return;
  var choice = d3.select("#names").append("p").attr("class", "note").text("Time axes end with ");
  runs.forEach(function (r) {
    choice.append("button").text(r.letter).on("click", function () { ended = r.ended; draw_all(); });
  });
}

// --- A chart with axes ---
function chart(id, title, note, x_name, y_name, x_max, y_max, options) {
  options = options || {};
  var height = options.height || HEIGHT, figure = root.append("figure").attr("id", id).attr("class", options.wide ? "wide" : null);
  var width = options.wide ? 2 * WIDTH + 30 : WIDTH, left = options.left || LEFT;
  var caption = figure.append("figcaption");
  caption.append("b").text(title);
  run_key(caption);
  if (note) figure.append("p").attr("class", "note").text(note);
  var svg = figure.append("svg").attr("viewBox", "0 0 " + width + " " + height);
  var x = d3.scale.linear().domain([0, x_max > 0 ? x_max : 1]).range([left, width - RIGHT]);
  var y = d3.scale.linear().domain([0, y_max > 0 ? y_max : 1]).range([height - BOTTOM, TOP]);
  if (!options.tight) y.nice();
  if (!options.plain_y) {
    svg.selectAll("line.grid").data(y.ticks(5)).enter().append("line")
      .attr({ "class": "grid", x1: left, x2: width - RIGHT, y1: y, y2: y });
    svg.append("g").attr({ "class": "axis", transform: "translate(" + left + ",0)" }).call(d3.svg.axis().scale(y).orient("left").ticks(5));
  }
  if (!options.plain_x) {
    svg.append("g").attr({ "class": "axis", transform: "translate(0," + (height - BOTTOM) + ")" })
      .call(d3.svg.axis().scale(x).orient("bottom").ticks(options.wide ? 14 : 7));
  }
  var clip = "clip-" + id;
  svg.append("clipPath").attr("id", clip).append("rect").attr({ x: left, y: TOP - 4, width: width - RIGHT - left, height: height - BOTTOM - TOP + 6 });
  svg.append("text").attr({ x: (left + width - RIGHT) / 2, y: height - 8, "text-anchor": "middle" }).text(x_name);
  svg.append("text").attr({ transform: "translate(13," + (TOP + height - BOTTOM) / 2 + ") rotate(-90)", "text-anchor": "middle" }).text(y_name);
  return { svg: svg, x: x, y: y, height: height, bottom: height - BOTTOM, figure: figure, plot: svg.append("g").attr("clip-path", "url(#" + clip + ")") };
}
function line(c, color, points, kind) {
  c.plot.append("path").attr({ "class": "line " + (kind || ""), stroke: color })
    .attr("d", d3.svg.line().x(function (p) { return c.x(p[0]); }).y(function (p) { return c.y(p[1]); })(points));
}
function band(c, color, rows, sideways) { // rows: place, from, to
  var area = sideways
    ? d3.svg.area().y(function (p) { return c.y(p[0]); }).x0(function (p) { return c.x(p[1]); }).x1(function (p) { return c.x(p[2]); })
    : d3.svg.area().x(function (p) { return c.x(p[0]); }).y0(function (p) { return c.y(p[1]); }).y1(function (p) { return c.y(p[2]); });
  c.plot.append("path").attr({ "class": "band", fill: color, d: area(rows) });
}
// The nearest row of each run under the pointer; `tell` makes words of it.
function pointer(c, rows_of, tell) {
  var bar = c.svg.append("line").attr({ "class": "pointer", y1: TOP, y2: c.bottom }).style("display", "none");
  var words = c.figure.append("p").attr("class", "note").html("&nbsp;");
  c.svg.on("mousemove", function () {
    var at = d3.mouse(c.svg.node())[0], v = c.x.invert(at);
    bar.style("display", null).attr({ x1: at, x2: at });
    words.text(runs.map(function (r) {
      var rows = rows_of(r), i = d3.bisector(function (p) { return p[0]; }).left(rows, v);
      if (!rows.length) return "";
      var row = i > 0 && (i === rows.length || v - rows[i - 1][0] < rows[i][0] - v) ? rows[i - 1] : rows[i];
      return (runs.length > 1 ? r.letter + ": " : "") + tell(row);
    }).filter(Boolean).join("   |   "));
  }).on("mouseleave", function () { bar.style("display", "none"); words.html("&nbsp;"); });
}

// --- Faults ---
function fault_color(change) { return change.down ? DOWN : SLOW; }
function spans(change) { // of time in which the links are not well
  var end = change.until === null ? ended : Math.min(change.until, ended), out = [];
  if (end <= change.from) return [];
  // More than can be told apart are one.
  if (!(change.period > 0) || (end - change.from) / change.period > SEGMENTS_MAX) return [[change.from, end]];
  for (var t = change.from; t < end; t += change.period) out.push([t, Math.min(t + change.period / 2, end)]);
  return out;
}
// Each different fault once, with the letters of the runs that have it.
var faults = [];
runs.forEach(function (r) {
  r.changes.forEach(function (change) {
    var known = faults.filter(function (f) { return f.change.text === change.text; })[0];
    if (!known) faults.push(known = { change: change, of: [] });
    if (known.of.indexOf(r.letter) < 0) known.of.push(r.letter);
  });
});
function fault_strip() {
  if (!faults.length) return;
  var c = chart("faults", "Faults", "", "us", "", ended, 1, { wide: true, height: BOTTOM + TOP + 22 * faults.length, plain_y: true, tight: true, left: 440 });
  key(c.figure.select("figcaption"), [["down", DOWN], ["slow", SLOW]]);
  faults.forEach(function (f, i) {
    var y = TOP + 22 * i, all = f.of.length === runs.length;
    c.svg.append("text").attr({ x: 432, y: y + 14, "text-anchor": "end" }).style("fill", fault_color(f.change))
      .text(f.change.text + (all ? "" : " (" + f.of.join(", ") + ")"));
    spans(f.change).forEach(function (s) {
      c.plot.append("rect").attr({ x: c.x(s[0]), y: y + 3, width: Math.max(1, c.x(s[1]) - c.x(s[0])), height: 15, fill: fault_color(f.change) })
        .append("title").text(f.change.text);
    });
  });
}
// In a chart over time: where links changed. What lasts from beginning to end stands in the strip alone.
function mark_faults(c) {
  faults.forEach(function (f) {
    var lasting = f.change.from <= 0 && (f.change.until === null || f.change.until >= ended);
    if (lasting && !(f.change.period > 0)) return;
    spans(f.change).forEach(function (s) {
      var x1 = c.x(s[0]), x2 = c.x(s[1]), zone = c.plot.insert("g", "path");
      zone.append("title").text(f.change.text);
      zone.append("rect").attr({ "class": "zone", x: x1, y: TOP, width: Math.max(0, x2 - x1), height: c.bottom - TOP, fill: fault_color(f.change) });
      if (s[0] > 0 && !(f.change.period > 0))
        zone.append("line").attr({ "class": "edge", x1: x1, x2: x1, y1: TOP, y2: c.bottom, stroke: fault_color(f.change) });
    });
  });
}

// --- The charts ---
function steps() {
  if (d3.max(runs, function (r) { return r.steps.length; }) < 2) return;
  var count = d3.max(runs, function (r) { return d3.max(r.steps, function (s) { return s[0] + 1; }); });
  var c = chart("steps", "Steps over time", "Line: when the step had arrived everywhere. Band: from the first flow of the step on.",
    "us", "step", ended, count, { tight: true });
  runs.forEach(function (r) { band(c, r.color, r.steps.map(function (s) { return [s[0] + 1, s[3], s[4]]; }), true); });
  runs.forEach(function (r) { line(c, r.color, r.steps.map(function (s) { return [s[4], s[0] + 1]; })); });
  mark_faults(c);
  pointer(c, function (r) { return r.steps.map(function (s) { return [s[4], s[0] + 1, s[2], s[1]]; }); },
    function (p) { return "step " + p[1] + " done at " + p[0] + " us" + (p[2] < p[3] ? ", " + p[2] + " of " + p[3] + " flows" : ""); });

  c = chart("step-times", "Time of the flows of a step", "Line: the longest. Dashed: the median.", "step", "us", count,
    d3.max(runs, function (r) { return d3.max(r.steps, function (s) { return s[6]; }); }));
  runs.forEach(function (r) {
    line(c, r.color, r.steps.map(function (s) { return [s[0] + 1, s[6]]; }));
    line(c, r.color, r.steps.map(function (s) { return [s[0] + 1, s[5]]; }), "dashed");
  });
  pointer(c, function (r) { return r.steps.map(function (s) { return [s[0] + 1, s[5], s[6]]; }); },
    function (p) { return "step " + p[0] + ": median " + p[1] + ", longest " + p[2] + " us"; });
}
function completion_times() {
  var bounded = runs.some(function (r) { return r.bound !== null; });
  var longest = Math.min(ended, d3.max(runs, function (r) { return Math.max(d3.max(r.times) || 0, r.bound || 0); }));
  var c = chart("times", "Completion times", bounded ? "Dashed: least time of the slowest flow, by the load of the links." : "Of the flows of all steps.",
    "us", "share of flows, %", longest, 100, { tight: true });
  runs.forEach(function (r) {
    var points = [[0, 0]];
    r.times.forEach(function (t, i) { points.push([t, 100 * i / r.times.length], [t, 100 * (i + 1) / r.times.length]); });
    line(c, r.color, points);
    if (r.bound !== null) line(c, r.color, [[r.bound, 0], [r.bound, 100]], "dashed");
  });
  pointer(c, function (r) { return r.times.map(function (t, i) { return [t, 100 * (i + 1) / r.times.length]; }); },
    function (p) { return p[1].toFixed(1) + " % within " + p[0] + " us"; });
}
function queues() {
  var limits = d3.set(runs.map(function (r) { return r.queue_limit; })).values().map(Number);
  var c = chart("queues", "Longest switch queue", "Limit: " + limits.join(", ") + " kB.", "us", "kB", ended,
    d3.max(runs, function (r) { return d3.max(r.queues, function (q) { return q[1]; }); }));
  runs.forEach(function (r) { line(c, r.color, r.queues, "thin"); });
  limits.forEach(function (limit) { if (limit <= c.y.domain()[1]) line(c, "#888", [[0, limit], [ended, limit]], "dashed"); });
  mark_faults(c);
  pointer(c, function (r) { return r.queues; }, function (p) { return p[1] + " kB at " + p[0] + " us"; });
}
function windows() {
  var most = d3.max(runs, function (r) { return d3.max(r.windows, function (w) { return w[3]; }); });
  if (!most) return;
  var c = chart("windows", "Congestion windows", "Line: median of the sending hosts. Band: all but the tenth with the largest and the tenth with the smallest.",
    "us", "kB", ended, most);
  runs.forEach(function (r) { band(c, r.color, r.windows.map(function (w) { return [w[0], w[1], w[3]]; })); });
  runs.forEach(function (r) { line(c, r.color, r.windows.map(function (w) { return [w[0], w[2]]; })); });
  mark_faults(c);
  pointer(c, function (r) { return r.windows; },
    function (p) { return p[2] + " kB (" + p[1] + " to " + p[3] + ") of " + p[4] + " hosts at " + p[0] + " us"; });
}
function tops() {
  var bars = d3.max(runs, function (r) { return r.tops.length; });
  if (!bars) return;
  var word = runs[0].top_word, hurt = runs.some(function (r) { return r.tops.some(function (t) { return t[2]; }); });
  var c = chart("tops", "Data packets by " + word, hurt ? "Framed: the " + word + " or some of its links had a fault." : "", word, "%", bars,
    d3.max(runs, function (r) { return d3.max(r.tops, function (t) { return t[1]; }); }), { plain_x: true });
  if (hurt) key(c.figure.select("figcaption"), [["down", DOWN], ["slow", SLOW]]);
  var step = Math.ceil(bars / 32), room = (c.x(1) - c.x(0)) * 0.84 / runs.length;
  runs.forEach(function (r, n) {
    r.tops.forEach(function (t, i) {
      var bar = { x: c.x(i + 0.08) + n * room, y: c.y(t[1]), width: room, height: c.bottom - c.y(t[1]), fill: r.color };
      var color = t[3] ? DOWN : SLOW;
      if (t[2]) { bar["fill-opacity"] = 0.55; bar.stroke = color; bar["stroke-width"] = 2.5; }
      c.svg.append("rect").attr(bar).append("title").text(word + " " + t[0] + ": " + t[1].toFixed(2) + " %" + (t[2] ? ", " + t[2] : ""));
      if (t[2]) c.svg.append("rect").attr({ x: bar.x, y: c.bottom + 1, width: room, height: 4, fill: color });
    });
  });
  runs[0].tops.forEach(function (t, i) {
    if (i % step === 0) c.svg.append("text").attr({ x: c.x(i + 0.5), y: c.bottom + 18, "text-anchor": "middle" }).text(t[0]);
  });
}

function draw_all() {
  root.selectAll("figure").remove();
  fault_strip();
  steps();
  completion_times();
  tops();
  queues();
  windows();
}

names();
draw_all();
document.body.setAttribute("data-ready", runs.length + " runs, " + root.selectAll("figure").size() + " charts");
})();
