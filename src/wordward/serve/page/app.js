// The page's state, and what changes it.

import { Refusal, answer, page, served } from "./ask.js";
import { report } from "./attacked.js";
import { choices, titles } from "./choices.js";
import { change, characters, effect, el, percent, prediction, rungs, sentence } from "./draw.js";
import { History } from "./history.js";

const WAIT = 250; // milliseconds without a key before a typed text is explained
const FEW = 40; // words of a text that are all shown at once
const STRONGEST = 20; // of a longer text

const at = (id) => document.getElementById(id);
const history = new History();
let here; // what is served
let views = []; // one or two of { run, method }
let label = null; // the true label; null: what the model predicts
let focus = null; // a tagger's position whose loss alone is raised
let all = false; // whether every word of a long text is shown
let shown = []; // the explanations on the page,
let before = []; // and what was predicted before the swaps
let latest = new AbortController();
let timer;

const choose = () => choices(here, { views, label, focus });
const infoOf = (view) => here.runs.find((run) => run.name === view.run);
const tagging = () => infoOf(views[0]).task === "tag";

// Questions and answers

function question(view) {
  const counts = here.methods.find((each) => each.name === view.method).needs_label;
  const usable = counts && infoOf(view).labels.includes(label) && (!tagging() || focus !== null);
  return { run: view.run, text: history.now.text, method: view.method, label: usable ? label : null, focus, top: 4 };
}

async function refresh() {
  clearTimeout(timer);
  latest.abort();
  latest = new AbortController();
  const { signal } = latest;
  const { text, base } = history.now;
  write(text);
  sessionStorage.setItem("text", text);
  document.body.setAttribute("aria-busy", "true");
  const fine = await guarded(async () => {
    const [found, former] = [[], []];
    if (text.trim()) {
      refuseLong(text);
      for (const view of views) found.push(await answer("api/explain", question(view), signal));
      for (const { run } of views) former.push(base === text ? null : await answer("api/predict", { run, text: base }, signal));
    }
    signal.throwIfAborted();
    [shown, before] = [found, former];
    draw();
  });
  if (signal.aborted) return; // by a later one
  document.body.removeAttribute("aria-busy");
  document.body.classList.toggle("stale", !fine); // what is shown is of another text
}

function refuseLong(text) {
  const [length, most] = [characters(text).length, here.limits.characters];
  if (length <= most) return;
  const [is, may] = [length, most].map((number) => number.toLocaleString("en"));
  throw new Refusal(`The text has ${is} characters; at most ${may} can be explained here.`);
}

async function guarded(work) {
  try {
    await work();
    problem("");
    return true;
  } catch (error) {
    if (error.name === "AbortError") return false;
    if (!(error instanceof Refusal)) console.error(error);
    problem(error.message);
    return false;
  }
}

function problem(text) {
  at("problem").textContent = text;
  at("problem").hidden = !text;
  if (text) at("problem").scrollIntoView({ block: "nearest" }); // it may be asked for at the page's end
  at("text").setAttribute("aria-invalid", String(Boolean(text)));
}

// What changes the text

function start(text, how) {
  focus = null;
  history.start(text, how);
  at("attacked").hidden = true;
  if (!how?.typed) refresh();
  else {
    latest.abort(); // what is under way is of another text
    document.body.setAttribute("aria-busy", "true");
  }
}

function step(moved) {
  if (!moved) return;
  at("attacked").hidden = true;
  refresh();
}

async function swap(view, place, pull) {
  await guarded(async () => {
    const { text } = history.now;
    if (shown[view].text !== text) return; // typed since: the place may be another word's
    const asked = { run: views[view].run, text, start: place.start, end: place.end, toward: pull.toward };
    const found = await answer("api/swap", asked);
    if (text !== history.now.text) return; // another click was faster
    history.swap(found.text, [{ start: place.start, word: place.word, toward: found.toward }]);
    step(true);
  });
}

