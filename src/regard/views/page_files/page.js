// The page of a Trace: a layer, a head, a cell are chosen; all else is derived from them and drawn again.
// Data come from the two scripts below this one; every text goes in by textContent, never as markup.
"use strict";

/** @typedef {{name: string, kind: string, heads: number, T: number, S: number, R: number, C: number, high: number,
 *   wide: number, part: {rows: string, cols: string, T: number, S: number, top: number, left: number}|null,
 *   queries: number|null, keys: number|null, written: number|null, silent: number[], rows: string,
 *   firstColumn: number, ceilings: Object<string, [number, number|null, number][]>,
 *   first: (number|null)[], sample: number, samples: number, merged: string|null, prompt: number|null,
 *   titles: Object<string, string>, offset: number}} Attention */

const $ = (id) => document.getElementById(id);
const MOST_TEXT = 1500, STRONGEST = 8;
let data, halves, state;

async function start() {
  data = JSON.parse($("data").textContent);
  const packed = Uint8Array.from(atob($("maps").textContent), (sign) => sign.charCodeAt(0));
  const opened = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  halves = new DataView(await new Response(opened).arrayBuffer());
  let offset = 0;
  for (const record of data.records) {
    record.offset = offset;
    offset += record.heads * record.R * record.C;
  }
  state = { lang: data.lang, scale: data.scale, layer: 0, head: 0, row: 0, column: 0, pinned: false, ...asked() };
  fillChoices();
  listen();
  draw();
  begin();
}

/** The last query, which has the most to look at, and the key it looks at most. */
function begin() {
  const { R, C } = current(), line = state.cells.subarray((R - 1) * C, R * C);
  if (R && C) pick(R - 1, line.reduce((best, value, i) => (value > line[best] ? i : best), 0), false);
}

/** What the address asks for, #layer=3&head=5; where it does not, the head that the page was told to open at. */
function asked() {
  const wanted = new URLSearchParams(location.hash.slice(1)), found = {};
  const [first, best] = data.open, layer = Number(wanted.get("layer") ?? first);
  found.layer = data.records[layer] ? layer : first;
  const head = Number(wanted.get("head") ?? (found.layer === first ? best : 0));
  if (head < data.records[found.layer].heads) found.head = head;
  if (wanted.get("lang") in data.words) found.lang = wanted.get("lang");
  return found;
}

// --- words --------------------------------------------------------------------------------------------------

