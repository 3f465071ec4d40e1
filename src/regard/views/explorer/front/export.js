// Saving what is on screen: a picture for a paper as PNG or SVG, its numbers as CSV or JSON, and the address of the state.

import { arrowsOf, clamp, create, fill, labelled } from "./dom.js";
import { FONTS, linesOf } from "./figures.js";
import { headTitle } from "./labels.js";
import { canvasPen, measuringPen, sized, svgPen } from "./pen.js";

/** The space around a picture, the height of its title and of a line, the text that is shown, and the pixels of a PNG for one of CSS. */
const MARGIN = 12, TITLE = 20, LINE = 15, HEADLINES = 4, LONGEST = 500, FINE = 2, PICTURES = ["png", "svg"], TABLES = ["csv", "json"];
/** Panels beside the view that can be saved too. */
const SAVED_BESIDE = ["image", "effect"];

/** The menu with all ways to save. @param {Explorer} explorer @param {Record<string, Panel>} panels */
export function exportMenu(explorer, panels) {
  const { state, say } = explorer, done = create("span.done.quiet", { role: "status" }), ruler = measuringPen(FONTS);
  const choice = create("select", { onchange: refresh }), choose = labelled("save-what", choice);
  /** @type {Record<string, () => void | Promise<void>>} */
  const ways = { "save-png": () => savePNG(sheet(), name()), "save-svg": () => saveSVG(sheet(), ruler, name()), "save-csv": () => saveTable("csv"), "save-json": () => saveTable("json"), "save-print": () => window.print() };
  const { link } = explorer.options;
  if (link) ways["copy-link"] = async () => { await copyText(link(state.get())); done.textContent = say("copied"); setTimeout(() => { done.textContent = ""; }, 3000); };
  const items = Object.entries(ways).map(([key, act]) => create(`button#${key}`, { onclick: () => { menu.open = false; inLight(explorer, act); } }));
  const menu = create("details.menu", { onfocusout: leave, onkeydown: move, ontoggle: open }, create("summary.plain.save#save"), create("div.items", choose, ...items));

  /** The panel to save: that of the view, or one beside it. */
  const panel = () => panels[choice.value] ?? panels[mainPanel()];
  const mainPanel = () => { const { depth, view } = state.get(); return depth === "head" ? view : depth; };
  const sheet = () => sheetOf(explorer, panel(), ruler);
  const saveTable = (/** @type {string} */ kind) => {
    const table = panel().table?.();
    if (table) download(new Blob([tableText(table, kind)], { type: kind === "csv" ? "text/csv" : "application/json" }), `${name()}.${kind}`);
  };
  const name = () => fileName(explorer, choice.value || mainPanel());

  function open() {
    fill(choice);
    if (!menu.open) return;
    const main = mainPanel(), { depth } = state.get(), beside = depth === "head" ? SAVED_BESIDE.filter((name) => panels[name].figure?.(ruler)) : [];
    const title = depth === "head" ? `view-${main}` : `depth-${depth}`;
    fill(choice, ...[main, ...beside].map((name) => create("option", { value: name }, say(name === main ? title : `${name}-title`))));
    choose.hidden = !beside.length;
    refresh();
  }
  /** What cannot be saved cannot be chosen. */
  function refresh() {
    const has = { picture: Boolean(inLight(explorer, () => panel().figure?.(ruler))), numbers: Boolean(panel().table?.()) };
    items.forEach((item) => { const kind = item.dataset.text?.replace("save-", "") ?? ""; item.disabled = (PICTURES.includes(kind) && !has.picture) || (TABLES.includes(kind) && !has.numbers); });
  }
  /** @param {FocusEvent} event */
  function leave(event) {
    if (!menu.contains(/** @type {Node | null} */ (event.relatedTarget))) menu.open = false;
  }
  /** @param {KeyboardEvent} event */
  function move(event) {
    if (!menu.open) return;
    const active = items.filter((one) => !one.disabled), by = event.target === choice ? null : arrowsOf(event), at = active.indexOf(/** @type {HTMLButtonElement} */ (event.target));
    if (by) active[clamp(at + by[0] + by[1], 0, active.length - 1)].focus();
    if (event.key !== "Escape") return;
    menu.open = false;
    menu.querySelector("summary")?.focus();
    event.stopPropagation();
  }
  return create("div.actions", done, menu);
}

