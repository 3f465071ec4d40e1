// A list of labels, each with a number and its bar.

import { clamp, create, fill, isolated } from "./dom.js";

/**
 * `share`, from 0 to 1, is the length of the bar; `text` is its number. `before` marks another length for comparison;
 * `go` is called by a click.
 * @typedef {{label: string, share: number, text: string, before?: number, chosen?: boolean, go?: () => void}} Bar
 */

/** Fill a list with bars. @template {HTMLElement} E @param {E} list @param {Bar[]} bars */
export function fillBars(list, bars) {
  const wide = (/** @type {number} */ share) => `inline-size: ${100 * clamp(share || 0, 0, 1)}%`;
  return fill(list, ...bars.map(({ label, share, text, before, chosen, go }) => create("li", { class: chosen && "chosen" },
    create(go ? "button" : "div", { onclick: go, class: "bar-row" }, create("i", { style: wide(share) }),
      before !== undefined && create("i.before", { style: wide(before) }), isolated(label), create("span", text)))));
}

/** A new list of bars. @param {Bar[]} bars */
export const barList = (bars) => fillBars(create("ol.bar-list"), bars);