function say(key, values = {}) {
  return data.words[state.lang][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const current = () => data.records[state.layer];
const titleOf = (record) => record.titles[state.lang];
const originOf = (record) => [record.part?.top ?? 0, record.part?.left ?? 0];
const sizeOf = (record) => (record.part ? say("part", record.part) : say("size", record));
const headOf = () => `${say("head")} ${state.head}`;

/** What a row or a column is called: its token, and the positions it stands for. */
function nameOf(side, at) {
  const record = current(), [top, left] = originOf(record), [list, size, length, start] = side === "query"
    ? [record.queries, record.high, record.T, top] : [record.keys, record.wide, record.S, left];
  const first = start + at * size, last = start + Math.min(length, (at + 1) * size) - 1;
  const place = last > first ? `${first}–${last}` : `${first}`;
  if (list === null) return place;
  return `${side === "query" ? rowLabel(record, at) : data.labels[list][at]} (${place})`;
}

// --- drawing ---------------------------------------------------------------------------------------------

function draw() {
  const record = current();
  document.documentElement.lang = state.lang === "zh" ? "zh-CN" : "en";
  document.title = say("title");
  document.querySelectorAll("[data-word]").forEach((one) => { one.textContent = say(one.dataset.word); });
  document.querySelectorAll("[data-label]").forEach((one) => one.setAttribute("aria-label", say(one.dataset.label)));
  $("language").textContent = state.lang === "zh" ? "English" : "中文";  // each in its own words
  [...$("scale").options].forEach((option) => { option.textContent = say(option.value); });
  [...$("layer").options].forEach((option) => { option.textContent = titleOf(data.records[option.value]); });
  [$("layer").value, $("layer").title, $("about").title] = [state.layer, record.name, record.name];
  [$("texts").hidden, $("texts").textContent] = [data.texts === null, data.texts?.join(" → ") ?? ""];
  $("scale").value = state.scale;
  drawHeads(record);
  drawHead();
}

function drawHead() {
  const record = current();
  state.head = Math.min(state.head, Math.max(0, record.heads - 1));
  if (location.protocol !== "about:") {  // inside a notebook's frame there is no address to write
    history.replaceState(null, "", `#layer=${state.layer}&head=${state.head}&lang=${state.lang}`);
  }
  [...$("heads").children].forEach((one, head) => {
    one.setAttribute("aria-checked", head === state.head);
    one.tabIndex = head === state.head ? 0 : -1;
  });
  state.cells = record.heads ? cellsOf(record, state.head) : new Float32Array(0);
  state.colours = scaleOf(record, state.head);
  state.image = pixels(record, state.cells, state.colours);
  $("about").textContent = [...about(record), ...aboutHead(record)].join(" · ");
  drawLegend();
  drawMap();
  drawCell();
}

function about(record) {
  const title = titleOf(record), kind = say(`kind-${record.kind}`);
  const pieces = [title, ...(title === record.name ? [kind] : []), sizeOf(record)];
  if (record.samples > 1) pieces.push(say("sample", { sample: record.sample, count: record.samples }));
  if (record.high > 1 || record.wide > 1) pieces.push(say("cell", record));
  pieces.push(say(`rows-${record.rows}`));
  if (record.merged) pieces.push(say(`merged-${record.merged}`));
  if (record.prompt !== null) pieces.push(say("prompt", record));
  return pieces;
}

function aboutHead(record) {
  const percent = (share) => ({ share: Math.round(100 * share) });
  const pieces = [headOf()], first = record.first[state.head], noKey = record.noKey[state.head];
  if (first != null) pieces.push(say("first", percent(first)));
  if (noKey != null) pieces.push(say("no-key", percent(noKey)));
  return pieces;
}

/** Cells as pixels of a canvas of their own size. */
function pixels(record, cells, scale) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, record.C), Math.max(1, record.R)];
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  cells.forEach((value, i) => {
    if (value !== 0) image.data.set([...colourOf(value, scale), 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function drawHeads(record) {
  $("heads").replaceChildren(...Array.from({ length: record.heads }, (_, head) => {
    const button = document.createElement("button"), small = document.createElement("canvas");
    const cells = cellsOf(record, head), image = pixels(record, cells, scaleOf(record, head));
    [small.width, small.height] = [96, 96];
    const context = small.getContext("2d");
    context.fillStyle = style("--hidden");
    context.fillRect(0, 0, 96, 96);
    context.imageSmoothingEnabled = Math.max(record.R, record.C) > 96;
    context.drawImage(image, 0, 0, 96, 96);
    button.type = "button";
    button.setAttribute("role", "radio");
    button.append(small, `${say("head")} ${head}`);
    button.onclick = () => { state.head = head; drawHead(); };
    return button;
  }));
}

/** The chosen cell in words, the strongest of its row and column, and the text as its query sees it. */
function drawCell() {
  const record = current(), { R, C } = record;
  state.row = Math.min(state.row, Math.max(0, R - 1));
  state.column = Math.min(state.column, Math.max(0, C - 1));
  if (!state.cells.length) {
    $("cell").textContent = say("nothing", record);
    [$("looks"), $("seen"), $("text")].forEach((one) => one.replaceChildren());
    return;
  }
  const line = state.cells.subarray(state.row * C, (state.row + 1) * C), value = line[state.column];
  const number = value === 0 ? say("none") : `${say("weight")} ${Number.isNaN(value) ? "NaN" : shown(value)}`;
  const blind = line.every((one) => one === 0) && state.scale !== "hidden" && state.scale !== "renormalised";
  const cell = [`${say("query")} ${nameOf("query", state.row)} → ${say("key")} ${nameOf("key", state.column)}`, number];
  $("cell").textContent = [...cell, ...(blind ? [say("blind")] : [])].join(" · ");
  const column = Array.from({ length: R }, (_, row) => state.cells[row * C + state.column]);
  drawStrongest($("looks"), "key", [...line]);
  drawStrongest($("seen"), "query", column);
  drawText(record, line);
}

function drawStrongest(list, side, values) {
  const order = values.map((value, i) => [value, i]).filter(([value]) => value > 0).sort((a, b) => b[0] - a[0]);
  list.replaceChildren(...order.slice(0, STRONGEST).map(([value, i]) => {
    const item = document.createElement("li"), bar = document.createElement("i");
    const name = document.createElement("b"), number = document.createElement("span");
    bar.style.width = `${100 * Math.min(1, value)}%`;
    [name.textContent, number.textContent] = [nameOf(side, i), shown(value)];
    item.append(bar, name, number);
    return item;
  }));
}

function drawText(record, line) {
  const fits = record.keys !== null && record.wide === 1 && record.C <= MOST_TEXT;
  $("reading").hidden = !fits;
  if (!fits) return;
  const [top, left] = originOf(record), own = record.keys === record.queries && top === left;
  $("text").replaceChildren(...data.labels[record.keys].map((label, i) => {
    const token = document.createElement("span"), value = line[i];
    token.textContent = label;
    if (value !== 0) {
      const colour = colourOf(value, state.colours);
      [token.style.background, token.style.color, token.title] = [`rgb(${colour})`, inkOn(colour), shown(value)];
    }
    if (own && i === state.row) token.className = "asking";
    token.onclick = () => { if (own) pick(i, state.column, true); };
    return token;
  }));
}

// --- choosing --------------------------------------------------------------------------------------------

function fillChoices() {
  $("layer").replaceChildren(...data.records.map((record, i) => new Option(record.name, i)));
  data.records.forEach((record, i) => { $("layer").options[i].title = record.name; });
  $("scale").replaceChildren(...data.scales.map((scale) => new Option(scale, scale)));
}

function pick(row, column, pinned) {
  const { R, C } = current();
  state.row = Math.max(0, Math.min(R - 1, row));
  state.column = Math.max(0, Math.min(C - 1, column));
  state.pinned = pinned;
  drawMap();
  drawCell();
}

function turn(what, count, by) {
  if (!count) return;
  state[what] = (state[what] + by + count) % count;
  if (what === "layer") draw(); else drawHead();
}

function cellUnder(event) {
  const box = $("map").getBoundingClientRect(), at = state.layout;
  const column = Math.floor((event.clientX - box.left - at.left) / at.width);
  const row = Math.floor((event.clientY - box.top - at.top) / at.height);
  return row >= 0 && column >= 0 && row < current().R && column < current().C ? [row, column] : null;
}

function listen() {
  $("layer").onchange = (event) => { state.layer = Number(event.target.value); draw(); };
  $("scale").onchange = (event) => { state.scale = event.target.value; draw(); };
  $("language").onclick = () => { state.lang = state.lang === "zh" ? "en" : "zh"; draw(); };
  $("theme").onclick = theme;
  $("picture").onclick = () => pictureToKeep().toBlob((blob) => {
    const link = document.createElement("a");
    [link.href, link.download] = [URL.createObjectURL(blob), `${current().name}.${state.head}.png`];
    link.click();
    URL.revokeObjectURL(link.href);
  });
  $("map").onmousemove = (event) => { const at = cellUnder(event); if (at && !state.pinned) pick(...at, false); };
  $("map").onclick = (event) => { const at = cellUnder(event); if (at) pick(...at, !state.pinned); };
  document.onkeydown = onKey;
  matchMedia("(prefers-color-scheme: dark)").onchange = draw;
  // In the next frame: a map that is drawn changes the size of what is observed.
  new ResizeObserver(() => requestAnimationFrame(drawMap)).observe($("middle"));
}

function theme() {
  const root = document.documentElement, dark = matchMedia("(prefers-color-scheme: dark)").matches;
  root.dataset.theme = (root.dataset.theme ?? (dark ? "dark" : "light")) === "dark" ? "light" : "dark";
  draw();
}

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "SELECT") return;
  const by = event.shiftKey ? 10 : 1, { row, column } = state, { R, C, heads } = current();
  const moves = {
    ArrowUp: [row - by, column], ArrowDown: [row + by, column], ArrowLeft: [row, column - by],
    ArrowRight: [row, column + by], Home: [row, 0], End: [row, C - 1], PageUp: [0, column], PageDown: [R - 1, column],
  };
  const acts = {
    "[": () => turn("head", heads, -1), "]": () => turn("head", heads, 1),
    ",": () => turn("layer", data.records.length, -1), ".": () => turn("layer", data.records.length, 1),
    c: () => { const all = [...$("scale").options].map((o) => o.value);
      state.scale = all[(all.indexOf(state.scale) + 1) % all.length]; draw(); },
    l: $("language").onclick, d: theme, Escape: () => { state.pinned = false; },
  };
  const focused = document.activeElement, turns = { ArrowUp: -1, ArrowLeft: -1, ArrowDown: 1, ArrowRight: 1 };
  if (event.key in moves && focused === $("map")) pick(...moves[event.key], true);
  else if (event.key in turns && focused.parentElement === $("heads")) {
    turn("head", heads, turns[event.key]);
    $("heads").children[state.head].focus();
  }
  else if (event.key in acts) acts[event.key]();
  else return;
  event.preventDefault();
}
