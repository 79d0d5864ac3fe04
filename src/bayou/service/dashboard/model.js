import { askJson, byId, element, listen, tell } from "./asking.js";
import * as charts from "./charts.js";

const name = decodeURIComponent(location.pathname.split("/").pop());
const path = `/v1/models/${encodeURIComponent(name)}`;
const AGAIN = 2000; // milliseconds until a stream that broke is asked for again
const number = (value) => (value === null || value === undefined ? "–" : value.toLocaleString("en", { maximumFractionDigits: 4 }));
const share = (p) => { // near 0 and 1 with as many digits as it takes
  const edge = Math.min(p, 1 - p);
  return p.toFixed(edge > 0 ? Math.min(Math.max(1 - Math.floor(Math.log10(edge)), 3), 6) : 3);
};
const find = (selector) => document.querySelector(selector);
let latest = null;
let stream = null;

function facts(status) {
  const shown = [["target", status.target], ["task", status.task], ["rows learnt", number(status.examples)],
    ["rows/s", number(status.rows_per_second)], ["labels pending", number(status.pending)]];
  if (status.drift_probability !== undefined) shown.push(["P(drift)", number(status.drift_probability)]);
  if (status.coverage) shown.push(["coverage of 90 %", `${number(status.coverage.value)} ± ${number(status.coverage.error)}`]);
  const scores = { log_loss: "log loss", accuracy: "accuracy", ece: "calibration error", rmse: "RMSE", nlpd: "NLPD" };
  for (const [score, title] of Object.entries(scores)) {
    const found = status.scores[score];
    if (found && found.value !== null) shown.push([title, `${number(found.value)} ± ${number(found.error)}`]);
  }
  byId("facts").replaceChildren(...shown.map(([title, text]) => {
    const box = element("div");
    box.dataset.fact = title;
    box.append(element("dt", title), element("dd", text));
    return box;
  }));
}

function calibration(status) {
  const bins = status.reliability, place = find("#reliability .chart");
  if (!bins) return;
  const note = find("#reliability .note");
  if (bins.edges) {
    charts.places(place, bins);
    note.textContent = "Where targets fell in their predictions: flat if predictions are true.";
  } else {
    charts.reliability(place, bins);
    const of = status.classes.length === 2 ? status.classes[1] : "the most probable class";
    note.textContent = `How often ${of} came where it was given that probability, ± 2 standard errors; broken line: true probabilities.`;
  }
}

function found(status) {
  const names = { drift: "Drift per row, of the prior variance", flip_rate: "Labels that are flipped" };
  const groups = Object.entries(status.found).map(([key, shares]) => [names[key] || key, shares]);
  charts.bars(find("#found .bars"), groups);
  if (!groups.length) find("#found .bars").textContent = "One learner learns here, not a bank of them.";
  const changes = status.change_points;
  byId("changes").textContent = changes === null ? "Not looked for." : changes.length
    ? changes.map((one) => `row ${number(one.row)} (${one.probability.toFixed(2)})`).join(", ") : "None so far.";
}

function fields(status) {
  const place = find("#what-if .fields"), known = Object.entries(status.columns);
  if (place.children.length === known.length) return; // what is typed stays
  place.replaceChildren(...known.map(([column, kind]) => {
    const label = element("label", `${column} (${kind})`), input = element("input");
    input.name = column;
    input.dataset.kind = kind;
    if (kind === "number") { input.type = "number"; input.step = "any"; }
    label.append(input);
    return label;
  }));
}

function show(status) {
  latest = status;
  facts(status);
  status.panels.forEach((panel, i) => {
    const boxes = find("#curve .panels");
    if (!boxes.children[i]) boxes.append(element("div"));
    charts.curve(boxes.children[i], panel);
  });
  calibration(status);
  if (status.weights.length) charts.weights(find("#weights .chart"), status.weights);
  found(status);
  fields(status);
}

function answer(said) {
  const place = byId("answer");
  if (said === null) { place.textContent = "Nothing was learnt yet."; return; }
  if (said.probabilities === undefined) {
    place.replaceChildren(element("strong", `${number(said.mean)} ± ${number(said.sd)}`),
      element("p", `between ${number(said.low)} and ${number(said.high)} with probability 90 %`));
    return;
  }
  const shares = Object.entries(said.probabilities).sort((a, b) => b[1] - a[1]);
  const bits = -shares.reduce((sum, [, p]) => sum + (p > 0 ? p * Math.log2(p) : 0), 0);
  const bars = element("div");
  const sure = said.low === undefined ? "" : `, between ${share(said.low)} and ${share(said.high)} with 90 %`;
  place.replaceChildren(element("strong", `${said.label}: probability ${share(shares[0][1])}${sure}`),
    element("p", `uncertainty ${bits.toFixed(2)} bits, of at most ${Math.log2(shares.length).toFixed(2)}`), bars);
  charts.bars(bars, [["", shares.slice(0, 12)]]);
}

async function predict(event) {
  event.preventDefault();
  const row = {};
  for (const input of find("#what-if .fields").querySelectorAll("input")) {
    if (input.value !== "") row[input.name] = input.dataset.kind === "number" ? Number(input.value) : input.value;
  }
  try {
    answer((await askJson(`${path}:predict`, { instances: [row], issue_id: false, intervals: true })).predictions[0]);
  } catch (error) {
    byId("answer").textContent = error.message;
  }
}

function state(text, on) {
  byId("live").textContent = text;
  byId("live").className = on ? "on" : "off";
}

async function watch() {
  const mine = stream = new AbortController();
  let again = true;
  try {
    await listen(`${path}/events`, mine.signal, (kind, data) => {
      if (kind === "deleted") { again = false; state("deleted", false); return; }
      show(data);
      state("live", true);
      tell("");
    });
    if (again) state("connection lost", false);
  } catch (error) {
    if (mine.signal.aborted) return;
    state("connection lost", false);
    tell(error.message);
  }
  if (again && stream === mine) setTimeout(() => stream === mine && watch(), AGAIN);
}

byId("name").textContent = name;
document.title = `${name} – bayou`;
find("#what-if form").addEventListener("submit", predict);
addEventListener("resize", () => latest && charts.resize());
document.addEventListener("visibilitychange", () => { // a page that nobody sees asks for nothing
  stream.abort();
  stream = null;
  if (!document.hidden) watch();
});
watch();
