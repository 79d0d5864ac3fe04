// Charts by uPlot: points, bars and broken lines tell apart what colours do.

import { element } from "./asking.js";
import { number, roundShare, short } from "./numbers.js";

const BLUE = "#0072B2", ORANGE = "#D55E00", GREY = "#767676", INK = "#222222";
const HEIGHT = 260, FONT = "12px sans-serif";
const LONGEST_NAME = 28; // letters beside an axis
const MOST_SHARE = 0.45; // of the width, for names
const drawn = new Map(); // by place: the chart, which is made anew when what it shows changes

const pixels = () => devicePixelRatio || 1;
const dashed = (...dash) => dash.map((length) => length * pixels()); // uPlot does not scale them

function axis(label, more = {}) {
  return { label, stroke: INK, grid: { stroke: "#E6E6E6", width: 1 }, labelSize: 22, font: FONT, labelFont: FONT,
    values: (_, ticks) => ticks.map(short), ...more };
}

function put(place, told, options, data) {
  const old = drawn.get(place);
  if (old) old.destroy();
  const size = { width: Math.max(place.clientWidth, 200), height: options.height || HEIGHT };
  const common = { legend: { show: false }, cursor: { show: false }, ...options, ...size };
  drawn.set(place, new uPlot(common, data, place));
  place.setAttribute("role", "img");
  place.setAttribute("aria-label", told);
  place.redraw = () => put(place, told, options, data);
}

export function resize() {
  for (const place of [...drawn.keys()]) place.redraw();
}

export function remove(place) {
  const old = drawn.get(place);
  if (old) old.destroy();
  drawn.delete(place);
}

// Bars from low to high at each x (or, lying, from left to right at each y), and a dot in the middle, whole at edges, too;
// an arrow where that is above what is shown.
function whiskers(chart, x, y, low, high, lying = false) {
  const { ctx, bbox } = chart, ratio = pixels();
  const at = (value, scale) => chart.valToPos(value, scale, true);
  const known = x.map((_, i) => i).filter((i) => x[i] !== null && y[i] !== null);
  const isAbove = (i) => at(y[i], "y") < bbox.top - 1;
  ctx.save();
  ctx.strokeStyle = ctx.fillStyle = BLUE;
  ctx.lineWidth = 1.4 * ratio;
  ctx.setLineDash([]);
  ctx.save();
  ctx.beginPath();
  ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
  ctx.clip();
  for (const i of known) {
    if (low[i] === null || high[i] === null) continue;
    ctx.beginPath();
    ctx.moveTo(at(lying ? low[i] : x[i], "x"), at(lying ? y[i] : low[i], "y"));
    ctx.lineTo(at(lying ? high[i] : x[i], "x"), at(lying ? y[i] : high[i], "y"));
    ctx.stroke();
  }
  ctx.restore();
  for (const i of known) {
    ctx.beginPath();
    if (isAbove(i)) {
      const [middle, top, reach] = [at(x[i], "x"), bbox.top, 5 * ratio];
      ctx.moveTo(middle, top);
      ctx.lineTo(middle - reach, top + 1.6 * reach);
      ctx.lineTo(middle + reach, top + 1.6 * reach);
    } else {
      ctx.arc(at(x[i], "x"), at(y[i], "y"), 3.5 * ratio, 0, 2 * Math.PI);
    }
    ctx.fill();
  }
  ctx.restore();
  return known.some(isAbove);
}

function uprights(chart, rows) {
  const { ctx, bbox } = chart;
  ctx.save();
  ctx.strokeStyle = INK;
  ctx.lineWidth = pixels();
  for (const row of rows) {
    const at = chart.valToPos(row, "x", true);
    ctx.beginPath();
    ctx.moveTo(at, bbox.top);
    ctx.lineTo(at, bbox.top + bbox.height);
    ctx.stroke();
  }
  ctx.restore();
}

function legend(place, entries) {
  const line = element("p", "", "legend");
  for (const [colour, mark, text] of entries) {
    const one = element("span");
    one.append(element("b", mark, colour), ` ${text}`);
    line.append(one);
  }
  place.replaceChildren(line);
}

