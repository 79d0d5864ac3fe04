// Requests with the token, which lives as long as the tab; and events over fetch, so that they can carry it.

const KEY = "bayou-token";
const PLAIN = /^[\x20-\x7e]+$/; // what a header can carry, and a server takes as its token

export const byId = (id) => document.getElementById(id);

export function element(kind, text = "", className = "") {
  const made = document.createElement(kind);
  made.textContent = text; // never HTML: names come from data
  if (className) made.className = className;
  return made;
}

export function tell(problem) {
  if (byId("problem").textContent === (problem || "")) return;
  byId("problem").hidden = !problem;
  byId("problem").textContent = problem || "";
}

let tokenAsked = null; // by whoever was refused first; others wait with them

function tokenGiven() {
  tokenAsked ??= new Promise((resolve) => {
    const form = byId("token"), input = form.querySelector("input");
    form.hidden = false;
    input.focus();
    form.onsubmit = (event) => {
      event.preventDefault();
      if (!PLAIN.test(input.value)) { tell("A token has Latin letters, digits and signs alone."); return; }
      sessionStorage.setItem(KEY, input.value);
      input.value = "";
      form.hidden = true;
      tokenAsked = null;
      resolve();
    };
  });
  return tokenAsked;
}

export async function ask(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    const answer = await fetch(path, { ...options, headers }).catch((error) => {
      throw error.name === "AbortError" ? error : new Error("The server does not answer.");
    });
    if (answer.status !== 401) return answer;
    if (token && token === sessionStorage.getItem(KEY)) {
      sessionStorage.removeItem(KEY);
      tell("The token is wrong.");
    }
    if (!sessionStorage.getItem(KEY)) await tokenGiven();
    tell("");
  }
}

async function refused(answer) {
  const { detail } = await answer.json();
  return Object.assign(new Error(detail[0].toUpperCase() + detail.slice(1)), { status: answer.status });
}

export async function askJson(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await ask(path, { ...options, headers: { "Content-Type": "application/json" } });
  if (!answer.ok) throw await refused(answer);
  return answer.json();
}

// Calls take(kind, data) for each event until the stream ends.
export async function listen(path, signal, take) {
  const answer = await ask(path, { signal });
  if (!answer.ok) throw await refused(answer);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const parts = (rest + value).split("\n\n");
    rest = parts.pop();
    for (const part of parts) {
      const kind = /^event: (.*)$/m.exec(part);
      const data = /^data: (.*)$/m.exec(part);
      if (kind && data) take(kind[1], JSON.parse(data[1]));
    }
  }
}
