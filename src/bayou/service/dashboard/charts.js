// Charts by uPlot: points, bars and broken lines tell apart what colours do.

import { element } from "./asking.js";

const BLUE = "#0072B2", ORANGE = "#D55E00", GREY = "#767676", INK = "#222222";
const HEIGHT = 260;
const drawn = new Map(); // by place: the chart, which is made anew when what it shows changes

function axis(label, more = {}) {
  return { label, stroke: INK, grid: { stroke: "#E6E6E6", width: 1 }, labelSize: 22, font: "12px sans-serif",
    labelFont: "12px sans-serif", ...more };
}

function put(place, options, data) {
  const old = drawn.get(place);
  if (old) old.destroy();
  const size = { width: Math.max(place.clientWidth, 200), height: options.height || HEIGHT };
  const common = { legend: { show: false }, cursor: { show: false }, ...options, ...size };
  drawn.set(place, new uPlot(common, data, place));
  place.redraw = () => put(place, options, data);
}

export function resize() {
  for (const place of [...drawn.keys()]) place.redraw();
}

// Bars from low to high at each x (or, lying, from left to right at each y), and a dot in the middle.
function whiskers(chart, x, y, low, high, lying = false) {
  const { ctx } = chart;
  const ratio = devicePixelRatio || 1;
  const at = (value, scale) => chart.valToPos(value, scale, true);
  ctx.save();
  ctx.beginPath();
  ctx.rect(chart.bbox.left, chart.bbox.top, chart.bbox.width, chart.bbox.height);
  ctx.clip();
  ctx.strokeStyle = ctx.fillStyle = BLUE;
  ctx.lineWidth = 1.4 * ratio;
  ctx.setLineDash([]);
  x.forEach((_, i) => {
    if (x[i] === null || y[i] === null) return;
    ctx.beginPath();
    ctx.moveTo(at(lying ? low[i] : x[i], "x"), at(lying ? y[i] : low[i], "y"));
    ctx.lineTo(at(lying ? high[i] : x[i], "x"), at(lying ? y[i] : high[i], "y"));
    ctx.stroke();
    ctx.beginPath();
    ctx.arc(at(x[i], "x"), at(y[i], "y"), 3.5 * ratio, 0, 2 * Math.PI);
    ctx.fill();
  });
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

// 1, 2 and 5 of each power of ten; powers alone where there are many.
function rounds(low, high) {
  const found = [];
  const steps = high / low > 2000 ? [1] : high / low > 30 ? [1, 3] : [1, 2, 5];
  for (let power = 10 ** Math.floor(Math.log10(low)); power <= high; power *= 10) {
    found.push(...steps.map((step) => step * power).filter((value) => value >= low && value <= high));
  }
  return found;
}

function short(value) {
  return value >= 1e6 ? `${value / 1e6}M` : value >= 1e3 ? `${value / 1e3}k` : `${value}`;
}

export function curve(box, panel) {
  if (!box.children.length) {
    box.append(element("h3", panel.title), element("div", "", "chart"), element("div"), element("p", "", "note"));
  }
  const [, place, marks, words] = box.children;
  const lines = Object.entries(panel.baselines).map(([name, line]) => ({ name, ...line }));
  if (panel.theory) lines.push({ name: "theory", ...panel.theory });
  const windows = [panel.row, panel.value];
  const tables = [windows, ...lines.map((line) => [line.row, line.value])];
  const data = uPlot.join(tables);
  const low = panel.value.map((value, i) => value - 2 * panel.error[i]);
  const high = panel.value.map((value, i) => value + 2 * panel.error[i]);
  const late = panel.value.slice(Math.floor(panel.value.length / 3));
  const highest = Math.max(...late, ...lines.filter((l) => l.name !== "theory").flatMap((l) => l.value));
  const lowest = Math.min(...panel.value, ...(panel.theory ? panel.theory.value : []));
  const top = highest + 0.6 * Math.abs(highest);
  const dashes = [[2, 3], [8, 3, 2, 3]];
  const series = lines.map((line, i) => ({ stroke: line.name === "theory" ? ORANGE : GREY, spanGaps: true,
    width: line.name === "theory" ? 2.2 : 1.4, dash: line.name === "theory" ? [7, 5] : dashes[i], points: { show: false } }));
  const bounds = [Math.min(...data[0]) * 0.9, Math.max(...data[0]) * 1.08];
  put(place, {
    scales: { x: { time: false, distr: 3, range: () => bounds },
      y: { range: () => [lowest > 0 ? 0 : lowest - 0.1 * Math.abs(lowest), top] } },
    axes: [axis("rows learnt", { splits: () => rounds(...bounds), filter: (_, ticks) => ticks,
      values: (_, ticks) => ticks.map(short) }),
      axis(panel.unit, { size: 56 })],
    series: [{}, { stroke: BLUE, width: 0, paths: () => null, points: { show: false } }, ...series],
    hooks: { draw: [(chart) => whiskers(chart, ...windows, low, high)] },
  }, data);
  place.setAttribute("role", "img");
  const end = panel.value[panel.value.length - 1];
  place.setAttribute("aria-label", `${panel.title} after ${Math.round(panel.row.at(-1))} rows: ${end.toPrecision(3)}`);
  place.dataset.points = panel.row.length;
  place.dataset.row = panel.row.at(-1);
  place.dataset.theory = panel.theory ? panel.theory.row.length : 0;
  legend(marks, [["blue", "●", "window ± 2 se"], ...lines.map((line, i) =>
    line.name === "theory" ? ["orange", "– –", "theory"] : ["grey", ["···", "–·–"][i], line.name])]);
  words.textContent = panel.words;
}

export function reliability(place, bins) {
  const kept = bins.counts.map((count, i) => i).filter((i) => bins.counts[i] > 0);
  const said = kept.map((i) => bins.predicted[i]), came = kept.map((i) => bins.observed[i]);
  const reach = kept.map((i, k) => wilson(came[k], bins.counts[i]));
  put(place, {
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: () => [0, 1] } },
    axes: [axis("predicted probability"), axis("how often it came")],
    series: [{}, { stroke: GREY, dash: [7, 5], width: 1.4, points: { show: false } }],
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
  put(place, {
    scales: { x: { time: false, range: () => [0, 1] }, y: { range: (_, low, high) => [0, Math.max(high * 1.1, 1.3)] } },
    axes: [axis("share of the prediction below the target"), axis("density")],
    series: [{}, { stroke: BLUE, fill: "#80B9D9", paths: uPlot.paths.bars({ size: [0.9] }), points: { show: false } },
      { stroke: GREY, dash: [7, 5], width: 1.4, points: { show: false } }],
  }, [middle, density, middle.map(() => 1)]);
}

export function weights(place, found) {
  const y = found.map((_, i) => found.length - i), cut = (name) => name.length > 18 ? `${name.slice(0, 17)}…` : name;
  const ends = [Math.min(0, ...found.map((w) => w.low)), Math.max(0, ...found.map((w) => w.high))];
  const room = 0.05 * (ends[1] - ends[0]) || 1;
  const [low, high] = [ends[0] - room, ends[1] + room];
  put(place, {
    height: 70 + 24 * found.length,
    scales: { x: { time: false, range: () => [low, high] }, y: { range: () => [0.3, found.length + 0.7] } },
    axes: [axis("weight"), axis("", { size: 130, labelSize: 0, label: undefined, splits: () => y,
      values: () => found.map((w) => cut(w.name)) })],
    series: [{}, { paths: () => null, points: { show: false } }],
    hooks: { draw: [(chart) => whiskers(chart, found.map((w) => w.mean), y, found.map((w) => w.low),
      found.map((w) => w.high), true)] },
  }, [[low, high], [1, found.length]]);
}

export function bars(place, groups) {
  const parts = [];
  for (const [title, shares] of groups) {
    parts.push(element("h3", title));
    for (const [value, share] of shares) {
      const row = element("div", "", "bar"), bar = element("progress");
      bar.max = 1;
      bar.value = share || 0;
      row.append(element("span", value === null ? "none" : `${value}`), bar, element("span", (share || 0).toFixed(2)));
      parts.push(row);
    }
  }
  place.replaceChildren(...parts);
}
