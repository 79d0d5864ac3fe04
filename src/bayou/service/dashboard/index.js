import { askJson, byId, element, tell } from "./asking.js";

const EVERY = 2000; // milliseconds
let shown = "";

function card(model) {
  const made = element("li");
  const link = element("a", model.name);
  link.href = `/dashboard/models/${encodeURIComponent(model.name)}`;
  const heading = element("h2");
  heading.append(link);
  const told = `${model.task}, ${model.examples.toLocaleString("en")} rows learnt, ${model.pending.toLocaleString("en")} labels pending`;
  made.append(heading, element("p", `predicts ${model.settings.target}`), element("p", told, "note"));
  return made;
}

// Anew only if something has changed; who has come to a link by the keyboard stays there.
function fill(models) {
  const found = JSON.stringify(models);
  if (found === shown) return;
  shown = found;
  const focused = document.activeElement.getAttribute("href");
  byId("models").replaceChildren(...models.map(card));
  for (const link of byId("models").querySelectorAll("a")) if (link.getAttribute("href") === focused) link.focus();
  byId("none").hidden = models.length > 0;
}

async function show() {
  if (!document.hidden) {
    try {
      fill((await askJson("/v1/models")).models);
      tell("");
    } catch (error) {
      tell(error.message);
    }
  }
  setTimeout(show, EVERY);
}

show();
