// Placeholder for the panel's own text.

import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function effectPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "effect-panel", hidden: true }), update() {} };
}
