// Placeholder for the panel's own text.

import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function imagePanel(explorer) {
  void explorer;
  return { element: create("section", { class: "image-panel", hidden: true }), update() {} };
}
