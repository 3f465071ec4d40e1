// All heads of a model as small maps, or as tiles coloured by what each head does.

import { openHead } from "./actions.js";
import { arrowsOf, chooser, clamp, create, fill } from "./dom.js";
import { drawRamp, drawSamples, NARROW, rampColours, samplesOf, striped, tableOf, WIDE } from "./figures.js";
import { headDoes, headTitle, patternFamily, percent } from "./labels.js";
import { ramp } from "./legend.js";
import { times } from "./pooling.js";
import { css, inkOn, packed, paintCells, pixelsOf, shortWeight } from "./scale.js";
import { newest } from "./state.js";

const SIDE = 48, PAUSE = 80, KIND = 20;
/** Colours that colour-blind people tell apart (Okabe and Ito 2008), for families of patterns. @type {Record<string, RGB>} */
const FAMILY_COLOURS = {
  previous: [0, 114, 178], back: [86, 180, 233], itself: [153, 153, 153], first: [90, 90, 100], induction: [213, 94, 0], shifted: [230, 159, 0],
  same: [240, 228, 66], local: [0, 158, 115], ahead: [120, 200, 170], separator: [204, 121, 167], alignment: [148, 103, 189], other: [120, 120, 140], none: [200, 200, 208],
};

/** @typedef {{layer: number, head: number, tile: HTMLButtonElement, canvas: HTMLCanvasElement}} Tile */

