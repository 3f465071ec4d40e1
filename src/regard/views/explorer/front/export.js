// What is on screen as PNG or SVG, the numbers of the head as CSV or JSON, and the address of the state.

import { create } from "./dom.js";

/** @param {Explorer} explorer @param {Record<string, Panel>} panels */
export function exportMenu(explorer, panels) {
  void explorer;
  void panels;
  return create("div", { class: "menu" });
}
