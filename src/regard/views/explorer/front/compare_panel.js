// Placeholder for the panel's own text.

import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function comparePanel(explorer) {
  void explorer;
  return { element: create("section", { class: "compare-panel", hidden: true }), update() {} };
}