/** @param {Explorer} explorer @returns {Panel} */
export function modelPanel(explorer) {
  const { state, overview, say } = explorer, hasEffect = overview.records.some(({ measures, can }) => measures.effect || can.effect);
  const measures = ["maps", "pattern", "entropy", "sink", "distance", ...(hasEffect ? ["effect"] : [])];
  const show = chooser(explorer, "show", measures), sort = chooser(explorer, "sort", ["layer", "measure"]);
  const grid = create("div.grid", { role: "grid", "data-label": "model-label", onkeydown: move });
  const preview = create("div.preview", { "aria-hidden": "true", hidden: true }), key = create("p.quiet.families"), progress = create("p.quiet", { role: "status" });
  const note = create("p.quiet.model-note"), colours = ramp(explorer.overview), legend = create("div.legend", colours.element);
  const element = create("div.model-panel", create("div.tools", show.element, sort.element), note, key, legend, progress, grid, preview);
  const tiles = makeTiles(explorer, look, leave), latest = newest();

  /** The tiles row by row. @type {Tile[][]} */
  let rows = [];
  let timer = 0;
  const arrange = () => {
    const { show: what, sort: order } = state.get();
    const sorted = order === "measure" && what !== "maps";
    rows = sorted ? [[...tiles].sort((a, b) => compareTiles(explorer, what, a, b))] : layersByKind(overview).map((layer) => tiles.filter((one) => one.layer === layer));
    grid.classList.toggle("sorted", sorted);
    const kinds = new Set(overview.records.map(({ kind }) => kind)), wide = Math.max(...overview.records.map(columnsOf));
    for (const [name, value] of Object.entries({ layers: rows.length, kinds: kinds.size, columns: wide })) element.style.setProperty(`--${name}`, String(value));
    fill(grid, ...(sorted ? [create("div", { role: "row", class: "heads" }, ...rows[0].map(({ tile }) => tile))] : rowsByKind(explorer, rows)));
  };
  const paint = () => {
    const { show: what } = state.get(), range = what === "maps" || what === "pattern" ? null : rangeOf(overview, what);
    grid.dataset.show = what;
    for (const one of tiles) paintTile(explorer, one, what, range);
    key.hidden = range !== null;
    fill(key, ...familiesOf(explorer, tiles));
    legend.hidden = !range;
    if (range) colours.update(ticksFor(what, range));
    note.textContent = [say(range ? `meaning-${what}` : `figure-${what}`), grid.classList.contains("sorted") && say("model-corner")].filter(Boolean).join(" ");
  };
  const mark = () => {
    const { layer, head } = state.get();
    for (const one of tiles) {
      const chosen = one.layer === layer && one.head === head;
      one.tile.ariaSelected = String(chosen);
      one.tile.tabIndex = chosen ? 0 : -1;
      // Sizes are read before the next frame, so that the browser lays the page out once.
      if (chosen) requestAnimationFrame(() => { if (grid.scrollHeight > grid.clientHeight) grid.scrollTop = one.tile.offsetTop - grid.clientHeight / 2; });
    }
  };

  /** Silence one head after the other, as long as their effects are shown, where a model is at hand. */
  const measure = async () => {
    const effectOf = (/** @type {Tile} */ { layer, head }) => valueOf(overview.records[layer], "effect", head);
    for (const one of tiles) {
      const { measures: found, can, heads } = overview.records[one.layer], { layer, head } = one;
      if (state.get().show !== "effect" || !grid.isConnected) return;
      if (!can.effect || effectOf(one) !== null) continue;
      progress.textContent = say("effect-measuring", { done: tiles.filter((other) => effectOf(other) !== null).length, count: tiles.length });
      const answer = await explorer.source.effect({ silence: { layer, head } }).catch((/** @type {any} */ error) => { progress.textContent = explorer.fail(error); });
      if (!answer) return;
      found.effect ??= Array(heads).fill(null);
      found.effect[head] = answer.about.kl;
      paint();
    }
    progress.textContent = "";
    arrange();
    mark();
  };

  /** @param {KeyboardEvent} event */
  function move(event) {
    const row = rows.findIndex((all) => all.some(({ tile }) => tile === event.target)), by = row < 0 ? null : arrowsOf(event);
    if (!by) return;
    const columns = rows.length === 1 ? Math.max(1, rows[0].findIndex(({ tile }) => tile.offsetTop > rows[0][0].tile.offsetTop)) : 0;
    const at = rows[row].findIndex(({ tile }) => tile === event.target);
    const to = rows[clamp(row + by[0], 0, rows.length - 1)], next = to[clamp(at + by[1] + by[0] * columns, 0, to.length - 1)];
    tiles.forEach(({ tile }) => { tile.tabIndex = -1; });
    next.tile.tabIndex = 0;
    next.tile.focus();
  }
  /** The preview of a head: under its tile, or beside all tiles where there is space, then with its map. @param {Tile} one */
  function look({ layer, head, tile, canvas }) {
    const record = explorer.record(layer), large = create("canvas", { width: SIDE, height: SIDE });
    large.getContext("2d")?.drawImage(canvas, 0, 0);
    const numbers = ["entropy", "sink", "distance", "effect"].map((name) => /** @type {const} */ ([name, valueOf(record, name, head)])).filter(([, value]) => value !== null);
    fill(preview, large, create("div", create("b", headTitle(explorer, layer, head)), create("p", headDoes(explorer, record, head)),
      create("dl", ...numbers.flatMap(([name, value]) => [create("dt", say(`show-${name}`)), create("dd", measureText(name, Number(value)))]))));
    preview.hidden = false;
    clearTimeout(timer);
    if (stays()) timer = window.setTimeout(() => latest(explorer.shownCells(layer, head), (cells) => large.replaceWith(pixelsOf(overview, cells, explorer.scaleOf(cells)))), PAUSE);
    const box = tile.getBoundingClientRect(), whole = element.getBoundingClientRect();
    preview.style.top = `${box.bottom - whole.top + 8}px`;
    preview.style.left = `${Math.max(0, Math.min(box.left - whole.left - 40, whole.width - preview.offsetWidth))}px`;
  }
  /** Whether the preview has a place of its own; without a tile under the pointer it shows the open head then. */
  function stays() { return state.get().depth === "model" && getComputedStyle(preview).position === "sticky"; }
  function leave() {
    const { layer, head } = state.get(), own = stays() && tiles.find((one) => one.layer === layer && one.head === head);
    preview.hidden = true;
    if (own) look(own);
  }
  return {
    element,
    update(now, has) {
      if (has("show", "sort", "lang")) {
        [show.list.value, sort.list.value, sort.element.hidden] = [now.show, now.sort, now.show === "maps"];
        arrange();
        paint();
      }
      if (has("show", "sort", "lang", "layer", "head")) mark();
      if (has("show", "lang", "layer", "head", "depth", "size", "scale")) leave();
      if (has("show")) { progress.textContent = ""; if (now.show === "effect") measure(); }
    },
    figure: (ruler) => modelFigure(explorer, ruler, rows, Array.from(key.children, (one) => ({ text: one.textContent, fill: /** @type {HTMLElement} */ (one.firstChild).style.background }))),
    table: () => modelTable(explorer, measures.slice(2)),
  };
}

