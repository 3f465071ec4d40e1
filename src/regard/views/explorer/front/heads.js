// The heads that lines and the sentence show together, each in its colour.

import { create, fill } from "./dom.js";
import { samplesOf } from "./figures.js";
import { times } from "./pooling.js";

/** Colours that colour-blind people tell apart. */
const HEAD_COLOURS = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8f7ee7", "#a0793d"];

/** @param {number} head */
export const colourOfHead = (head) => HEAD_COLOURS[head % HEAD_COLOURS.length];

/** The chosen heads of the open layer with their cells. @param {Explorer} explorer @returns {Promise<OpenHead[]>} */
export function openHeads({ state, shownCells, scaleOf }) {
  const { layer, heads } = state.get();
  return Promise.all(heads.map(async (head) => {
    const cells = await shownCells(layer, head);
    return { head, cells, scale: scaleOf(cells) };
  }));
}

/** A button for each head of the layer; several can be chosen. @param {Explorer} explorer */
export function headChips({ state, say, record }) {
  const element = create("div.chips", { role: "group", "data-label": "heads" });
  /** @param {Has} has */
  const update = (has) => {
    if (!has("layer", "heads", "lang", "view", "depth")) return;
    const { heads } = state.get(), { heads: count } = record();
    fill(element, ...times(count, (head) => {
      const next = heads.includes(head) ? heads.filter((one) => one !== head) : [...heads, head].sort((a, b) => a - b);
      return create("button", { "aria-pressed": String(heads.includes(head)), "aria-label": `${say("head")} ${head}`,
        style: `--own: ${heads.length > 1 ? colourOfHead(head) : "var(--accent)"}`, onclick: () => next.length && state.set({ heads: next }) }, String(head));
    }));
    element.hidden = count < 2;
  };
  return { element, update };
}

/** The colours of several heads, for a saved picture. @param {Explorer} explorer @param {Pen} ruler @param {OpenHead[]} heads @param {number} wide */
export const headSamples = ({ say }, ruler, heads, wide) =>
  samplesOf(ruler, heads.length < 2 ? [] : heads.map(({ head }) => ({ fill: colourOfHead(head), text: `${say("head")} ${head}` })), wide);