// 1, 2 and 5 of each power of ten; powers alone where there are many; the ends where there would be fewer than two.
function rounds(low, high) {
  const found = [];
  const steps = high / low > 2000 ? [1] : high / low > 30 ? [1, 3] : [1, 2, 5];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    found.push(...steps.map((step) => step * power).filter((value) => value >= low && value <= high));
  }
  return found.length > 1 ? found : [...new Set([Math.ceil(low), Math.floor(high)])];
}

// What is worth to be seen: one wild window at the start shall not press all others flat.
function heights(panel, lines, low, high) {
  const late = (values) => values.slice(Math.floor(values.length / 3)).filter((value) => value !== null);
  if (panel.has_zero) {
    const others = lines.filter((line) => line.name !== "theory").flatMap((line) => late(line.value));
    return [0, 1.6 * Math.max(...late(panel.value), ...others) || 1];
  }
  const seen = [...late(panel.value), ...late(low), ...late(high)];
  const lowest = Math.min(...panel.value, ...seen), highest = Math.max(...seen);
  const room = 0.1 * (highest - lowest) || 0.1 * Math.abs(highest) || 1;
  return [lowest - room, highest + room];
}

export function curve(box, panel, changes) {
  if (!box.children.length) {
    box.append(element("h3"), element("div", "", "chart"), element("div"), element("p", "", "note"));
  }
  const [title, place, marks, words] = box.children;
  title.textContent = panel.title;
  const lines = Object.entries(panel.baselines).map(([name, line]) => ({ name, ...line }));
  if (panel.theory) lines.push({ name: "theory", ...panel.theory });
  const windows = [panel.row, panel.value];
  const data = uPlot.join([windows, ...lines.map((line) => [line.row, line.value])]);
  const reach = panel.error.map((error) => (error === null ? null : 2 * error));
  const low = panel.value.map((value, i) => (reach[i] === null ? null : value - reach[i]));
  const high = panel.value.map((value, i) => (reach[i] === null ? null : value + reach[i]));
  const dashes = [[2, 3], [8, 3, 2, 3]];
  const series = lines.map((line, i) => ({ stroke: line.name === "theory" ? ORANGE : GREY, spanGaps: true, pxAlign: 0,
    width: line.name === "theory" ? 2.2 : 1.4, dash: dashed(...(line.name === "theory" ? [7, 5] : dashes[i])),
    points: { show: line.row.length === 1, fill: GREY } }));
  const bounds = [Math.min(...data[0]) * 0.9, Math.max(...data[0]) * 1.08], [bottom, top] = heights(panel, lines, low, high);
  const seen = (changes || []).map((one) => one.row).filter((row) => row > bounds[0] && row < bounds[1]);
  let isAbove = false;
  const last = panel.value.length - 1;
  const told = `${panel.title} after ${Math.round(panel.row[last])} rows: ${number(panel.value[last])}`;
  put(place, told, {
    scales: { x: { time: false, distr: 3, range: () => bounds }, y: { range: () => [bottom, top] } },
    axes: [axis("rows learnt", { splits: () => rounds(...bounds), filter: (_, ticks) => ticks }),
      axis(panel.unit, { size: 64 })],
    series: [{}, { stroke: BLUE, width: 0, paths: () => null, points: { show: false } }, ...series],
    hooks: { draw: [(chart) => {
      uprights(chart, seen);
      isAbove = whiskers(chart, ...windows, low, high);
    }] },
  }, data);
  place.dataset.points = panel.row.length;
  place.dataset.row = panel.row[last];
  place.dataset.theory = panel.theory ? panel.theory.row.length : 0;
  const entries = lines.map((line, i) => line.name === "theory" ? ["orange", "– –", "theory"]
    : ["grey", ["···", "–·–"][i], line.name]);
  if (isAbove) entries.push(["blue", "▲", "above what is shown"]);
  if (seen.length) entries.push(["", "│", "change point"]);
  legend(marks, [["blue", "●", "window ± 2 se"], ...entries]);
  words.textContent = panel.words;
}

