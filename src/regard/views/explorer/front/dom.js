// Elements from plain values. Texts become text nodes, never markup.

/** @typedef {Node | string | null | false | undefined} Child */

/**
 * An element "tag.class.class", or "tag.class#key" where `key` names its text, with attributes, listeners (names that begin with "on") and children. What is null, false
 * or undefined is left out, and the attributes where there are none.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K | `${K}.${string}` | `${K}#${string}`} kind
 * @param {...(Child | Record<string, any>)} rest
 * @returns {HTMLElementTagNameMap[K]}
 */
export function create(kind, ...rest) {
  const [names, text] = kind.split("#"), [tag, ...classes] = names.split("."), attributes = rest[0]?.constructor === Object ? rest.shift() : {}, children = /** @type {Child[]} */ (rest);
  const element = /** @type {HTMLElementTagNameMap[K]} */ (document.createElement(tag));
  if (classes.length) element.className = classes.join(" ");
  if (text) element.dataset.text = text;
  if (tag === "button") element.setAttribute("type", "button");
  for (const [name, value] of Object.entries(/** @type {Record<string, any>} */ (attributes))) {
    if (isMissing(value)) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  return fill(element, ...children);
}

/** Give an element these children in place of its own. @template {Element} E @param {E} element @param {...Child} children */
export function fill(element, ...children) {
  element.replaceChildren(.../** @type {(Node | string)[]} */ (children.filter((child) => !isMissing(child))));
  return element;
}

/** Whether a child or an attribute is left out; 0 and "" are not. @param {any} value */
const isMissing = (value) => (value ?? false) === false;

/** A token as text that does not change the direction of the text around it. @param {string} text @param {string} [className] */
export function isolated(text, className) {
  return create("bdi", { class: className, dir: "auto" }, text);
}

/** A number moved between two others. @param {number} x @param {number} low @param {number} high */
export const clamp = (x, low, high) => Math.max(low, Math.min(high, x));

/**
 * Rows and columns by which an arrow key, Home or End moves; null for other keys. The key does nothing else then.
 * @param {KeyboardEvent} event
 * @param {boolean} [withCtrl]
 * @returns {Span | null}
 */
export function arrowsOf(event, withCtrl = false) {
  const far = 2 ** 30, by = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -far], End: [0, far] }[event.key];
  if (!by || (event.ctrlKey && !withCtrl) || event.metaKey || event.altKey) return null;
  event.preventDefault();
  event.stopPropagation();
  return /** @type {Span} */ (by);
}

/**
 * A group of buttons, one for each value of a name of the state; Tab enters it once, arrow keys move in it.
 * @param {Explorer} explorer
 * @param {keyof State} name
 * @param {readonly string[]} values  `text-value` is the key of the text of a value
 * @param {string} [text]
 * @param {Partial<State>} [also]  what else a choice changes
 */
export function segments({ state }, name, values, text = name, also = {}) {
  const buttons = values.map((value) => create(`button#${text}-${value}`, {
    role: "radio", "data-value": value, onclick: () => state.set({ ...also, [name]: value }),
  }));
  const element = create("div.segments", { role: "radiogroup", "data-label": text, onkeydown: move }, ...buttons);
  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = arrowsOf(event), open = buttons.filter((one) => !one.hidden);
    if (!by) return;
    const next = open[(open.findIndex((one) => one.tabIndex === 0) + Math.sign(by[0] + by[1]) + open.length) % open.length];
    next?.click();
    next?.focus();
  }
  /** @param {string} value */
  const select = (value) => buttons.forEach((one) => {
    const chosen = one.dataset.value === value;
    one.ariaChecked = String(chosen);
    one.tabIndex = chosen ? 0 : -1;
  });
  /** Hide or show a choice. @param {string} value @param {boolean} visible */
  const allow = (value, visible) => buttons.forEach((one) => { if (one.dataset.value === value) one.hidden = !visible; });
  return { element, select, allow };
}

/** A labelled list of values for a name of the state. @param {Explorer} explorer @param {keyof State} name @param {readonly string[]} values */
export function chooser({ state }, name, values) {
  const list = create("select", { onchange: () => state.set({ [name]: list.value }) },
    ...values.map((value) => create(`option#${name}-${value}`, { value })));
  return { element: labelled(name, list), list };
}

/** A control after its label. @param {string} name  the key of the label @param {HTMLElement} control */
export const labelled = (name, control) => create("label.chooser", create(`span#${name}`), control);

/** A small button. @param {string | null} name  the key of its text @param {() => void} onclick @param {string} [more]  further classes */
export const button = (name, onclick, more = "") => create("button", { class: `small ${more}`.trim(), "data-text": name, onclick });

/** Write the texts of all elements that name one. @param {ParentNode} root @param {(key: string) => string} say */
export function translate(root, say) {
  for (const name of ["text", "label", "tip"]) {
    for (const one of root.querySelectorAll(`[data-${name}]`)) {
      const text = say(one.getAttribute(`data-${name}`) ?? "");
      if (name === "text") one.textContent = text; else one.ariaLabel = text;
      if (name === "tip") one.setAttribute("title", text);
    }
  }
}
