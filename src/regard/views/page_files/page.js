// The page of a Trace: a layer, a head, a cell are chosen; all else is derived from them and drawn again.
// Data come from the two scripts below this one; every text goes in by textContent, never as markup.
"use strict";

/** @typedef {{name: string, kind: string, heads: number, T: number, S: number, R: number, C: number, high: number,
 *   wide: number, queries: number|null, keys: number|null, first: (number|null)[], sample: number, samples: number,
 *   merged: string|null, prompt: number|null, offset: number}} Attention */

const $ = (id) => document.getElementById(id);
const MOST_LABELS = 72, MOST_TEXT = 1500, STRONGEST = 8;
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

/** The last query at what it looks at most, the first token aside: more to see than the corner. */
function begin() {
  const { R, C } = current(), line = [...state.cells.subarray((R - 1) * C, R * C)];
  const others = line.slice(1).map((value) => (value > 0 ? value : 0));
  if (R && C) pick(R - 1, others.some((value) => value > 0) ? 1 + others.indexOf(Math.max(...others)) : 0, false);
}

/** What the address asks for: #layer=3&head=5. */
function asked() {
  const wanted = new URLSearchParams(location.hash.slice(1)), found = {};
  const layer = Number(wanted.get("layer") ?? 0), head = Number(wanted.get("head") ?? 0);
  if (data.records[layer]) found.layer = layer;
  if (head < (data.records[found.layer ?? 0]?.heads ?? 0)) found.head = head;
  if (wanted.get("lang") in data.words) found.lang = wanted.get("lang");
  return found;
}

// --- words --------------------------------------------------------------------------------------------------

function say(key, values = {}) {
  return data.words[state.lang][key].replace(/\{(\w+)\}/g, (_, name) => values[name]);
}

const current = () => data.records[state.layer];

/** What a row or a column is called: its token, and the positions it stands for. */
function nameOf(side, at) {
  const record = current(), [list, size, length] = side === "query"
    ? [record.queries, record.high, record.T] : [record.keys, record.wide, record.S];
  const last = Math.min(length, (at + 1) * size) - 1, place = last > at * size ? `${at * size}–${last}` : `${at * size}`;
  return list === null ? place : `${data.labels[list][at]} (${place})`;
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
  $("layer").value = state.layer;
  $("scale").value = state.scale;
  $("about").textContent = about(record).join(" · ");
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
  state.ceiling = ceilingOf(record, state.head, state.cells);
  state.image = pixels(record, state.cells, state.ceiling);
  $("about").textContent = [...about(record), ...aboutHead(record)].join(" · ");
  drawLegend();
  drawMap();
  drawCell();
}

function about(record) {
  const pieces = [record.name, say(`kind-${record.kind}`), say("size", record)];
  if (record.samples > 1) pieces.push(say("sample", { sample: record.sample, count: record.samples }));
  if (record.high > 1 || record.wide > 1) pieces.push(say("cell", record));
  if (record.merged) pieces.push(say(`merged-${record.merged}`));
  if (record.prompt !== null) pieces.push(say("prompt", record));
  return pieces;
}

function aboutHead(record) {
  const share = record.first[state.head], head = `${say("head")} ${state.head}`;
  return share == null ? [head] : [head, say("first", { share: Math.round(100 * share) })];
}

/** Cells as pixels of a canvas of their own size. */
function pixels(record, cells, ceiling) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [Math.max(1, record.C), Math.max(1, record.R)];
  const context = canvas.getContext("2d"), image = context.createImageData(canvas.width, canvas.height);
  cells.forEach((value, i) => {
    if (value !== 0) image.data.set([...colourOf(value, ceiling), 255], 4 * i);
  });
  context.putImageData(image, 0, 0);
  return canvas;
}

