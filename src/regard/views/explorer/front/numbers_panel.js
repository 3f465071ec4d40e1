// The numbers of one query, one arithmetic step at a time: q and k, products, scores, softmax, weighted values, output.

import { arithmeticOf, columnOf, columnsOfStep, formulaOf, sourcesOf, valuesOf } from "./arithmetic.js";
import { arrowsOf, button, clamp, create, fill, isolated, labelled } from "./dom.js";
import { ROW, tableOf, WIDE } from "./figures.js";
import { headTitle } from "./labels.js";
import { spell } from "./number_text.js";
import { counted, times } from "./pooling.js";
import { newest } from "./state.js";
import { drawStrip, largestSize, NUMBERS, tint, vectorStrip } from "./vector_strip.js";

/** @typedef {import("./arithmetic.js").Arithmetic} Arithmetic */
/** @typedef {import("./arithmetic.js").Cell} Cell */

/** The number of keys listed: the most relevant ones. */
const MOST_KEYS = 12;
/** The most queries offered in a list. */
const MOST_QUERIES = 2048;
/** The width of a number of a vector in a saved table. */
const DIGITS = 46;
/** The step at which the cell below a column becomes known. */
const KNOWN_AT = /** @type {Record<string, string>} */ ({ largest: "shifted", sum: "sums", output: "output" });