/** @param {Explorer} explorer @param {(tile: Tile) => void} look @param {() => void} leave */
function makeTiles(explorer, look, leave) {
  const { records, thumbnails, colours: { sequential, nan } } = explorer.overview;
  const table = Uint32Array.from(times(256, (i) => packed(i === 255 ? nan : sequential[Math.round(Math.max(0, i - 1) / 253 * (sequential.length - 1))])));
  let start = 0;
  return records.flatMap((record, layer) => times(record.heads, (head) => {
    const canvas = create("canvas", { width: SIDE, height: SIDE }), show = () => look(one);
    const tile = create("button.tile", { role: "gridcell", tabindex: -1, onclick: open, onpointerenter: show, onfocus: show, onpointerleave: leave, onblur: leave }, canvas, create("span.value"), create("i"));
    const one = { layer, head, tile, canvas };
    paintCells(canvas, thumbnails.subarray(start, start += SIDE * SIDE), (number) => table[number]);
    function open() {
      leave();
      openHead(explorer, layer, head);
      if (explorer.state.get().depth === "model") explorer.state.set({ depth: "head" });
    }
    return one;
  }));
}

/** The families of patterns that heads have: each opens the head that follows it most. @param {Explorer} explorer @param {Tile[]} tiles */
function familiesOf(explorer, tiles) {
  const { say, record } = explorer, of = (/** @type {Tile} */ { layer, head }) => patternFamily(record(layer).measures.pattern[head])[0];
  return Object.keys(FAMILY_COLOURS).flatMap((name) => {
    const best = tiles.filter((one) => of(one) === name).sort((a, b) => compareTiles(explorer, "pattern", a, b))[0], swatch = create("i"), text = say(`family-${name}`);
    swatch.style.background = css(FAMILY_COLOURS[name]);
    if (!best || name === "none") return best ? [create("span", swatch, text)] : [];
    const tip = say("model-best", { family: text, head: headTitle(explorer, best.layer, best.head) });
    return [create("button", { title: tip, "aria-label": tip, onclick: () => best.tile.click() }, swatch, text)];
  });
}

/** The layers, those of one kind of attention together. @param {Overview} overview */
function layersByKind({ records }) {
  const kinds = [...new Set(records.map(({ kind }) => kind))];
  return [...records.keys()].sort((a, b) => kinds.indexOf(records[a].kind) - kinds.indexOf(records[b].kind) || a - b);
}

/** Rows with their layer, under the kind of attention where there are several. @param {Explorer} explorer @param {Tile[][]} rows */
function rowsByKind({ overview, say, state }, rows) {
  const kinds = new Set(overview.records.map(({ kind }) => kind)), found = /** @type {HTMLElement[]} */ ([]);
  let kind = "";
  for (const tiles of rows) {
    if (!tiles.length) continue;
    const [{ layer }] = tiles, record = overview.records[layer], title = record.titles[state.get().lang];
    if (record.kind !== kind) {
      const name = kinds.size > 1 && create("div", { role: "row", class: "kind" }, create("span", { role: "rowheader" }, say(`kind-${record.kind}`)));
      const numbers = create("div.heads", { style: `--heads: ${columnsOf(record)}` }, ...tiles.map(({ head }) => create("span", String(head))));
      found.push(create("div", { role: "rowgroup", class: "block" }, name, create("div.layer.head-numbers", { "aria-hidden": "true" }, create("span"), numbers)));
    }
    kind = record.kind;
    const short = layerNumber(record, layer);
    const heads = create("div.heads", { role: "presentation", style: `--heads: ${columnsOf(record)}` }, ...tiles.map(({ tile }) => tile));
    found[found.length - 1].append(create("div", { role: "row", class: "layer" }, create("span", { role: "rowheader", title, "aria-label": title }, short), heads));
  }
  return found;
}

