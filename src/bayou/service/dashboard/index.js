import { askJson, byId, element, tell } from "./asking.js";

const EVERY = 2000; // milliseconds

function card(model) {
  const made = element("li");
  const link = element("a", model.name);
  link.href = `/dashboard/models/${encodeURIComponent(model.name)}`;
  const heading = element("h2");
  heading.append(link);
  const told = `${model.task}, ${model.examples.toLocaleString("en")} rows learnt, ${model.pending} labels pending`;
  made.append(heading, element("p", `predicts ${model.settings.target}`), element("p", told, "note"));
  return made;
}

async function show() {
  if (!document.hidden) {
    try {
      const { models } = await askJson("/v1/models");
      byId("models").replaceChildren(...models.map(card));
      byId("none").hidden = models.length > 0;
      tell("");
    } catch (error) {
      tell(`The server does not answer: ${error.message}`);
    }
  }
  setTimeout(show, EVERY);
}

show();