function drawHeads(record) {
  $("heads").replaceChildren(...Array.from({ length: record.heads }, (_, head) => {
    const button = document.createElement("button"), small = document.createElement("canvas");
    const cells = cellsOf(record, head), image = pixels(record, cells, ceilingOf(record, head, cells));
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

const style = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** Where the cells stand on the canvas: room for labels, the size of a cell in CSS pixels. */
function layout(record) {
  const wide = $("middle").clientWidth, context = $("map").getContext("2d");
  const room = (list, count) => {
    if (list === null || count > MOST_LABELS) return 44;
    context.font = font(12);  // before the canvas gets its size: only to measure
    return Math.min(0.3 * wide, 12 + Math.max(...data.labels[list].map((label) => context.measureText(label).width)));
  };
  const left = room(record.queries, record.R), top = room(record.keys, record.C);
  const most = Math.min(wide - left - 1, 900), longer = Math.max(record.R, record.C, 1);
  const cell = Math.min(64, most / longer), flat = 4 * Math.min(record.R, record.C) < longer;
  const least = flat ? Math.max(cell, 28 / Math.min(record.R, record.C)) : cell;  // one row is still to be seen
  const [width, height] = record.C >= record.R ? [cell, least] : [least, cell];
  return { left, top, width, height };
}

const font = (size) => `${size}px ${getComputedStyle(document.body).fontFamily}`;

function drawMap() {
  const record = current(), canvas = $("map"), at = (state.layout = layout(record));
  const ratio = window.devicePixelRatio || 1;
  const across = Math.max(120, at.left + record.C * at.width + 1), down = at.top + record.R * at.height + 1;
  [canvas.width, canvas.height] = [Math.round(across * ratio), Math.round(down * ratio)];
  [canvas.style.width, canvas.style.height] = [`${across}px`, `${down}px`];
  const context = canvas.getContext("2d");
  context.scale(ratio, ratio);
  context.fillStyle = style("--ground");
  context.fillRect(0, 0, across, down);
  if (!state.cells.length) return;
  context.fillStyle = style("--hidden");
  context.fillRect(at.left, at.top, record.C * at.width, record.R * at.height);
  context.imageSmoothingEnabled = false;
  context.drawImage(state.image, at.left, at.top, record.C * at.width, record.R * at.height);
  drawNumbers(context, record, at);
  drawLabels(context, record, at);
  drawPrompt(context, record, at);
  drawMark(context, at);
}

/** A line where reading ended and writing began. */
function drawPrompt(context, record, at) {
  if (record.prompt === null) return;
  const y = at.top + (record.prompt / record.high) * at.height;
  context.setLineDash([6, 4]);
  [context.strokeStyle, context.lineWidth] = [style("--mark"), 1];
  context.beginPath();
  context.moveTo(at.left, y);
  context.lineTo(at.left + record.C * at.width, y);
  context.stroke();
  context.setLineDash([]);
}

function drawNumbers(context, record, at) {
  if (at.width < 34 || at.height < 18) return;
  context.font = font(11);
  [context.textAlign, context.textBaseline] = ["center", "middle"];
  state.cells.forEach((value, i) => {
    if (value === 0) return;
    context.fillStyle = inkOn(colourOf(value, state.ceiling));
    const [row, column] = [Math.floor(i / record.C), i % record.C];
    const text = Number.isNaN(value) ? "NaN" : value.toFixed(2);
    context.fillText(text, at.left + (column + 0.5) * at.width, at.top + (row + 0.5) * at.height);
  });
}

/** Tokens along both sides where they can be read, else positions at round numbers. */
function drawLabels(context, record, at) {
  context.fillStyle = style("--ink");
  context.font = font(record.R <= MOST_LABELS && record.C <= MOST_LABELS ? Math.max(9, Math.min(12, at.height)) : 11);
  context.textBaseline = "middle";
  const along = (list, count, size, cell, write) => {
    if (list !== null && count <= MOST_LABELS) return data.labels[list].forEach((label, i) => write(label, i + 0.5, cell));
    const least = 52 * size / cell, power = 10 ** Math.floor(Math.log10(least));
    const step = Math.max(1, [1, 2, 5, 10].find((times) => times * power >= least) * power);
    for (let place = 0; place < count * size; place += step) write(`${place}`, (place + 0.5) / size, Infinity);
  };
  along(record.queries, record.R, record.high, at.height, (label, place) => {
    context.textAlign = "right";
    context.fillText(label, at.left - 5, at.top + place * at.height, at.left - 6);
  });
  along(record.keys, record.C, record.wide, at.width, (label, place, room) => {
    context.save();
    context.translate(at.left + place * at.width, at.top - 6);
    const upright = context.measureText(label).width > room - 2;
    if (upright) context.rotate(-Math.PI / 2);
    context.textAlign = upright ? "left" : "center";
    context.fillText(label, 0, upright ? 0 : -5, upright ? at.top - 8 : undefined);
    context.restore();
  });
}

function drawMark(context, at) {
  const { R, C } = current();
  context.strokeStyle = style("--mark");
  context.lineWidth = Math.min(at.width, at.height) < 6 ? 1 : 2;
  context.strokeRect(at.left, at.top + state.row * at.height, C * at.width, at.height);
  context.strokeRect(at.left + state.column * at.width, at.top, at.width, R * at.height);
}

function drawLegend() {
  const steps = [0, 0.25, 0.5, 0.75, 1], highest = state.cells.reduce((a, b) => (b > a ? b : a), 0);
  $("legend").replaceChildren(...steps.map((step) => {
    const one = document.createElement("span"), weight = weightAt(step, state.ceiling);
    const colour = colourOf(weight, state.ceiling);
    const sign = step === 1 && highest > 1.01 * state.ceiling ? "≥ " : step === 0 && state.scale === "log" ? "≤ " : "";
    one.textContent = sign + (weight ? weight.toPrecision(2) : "0");
    [one.style.background, one.style.color] = [`rgb(${colour})`, inkOn(colour)];
    return one;
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
  const own = record.keys === record.queries;
  $("text").replaceChildren(...data.labels[record.keys].map((label, i) => {
    const token = document.createElement("span"), value = line[i];
    token.textContent = label;
    if (value !== 0) {
      const colour = colourOf(value, state.ceiling);
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
  const scales = ["auto", "linear", "log", "renormalised", "hidden"];
  $("scale").replaceChildren(...scales.map((scale) => new Option(scale, scale)));
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
  $("picture").onclick = () => $("map").toBlob((blob) => {
    const link = document.createElement("a");
    [link.href, link.download] = [URL.createObjectURL(blob), `${current().name}.${state.head}.png`];
    link.click();
    URL.revokeObjectURL(link.href);
  });
  $("map").onmousemove = (event) => { const at = cellUnder(event); if (at && !state.pinned) pick(...at, false); };
  $("map").onclick = (event) => { const at = cellUnder(event); if (at) pick(...at, !state.pinned); };
  document.onkeydown = onKey;
  matchMedia("(prefers-color-scheme: dark)").onchange = draw;
  new ResizeObserver(drawMap).observe($("middle"));
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
