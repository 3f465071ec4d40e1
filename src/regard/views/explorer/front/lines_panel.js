import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function linesPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "lines-panel" }), update() {} };
}
