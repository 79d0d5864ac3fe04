import { askJson, byId, element, listen, tell } from "./asking.js";
import * as charts from "./charts.js";
import { between, number, share, withError } from "./numbers.js";

const AGAIN = 2000; // milliseconds until a stream that broke is asked for again
const MOST_CLASSES = 12;
const HINTS = { number: "a number", category: "missing", text: "missing", date: "2024-02-03 10:00" };
const find = (selector) => document.querySelector(selector);
const name = nameInAddress();
const path = `/v1/models/${encodeURIComponent(name)}`;
let latest = null;
let stream = null;

function nameInAddress() {
  const last = location.pathname.split("/").pop();
  try { return decodeURIComponent(last); } catch { return last; }
}

// Whether a part of the page has anything to show; else it says that it has not.
function filled(id, has) {
  byId(id).classList.toggle("empty", !has);
  if (!has) byId(id).querySelectorAll(".chart").forEach(charts.remove);
  return has;
}

function facts(status) {
  const shown = [["target", status.target], ["task", status.task], ["rows learnt", number(status.examples)],
    ["rows/s", number(status.rows_per_second)], ["labels pending", number(status.pending)]];
  if (status.drift_probability !== undefined) shown.push(["P(drift)", share(status.drift_probability)]);
  if (status.coverage) shown.push(["coverage of 90 %", withError(status.coverage.value, status.coverage.error)]);
  const scores = { log_loss: "log loss", accuracy: "accuracy", ece: "calibration error", rmse: "RMSE", nlpd: "NLPD" };
  for (const [score, title] of Object.entries(scores)) {
    const found = status.scores[score];
    if (found && found.value !== null) shown.push([title, withError(found.value, found.error)]);
  }
  byId("facts").replaceChildren(...shown.map(([title, text]) => {
    const box = element("div");
    box.dataset.fact = title;
    box.title = text;
    box.append(element("dt", title), element("dd", text));
    return box;
  }));
}

function curves(status) {
  const boxes = find("#curve .panels");
  if (!filled("curve", status.panels.length > 0)) { boxes.replaceChildren(); return; }
  status.panels.forEach((panel, i) => {
    if (!boxes.children[i]) boxes.append(element("div"));
    charts.curve(boxes.children[i], panel, status.change_points);
  });
}

function calibration(status) {
  const bins = status.reliability, place = find("#reliability .chart"), note = find("#reliability .note");
  if (!filled("reliability", bins !== null && bins.counts.some((count) => count > 0))) return;
  if (bins.edges) {
    charts.places(place, bins);
    note.textContent = "Where targets fell in their predictions: flat if predictions are true.";
  } else {
    const of = status.classes.length === 2 ? `${status.classes[1]}` : "the most probable class";
    charts.reliability(place, bins, of);
    note.textContent = `How often ${of} came where it was given that probability, ± 2 standard errors; broken line: true probabilities.`;
  }
}

function found(status) {
  if (!filled("found", status.begun)) return;
  const names = { drift: "Drift per row, of the prior variance", flip_rate: "Labels that are flipped" };
  const groups = Object.entries(status.found).map(([key, shares]) => [names[key] || key, shares]);
  charts.bars(find("#found .bars"), groups);
  if (!groups.length) find("#found .bars").textContent = "One learner learns here, not a bank of them.";
  const changes = status.change_points;
  byId("changes").textContent = changes === null ? "Not looked for." : changes.length
    ? changes.map((one) => `row ${number(one.row)}, probability ${one.probability.toFixed(2)}`).join("; ") : "None so far.";
}

function fields(status) {
  const place = find("#what-if .fields"), known = JSON.stringify(status.columns);
  if (place.dataset.known === known) return; // what is typed stays
  place.dataset.known = known;
  place.replaceChildren(...Object.entries(status.columns).map(([column, kind]) => {
    const label = element("label", `${column} (${kind})`), input = element("input");
    input.name = column;
    input.placeholder = HINTS[kind] || "";
    if (kind === "number") input.inputMode = "decimal"; // as text: what is no number is to be said, not dropped
    label.append(input);
    return label;
  }));
}

function show(status) {
  if (latest !== null && latest.created !== status.created) { location.reload(); return; } // another of the same name
  latest = status;
  byId("parts").hidden = false;
  facts(status);
  curves(status);
  calibration(status);
  if (filled("weights", status.weights.length > 0)) charts.weights(find("#weights .chart"), status.weights);
  found(status);
  if (filled("what-if", Object.keys(status.columns).length > 0)) fields(status);
}

function answer(said) {
  const place = byId("answer");
  if (said === null) { place.textContent = "Nothing was learnt yet."; return; }
  if (said.probabilities === undefined) {
    place.replaceChildren(element("strong", withError(said.mean, said.sd)),
      element("p", `between ${between(said.low, said.high, said.sd)} with probability 90 %`));
    return;
  }
  const shares = Object.entries(said.probabilities).sort((a, b) => b[1] - a[1]);
  const bits = -shares.reduce((sum, [, p]) => sum + (p > 0 ? p * Math.log2(p) : 0), 0);
  const bars = element("div");
  const sure = said.low === undefined ? "" : `, between ${share(said.low)} and ${share(said.high)} with 90 %`;
  place.replaceChildren(element("strong", `${said.label}: probability ${share(shares[0][1])}${sure}`),
    element("p", `uncertainty ${bits.toFixed(2)} bits, of at most ${Math.log2(shares.length).toFixed(2)}`), bars);
  charts.bars(bars, [["", shares.slice(0, MOST_CLASSES)]]);
  if (shares.length > MOST_CLASSES) place.append(element("p", `and ${shares.length - MOST_CLASSES} more`, "note"));
}

async function predict(event) {
  event.preventDefault();
  const row = {};
  for (const input of find("#what-if .fields").querySelectorAll("input")) {
    if (input.value.trim() !== "") row[input.name] = input.value;
  }
  try {
    answer((await askJson(`${path}:predict`, { instances: [row], issue_id: false, intervals: true })).predictions[0]);
  } catch (error) {
    byId("answer").textContent = error.message;
  }
}

function state(text, on) {
  if (byId("live").textContent === text) return;
  byId("live").textContent = text;
  byId("live").className = on ? "on" : "off";
}

async function watch() {
  const mine = stream = new AbortController();
  let isDeleted = false;
  try {
    await listen(`${path}/events`, mine.signal, (kind, data) => {
      if (kind === "deleted") { isDeleted = true; return; }
      state("live", true);
      tell("");
      show(data);
    });
    state(isDeleted ? "deleted" : "connection lost", false);
  } catch (error) {
    if (mine.signal.aborted) return;
    state(error.status === 404 ? (latest === null ? "not there" : "deleted") : "connection lost", false);
    tell(error.message);
  }
  setTimeout(() => stream === mine && watch(), AGAIN);
}

byId("name").textContent = name;
document.title = `${name} – bayou`;
find("#what-if form").addEventListener("submit", predict);
addEventListener("resize", () => latest && charts.resize());
document.addEventListener("visibilitychange", () => { // a page that nobody sees asks for nothing
  stream?.abort();
  stream = null;
  if (!document.hidden) watch();
});
watch();