/** The number of heads in a row. @param {Attention} record */
const columnsOf = ({ heads }) => Math.min(16, Math.max(4, heads));

/** The number in a layer's title. @param {Attention} record @param {number} layer */
const layerNumber = (record, layer) => /\d+/.exec(record.titles.en)?.[0] ?? String(layer);

/** A measure of a head; null where it is unknown. @param {Attention} record @param {string} name @param {number} head @returns {number | null} */
function valueOf({ measures }, name, head) {
  const value = /** @type {any} */ (measures)[name]?.[head];
  return typeof value === "number" && Number.isFinite(value) ? value : null;
}

/** @param {Overview} overview @param {string} name @returns {Span} */
function rangeOf({ records }, name) {
  const all = records.flatMap((record) => times(record.heads, (head) => valueOf(record, name, head))).filter((value) => value !== null);
  return [Math.min(0, ...all), Math.max(1e-9, ...all)];
}

/** @param {string} name @param {number} value */
function measureText(name, value) {
  return name === "sink" ? `${percent(value)}\u00a0%` : name === "effect" && value < 0.1 ? shortWeight(value) : value >= 100 ? String(Math.round(value)) : value.toFixed(value < 10 ? 2 : 1);
}

/** The ends of a bar of colours. @param {string} what @param {Span} range @returns {[number, string][]} */
const ticksFor = (what, range) => range.map((value, at) => [at, measureText(what, value)]);

/** Largest first; patterns by family, then by score. @param {Explorer} explorer @param {string} what @param {Tile} a @param {Tile} b */
function compareTiles(explorer, what, a, b) {
  const of = (/** @type {Tile} */ { layer, head }) => explorer.record(layer).measures.pattern[head], families = Object.keys(FAMILY_COLOURS);
  const family = what === "pattern" ? families.indexOf(patternFamily(of(a))[0]) - families.indexOf(patternFamily(of(b))[0]) : 0;
  const value = (/** @type {Tile} */ { layer, head }) => valueOf(explorer.record(layer), what === "pattern" ? "score" : what, head) ?? -Infinity;
  return family || value(b) - value(a);
}

/** @param {Explorer} explorer @param {Tile} one @param {string} what @param {Span | null} range */
function paintTile(explorer, { layer, head, tile }, what, range) {
  const record = explorer.record(layer), { pattern, score } = record.measures, [canvas, value, strip] = /** @type {HTMLElement[]} */ ([...tile.children]);
  const number = range && valueOf(record, what, head), family = FAMILY_COLOURS[patternFamily(pattern[head])[0]];
  canvas.hidden = what !== "maps";
  value.hidden = what === "maps";
  strip.hidden = what !== "maps";
  strip.style.background = css(family);
  strip.style.opacity = String(pattern[head] ? 0.35 + 0.65 * score[head] : 0);
  const { sequential } = explorer.overview.colours;
  const colour = range ? (number === null ? null : sequential[Math.round((number - range[0]) / (range[1] - range[0] || 1) * (sequential.length - 1))]) : family;
  tile.style.background = what === "maps" || !colour ? "" : css(colour);
  tile.style.color = colour ? inkOn(colour) : "";
  tile.dataset.at = `${layerNumber(record, layer)}.${head}`;
  value.textContent = range ? (number === null ? "–" : measureText(what, number)) : pattern[head] ? String(percent(score[head])) : "";
  tile.ariaLabel = `${headTitle(explorer, layer, head)}: ${headDoes(explorer, record, head)}${range && number !== null ? `, ${explorer.say(`show-${what}`)} ${measureText(what, number)}` : ""}`;
}

