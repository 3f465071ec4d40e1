// A list of tokens, each with a number and its bar.

import { create, isolated } from "./dom.js";

/**
 * `share`, from 0 to 1, is the length of the bar; `text` is its number. `before` draws a second bar for comparison.
 * @typedef {{label: string, share: number, text: string, before?: number, chosen?: boolean}} Bar
 */

/** @param {Bar[]} bars */
export function barList(bars) {
  return create("ol", { class: "bar-list" }, ...bars.map(({ label, share, text, before, chosen }) =>
    create("li", { class: chosen && "chosen" }, isolated(label, "bar-label"), create("span", { class: "bar-track", "aria-hidden": "true" },
      fill("bar-fill", share), before !== undefined && fill("bar-before", before)), create("span", { class: "bar-number" }, text))));
}

/** @param {string} name @param {number} share */
function fill(name, share) {
  const bar = create("span", { class: name });
  bar.style.inlineSize = `${100 * Math.max(0, Math.min(1, share || 0))}%`;
  return bar;
}
