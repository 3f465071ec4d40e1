// Elements from plain values. Texts become text nodes, never markup.

/**
 * An element with attributes, listeners (names that begin with "on") and children. null, false and undefined are left out.
 * @template {keyof HTMLElementTagNameMap} K
 * @param {K} tag
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string | null | false | undefined)} children
 * @returns {HTMLElementTagNameMap[K]}
 */
export function create(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === false || value === undefined) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.filter((child) => child !== null && child !== false && child !== undefined));
  return element;
}

/** A token as text that does not change the direction of the text around it. @param {string} text @param {string} [className] */
export function isolated(text, className) {
  return create("bdi", { class: className, dir: "auto" }, text);
}

/**
 * A group of buttons of which one is pressed; Tab enters it once, arrow keys move in it.
 * @param {string} name  the key of the group's label
 * @param {[string, string][]} choices  a value and the key of its text
 * @param {(value: string) => void} choose
 */
export function segments(name, choices, choose) {
  const buttons = choices.map(([value, key]) => create("button", {
    type: "button", role: "radio", "data-value": value, "data-text": key, onclick: () => choose(value),
  }));
  const element = create("div", { class: "segments", role: "radiogroup", "data-label": name, onkeydown: move }, ...buttons);
  /** @param {KeyboardEvent} event */
  function move(event) {
    const by = { ArrowLeft: -1, ArrowUp: -1, ArrowRight: 1, ArrowDown: 1 }[event.key];
    const open = buttons.filter((one) => !one.hidden && !one.disabled);
    if (!by || event.ctrlKey || event.metaKey || event.altKey) return;
    const next = open[(open.findIndex((one) => one.tabIndex === 0) + by + open.length) % open.length];
    event.preventDefault();
    event.stopPropagation();
    next?.click();
    next?.focus();
  }
  /** @param {string} value */
  const select = (value) => buttons.forEach((one) => {
    const chosen = one.dataset.value === value;
    one.setAttribute("aria-checked", String(chosen));
    one.tabIndex = chosen ? 0 : -1;
  });
  /** Hide or show a choice. @param {string} value @param {boolean} visible */
  const allow = (value, visible) => buttons.forEach((one) => { if (one.dataset.value === value) one.hidden = !visible; });
  return { element, select, allow };
}

/**
 * A labelled list of choices.
 * @param {string} name  the key of its label
 * @param {[string, string][]} choices
 * @param {(value: string) => void} choose
 */
export function chooser(name, choices, choose) {
  const list = create("select", { onchange: () => choose(list.value) },
    ...choices.map(([value, key]) => create("option", { value, "data-text": key })));
  return { element: create("label", { class: "chooser" }, create("span", { "data-text": name }), list), list };
}

/** Write the texts of all elements that name one. @param {ParentNode} root @param {(key: string) => string} say */
export function translate(root, say) {
  for (const one of root.querySelectorAll("[data-text]")) one.textContent = say(one.getAttribute("data-text") ?? "");
  for (const one of root.querySelectorAll("[data-label]")) one.setAttribute("aria-label", say(one.getAttribute("data-label") ?? ""));
  for (const one of root.querySelectorAll("[data-tip]")) {
    one.setAttribute("title", say(one.getAttribute("data-tip") ?? ""));
    one.setAttribute("aria-label", say(one.getAttribute("data-tip") ?? ""));
  }
}
