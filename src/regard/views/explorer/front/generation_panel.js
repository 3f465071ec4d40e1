// Placeholder for the panel's own text.

import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function generationPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "generation-panel", hidden: true }), update() {} };
}