/** @param {Explorer} explorer @returns {Panel} */
export function numbersPanel(explorer) {
  const { say, state } = explorer;
  /** @type {Arithmetic | null} */
  let all = null;
  /** @type {BothLanguages | null} */
  let code = null;
  /** @type {Map<string, {cell: HTMLElement, strip: import("./vector_strip.js").Strip | null}>} */
  let cells = new Map();
  /** @type {Cell | null} */
  let current = null;
  let wanted = "", drawn = -1;
  const latest = newest();
  const picker = create("select", { onchange: () => state.set({ query: Number(picker.value) }) });
  const pick = labelled("numbers-query", picker);
  const list = create("ol.numbers-steps", { "data-label": "numbers-steps" });
  const back = button("numbers-back", () => move(-1)), next = button("numbers-next", () => move(1), "primary");
  const heading = create("h3"), sentence = create("p.quiet"), whose = create("p.quiet");
  const scroll = create("div.numbers-scroll", { onkeydown: moveFocus, onpointermove: lightUnder, onfocusin: lightUnder,
    onpointerleave: () => light(current) });
  const readout = create("p.numbers-readout"), text = create("code"), copy = button("numbers-copy", copyCode);
  const listing = create("details", create("summary#numbers-code"), create("pre", { tabindex: 0 }, text));
  const body = create("div", create("div.numbers-bar", list, create("span", back, next)),
    create("div.numbers-step", heading, sentence), scroll, readout,
    create("p.hint#numbers-hint"), create("div.numbers-code", copy, listing));
  const problem = create("p.problem", { role: "status" });
  const element = create("section.numbers-panel", { "data-label": "numbers-title" },
    create("header.panel-head", create("div", create("h2#numbers-title"), whose), pick), problem, body);
  explorer.root.addEventListener("keydown", onSpace);

  const inside = (/** @type {number} */ at) => clamp(at, 0, (all?.steps.length ?? 1) - 1), step = () => inside(state.get().numbersStep);
  const move = (/** @type {number} */ by) => state.set({ numbersStep: inside(step() + by) });
  const query = () => clamp(state.get().query ?? Infinity, 0, explorer.record().T - 1);

  /** @param {KeyboardEvent} event */
  function onSpace(event) {
    const other = /** @type {HTMLElement} */ (event.target).closest("button, input, select, textarea, summary, a");
    if (event.key !== " " || other || !all || !element.offsetParent) return;
    event.preventDefault();
    move(event.shiftKey ? -1 : 1);
  }

  function ask() {
    const { layer, head } = state.get(), request = { layer, head, query: query(), most: MOST_KEYS };
    if (wanted === JSON.stringify(request)) return;
    wanted = JSON.stringify(request);
    const missing = whyMissing();
    latest(missing ? Promise.reject(null) : explorer.source.explain(request), (answer) => {
      [all, code, current, problem.textContent, body.hidden] = [arithmeticOf(answer), answer.about.code ?? null, null, "", false];
      draw();
    }, (error) => { [all, problem.textContent, body.hidden] = [null, error === null ? missing : explorer.fail(error), true]; });
  }

  /** The queries that a file holds for the open head; null for all. */
  const stored = () => explorer.record().can.queries?.[state.get().head] ?? null;
  const nameOf = (/** @type {number} */ at) => { const { labels } = explorer.record(), names = labels.tokens.queries === null ? null : explorer.overview.labels[labels.tokens.queries]; return names ? `${at} · ${names[at]}` : String(at); };

  /** Why there are no numbers of the query; "" where there are. */
  function whyMissing() {
    const { T, can } = explorer.record(), listed = stored();
    if (!T || can.explain === "none") return say("numbers-not-kept");
    if (!listed || listed.includes(query())) return "";
    return listed.length ? say("numbers-other-queries", { queries: listed.map(nameOf).join(", ") }) : say("numbers-not-stored");
  }

  function draw() {
    drawPicker();
    if (!all) return;
    text.textContent = code?.[state.get().lang] ?? "";
    /** @type {HTMLElement} */ (text.closest(".numbers-code")).hidden = !code;
    drawTable(all);
    drawStep(all);
  }

  function drawPicker() {
    const { T } = explorer.record(), listed = stored(), offered = listed ? [...new Set([...listed, query()])].sort((a, b) => a - b) : counted(Math.min(T, MOST_QUERIES));
    pick.hidden = T < 2 || (!listed && T > MOST_QUERIES);
    if (pick.hidden) return;
    fill(picker, ...offered.map((i) => create("option", { value: i }, nameOf(i))));
    picker.value = String(query());
  }

  /** @param {Arithmetic} found */
  function drawTable(found) {
    cells = new Map();
    const columns = [...found.columns.values()];
    const empty = (/** @type {string} */ id, shown = "") => create("td", { "data-column": id }, shown);
    const line = (/** @type {string} */ name, /** @type {string} */ kind, /** @type {(column: import("./arithmetic.js").Column) => Node} */ cellOf) =>
      create("tr", { class: kind }, create("th", { scope: "row" }, isolated(name)), ...columns.map(cellOf));
    const head = create("tr", create("th", { scope: "col" }, say("numbers-key")), ...columns.map(({ id, vector }) =>
      create("th", { scope: "col", "data-column": id, class: vector ? "vector" : "" }, say(`numbers-column-${id}`, { E: found.E }))));
    const rest = restName(found);
    fill(scroll, create("table", { role: "grid", "aria-label": say("numbers-title") }, create("thead", head), create("tbody", {},
      line(`q  ${found.query}`, "query-row", ({ id }) => (id === "k" ? drawCell(found, id, "top") : empty(id))),
      ...found.names.map((name, i) => line(name, found.visible[i] ? "" : "not-visible", ({ id }) => drawCell(found, id, i))),
      rest !== "" && line(rest, "rest-row", ({ id }) => empty(id, id === "weights" ? spell(found.rest.weight) : "…")),
      line(say("numbers-total"), "total-row", ({ id, total }) => (total ? drawCell(found, id, "total") : empty(id))))));
  }

  /** The name of the keys that are not listed, or of a learned sink; "" where there is neither. @param {Arithmetic} found */
  const restName = ({ rest: { keys, weight } }) => (keys ? say("numbers-others", { count: keys }) : weight ? say("numbers-sink") : "");

  /** @param {Arithmetic} found @param {string} id @param {Cell["row"]} row */
  function drawCell(found, id, row) {
    const { vector, values } = columnOf(found, id), own = valuesOf(found, { column: id, row, at: null });
    const cell = create("td", { "data-column": id, "data-row": row, tabindex: -1, class: vector ? "vector" : "number" });
    const strip = vector ? vectorStrip(own, largestSize(typeof row === "number" ? values : own)) : null;
    cell.append(strip ? strip.element : create("span", spell(own[0])));
    if (id === "weights") cell.style.setProperty("--share", `${100 * own[0]}%`);
    else if (!vector && row !== "total") tint(cell, own[0], largestSize(values));
    cells.set(`${id} ${row}`, { cell, strip });
    return cell;
  }

  /** The columns up to a step. @param {Arithmetic} found @param {number} now */
  function reachedBy(found, now) {
    const reached = new Set(found.steps.slice(0, now + 1).map((one) => one.column));
    return reached.has("weighted") ? reached.add("v") : reached;
  }

  /** Whether the cell below a column is known at a step. @param {Arithmetic} found @param {import("./arithmetic.js").Column} column @param {number} now */
  const knows = (found, { total }, now) => total && found.steps.findIndex((one) => one.id === KNOWN_AT[total.id]) <= now;

  /** @param {Arithmetic} found */
  function drawStep(found) {
    const now = step(), { id, column } = found.steps[now], near = columnsOfStep(found, id), reached = reachedBy(found, now);
    for (const one of /** @type {NodeListOf<HTMLElement>} */ (scroll.querySelectorAll("[data-column]"))) {
      const name = one.dataset.column ?? "";
      one.classList.toggle("later", !reached.has(name));
      one.classList.toggle("far", !near.has(name));
      one.classList.toggle("now", name === column);
    }
    scroll.classList.toggle("wide", !reached.has("scaled"));
    for (const one of found.columns.values()) cells.get(`${one.id} total`)?.cell.classList.toggle("unknown", !knows(found, one, now));
    fill(list, ...found.steps.map((one, i) => create("li", create("button", { class: i < now && "passed",
      "aria-current": i === now && "step", onclick: () => state.set({ numbersStep: i }) }, say(`numbers-short-${one.id}`)))));
    const shown = /** @type {HTMLElement} */ (list.children[now]);
    list.scrollLeft = shown.offsetLeft - list.offsetLeft - list.clientWidth / 2;
    back.disabled = now === 0;
    next.disabled = now === found.steps.length - 1;
    const key = id === "scaled" && found.scale !== null ? "scaled-given" : id;
    const values = { E: found.E, root: spell(Math.sqrt(found.E)), scale: spell(found.scale ?? NaN), cap: spell(found.softcap ?? NaN),
      largest: spell(found.largest), query: found.query };
    heading.textContent = say(`numbers-heading-${key}`, values);
    sentence.textContent = say(`numbers-step-${key}`, values);
    setCurrent(startOf(found, id, column), scroll.matches(":focus-within"));
    requestAnimationFrame(() => { scroll.scrollLeft = scroll.scrollWidth; });  // the newest column stands last
    if (drawn >= 0 && drawn !== now) explorer.announce(`${heading.textContent}. ${sentence.textContent} ${readout.textContent}`);
    drawn = now;
  }

  /** The cell a step begins with: the key of the largest weight, and its largest dimension. @param {Arithmetic} found @param {string} step @param {string} column @returns {Cell} */
  function startOf(found, step, column) {
    const largest = (/** @type {Float64Array} */ values) => values.reduce((best, x, i) => (Math.abs(x) > Math.abs(values[best]) ? i : best), 0);
    const kept = typeof current?.row === "number" ? current.row : largest(columnOf(found, "weights").values);
    const row = step === "sums" || step === "output" ? "total" : kept;
    return { column, row, at: columnOf(found, column).vector ? largest(valuesOf(found, { column, row, at: null })) : null };
  }

  /** @param {Cell} cell @param {boolean} focus */
  function setCurrent(cell, focus) {
    const found = cells.get(`${cell.column} ${cell.row}`)?.cell;
    if (!found) return;
    for (const one of cells.values()) one.cell.tabIndex = -1;
    current = cell;
    found.tabIndex = 0;
    if (focus) found.focus();
    light(cell);
  }

  /** Light a cell, and the cells from which it was computed. @param {Cell | null} cell */
  function light(cell) {
    for (const one of cells.values()) {
      one.cell.classList.remove("lit", "chosen");
      one.strip?.mark(null, false);
    }
    if (!cell || !all) return;
    const mark = (/** @type {Cell} */ { column, row, at }, /** @type {string} */ name) => {
      const one = cells.get(`${column} ${row}`);
      one?.cell.classList.add(name);
      one?.strip?.mark(at, true);
    };
    sourcesOf(all, cell).forEach((one) => mark(one, "lit"));
    mark(cell, "chosen");
    const { total, vector } = columnOf(all, cell.column), inside = vector && cell.column !== "k" && cell.column !== "v" ? ` [${cell.at}]` : "";
    const what = cell.row === "total" ? say(`numbers-total-${total?.id}`) : cell.row === "top" ? "q" : say(`numbers-column-${cell.column}`, { E: all.E });
    const word = cell.row === "total" ? "" : cell.row === "top" ? all.query : all.names[cell.row];
    fill(readout, create("b", what, " ", isolated(word)), `${inside} `, create("span.formula", formulaOf(all, cell)));
  }

  /** @param {Event} event */
  function lightUnder(event) {
    const target = /** @type {HTMLElement} */ (event.target).closest("td[data-row]");
    if (!(target instanceof HTMLElement) || !all) return;
    const { column = "", row = "" } = target.dataset, strip = cells.get(`${column} ${row}`)?.strip;
    const at = !strip ? null : event instanceof MouseEvent ? strip.at(event) : current?.at ?? 0;
    const cell = /** @type {Cell} */ ({ column, row: /^\d/.test(row) ? Number(row) : row, at });
    if (event.type === "focusin") current = cell;
    light(cell);
  }

  /** Arrow keys walk through the dimensions of a vector, then to the next cell; with Ctrl directly. @param {KeyboardEvent} event */
  function moveFocus(event) {
    const by = arrowsOf(event, true);
    if (!all || !current || !by) return;
    const [down, across] = by, { vector, width } = columnOf(all, current.column), at = (current.at ?? 0) + across;
    if (across && vector && !event.ctrlKey && at >= 0 && at < width) { setCurrent({ ...current, at }, true); return; }
    const rows = /** @type {Cell["row"][]} */ (["top", ...all.names.keys(), "total"]), columns = [...all.columns.keys()];
    const column = columns[columns.indexOf(current.column) + across], row = rows[rows.indexOf(current.row) + down];
    const found = cells.get(`${column} ${row}`)?.cell;
    if (!found || !found.offsetParent || found.classList.contains("unknown")) return;
    const wide = columnOf(all, column), start = across < 0 ? wide.width - 1 : 0;
    setCurrent({ column, row, at: wide.vector ? Math.min(vector ? current.at ?? 0 : start, wide.width - 1) : null }, true);
  }

  async function copyCode() {
    try {
      await navigator.clipboard.writeText(text.textContent);
      explorer.announce(say("numbers-copied"));
      copy.textContent = say("numbers-copied");
      setTimeout(() => { copy.textContent = say("numbers-copy"); }, 1500);
    } catch {  // no permission: the text is selected instead
      listing.open = true;
      getSelection()?.selectAllChildren(text);
    }
  }

  /** The table up to the current step; of long vectors those of this step. @returns {Figure | null} */
  function figure() {
    if (!all) return null;
    const found = all, now = step(), near = columnsOfStep(found, found.steps[now].id), reached = reachedBy(found, now), wide = 68, first = 84;
    const known = [...found.columns.values()].filter((one) => reached.has(one.id));
    const roomFor = (/** @type {typeof known} */ all) => { const count = all.filter((one) => one.vector).length; return Math.min(200, (WIDE - first - wide * (all.length - count)) / Math.max(1, count)); };
    const short = found.E <= NUMBERS && roomFor(known) > DIGITS * found.E, shown = known.filter((one) => short || !one.vector || near.has(one.id)), room = roomFor(shown);
    let x = first;
    const placed = shown.map((column) => { const width = column.vector ? room : wide; x += width; return { column, width, left: x - width }; });
    const rest = restName(found);
    const rows = /** @type {[string, Cell["row"]][]} */ ([...(reached.has("k") && near.has("k") ? [[`q  ${found.query}`, "top"]] : []), ...found.names.map((name, i) => [name, i]), ...(rest ? [[rest, "rest"]] : []), [say("numbers-total"), "total"]]);
    return {
      width: WIDE, height: 30 + ROW * (rows.length + 1), notes: [sentence.textContent, readout.textContent],
      draw(pen) {
        const ink = explorer.colour("ink"), quiet = explorer.colour("quiet"), middle = (/** @type {number} */ i) => 30 + (i + 1.5) * ROW;
        pen.text(heading.textContent, 0, 9, { size: 13, weight: 600, fill: ink, most: WIDE });
        pen.text(say("numbers-key"), 0, 30 + ROW / 2, { size: 11, fill: quiet });
        placed.forEach(({ column: { id, vector }, left, width }) => pen.text(say(`numbers-column-${id}`, { E: found.E }), vector ? left + 6 : left + width - 4, 30 + ROW / 2, { size: 11, fill: quiet, align: vector ? "left" : "right", most: width }));
        rows.forEach(([name, row], i) => {
          const fill = row === "total" || (typeof row === "number" && found.visible[row]) || row === "top" ? ink : quiet;
          if (row === "total") pen.line([0, middle(i) - ROW / 2, x, middle(i) - ROW / 2], explorer.colour("line"));
          pen.text(name, 0, middle(i), { size: 12, fill, most: first - 6 });
          for (const { column, left, width } of placed) {
            const { id, vector, values } = column;
            if (row === "top" ? id !== "k" : row === "total" ? !knows(found, column, now) : /** @type {any} */ (row) === "rest" && id !== "weights") continue;
            const own = /** @type {any} */ (row) === "rest" ? [found.rest.weight] : valuesOf(found, { column: id, row, at: null });
            if (id === "weights" && typeof row === "number") pen.rect(left + 4, middle(i) - 8, (width - 4) * own[0], 16, explorer.colour("accent-soft"));
            if (own.length > NUMBERS) drawStrip(pen, /** @type {Float64Array} */ (own), largestSize(typeof row === "number" ? values : own), left + 6, middle(i), width - 12);
            else pen.text(Array.from(own, spell).join(", "), vector ? left + 6 : left + width - 4, middle(i), { size: 11, fill, align: vector ? "left" : "right", most: width - 6 });
          }
        });
      },
    };
  }

  /** The columns up to the current step; a vector has a column for each dimension. */
  function table() {
    if (!all) return null;
    const found = all, reached = reachedBy(found, step()), shown = [...found.columns.values()].filter(({ id }) => reached.has(id));
    const columns = ["key", ...shown.flatMap(({ id, vector, width }) => (vector ? times(width, (d) => `${id}[${d}]`) : [id]))];
    const rows = found.names.map((name, row) => [name, ...shown.flatMap(({ id }) => Array.from(valuesOf(found, { column: id, row, at: null })))]);
    const { query, rest, scale, softcap, q } = found, totals = shown.filter((one) => knows(found, one, step())).map(({ total }) => [total?.id, Array.from(total?.values ?? [])]);
    return tableOf(explorer, columns, rows, { query, q: Array.from(q), scale, softcap, rest, totals: Object.fromEntries(totals) });
  }

  return {
    element, figure, table,
    update(now, has) {
      if (now.depth !== "numbers") return;
      if (has("layer", "head", "lang", "depth")) whose.textContent = headTitle(explorer, now.layer, now.head);
      if (has("lang")) draw();
      else if (has("numbersStep") && all) drawStep(all);
      if (has("layer", "head") || (has("query") && stored())) drawPicker();
      picker.value = String(query());
      ask();
    },
  };
}