export function reliability(place, bins, of) {
  const kept = bins.counts.map((count, i) => i).filter((i) => bins.counts[i] > 0);
  const said = kept.map((i) => bins.predicted[i]), came = kept.map((i) => bins.observed[i]);
  const reach = kept.map((i, k) => wilson(came[k], bins.counts[i]));
  put(place, `Reliability: how often ${of} came against the predicted probability`, {
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: () => [0, 1] } },
    axes: [axis("predicted probability"), axis("how often it came")],
    series: [{}, { stroke: GREY, dash: dashed(7, 5), width: 1.4, points: { show: false } }],
    hooks: { draw: [(chart) => whiskers(chart, said, came, reach.map((r) => r[0]), reach.map((r) => r[1]))] },
  }, [[0, 1], [0, 1]]);
}

function wilson(p, n) {
  const z = 2, middle = (p + z * z / (2 * n)) / (1 + z * z / n);
  const half = z * Math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n);
  return [middle - half, middle + half];
}

export function places(place, bins) {
  const total = bins.counts.reduce((a, b) => a + b, 0), share = bins.counts.length;
  const middle = bins.counts.map((_, i) => (bins.edges[i] + bins.edges[i + 1]) / 2);
  const density = bins.counts.map((count) => count * share / total);
  put(place, "Histogram of where targets fell in their predictions", {
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1.3)] } },
    axes: [axis("share of the prediction below the target"), axis("density")],
    series: [{}, { stroke: BLUE, fill: "#80B9D9", paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } },
      { stroke: GREY, dash: dashed(7, 5), width: 1.4, points: { show: false } }],
  }, [middle, density, middle.map(() => 1)]);
}

// The beginning and the end of a name, which tell names apart.
function cut(name, longest) {
  if (name.length <= longest) return name;
  const end = Math.floor((longest - 1) / 2);
  return `${name.slice(0, longest - 1 - end)}…${name.slice(-end)}`;
}

const ruler = document.createElement("canvas").getContext("2d");

function widthOf(text) {
  ruler.font = FONT;
  return ruler.measureText(text).width;
}

// Cut so far that they fit beside the axis; and how much room they take.
function namesBeside(place, names) {
  const most = MOST_SHARE * Math.max(place.clientWidth, 200);
  for (let longest = LONGEST_NAME; ; longest -= 2) {
    const shown = names.map((name) => cut(name, longest));
    const width = Math.max(...shown.map(widthOf)) + 20;
    if (width <= most || longest <= 8) return [shown, width];
  }
}

export function weights(place, found) {
  const y = found.map((_, i) => found.length - i), [names, size] = namesBeside(place, found.map((w) => w.name));
  const ends = [Math.min(0, ...found.map((w) => w.low)), Math.max(0, ...found.map((w) => w.high))];
  const room = 0.05 * (ends[1] - ends[0]) || 1;
  const [low, high] = [ends[0] - room, ends[1] + room];
  put(place, `Weights: ${found.slice(0, 5).map((w) => `${w.name} ${number(w.mean)}`).join(", ")}`, {
    height: 86 + 24 * found.length,
    scales: { x: { time: false, range: () => [low, high] }, y: { range: () => [0.3, found.length + 0.7] } },
    axes: [axis("weight"), axis(undefined, { size, labelSize: 0, splits: () => y, values: () => names })],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { draw: [(chart) => {
      uprights(chart, [0]);
      whiskers(chart, found.map((w) => w.mean), y, found.map((w) => w.low), found.map((w) => w.high), true);
    }] },
  }, [[low, high], [1, found.length]]);
}

export function bars(place, groups) {
  const parts = [];
  for (const [title, shares] of groups) {
    if (title) parts.push(element("h3", title));
    for (const [value, share] of shares) {
      const row = element("div", "", "bar"), bar = element("progress"), name = value === null ? "none" : `${value}`;
      bar.max = 1;
      bar.value = share || 0;
      bar.setAttribute("aria-label", `${title} ${name}`.trim());
      row.append(element("span", cut(name, LONGEST_NAME)), bar, element("span", roundShare(share || 0)));
      row.title = name;
      parts.push(row);
    }
  }
  place.replaceChildren(...parts);
}
