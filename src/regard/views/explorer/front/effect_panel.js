// "Did it matter?": the next token with and without a head or an edge, and weights times the size of what is read.

import { barList } from "./bars.js";
import { button, create } from "./dom.js";
import { headTitle } from "./labels.js";
import { percentText } from "./number_text.js";
import { newest } from "./state.js";

/** The most keys listed by weight × norm. */
const MOST_NORMS = 6;

/** @param {Explorer} explorer @returns {Panel} */
export function effectPanel(explorer) {
  const { say, state } = explorer;
  const asked = newest(), read = newest();
  /** The last answer and what it was about. @type {{about: any, what: string} | null} */
  let last = null;
  const silence = button("effect-silence", () => ask(false)), cut = button(null, () => ask(true));
  const buttons = create("div.effect-buttons", silence, cut), result = create("div.effect-result", { "aria-live": "polite" });
  const norms = create("div.effect-norms");
  const element = create("section.effect-panel", { "data-label": "effect-title" }, create("h3", { "data-text": "effect-title" }),
    create("p.effect-honest.quiet", { "data-text": "effect-honest" }), buttons, create("p.hint", { "data-text": "effect-how" }), result, norms);

  /** @param {boolean} edge */
  function ask(edge) {
    const { layer, head, query, key } = state.get(), done = () => element.removeAttribute("aria-busy");
    const request = edge ? { cut: { layer, head, query, key } } : { silence: { layer, head } };
    const what = edge ? edgeName() : headTitle(explorer, layer, head);
    element.setAttribute("aria-busy", "true");
    asked(explorer.source.effect(request), ({ about }) => { done(); last = { about, what }; drawResult(); },
      (error) => { done(); result.replaceChildren(create("p.problem", explorer.fail(error))); });
  }

  function edgeName() {
    const axes = explorer.axes(), { query, key } = state.get();
    return `${axes.query.label(axes.query.unitOf(query ?? 0))} → ${axes.key.label(axes.key.unitOf(key ?? 0))}`;
  }

  function drawResult() {
    if (!last) { result.replaceChildren(); return; }
    const { before, after, kl } = last.about, then = new Map(/** @type {[string, number][]} */ (after));
    const first = new Map(/** @type {[string, number][]} */ (before)), tokens = [...new Set([...first.keys(), ...then.keys()])];
    result.replaceChildren(create("h4", say("effect-without", { what: last.what })), create("p.hint", say("effect-bars")), barList(tokens.map((label) => {
      const [was, is] = [first.get(label), then.get(label)];
      return { label, before: was ?? 0, share: is ?? 0, text: `${was === undefined ? "–" : percentText(was)} → ${is === undefined ? "–" : percentText(is)}` };
    })), create("p.effect-kl", create("b", `KL = ${kl.toPrecision(3)}`), ` ${say(kl < 0.01 ? "effect-little" : "effect-much")}`));
  }

  /** What the selected query reads: weight × norm of each key. */
  function drawNorms() {
    const { layer, head } = state.get();
    read(explorer.headCells(layer, head), fillNorms, () => { norms.hidden = true; });
  }

  /** @param {Cells} cells */
  function fillNorms(cells) {
    const sizes = cells.norms, { T } = explorer.record(), row = state.get().query ?? T - 1;
    norms.hidden = !sizes || cells.R !== T;
    if (norms.hidden || !sizes) return;
    const axes = explorer.axes(), line = cells.values.subarray(row * cells.C, (row + 1) * cells.C);
    const found = Array.from(line, (weight, col) => ({ col, weight, by: weight * sizes[col] })).sort((a, b) => b.by - a.by).slice(0, MOST_NORMS);
    const most = found[0]?.by || 1, heaviest = Math.max(...line) || 1;
    norms.replaceChildren(create("h4", say(cells.normsAre === "value" ? "effect-value" : "effect-norms", { query: axes.query.label(axes.query.unitOf(row)) })),
      create("p.hint", say("effect-norms-hint")),
      barList(found.filter(({ by }) => by > 0).map(({ col, weight, by }) => ({ label: axes.key.label(axes.key.unitOf(cells.colStarts[col])),
        share: by / most, before: weight / heaviest, text: by.toPrecision(3) }))));
  }

  function draw() {
    const { query, key } = state.get(), { effect } = explorer.record().can, edge = query !== null && key !== null;
    buttons.hidden = !effect;
    /** @type {HTMLElement} */ (buttons.nextElementSibling).hidden = effect;
    cut.disabled = !edge;
    cut.textContent = edge ? say("effect-cut", { edge: edgeName() }) : say("effect-cut-none");
    drawResult();
    drawNorms();
  }

  return {
    element,
    update(now, has) {
      if (has("layer", "head")) last = null;
      if (now.depth === "head" && has("layer", "head", "query", "key", "lang", "depth", "merge")) draw();
    },
  };
}