/** The tiles as they are shown, with what their colours mean. @param {Explorer} explorer @param {Pen} ruler @param {Tile[][]} rows @param {import("./figures.js").Sample[]} families @returns {Figure} */
function modelFigure(explorer, ruler, rows, families) {
  const { overview, state, say, colour } = explorer, { show: what } = state.get(), range = what === "maps" || what === "pattern" ? null : rangeOf(overview, what);
  const most = Math.max(...overview.records.map(({ heads }) => heads)), width = most <= 6 ? NARROW : WIDE, left = 44, top = 34, room = width - left;
  const sorted = !rows[0]?.every(({ layer }) => layer === rows[0][0].layer) || (rows.length === 1 && overview.records.length > 1);
  const pitch = Math.min(54, room / most), across = sorted ? Math.floor(room / pitch) : most;
  const step = pitch + (sorted ? 12 : 0);
  /** The names of the kinds of attention, where there are several, above their layers. */
  const kindOf = (/** @type {number} */ y) => overview.records[rows[y][0]?.layer ?? 0].kind, several = new Set(overview.records.map(({ kind }) => kind)).size > 1;
  const begins = sorted || !several ? [] : [...rows.keys()].filter((y) => !y || kindOf(y) !== kindOf(y - 1)), down = (/** @type {number} */ y) => top + y * step + KIND * begins.filter((first) => first <= y).length;
  const placed = sorted ? rows[0].map((one, i) => ({ one, x: i % across, y: Math.floor(i / across) })) : rows.flatMap((all, y) => all.map((one) => ({ one, x: one.head, y })));
  const bottom = down(Math.max(0, ...placed.map(({ y }) => y))) + step + 8, samples = samplesOf(ruler, range ? [] : families, room);
  return {
    width, height: bottom + (range ? 42 : samples.height), title: say("figure-heads", { show: say(`show-${what}`) }), notes: [say(range ? `meaning-${what}` : `figure-${what}`), sorted && say("figure-sorted")],
    draw(pen) {
      const quiet = colour("quiet"), small = { size: 10, fill: quiet, align: /** @type {const} */ ("center") };
      if (!sorted) {
        pen.text(say("head"), left + (most * pitch) / 2, 8, { ...small, size: 12 });
        pen.text(say("layer"), 7, (top + bottom) / 2, { ...small, size: 12, turned: true });
        begins.forEach((y) => pen.text(say(`kind-${kindOf(y)}`), left, down(y) - 9, { size: 11, weight: 600, fill: quiet }));
        for (let i = 0; i < most; i++) pen.text(String(i), left + (i + 0.5) * pitch, 25, small);
        rows.forEach((all, y) => { if (all.length) pen.text(layerNumber(overview.records[all[0].layer], all[0].layer), left - 6, down(y) + 0.5 * step, { ...small, align: "right" }); });
      }
      for (const { one: { layer, head, tile, canvas }, x, y } of placed) {
        const at = left + x * pitch, high = down(y), side = pitch - 3, [, value, strip] = /** @type {HTMLElement[]} */ ([...tile.children]);
        if (tile.style.background) pen.rect(at, high, side, side, tile.style.background); else striped(explorer, pen, at, high, side, side);
        if (!canvas.hidden) pen.image(canvas, [0, 0, SIDE, SIDE], [at, high, side, side]);
        if (!strip.hidden && Number(strip.style.opacity)) pen.rect(at, high + side - 4, side, 4, strip.style.background);
        if (!value.hidden) pen.text(value.textContent, at + side / 2, high + side / 2, { ...small, size: Math.min(11, side / 3), fill: tile.style.color || colour("ink") });
        if (sorted) pen.text(`${layerNumber(overview.records[layer], layer)}.${head}`, at + side / 2, high + side + 6, { ...small, size: 8 });
      }
      if (range) drawRamp(explorer, pen, say(`show-${what}`), rampColours(overview), ticksFor(what, range), left, bottom, 180);
      drawSamples(explorer, pen, samples, left, bottom);
    },
  };
}

/** @param {Explorer} explorer @param {string[]} names @returns {Table} */
function modelTable(explorer, names) {
  const rows = explorer.overview.records.flatMap((record) => times(record.heads, (head) => [
    record.name, head, record.measures.pattern[head], ...["score", ...names].map((name) => valueOf(record, name, head))]));
  const table = tableOf(explorer, ["layer", "head", "pattern", "score", ...names], rows);
  return { ...table, about: { rows: table.about.rows } };
}