/** Do something while all colours are those of the light theme. @template T @param {Explorer} explorer @param {() => T} act */
function inLight({ root, forgetColours }, act) {
  const { theme } = root.dataset;
  root.dataset.theme = "light";
  forgetColours();
  try {
    return act();
  } finally {
    if (theme) root.dataset.theme = theme; else delete root.dataset.theme;
    forgetColours();
  }
}

/** A picture with its title above and notes below. @typedef {{wide: number, high: number, draw(pen: Pen): void}} Sheet */

/** @param {Explorer} explorer @param {Panel} panel @param {Pen} ruler @returns {Sheet | null} */
function sheetOf(explorer, panel, ruler) {
  const figure = panel.figure?.(ruler), { layer, head } = explorer.state.get(), { texts } = explorer.overview;
  if (!figure) return null;
  const { width, height } = figure, title = figure.title ?? headTitle(explorer, layer, head), text = figure.text ?? texts?.filter(Boolean).join(" → ");
  const notes = linesOf(ruler, (figure.notes ?? []).filter(Boolean).join(" · "), width, 11), words = linesOf(ruler, (text ?? "").slice(0, LONGEST), width, 12);
  const lines = [...words.slice(0, HEADLINES - 1), words.slice(HEADLINES - 1).join(" ")].filter(Boolean), top = MARGIN + TITLE + LINE * lines.length + 8;
  return {
    wide: width + 2 * MARGIN, high: Math.ceil(top + height + LINE * notes.length + MARGIN + (notes.length && 6)),
    draw(pen) {
      const quiet = explorer.colour("quiet");
      pen.rect(0, 0, this.wide, this.high, explorer.colour("card"));
      pen.text(title, MARGIN, MARGIN + 8, { size: 14, weight: 600, fill: explorer.colour("ink"), most: width });
      lines.forEach((line, i) => pen.text(line, MARGIN, MARGIN + TITLE + 6 + LINE * i, { size: 12, fill: quiet, most: width }));
      pen.moved(MARGIN, top, () => figure.draw(pen));
      notes.forEach((line, i) => pen.text(line, MARGIN, top + height + 6 + LINE * (i + 0.5), { size: 11, fill: quiet }));
    },
  };
}

/** @param {Sheet | null} sheet @param {string} name @returns {Promise<void>} */
async function savePNG(sheet, name) {
  if (!sheet) return;
  const canvas = document.createElement("canvas");
  sheet.draw(canvasPen(sized(canvas, sheet.wide, sheet.high, FINE), FONTS));
  const blob = await new Promise((/** @type {(blob: Blob | null) => void} */ resolve) => { canvas.toBlob(resolve); });
  if (blob) download(blob, `${name}.png`);
}

/** @param {Sheet | null} sheet @param {Pen} ruler @param {string} name */
function saveSVG(sheet, ruler, name) {
  if (!sheet) return;
  const { pen, finish } = svgPen(FONTS, ruler);
  sheet.draw(pen);
  download(new Blob([finish(sheet.wide, sheet.high)], { type: "image/svg+xml" }), `${name}.svg`);
}

/** @param {Table} table @param {string} kind */
function tableText({ columns, rows, about }, kind) {
  if (kind === "json") return JSON.stringify(about);
  return [columns, ...rows].map((line) => line.map((field) => quoted(String(field ?? ""))).join(",")).join("\r\n") + "\r\n";
}

/** A field of a CSV file. A text that a spreadsheet would run as a formula begins with an apostrophe. @param {string} field */
function quoted(field) {
  const safe = /^[=+@\t\r]|^-(?![\d.])/.test(field) ? `'${field}` : field;
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/** @param {Explorer} explorer @param {string} part */
function fileName(explorer, part) {
  const { head, show } = explorer.state.get(), name = explorer.record().name.replace(/[^\p{L}\p{N}._-]+/gu, "_").slice(0, 80);
  if (part === "model") return `model.${show}`;
  return `${name}.${head}${part && part !== "map" ? `.${part}` : ""}`;
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
