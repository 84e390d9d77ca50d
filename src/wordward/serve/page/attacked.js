// What an attack found: its swaps one by one, and what each did to the prediction.

import { el, percent } from "./draw.js";

const SENSE = { kept: "the true label should stay", changed: "the true label may change too", unknown: "" };

export function report(found, { ontake, onclose }) {
  const head = el("div", { class: "head" },
    el("h2", {}, heading(found)),
    el("button", { type: "button", class: "quiet", onclick: onclose, "aria-label": "Close the attack" }, "×"));
  const steps = found.steps.map((step) => el("li", {},
    el("span", { class: "swap" }, el("del", {}, step.word), " → ", el("ins", {}, step.toward)),
    el("span", { class: "then" }, `${step.label}, ${percent(step.probability)}`),
    el("span", { class: "sense" }, SENSE[step.sense])));
  if (!steps.length) return [head];
  return [head, el("ol", { class: "steps" }, ...steps), el("button", { type: "button", onclick: ontake }, "Put it into the text")];
}

function heading(found) {
  const swaps = found.steps.length === 1 ? "1 swap" : `${found.steps.length} swaps`;
  const tagging = found.task === "tag";
  if (found.outcome === "unreadable") return "There is no word to swap.";
  if (found.outcome === "wrong") return tagging ? "No word is flagged: nothing to attack." : `The model is wrong already: it says ${found.before}.`;
  if (found.outcome === "flipped") return tagging ? `${swaps}: the flag disappears.` : `${swaps}: ${found.before} becomes ${found.after}.`;
  if (!found.steps.length) return "No swap was found.";
  return tagging ? `The flag stays after ${swaps}.` : `${found.before} holds out after ${swaps}.`;
}
