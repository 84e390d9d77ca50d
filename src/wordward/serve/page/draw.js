// What is seen: nodes made of what the API says. Text only ever becomes text nodes, never markup.

export function el(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name.startsWith("--")) node.style.setProperty(name, value);
    else if (value === true) node.setAttribute(name, "");
    else if (value !== false && value != null) node.setAttribute(name, value);
  }
  node.append(...children.filter((child) => child != null));
  return node;
}

// Never 0 % or 100 % of something that is not, as in the terminal and on the pages that are written.
export function percent(chance) {
  if (chance < 0.001) return "<0.1 %";
  if (chance > 0.999) return ">99.9 %";
  const hundred = 100 * chance;
  return `${hundred > 99 || hundred < 1 ? hundred.toFixed(1) : Math.round(hundred)} %`;
}

const much = (relative) => (relative < 0.005 ? "<0.01" : relative.toFixed(2));

// Places are counted in characters as Python counts them, not in JavaScript's halves of an emoji.
export const characters = (text) => Array.from(text);

const MANY_LABELS = 6;

// One card a view: its name and a bar for each label, with a mark where it stood before the swaps.
export function prediction(card, { title, explanation, before, several }) {
  const head = several ? el("h2", {}, title) : el("h2", { class: "unseen" }, title);
  if (explanation.task === "tag") {
    card.replaceChildren(head, tags(explanation, before));
    return;
  }
  const chances = Object.entries(explanation.probabilities);
  const few = chances.length > MANY_LABELS + 1; // one more label takes no more room than saying so
  const left = few ? chances.sort((one, other) => other[1] - one[1]).splice(MANY_LABELS).length : 0;
  const shown = chances.map(([label]) => label).join("\n");
  if (card.dataset.shown !== shown) {
    card.dataset.shown = shown; // the same bars stay, so that they move rather than jump
    const bars = chances.map(([label]) =>
      el("div", { class: "chance" },
        el("span", { class: "name" }, el("bdi", {}, label)),
        el("span", { class: "track" }, el("span", { class: "fill" }), el("span", { class: "was" })),
        el("span", { class: "number" })));
    const others = left ? el("p", { class: "left" }, `and ${left} labels less likely`) : null;
    card.replaceChildren(...[head, el("div", { class: "chances" }, ...bars), others, el("p", { class: "change" })].filter(Boolean));
  } else card.firstChild.replaceWith(head);
  [...card.querySelectorAll(".chance")].forEach((bar, at) => {
    const [label, chance] = chances[at];
    const former = before?.probabilities?.[label];
    bar.classList.toggle("top", label === explanation.predicted);
    bar.style.setProperty("--chance", chance);
    bar.style.setProperty("--was", former ?? chance);
    bar.classList.toggle("moved", former !== undefined && Math.abs(former - chance) > 0.005);
    bar.querySelector(".number").textContent = percent(chance);
  });
  card.classList.toggle("flipped", before != null && before.label !== explanation.predicted);
  card.querySelector(".change").textContent = change(explanation, before);
}

export function change(explanation, before) {
  const { predicted } = explanation;
  if (before == null) return "";
  const was = before.probabilities[before.label];
  if (before.label !== predicted) return `Changed: ${before.label}, ${percent(was)}, before the swaps`;
  return `${percent(was)} ${predicted} before the swaps`;
}

const LITTLE = 0.9; // of its odds, as in the terminal and on the pages that are written

// What the model says with the word of the strongest pull put in; nothing where it was not asked.
export function effect({ label, predicted, probabilities, places }) {
  const pulled = places.filter((place) => place.pulls.length);
  const asked = pulled.reduce((most, place) => (place.pulls[0].strength > (most?.pulls[0].strength ?? -Infinity) ? place : most), null);
  const before = probabilities[label ?? predicted];
  if (asked?.pulls[0].probability == null || before == null) return "";
  const { toward, probability, prediction } = asked.pulls[0];
  const [was, is] = [percent(before), percent(probability)];
  const stays = probability * (1 - before) > LITTLE * before * (1 - probability);
  if (was === is || stays) return `${label ?? predicted} stays at ${was} with the strongest pulls, one at a time. `;
  return `${asked.word} → ${toward}: ${label ?? predicted} ${was} → ${is}${prediction === predicted ? "" : `, so ${prediction}`}. `;
}

