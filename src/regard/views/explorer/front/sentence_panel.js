import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function sentencePanel(explorer) {
  void explorer;
  return { element: create("section", { class: "sentence-panel" }), update() {} };
}
