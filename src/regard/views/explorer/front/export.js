// What is on screen as PNG or SVG, the numbers of the head as CSV or JSON, and the address of the state.

import { arrowsOf, clamp, create } from "./dom.js";
import { cellLabel, headTitle } from "./labels.js";
import { canvasPen, sized, svgPen } from "./pen.js";
import { times } from "./pooling.js";

const MARGIN = 16, TITLE = 22;

/** The menu with all ways to save. @param {Explorer} explorer @param {Record<string, Panel>} panels */
export function exportMenu(explorer, panels) {
  const { state } = explorer, done = create("span.done.quiet", { role: "status" });
  /** @type {[string, () => void | Promise<void>][]} */
  const ways = [
    ["save-png", () => savePNG(explorer, shownPanel(explorer, panels))], ["save-svg", () => saveSVG(explorer, shownPanel(explorer, panels))],
    ["save-csv", () => saveNumbers(explorer, "csv")], ["save-json", () => saveNumbers(explorer, "json")], ["save-print", () => window.print()],
  ];
  const { link } = explorer.options;
  if (link) ways.push(["copy-link", async () => { await copyText(link(state.get())); done.textContent = explorer.say("copied"); setTimeout(() => { done.textContent = ""; }, 3000); }]);
  const items = ways.map(([key, act]) => create("button", { "data-text": key, onclick: () => { menu.open = false; act(); } }));
  const menu = create("details.menu", { onfocusout: leave, onkeydown: move }, create("summary.plain.save", { "data-text": "save" }), create("div.items", ...items));
  /** @param {FocusEvent} event */
  function leave(event) {
    if (!menu.contains(/** @type {Node | null} */ (event.relatedTarget))) menu.open = false;
  }
  /** @param {KeyboardEvent} event */
  function move(event) {
    if (!menu.open) return;
    const by = arrowsOf(event), at = items.findIndex((one) => one === event.target);
    if (by) items[clamp(at + by[0] + by[1], 0, items.length - 1)].focus();
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopPropagation();
  }
  return create("div.actions", done, menu);
}

/** The panel whose picture is saved. @param {Explorer} explorer @param {Record<string, Panel>} panels */
function shownPanel({ state }, panels) {
  const { depth, view } = state.get(), panel = panels[depth === "head" ? view : depth];
  return panel.draw && panel.size ? panel : panels.map;
}

/** The picture with its title above. @param {Explorer} explorer @param {Panel} panel @param {Pen} pen @param {number} wide @param {number} high */
function drawWithTitle(explorer, panel, pen, wide, high) {
  const { layer, head, depth } = explorer.state.get(), { texts } = explorer.overview, ink = explorer.colour("--ink");
  pen.rect(0, 0, wide, high, explorer.colour("--card"));
  const title = depth === "model" ? explorer.say("title") : headTitle(explorer, layer, head);
  pen.text(title, MARGIN, MARGIN + 8, { size: 14, weight: 600, fill: ink, most: wide - 2 * MARGIN });
  if (texts) pen.text(texts.filter(Boolean).join(" → "), MARGIN, MARGIN + TITLE + 6, { size: 12, fill: explorer.colour("--quiet"), most: wide - 2 * MARGIN });
}

/** @param {Explorer} explorer @param {Panel} panel */
function sizeWithTitle({ overview }, panel) {
  const [wide, high] = /** @type {() => [number, number]} */ (panel.size)(), top = MARGIN + TITLE * (overview.texts ? 2 : 1) + 4;
  return { wide: Math.ceil(wide + 2 * MARGIN), high: Math.ceil(high + top + MARGIN), top };
}

/** @param {Explorer} explorer @param {Panel} panel @returns {Promise<void>} */
async function savePNG(explorer, panel) {
  const { wide, high, top } = sizeWithTitle(explorer, panel), canvas = document.createElement("canvas");
  const context = sized(canvas, wide, high, 2 * (window.devicePixelRatio || 1)), pen = canvasPen(context, explorer.family);
  drawWithTitle(explorer, panel, pen, wide, high);
  context.translate(MARGIN, top);
  panel.draw?.(pen);
  const blob = await new Promise((/** @type {(blob: Blob | null) => void} */ resolve) => { canvas.toBlob(resolve); });
  if (blob) download(blob, fileName(explorer, "png"));
}

/** @param {Explorer} explorer @param {Panel} panel */
function saveSVG(explorer, panel) {
  const { wide, high, top } = sizeWithTitle(explorer, panel), outer = svgPen(explorer.family, explorer.ruler);
  drawWithTitle(explorer, panel, outer.pen, wide, high);
  outer.moved(MARGIN, top, () => panel.draw?.(outer.pen));
  download(new Blob([outer.finish(wide, high)], { type: "image/svg+xml" }), fileName(explorer, "svg"));
}

/** @param {Explorer} explorer @param {"csv" | "json"} kind */
async function saveNumbers(explorer, kind) {
  const { layer, head } = explorer.state.get(), cells = await explorer.shownCells(layer, head), text = numbersText(explorer, cells, kind);
  download(new Blob([text], { type: kind === "csv" ? "text/csv" : "application/json" }), fileName(explorer, kind));
}

/** The weights on screen with their labels. Cells hold half floats: four digits are all they have. @param {Explorer} explorer @param {Cells} cells @param {"csv" | "json"} kind */
export function numbersText(explorer, cells, kind) {
  const { R, C, values, rowStarts, colStarts } = cells, { layer, head, merge, scale } = explorer.state.get(), record = explorer.record();
  const queries = times(R, (r) => cellLabel(explorer.axes(), cells, "query", r)), keys = times(C, (c) => cellLabel(explorer.axes(), cells, "key", c));
  const digits = (/** @type {number} */ value) => (Number.isNaN(value) ? null : Number(value.toPrecision(5)));
  const lines = times(R, (r) => Array.from(values.subarray(r * C, (r + 1) * C), digits));
  if (kind === "json") {
    return JSON.stringify({
      layer: record.name, index: layer, head, kind: record.kind, unit: merge, scale, queries, keys,
      query_starts: Array.from(rowStarts).slice(0, R), key_starts: Array.from(colStarts).slice(0, C), weights: lines,
    });
  }
  return [["", ...keys], ...lines.map((line, r) => [queries[r], ...line.map((value) => (value === null ? "NaN" : String(value)))])].map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
}

/** A field of a CSV file. A text that a spreadsheet would run as a formula begins with an apostrophe. @param {string} field */
function quoted(field) {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param {Explorer} explorer @param {string} ending */
function fileName(explorer, ending) {
  const { head, view, depth } = explorer.state.get(), name = explorer.record().name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80);
  return `${name}.${head}${depth === "head" && view !== "map" ? `.${view}` : ""}.${ending}`;
}

/** @param {Blob} blob @param {string} name */
function download(blob, name) {
  const link = create("a", { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10000);
}

/** Copy a text; where the clipboard is closed to pages from files, by a selected text box. @param {string} text */
async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const box = create("textarea.sr", text);
    document.body.append(box);
    box.select();
    document.execCommand("copy");
    box.remove();
  }
}
