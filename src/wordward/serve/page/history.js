// Texts one after the other: what was typed, the swaps put into it, and the way back.

export class History {
  past = [];
  future = [];
  now = { text: "", base: "", marks: [] }; // base: the text before its swaps; marks: where they stand, what was there

  start(text, { typed = false } = {}) {
    const again = typed && this.now.typed; // keys typed one after the other are one step
    this.#go({ text, base: text, marks: [], typed }, again);
  }

  // Swaps from the first in the text to the last: each { start, word, toward } as the text stands at its turn.
  swap(text, swaps) {
    this.#go({ text, base: this.now.base, marks: swaps.reduce(marked, this.now.marks) });
  }

  undo() {
    if (!this.past.length) return false;
    this.future.push(this.now);
    this.now = { ...this.past.pop(), typed: false };
    return true;
  }

  redo() {
    if (!this.future.length) return false;
    this.past.push(this.now);
    this.now = this.future.pop();
    return true;
  }

  reset() {
    if (this.now.text === this.now.base) return false;
    this.#go({ text: this.now.base, base: this.now.base, marks: [] });
    return true;
  }

  #go(next, again = false) {
    const first = !this.now.text && !this.past.length; // the page begins empty: no step to go back to
    if (!again && !first && next.text !== this.now.text) this.past.push(this.now);
    this.future = [];
    this.now = next;
  }
}

function marked(marks, { start, word, toward }) {
  const longer = Array.from(toward).length - Array.from(word).length;
  const was = marks.find((mark) => mark.start === start)?.was ?? word;
  const others = marks.filter((mark) => mark.start !== start);
  const moved = others.map((mark) => (mark.start > start ? { ...mark, start: mark.start + longer } : mark));
  return toward === was ? moved : [...moved, { start, was }];
}
