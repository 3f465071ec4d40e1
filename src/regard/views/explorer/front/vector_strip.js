// A vector as a strip: a short one as numbers, a long one as bars, up for positive and down for negative.

import { clamp, create } from "./dom.js";
import { spell } from "./number_text.js";

/** The longest vector that is shown as numbers. */
export const NUMBERS = 6;

/**
 * `mark` marks one dimension, all (null) or none; `at` is the dimension under the pointer.
 * @typedef {{element: Element, mark(at: number | null, lit: boolean): void, at(event: MouseEvent): number}} Strip
 */

/** An element of SVG. @param {string} tag @param {Record<string, any>} attributes @param {...Element} children */
export function shape(tag, attributes, ...children) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, String(value));
  element.append(...children);
  return element;
}

/** The largest size among numbers; 1 where all are 0. @param {Iterable<number>} values */
export function largestSize(values) {
  let most = 0;
  for (const value of values) if (Number.isFinite(value)) most = Math.max(most, Math.abs(value));
  return most || 1;
}

/** Colour a cell by the sign and size of its number. @param {HTMLElement} cell @param {number} value @param {number} largest */
export function tint(cell, value, largest) {
  cell.dataset.sign = value > 0 ? "plus" : value < 0 ? "minus" : "zero";
  cell.style.setProperty("--size", `${Number.isFinite(value) ? Math.round((45 * Math.abs(value)) / largest) : 0}%`);
}

/** @param {Float64Array} values @param {number} largest  the size that fills the strip @returns {Strip} */
export function vectorStrip(values, largest) {
  return values.length <= NUMBERS ? numberStrip(values, largest) : barStrip(values, largest);
}

/** @param {Float64Array} values @param {number} largest @returns {Strip} */
function numberStrip(values, largest) {
  const cells = Array.from(values, (value) => create("span", spell(value)));
  cells.forEach((cell, d) => tint(cell, values[d], largest));
  return {
    element: create("span.strip-numbers", ...cells),
    mark: (at, lit) => cells.forEach((cell, d) => cell.classList.toggle("lit", lit && (at === null || at === d))),
    at: (event) => Math.max(0, cells.indexOf(/** @type {HTMLElement} */ (event.target))),
  };
}

/** @param {Float64Array} values @param {number} largest @returns {Strip} */
function barStrip(values, largest) {
  const paths = ["", ""], count = values.length;
  values.forEach((value, d) => {
    const high = (value / largest).toFixed(3);
    if (Math.abs(value) > 0) paths[value > 0 ? 0 : 1] += `M${d} 1h.9v${value > 0 ? `-${high}` : high.slice(1)}h-.9z`;
  });
  const cursor = shape("rect", { class: "strip-cursor", width: 1, height: 2, visibility: "hidden" });
  const element = shape("svg", { class: "strip", viewBox: `0 0 ${count} 2`, preserveAspectRatio: "none", "aria-hidden": "true" },
    cursor, shape("path", { class: "plus", d: paths[0] }), shape("path", { class: "minus", d: paths[1] }));
  return {
    element,
    mark(at, lit) {
      cursor.setAttribute("visibility", lit && at !== null ? "visible" : "hidden");
      cursor.setAttribute("x", String(at ?? 0));
    },
    at(event) {
      const { left, width } = element.getBoundingClientRect();
      return clamp(Math.floor(((event.clientX - left) / (width || 1)) * count), 0, count - 1);
    },
  };
}

/** The colours of positive and negative numbers in a file. */
const SIGNS = ["#c8590e", "#2f6fd6"];

/** The bars of a long vector. @param {Pen} pen @param {Float64Array} values @param {number} largest @param {number} left @param {number} middle @param {number} wide */
export function drawStrip(pen, values, largest, left, middle, wide) {
  const step = wide / values.length;
  pen.line([left, middle, left + wide, middle], "#ddd", 0.5);
  values.forEach((value, d) => {
    const high = (8 * Math.abs(value)) / largest;
    if (high > 0.1) pen.rect(left + d * step, value > 0 ? middle - high : middle, 0.9 * step, high, SIGNS[value > 0 ? 0 : 1]);
  });
}
