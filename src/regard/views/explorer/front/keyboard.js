// Keys that work everywhere in a view, and the dialog that lists them. Panels handle arrow keys on their own elements.

import { create, fill } from "./dom.js";

/** Keys and the name of their action, in the order of the help: `help-<action>` is its text. */
export const KEYS = /** @type {const} */ ([
  ["?", "help"], ["1", "model"], ["2", "head"], ["3", "numbers"], ["m", "map"], ["n", "lines"], ["s", "sentence"], ["g", "generation"], ["k", "compare"],
  ["[", "head-before"], ["]", "head-after"], [",", "layer-before"], [".", "layer-after"],
  ["c", "scale"], ["w", "merge"], ["r", "direction"], ["+", "zoom-in"], ["-", "zoom-out"], ["0", "zoom-all"],
  ["p", "pin"], ["Escape", "unpin"], ["l", "language"], ["d", "theme"],
]);
/** Keys of elements that have the focus, for the help. */
const LOCAL_KEYS = [["← ↑ → ↓", "arrows"], ["⇧ + ← ↑ → ↓", "arrows-ten"], ["Home End PgUp PgDn", "ends"], ["Enter", "pin-cell"], ["Space", "step"]];

/**
 * Call the action of a key.
 * @param {HTMLElement} root
 * @param {Record<string, () => void>} actions
 */
export function listenToKeys(root, actions) {
  /** @param {KeyboardEvent} event */
  const listen = (event) => {
    const target = /** @type {HTMLElement} */ (event.target);
    if (event.defaultPrevented || event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(SELECT|TEXTAREA)$/.test(target.tagName) || (target.tagName === "INPUT" && event.key !== "Escape")) return;
    if (target.closest("dialog")) return;
    const name = event.key === "=" ? "+" : event.key.length === 1 ? event.key.toLowerCase() : event.key;
    const action = KEYS.find(([key]) => key === name)?.[1];
    if (!action || !actions[action]) return;
    event.preventDefault();
    event.stopPropagation();
    actions[action]();
  };
  root.addEventListener("keydown", listen);
}

/** The dialog that lists all keys. The browser keeps the focus inside of it; Esc closes it. @param {Explorer} explorer */
export function helpDialog(explorer) {
  const list = create("dl.keys");
  const close = create("button.plain", { "data-tip": "close", onclick: () => dialog.close() }, "✕");
  const dialog = create("dialog.help", { "data-label": "help-title", onclick: (/** @type {MouseEvent} */ event) => { if (event.target === dialog) dialog.close(); } },
    create("header", create("h2#help-title"), close), list,
    create("p.quiet#help-pointer"));
  const open = () => {
    fill(list, ...[...KEYS, ...LOCAL_KEYS].map(([key, action]) => create("div", {},
      create("dt", ...(key.length > 1 && key !== "Escape" ? key.split(" ") : [key]).map((one) => create("kbd", one === "Escape" ? "Esc" : one))),
      create("dd", explorer.say(`help-${action}`)))));
    if (!dialog.open) dialog.showModal();
  };
  return { element: dialog, open };
}
