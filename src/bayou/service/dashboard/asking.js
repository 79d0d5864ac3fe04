// Requests with the token, which lives as long as the tab; and events over fetch, so that they can carry it.

const KEY = "bayou-token";

export const byId = (id) => document.getElementById(id);

export function element(kind, text = "", className = "") {
  const made = document.createElement(kind);
  made.textContent = text; // never HTML: names come from data
  if (className) made.className = className;
  return made;
}

export function tell(problem) {
  byId("problem").hidden = !problem;
  byId("problem").textContent = problem || "";
}

function tokenGiven() {
  const form = byId("token");
  form.hidden = false;
  return new Promise((resolve) => {
    form.onsubmit = (event) => {
      event.preventDefault();
      const input = form.querySelector("input");
      sessionStorage.setItem(KEY, input.value);
      input.value = "";
      form.hidden = true;
      resolve();
    };
  });
}

export async function ask(path, options = {}) {
  for (;;) {
    const token = sessionStorage.getItem(KEY);
    const headers = { ...options.headers };
    if (token) headers.Authorization = `Bearer ${token}`;
    const answer = await fetch(path, { ...options, headers });
    if (answer.status !== 401) return answer;
    sessionStorage.removeItem(KEY);
    if (token) tell("The token is wrong.");
    await tokenGiven();
    tell("");
  }
}

export async function askJson(path, body) {
  const options = body === undefined ? {} : { method: "POST", body: JSON.stringify(body) };
  const answer = await ask(path, { ...options, headers: { "Content-Type": "application/json" } });
  const told = await answer.json();
  if (!answer.ok) throw new Error(told.detail);
  return told;
}

// Calls take(kind, data) for each event until the stream ends.
export async function listen(path, signal, take) {
  const answer = await ask(path, { signal });
  if (!answer.ok) throw new Error((await answer.json()).detail);
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
