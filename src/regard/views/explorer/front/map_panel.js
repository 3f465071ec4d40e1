import { create } from "./dom.js";

/** @param {Explorer} explorer @returns {Panel} */
export function mapPanel(explorer) {
  void explorer;
  return { element: create("section", { class: "map-panel" }), update() {} };
}