function tags(explanation, before) {
  const counts = new Map();
  for (const place of explanation.places) counts.set(place.label, (counts.get(place.label) ?? 0) + 1);
  const parts = [...counts].map(([tag, count]) => el("li", {}, el("b", {}, tag), ` ${count} ${count === 1 ? "word" : "words"}`));
  const changed = explanation.places.filter((place, at) => before && before.tokens[at]?.label !== place.label);
  const said = before ? `${changed.length || "No"} ${changed.length === 1 ? "tag" : "tags"} changed by the swaps.` : "";
  return el("div", {}, el("ul", { class: "tags", "aria-label": "Tags" }, ...parts), el("p", { class: "change" }, said));
}

// The whole text, each word that the model reads shaded by how strongly it is pulled.
export function sentence(explanation, how) {
  const letters = characters(explanation.text);
  const nodes = [];
  let at = 0;
  for (const place of explanation.places) {
    nodes.push(letters.slice(at, place.start).join(""), word(place, explanation.task === "tag", how));
    at = place.end;
  }
  nodes.push(letters.slice(at).join(""));
  return nodes;
}

function word(place, tagging, { marks, focus, flag, before, onword }) {
  const mark = marks.find((each) => each.start === place.start);
  const former = before?.tokens?.[place.position]?.label;
  const changed = former !== undefined && former !== place.label;
  const says = [place.word];
  if (mark) says.push(`in place of ${mark.was}`);
  if (tagging) says.push(`tag ${place.label}, ${percent(place.probability)}${changed ? `, ${former} before` : ""}`);
  if (!place.known) says.push("unknown to the model");
  says.push(tagging ? "Look at the tag of this word alone" : "Show what pulls it");
  return el("button", {
    type: "button",
    class: ["word", mark && "swapped", !place.known && "unknown", changed && "retagged", tagging && place.label === flag && "flag"].filter(Boolean).join(" "),
    "--pull": place.pulls[0]?.relative ?? 0,
    "aria-label": says.join(". "),
    "aria-pressed": tagging ? String(focus === place.position) : null,
    title: mark ? `was: ${mark.was}` : place.known ? null : "unknown to the model",
    "data-key": `word ${place.position}`,
    onclick: () => onword(place),
  },
  mark ? el("del", {}, mark.was) : null,
  el("bdi", { class: "letters" }, place.word),
  tagging ? el("span", { class: "tag" }, changed ? el("del", {}, former) : null, place.label) : null);
}

// The paper's figure: words down the left, bars with the word each is pulled toward, shade = relative strength.
export function rungs(explanations, { only, marks, onswap }) {
  const rows = new Map();
  explanations.forEach((explanation, view) => {
    for (const place of explanation.places) {
      if (!rows.has(place.start)) rows.set(place.start, []);
      rows.get(place.start)[view] = place;
    }
  });
  let starts = [...rows.keys()].sort((one, other) => one - other);
  if (only < starts.length) {
    const strength = (start) => Math.max(...rows.get(start).map((place) => place?.pulls[0]?.relative ?? 0));
    const strongest = [...starts].sort((one, other) => strength(other) - strength(one)).slice(0, only);
    starts = starts.filter((start) => strongest.includes(start));
  }
  return { total: rows.size, nodes: starts.map((start) => rung(rows.get(start), explanations.length, { marks, onswap })) };
}

function rung(places, views, { marks, onswap }) {
  const place = places.find(Boolean);
  const swapped = marks.some((mark) => mark.start === place.start);
  const cells = Array.from({ length: views }, (_, view) => cell(places[view], view, { alone: views === 1, onswap }));
  return el("li", { class: swapped ? "rung swapped" : "rung", "data-start": place.start },
    el("span", { class: "from" }, el("bdi", {}, place.word)), ...cells);
}

function cell(place, view, { alone, onswap }) {
  if (!place?.pulls.length) {
    const says = place ? "no word pulls it" : "not read";
    return el("span", { class: `cell view${view}` }, el("span", { class: "none", title: says }, el("span", { class: "unseen" }, says)));
  }
  const [first, ...others] = place.pulls.map((pull, at) => el("button", {
    type: "button",
    class: at ? "other" : "bar",
    "--pull": pull.relative,
    "aria-label": `Swap ${place.word} for ${pull.toward}: relative strength ${much(pull.relative)}`,
    title: `strength ${pull.strength.toFixed(2)}, relative ${much(pull.relative)}, cosine ${pull.cosine.toFixed(2)}`,
    "data-key": `pull ${view} ${place.position} ${at}`,
    onclick: () => onswap(view, place, pull),
  }, el("bdi", {}, pull.toward), at ? null : el("span", { class: "amount", "aria-hidden": "true" }, much(pull.relative))));
  return el("span", { class: `cell view${view}` }, first, alone && others.length ? el("span", { class: "others" }, ...others) : null);
}
