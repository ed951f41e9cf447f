// Elements made of text. Nothing from the network or the corpus is ever parsed as HTML.

export const at = (id) => document.getElementById(id);

/** An element with attributes and children; strings become text nodes. */
export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value === true) element.setAttribute(name, "");
    else if (value !== false) element.setAttribute(name, String(value));
  }
  element.append(...children);
  return element;
}

export function fill(element, ...children) {
  element.replaceChildren(...children);
}

/** A custom property for the style sheet: the only styling that is done here. */
export function styled(element, name, value) {
  element.style.setProperty(name, String(value));
  return element;
}

const MINUS = "\u2212";

/** A number with its sign, as people write it. */
export function signed(value, digits = 2) {
  const text = Math.abs(value).toFixed(digits);
  if (Number(text) === 0) return text;
  return (value < 0 ? MINUS : "+") + text;
}

/** A share in percent, to two digits that count. */
export function percent(share) {
  const value = 100 * share;
  return `${value.toFixed(digitsFor(value))} %`.replace("-", MINUS);
}

/** Decimals at which the largest of a column still shows two digits. */
export function digitsFor(largest) {
  const size = Math.abs(largest);
  if (size === 0 || size >= 10) return 0;
  return Math.min(6, 1 - Math.floor(Math.log10(size)));
}

/** A bar from a middle line: to the right for, to the left against. */
export function bar(value, largest) {
  const side = value >= 0 ? "for" : "against";
  const share = largest === 0 ? 0 : Math.min(1, Math.abs(value) / largest);
  const filled = styled(make("i"), "width", `${50 * share}%`);
  return make("span", { class: `bar ${side}`, "aria-hidden": "true" }, filled);
}

/** A share of a whole, from 0 to 1. */
export function meter(share) {
  const filled = styled(make("i"), "width", `${100 * Math.max(0, Math.min(1, share))}%`);
  return make("span", { class: "meter", "aria-hidden": "true" }, filled);
}

/** A concept's name, and its kind where the name does not say it. */
export function named({ name, kind }) {
  return name.startsWith(kind) ? [name] : [name, make("small", {}, kind)];
}
