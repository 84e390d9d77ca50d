// What can be chosen: run, method, the label whose loss is raised, and what to compare with.

import { el } from "./draw.js";

const at = (id) => document.getElementById(id);
const option = (value, text, selected) => el("option", { value, selected }, text);

// Two views are named by what tells them apart.
export function titles(views) {
  const [one, other = one] = views;
  if (one.run === other.run) return views.map((view) => view.method);
  if (one.method === other.method) return views.map((view) => view.run);
  return views.map((view) => `${view.run} · ${view.method}`);
}

export function choices(here, { views: [mine, other], label, focus }) {
  at("run-choice").hidden = here.runs.length < 2;
  at("run").replaceChildren(...here.runs.map((run) => option(run.name, run.name, run.name === mine.run)));
  at("method").replaceChildren(...groups(here.methods, "", (each) =>
    option(each.name, each.title, each.name === mine.method)));
  const others = here.runs.flatMap((run) => {
    const [before, title] = here.runs.length > 1 ? [`${run.name} · `, `${run.name}: `] : ["", ""];
    return groups(here.methods, title, (each) => {
      const selected = other?.run === run.name && other.method === each.name;
      return option(JSON.stringify({ run: run.name, method: each.name }), `${before}${each.name}`, selected);
    });
  });
  at("compare").replaceChildren(option("", "nothing", !other), ...others);
  losses(here, { mine, label, focus });
}

function groups(methods, title, made) {
  const kinds = { words: "toward words", free: "in any direction" };
  return Object.entries(kinds).map(([points, kind]) =>
    el("optgroup", { label: title + kind }, ...methods.filter((each) => each.points === points).map(made)));
}

function losses(here, { mine, label, focus }) {
  const run = here.runs.find((each) => each.name === mine.run);
  const counts = here.methods.find((each) => each.name === mine.method).needs_label;
  const tagging = run.task === "tag";
  const open = counts && (!tagging || focus !== null);
  const first = !counts ? "no label" : !tagging ? "the predicted label" : focus === null ? "all predicted tags" : "its predicted tag";
  const labels = open ? run.labels.map((name) => option(name, name, name === label)) : [];
  at("label").replaceChildren(option("", first, label === null), ...labels);
  at("label").disabled = !open;
}
