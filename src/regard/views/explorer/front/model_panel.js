import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function modelPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "model-panel" }), update() {} };
}