async function attack() {
  if (at("attack").getAttribute("aria-busy")) return; // a second click does not make it faster
  at("attack").setAttribute("aria-busy", "true");
  await guarded(async () => {
    const { text } = history.now;
    const { run, method, label: given } = question(views[0]);
    const asked = { run, text, method, label: tagging() ? null : given, max_swaps: Number(at("swaps").value) };
    const found = await answer("api/attack", asked);
    if (text !== history.now.text) return;
    at("attacked").replaceChildren(...report(found, {
      ontake: () => { history.swap(found.adversarial, found.steps); step(true); },
      onclose: () => { at("attacked").hidden = true; at("attack").focus(); },
    }));
    at("attacked").hidden = false;
    at("said").textContent = at("attacked").querySelector("h2").textContent;
  });
  at("attack").removeAttribute("aria-busy");
}

function pick(place) {
  if (tagging()) {
    focus = focus === place.position ? null : place.position;
    label = null;
    refresh();
    return;
  }
  const row = () => at("ladder").querySelector(`[data-start="${place.start}"]`);
  if (!row()) {
    all = true;
    draw();
  }
  row()?.scrollIntoView({ block: "center" });
  row()?.querySelector("button")?.focus({ preventScroll: true });
}

// What is on the page

function write(text) {
  const box = at("text");
  if (box.value !== text) box.value = text;
  box.style.height = "auto";
  box.style.height = `${Math.min(box.scrollHeight + 2, 320)}px`;
}

function draw() {
  const held = document.activeElement?.dataset?.key; // its node is about to be made anew
  at("predictions").hidden = at("words").hidden = !shown.length;
  if (!shown.length) {
    tell("", "");
    return;
  }
  const { marks } = history.now;
  const [first] = shown;
  cards();
  at("sentence").replaceChildren(...sentence(first, { marks, focus, flag: infoOf(views[0]).positive, before: before[0], onword: pick }));
  at("sentence").dir = getComputedStyle(at("text")).direction; // "auto" looks past what stands in buttons
  at("sentence").classList.toggle("tagged", first.task === "tag");
  at("sentence").classList.toggle("long", first.places.length > FEW);
  const only = all || first.places.length <= FEW ? Infinity : STRONGEST;
  const { total, nodes } = rungs(shown, { only, marks, onswap: swap });
  at("ladder").replaceChildren(...nodes);
  at("ladder").classList.toggle("two", shown.length > 1);
  at("more").hidden = total <= FEW;
  at("more").textContent = all ? `Show the ${STRONGEST} most pulled words alone` : `Show all ${total} words`;
  at("legend").replaceChildren(...legend());
  choose();
  for (const [id, can] of [["undo", history.past.length], ["redo", history.future.length], ["reset", marks.length]]) {
    at(id).setAttribute("aria-disabled", String(!can));
  }
  if (held) (document.querySelector(`[data-key="${CSS.escape(held)}"]`) ?? at("undo")).focus({ preventScroll: true });
}

function cards() {
  const [there, names] = [at("predictions"), titles(views)];
  while (there.children.length > shown.length) there.lastChild.remove();
  while (there.children.length < shown.length) there.append(el("article", { class: `prediction view${there.children.length}` }));
  shown.forEach((explanation, number) => {
    prediction(there.children[number], { title: names[number], explanation, before: before[number], several: shown.length > 1 });
  });
  const [first] = shown;
  const said = first.task === "tag"
    ? first.places.map((place) => `${place.word} ${place.label}`).join(", ")
    : `${first.predicted}, ${percent(first.probabilities[first.predicted])}. ${change(first, before[0])}`;
  const notes = [];
  if (first.unread) notes.push(`The model does not read the last ${first.unread.toLocaleString("en")} words.`);
  if (first.places.every((place) => !place.known)) notes.push("No word of this text is in the model’s vocabulary.");
  tell(said, notes.join(" "));
}

function tell(said, note) {
  at("said").textContent = said;
  at("note").textContent = note;
  at("note").hidden = !note;
}

