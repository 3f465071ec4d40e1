import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function neighboursPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "neighbours-panel" }), update() {} };
}
