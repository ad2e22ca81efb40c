// The views of one page. Data: what story.cc writes. All views show one span of time; dragging in a view chooses it.
(function () {
"use strict";
var data = JSON.parse(document.getElementById("data").textContent);
var WIDTH = Math.max(700, Math.min(1500, document.documentElement.clientWidth - 60)), LEFT = 70, RIGHT = 15;
var COLOURS = ["#1f77b4", "#ff7f0e", "#2ca02c", "#9467bd", "#8c564b", "#17becf", "#bcbd22", "#e377c2"];
// In the order of Story::PsnKind.
var PSN_KINDS = [["sent", "#1f77b4"], ["sent again", "#d62728"], ["arrived", "#9ac7e6"], ["acknowledged up to (CACK)", "#2ca02c"],
                 ["acknowledged singly (SACK)", "#98df8a"], ["taken for lost, timeout", "#ff7f0e"], ["duplicate", "#9467bd"]];
var root = d3.select("#views"), charts = [], whole = [Infinity, -Infinity], span;

function grow(t) { if (t !== null && isFinite(t)) { if (t < whole[0]) whole[0] = t; if (t > whole[1]) whole[1] = t; } }
data.files.forEach(function (f) {
  f.streams.concat([f.window, f.credit, f.rtt, f.choices, f.paths]).forEach(function (s) {
    if (s.rows.length) { grow(s.rows[0][0]); grow(s.rows[s.rows.length - 1][0]); }
  });
});
data.packets.rows.forEach(function (r) { grow(r[1]); grow(r[2]); });
if (data.events.rows.length) { grow(data.events.rows[0][0]); grow(data.events.rows[data.events.rows.length - 1][0]); }
if (!isFinite(whole[0])) whole = [0, 1];
if (whole[0] === whole[1]) whole[1] = whole[0] + 1e-6;
span = whole.slice();

function note(to, text, bad) { to.append("p").attr("class", bad ? "note bad" : "note").text(text); }
function number(n) { return d3.format(",")(n); }
function left_out(to, what, series) {
  var shown = d3.sum(series, function (s) { return s.rows.length; }), total = d3.sum(series, function (s) { return s.total; });
  if (shown < total) note(to, what + ": " + number(shown) + " of " + number(total) + " are shown, taken from all parts alike.");
}
function key(to, entries) {
  var k = to.append("div").attr("class", "key note");
  entries.forEach(function (e) { var s = k.append("span"); s.append("i").style("background", e[1]); s.append("span").text(e[0]); });
}
function section(title, id) { var s = root.append("section").attr("id", id); s.append("h2").text(title); return s; }
function range(rows, y) {
  var low = Infinity, high = -Infinity;
  rows.forEach(function (r) { if (r[0] >= span[0] && r[0] <= span[1]) { var v = y(r); if (v < low) low = v; if (v > high) high = v; } });
  return [low, high];
}

// A canvas under an SVG with the axes. `draw(context, x, y)` paints; `domain()` is that of y, which grows upwards unless `down`.
function chart(to, height, label, domain, draw) {
  var box = to.append("div").attr("class", "chart").style({ width: WIDTH + "px", height: height + "px" });
  var ratio = window.devicePixelRatio || 1;
  var canvas = box.append("canvas").attr({ width: WIDTH * ratio, height: height * ratio }).style({ width: WIDTH + "px", height: height + "px" });
  var svg = box.append("svg").attr({ width: WIDTH, height: height });
  var x = d3.scale.linear().range([LEFT, WIDTH - RIGHT]), y = d3.scale.linear().range([height - 25, 10]);
  var gx = svg.append("g").attr({ "class": "axis", transform: "translate(0," + (height - 25) + ")" });
  var gy = svg.append("g").attr({ "class": "axis", transform: "translate(" + LEFT + ",0)" });
  svg.append("text").attr({ x: LEFT + 6, y: 20 }).style("font-size", "11px").text(label);
  var brush = svg.append("rect").attr({ "class": "brush", y: 10, height: height - 35 }).style("display", "none"), from = null;
  svg.on("mousedown", function () { from = d3.mouse(svg.node())[0]; d3.event.preventDefault(); })
     .on("mousemove", function () {
       if (from === null) return;
       var to_x = d3.mouse(svg.node())[0];
       brush.style("display", null).attr({ x: Math.min(from, to_x), width: Math.abs(to_x - from) });
     })
     .on("mouseup", function () {
       if (from === null) return;
       var to_x = d3.mouse(svg.node())[0], ends = [x.invert(Math.min(from, to_x)), x.invert(Math.max(from, to_x))];
       var is_drag = Math.abs(to_x - from) > 5;
       from = null; brush.style("display", "none");
       if (is_drag) show(ends);
     })
     .on("dblclick", function () { show(whole); });
  function paint() {
    var d = domain();
    if (!isFinite(d[0])) d = [0, 1];
    if (d[0] === d[1]) d = [d[0] - 1, d[1] + 1];
    x.domain(span); y.domain(d);
    gx.call(d3.svg.axis().scale(x).orient("bottom").ticks(10));
    gy.call(d3.svg.axis().scale(y).orient("left").ticks(6).tickFormat(d3.format("s")));
    var c = canvas.node().getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, WIDTH, height);
    c.save(); c.beginPath(); c.rect(LEFT, 5, WIDTH - LEFT - RIGHT, height - 30); c.clip();
    draw(c, x, y);
    c.restore();
  }
  charts.push(paint);
}
function dots(c, x, y, rows, value, size) {
  rows.forEach(function (r) { if (r[0] >= span[0] && r[0] <= span[1]) c.fillRect(x(r[0]) - size / 2, y(value(r)) - size / 2, size, size); });
}
function steps(c, x, y, rows, value) {
  var before = null;
  c.beginPath();
  rows.forEach(function (r) {
    var px = x(r[0]), py = y(value(r));
    if (before === null) c.moveTo(px, py); else { c.lineTo(px, before); c.lineTo(px, py); }
    before = py;
  });
  c.stroke();
}

// --- Sequence diagram: one end on the left, the other on the right, time from top to bottom ---
function packet_colour(r) {
  if (r[3]) return "#d62728";
  if (/NACK/.test(r[4])) return "#d62728";
  if (/ retx/.test(r[4]) || /^TRIMMED/.test(r[4])) return "#ff7f0e";
  if (/^ACK/.test(r[4])) return "#2ca02c";
  if (/^(CP|CTL|NOOP|PROBE)/.test(r[4])) return "#17becf";
  return "#1f77b4";
}
function sequence() {
  if (!data.packets.rows.length) return;
  var s = section("Sequence", "sequence"), height = 620, names = data.packets.names;
  left_out(s, "Packets", [data.packets]);
  key(s, [["request", "#1f77b4"], ["ACK", "#2ca02c"], ["control", "#17becf"], ["sent again, trimmed", "#ff7f0e"], ["lost, NACK, dropped, copy", "#d62728"]]);
  var info = s.append("p").attr("class", "note").html("&nbsp;");
  var box = s.append("div").attr("class", "chart").style({ width: WIDTH + "px", height: height + "px" }), ratio = window.devicePixelRatio || 1;
  var canvas = box.append("canvas").attr({ width: WIDTH * ratio, height: height * ratio }).style({ width: WIDTH + "px", height: height + "px" });
  var svg = box.append("svg").attr({ width: WIDTH, height: height }), y = d3.scale.linear().range([30, height - 10]);
  var axis = svg.append("g").attr({ "class": "axis", transform: "translate(" + LEFT + ",0)" }), drawn = [];
  var a = 320, b = WIDTH - 320, from = null;
  svg.append("text").attr({ x: a, y: 18, "text-anchor": "middle" }).text(names[0] || "?");
  svg.append("text").attr({ x: b, y: 18, "text-anchor": "middle" }).text(names[1] || "(no capture of this end)");
  var brush = svg.append("rect").attr({ "class": "brush", x: LEFT, width: WIDTH - LEFT - RIGHT }).style("display", "none");
  svg.on("mousedown", function () { from = d3.mouse(svg.node())[1]; d3.event.preventDefault(); })
     .on("mousemove", function () {
       var at = d3.mouse(svg.node());
       if (from !== null) return brush.style("display", null).attr({ y: Math.min(from, at[1]), height: Math.abs(at[1] - from) });
       var best = null, distance = 12;
       drawn.forEach(function (d) {
         var share = (at[0] - d.x1) / (d.x2 - d.x1);
         if (share < 0 || share > 1) return;
         var off = Math.abs(d.y1 + share * (d.y2 - d.y1) - at[1]);
         if (off < distance) { distance = off; best = d.r; }
       });
       info.text(best ? describe(best) : " ");
     })
     .on("mouseup", function () {
       if (from === null) return;
       var to = d3.mouse(svg.node())[1], ends = [y.invert(Math.min(from, to)), y.invert(Math.max(from, to))], is_drag = Math.abs(to - from) > 5;
       from = null; brush.style("display", "none");
       if (is_drag) show(ends);
     })
     .on("dblclick", function () { show(whole); });
  function describe(r) {
    return r[4] + (r[1] !== null && r[2] !== null ? " | " + d3.format(".1f")((r[2] - r[1]) * 1e6) + " us" : "") + (r[3] ? " | " + r[3] : "");
  }
  charts.push(function () {
    y.domain(span);
    axis.call(d3.svg.axis().scale(y).orient("left").ticks(12));
    var c = canvas.node().getContext("2d");
    c.setTransform(ratio, 0, 0, ratio, 0, 0); c.clearRect(0, 0, WIDTH, height);
    c.strokeStyle = "#888"; c.beginPath(); c.moveTo(a, 25); c.lineTo(a, height); c.moveTo(b, 25); c.lineTo(b, height); c.stroke();
    var rows = data.packets.rows.filter(function (r) { var t = r[1] === null ? r[2] : r[1]; return t >= span[0] && t <= span[1]; });
    var labels = rows.length <= 45, guess = (span[1] - span[0]) * 0.02;
    drawn = [];
    rows.forEach(function (r) {
      var t1 = r[1] === null ? r[2] - guess : r[1], through = r[2] !== null, t2 = through ? r[2] : r[1] + guess;
      var x1 = r[0] === 0 ? a : b, x2 = r[0] === 0 ? b : a;
      if (!through && r[3]) x2 = x1 + (x2 - x1) * 0.6;
      if (r[1] === null) x1 = x1 + (x2 - x1) * 0.4;
      c.strokeStyle = c.fillStyle = packet_colour(r); c.lineWidth = r[3] ? 1.5 : 1;
      c.setLineDash(r[1] === null || (!through && !r[3]) ? [4, 3] : []);
      c.beginPath(); c.moveTo(x1, y(t1)); c.lineTo(x2, y(t2)); c.stroke();
      c.setLineDash([]);
      var dx = r[0] === 0 ? -1 : 1;
      if (through && !r[3]) { c.beginPath(); c.moveTo(x2, y(t2)); c.lineTo(x2 + 7 * dx, y(t2) - 4); c.lineTo(x2 + 7 * dx, y(t2) + 3); c.fill(); }
      else if (r[3]) { c.beginPath(); c.moveTo(x2 - 4, y(t2) - 4); c.lineTo(x2 + 4, y(t2) + 4); c.moveTo(x2 + 4, y(t2) - 4); c.lineTo(x2 - 4, y(t2) + 4); c.stroke(); }
      if (labels) {
        c.font = "10px sans-serif"; c.textAlign = r[0] === 0 ? "right" : "left";
        c.fillText(r[4].slice(0, 58), r[0] === 0 ? a - 5 : b + 5, y(t1) + 3);
      }
      drawn.push({ x1: x1, y1: y(t1), x2: x2, y2: y(t2), r: r });
    });
  });
  note(s, "A cross: it did not arrive, or was dropped where it did. Dashed: only one end has it. With 45 packets or fewer each has its text; point at others.");
}

// --- PSNs ---
function psns() {
  var streams = [];
  data.files.forEach(function (f) {
    f.streams.forEach(function (s) { streams.push({ name: f.name + ", PDC " + s.pdc + (s.arriving ? ", what arrives" : ""), rows: s.rows, total: s.total }); });
  });
  if (!streams.length) return;
  streams.sort(function (p, q) { return q.total - p.total; });
  var s = section("PSN over time", "psns"), chosen = streams[0];
  s.append("select").on("change", function () { chosen = streams[this.selectedIndex]; paint_all(); })
    .selectAll("option").data(streams).enter().append("option").text(function (o) { return o.name + " (" + number(o.total) + ")"; });
  key(s, PSN_KINDS);
  left_out(s, "Points", streams);
  var hidden = d3.sum(data.files, function (f) { return f.streams_left_out; });
  if (hidden) note(s, number(hidden) + " points belong to further PDCs, which are not kept apart.");
  function value(r) { return r[1]; }
  chart(s, 320, "PSN, from the first one of the PDC", function () { return range(chosen.rows, value); }, function (c, x, y) {
    [2, 0, 4, 3, 6, 1, 5].forEach(function (kind) {
      c.fillStyle = PSN_KINDS[kind][1];
      dots(c, x, y, chosen.rows.filter(function (r) { return r[2] === kind; }), value, kind === 1 || kind === 5 || kind === 6 ? 5 : 3);
    });
  });
}

// --- Window, credit, round trips ---
function curves(id, title, label, parts) {
  var all = [];
  data.files.forEach(function (f) {
    parts.forEach(function (p) {
      if (f[p.of].rows.length && d3.max(f[p.of].rows, p.value) > 0) all.push({ name: f.name + ": " + p.name, rows: f[p.of].rows, total: f[p.of].total, value: p.value, dots: p.dots });
    });
  });
  if (!all.length) return;
  var s = section(title, id);
  key(s, all.map(function (o, i) { return [o.name, COLOURS[i % COLOURS.length]]; }));
  left_out(s, "Points", all);
  chart(s, 240, label, function () { return [0, 1.05 * d3.max(all, function (o) { return Math.max(0, range(o.rows, o.value)[1]); })]; }, function (c, x, y) {
    all.forEach(function (o, i) {
      c.strokeStyle = c.fillStyle = COLOURS[i % COLOURS.length];
      if (o.dots) dots(c, x, y, o.rows, o.value, 3); else steps(c, x, y, o.rows, o.value);
    });
  });
}
function second(r) { return r[1]; }
function third(r) { return r[2]; }

// --- Paths ---
function paths() {
  data.files.forEach(function (f) {
    if (!f.paths.rows.length) return;
    var s = section("Path scores: " + f.name, "paths");
    left_out(s, "Samples", [f.paths]);
    note(s, "A row for each entropy value and peer, a column for each sample. White: good; darker: passed over for more turns; red: evicted; orange: returning. Below: the last sample.");
    var keys = {}, order = [];
    f.paths.rows.forEach(function (r) { r[2].forEach(function (p) { var k = r[1] + " " + p.entropy; if (!(k in keys)) { keys[k] = order.length; order.push(k); } }); });
    chart(s, 220, "path", function () { return [-0.5, order.length - 0.5]; }, function (c, x, y) {
      f.paths.rows.forEach(function (r, i) {
        var x1 = x(r[0]), later = f.paths.rows.slice(i + 1, i + 20).filter(function (q) { return q[1] === r[1]; })[0], x2 = later ? x(later[0]) : x(span[1]);
        r[2].forEach(function (p) {
          var row = keys[r[1] + " " + p.entropy], shade = Math.max(80, 245 - 12 * p.score);
          c.fillStyle = p.state === "evicted" ? "#d62728" : p.state === "returning" ? "#ff7f0e" : "rgb(" + shade + "," + shade + ",250)";
          c.fillRect(x1, y(row + 0.45), Math.max(2, x2 - x1), y(row - 0.45) - y(row + 0.45));
        });
      });
    });
    var last = f.paths.rows[f.paths.rows.length - 1], columns = ["entropy", "plane", "state", "score", "rtt_us", "sent", "marks", "trims", "losses"];
    table(s.append("details"), "Last sample, peer " + last[1], columns, last[2].slice(0, 256).map(function (p) { return columns.map(function (k) { return p[k]; }); }));
  });
  var chosen = data.files.filter(function (f) { return f.choices.rows.length; });
  if (!chosen.length) return;
  var s = section("Path choices", "choices");
  left_out(s, "Packets", chosen.map(function (f) { return f.choices; }));
  key(s, chosen.map(function (f, i) { return [f.name, COLOURS[i % COLOURS.length]]; }).concat([["sent again", "#d62728"]]));
  var values = d3.set(d3.merge(chosen.map(function (f) { return f.choices.rows.map(second); }))).values().map(Number).sort(d3.ascending), rank = {};
  values.forEach(function (v, i) { rank[v] = i; });
  function row(r) { return rank[r[1]]; }
  note(s, "A row for each of " + number(values.length) + " entropy values, from " + values[0] + " to " + values[values.length - 1] + ".");
  chart(s, 220, "path", function () { return [-0.5, values.length - 0.5]; }, function (c, x, y) {
    chosen.forEach(function (f, i) {
      [0, 1].forEach(function (again) {
        c.fillStyle = again ? "#d62728" : COLOURS[i % COLOURS.length];
        dots(c, x, y, f.choices.rows.filter(function (r) { return r[2] === again; }), row, again ? 5 : 3);
      });
    });
  });
}
function table(to, title, columns, rows) {
  to.append("summary").text(title);
  var t = to.append("table");
  t.append("tr").selectAll("th").data(columns).enter().append("th").text(String);
  t.selectAll("tr.row").data(rows).enter().append("tr").attr("class", "row").selectAll("td").data(function (r) { return r; }).enter().append("td").text(String);
}

// --- Events ---
function events() {
  if (!data.events.rows.length) return;
  var s = section("Events", "list"), MOST = 1000, names = d3.set(data.events.rows.map(function (r) { return r[2]; })).values().sort();
  left_out(s, "Events", [data.events]);
  var name = s.append("select").on("change", fill), file = s.append("select").on("change", fill);
  name.selectAll("option").data(["all events"].concat(names)).enter().append("option").text(String);
  file.selectAll("option").data(["all files"].concat(data.files.map(function (f) { return f.name; }))).enter().append("option").text(String);
  var pdc = s.append("input").attr({ placeholder: "PDC", size: 8 }).on("input", fill), psn = s.append("input").attr({ placeholder: "PSN", size: 12 }).on("input", fill);
  var text = s.append("input").attr({ placeholder: "text" }).on("input", fill), count = s.append("span").attr("class", "note");
  var body = s.append("div").attr("id", "events").append("table"), head = ["s", "file", "event", "PDC", "PSN", ""];
  function fill() {
    var wanted = name.node().selectedIndex ? name.node().value : null, of = file.node().selectedIndex - 1;
    var p = pdc.node().value.trim(), q = psn.node().value.trim(), t = text.node().value;
    var rows = data.events.rows.filter(function (r) {
      return r[0] >= span[0] && r[0] <= span[1] && (!wanted || r[2] === wanted) && (of < 0 || r[1] === of) && (!p || String(r[3]) === p) &&
             (!q || String(r[4]) === q) && (!t || r[2].indexOf(t) >= 0 || r[5].indexOf(t) >= 0);
    });
    count.text(number(rows.length) + " match" + (rows.length > MOST ? "; the first " + number(MOST) + " are listed" : ""));
    body.selectAll("tr").remove();
    body.append("tr").selectAll("th").data(head).enter().append("th").text(String);
    var tr = body.selectAll("tr.row").data(rows.slice(0, MOST)).enter().append("tr")
      .attr("class", function (r) { return /nack|drop|retrans|rto|loss|duplicate|evicted/.test(r[2]) ? "row rare" : "row"; });
    tr.selectAll("td").data(function (r) {
      return [r[0].toFixed(6), data.files[r[1]].name, r[2], r[3] < 0 ? "" : r[3], r[4] < 0 ? "" : r[4], r[5]];
    }).enter().append("td").text(String);
  }
  charts.push(fill);
}

// --- Counters ---
function counters() {
  var files = data.files.filter(function (f) { return f.counters; });
  if (!files.length) return;
  var s = section("Counters and drop reasons", "counters");
  [["drops", "drop reason"], ["events", "event"]].forEach(function (part) {
    var keys = d3.set(d3.merge(files.map(function (f) { return d3.keys(f.counters[part[0]]); }))).values().sort();
    if (!keys.length) return note(s, "Nothing was dropped.");
    var t = s.append("table");
    t.append("tr").selectAll("th").data([part[1]].concat(files.map(function (f) { return f.name; }))).enter().append("th").text(String);
    keys.forEach(function (k) {
      t.append("tr").selectAll("td").data([k].concat(files.map(function (f) { return number(f.counters[part[0]][k] || 0); }))).enter()
        .append("td").attr("class", function (d, i) { return i ? "n" : null; }).text(String);
    });
    s.append("br");
  });
}

function show(to) { span = [Math.max(to[0], whole[0]), Math.min(to[1], whole[1])]; if (span[1] <= span[0]) span = whole.slice(); paint_all(); }
function paint_all() {
  d3.select("#span").text(span[0].toFixed(6) + " s to " + span[1].toFixed(6) + " s of " + whole[0].toFixed(6) + " to " + whole[1].toFixed(6));
  charts.forEach(function (paint) { paint(); });
}

d3.select("#all").on("click", function () { show(whole); });
d3.select("#in").on("click", function () { var w = span[1] - span[0]; show([span[0] + w / 4, span[1] - w / 4]); });
d3.select("#out").on("click", function () { var w = span[1] - span[0]; show([span[0] - w / 2, span[1] + w / 2]); });
d3.select("#back").on("click", function () { var w = (span[1] - span[0]) / 2; show([span[0] - w, span[1] - w]); });
d3.select("#on").on("click", function () { var w = (span[1] - span[0]) / 2; show([span[0] + w, span[1] + w]); });
data.files.forEach(function (f) {
  note(d3.select("#files"), f.name + ": " + f.kind + ", " + number(f.lines) + (f.kind === "capture" ? " packet" : " line") + (f.lines === 1 ? "" : "s") +
       (f.wrong ? ", of which " + number(f.wrong) + " could not be read" : "") + (f.notes.length ? ". " + f.notes.join(" ") : ""), f.wrong > 0);
});
if (!data.clocks_agree) note(d3.select("#files"), "No packet is both in an event log and in a capture: their times cannot be brought together.", true);
sequence();
psns();
curves("window", "Window and credit", "bytes", [{ of: "window", name: "window", value: second }, { of: "window", name: "in flight", value: third }, { of: "credit", name: "credit granted", value: second, dots: true }]);
curves("rtt", "Round trips", "us", [{ of: "rtt", name: "round trip", value: second, dots: true }, { of: "rtt", name: "base", value: third }]);
paths();
events();
counters();
// "#view=NAME" leaves one view alone; "#span=FROM,TO" in seconds.
location.hash.slice(1).split("&").forEach(function (part) {
  var of = part.split("=");
  if (of[0] === "view") {
    root.selectAll("section").filter(function () { return this.id !== of[1]; }).style("display", "none");
    d3.selectAll("h1, #files, #top .note").style("display", "none");
  }
  if (of[0] === "span") span = of[1].split(",").map(Number);
});
show(span);
document.body.setAttribute("data-ready", data.files.length + " files, " + root.selectAll("section").size() + " views");
})();
