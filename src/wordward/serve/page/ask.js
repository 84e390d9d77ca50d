// Questions to the API, the answers kept so that undo is at once.

export class Refusal extends Error {}

const kept = new Map();
const KEEP = 300;

async function ask(path, init) {
  let answer;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal("The server does not answer. Is `wordward serve` still running?");
  }
  if (answer.ok) return answer;
  const said = await answer.json().catch(() => ({}));
  throw new Refusal(said.error ?? `The server answered ${answer.status}.`);
}

function post(path, body, signal) {
  const headers = { "Content-Type": "application/json" };
  return ask(path, { method: "POST", headers, body: JSON.stringify(body), signal });
}

export async function served() {
  return (await ask("api/runs")).json();
}

// An answer that is always the same for the same question.
export async function answer(path, body, signal) {
  const key = path + JSON.stringify(body);
  if (!kept.has(key)) {
    const found = await (await post(path, body, signal)).json();
    if (kept.size >= KEEP) kept.delete(kept.keys().next().value);
    kept.set(key, found);
  }
  return kept.get(key);
}

export async function page(body) {
  return (await post("api/page", body)).blob();
}
