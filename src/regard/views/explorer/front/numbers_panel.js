// Placeholder for the panel's own text.

import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function numbersPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "numbers-panel", hidden: true }), update() {} };
}