function legend() {
  const [first] = shown;
  const method = here.methods.find((each) => each.name === first.method);
  const whose = focus !== null ? `the tag ${first.label} of ${first.places[focus].word}` : first.label ?? "the tags";
  const aim = method.by_chance ? "that way is drawn at random"
    : method.needs_label ? `a step that way makes ${whose} less likely` : "a step that way changes the prediction";
  const named = method.points === "words" ? "that pulls hardest" : "nearest to where the perturbation points";
  const parts = [
    el("strong", { class: "effect" }, effect(first)),
    `Each bar names the word ${named}: ${aim}. The deeper the shade, the stronger the pull; `,
    "the number is its strength relative to the text’s strongest. Click a bar to swap its word in.",
  ];
  if (first.places.some((place) => !place.known)) parts.push(" Dotted words are not in the model’s vocabulary.");
  if (tagging()) parts.push(" Click a word of the sentence to look at its tag alone.");
  if (shown.length > 1) {
    const keys = titles(views).map((title, number) => el("span", { class: `key view${number}` }, title));
    parts.push(el("span", { class: "keys" }, ...keys));
  }
  return parts;
}

async function save(name, made) {
  await guarded(async () => {
    const url = URL.createObjectURL(await made());
    el("a", { href: url, download: name }).click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  });
}

function saveHtml() {
  const { text, focus: word, label: given } = question(views[0]);
  return save("wordward.html", () => page({ text, views, label: given, focus: word }));
}

function saveJson() {
  const found = shown.length > 1 ? shown : shown[0];
  return save("wordward.json", () => new Blob([`${JSON.stringify(found, null, 2)}\n`], { type: "application/json" }));
}

// What a person does

function listen() {
  at("text").addEventListener("input", () => {
    start(at("text").value, { typed: true });
    clearTimeout(timer);
    timer = setTimeout(refresh, WAIT);
  });
  at("run").addEventListener("change", () => { views[0].run = at("run").value; label = focus = null; refresh(); });
  at("method").addEventListener("change", () => { views[0].method = at("method").value; refresh(); });
  at("compare").addEventListener("change", () => {
    views = at("compare").value ? [views[0], JSON.parse(at("compare").value)] : [views[0]];
    refresh();
  });
  at("label").addEventListener("change", () => { label = at("label").value || null; refresh(); });
  at("undo").addEventListener("click", () => step(history.undo()));
  at("redo").addEventListener("click", () => step(history.redo()));
  at("reset").addEventListener("click", () => step(history.reset()));
  at("attack").addEventListener("click", attack);
  at("more").addEventListener("click", () => { all = !all; draw(); });
  at("save-html").addEventListener("click", saveHtml);
  at("save-json").addEventListener("click", saveJson);
  at("ladder").addEventListener("keydown", (event) => {
    const way = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    const bars = [...at("ladder").querySelectorAll(".bar")];
    const next = bars[bars.indexOf(document.activeElement) + way];
    if (!way || !next) return;
    event.preventDefault();
    next.focus();
  });
  document.addEventListener("keydown", (event) => {
    if (!(event.ctrlKey || event.metaKey) || event.altKey || event.target === at("text")) return;
    const key = event.key.toLowerCase();
    if (key !== "z" && key !== "y") return;
    event.preventDefault();
    step(key === "y" || event.shiftKey ? history.redo() : history.undo());
  });
}

async function begin() {
  here = await served();
  views = here.runs.map((run) => ({ run: run.name, method: "iadvt" }));
  at("examples").replaceChildren(...here.examples.map((text) =>
    el("button", { type: "button", title: text, onclick: () => start(text) }, el("bdi", {}, text))));
  document.documentElement.classList.toggle("tagging", tagging());
  document.title = `${here.runs.map((run) => run.name).join(" and ")} · wordward`;
  choose();
  listen();
  const text = sessionStorage.getItem("text") || here.examples[0]; // the text of this tab before a reload
  if (text) start(text);
  else at("text").focus();
}

guarded(begin);
