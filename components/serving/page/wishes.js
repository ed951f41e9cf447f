// Search concepts, and say how far each is to be pushed.

import { get } from "./api.js";
import { at, fill, make, named } from "./dom.js";

const LARGEST_LOGITS = 16;
const USUAL_LOGITS = 8;
const SHOWN = 8;
const PAUSE_MS = 140;

const wishes = new Map();
let search = new AbortController();
let failed = () => {};
let timer = 0;

/** Wire up search and list; `onFailure` shows what went wrong. */
export function start(onFailure) {
  failed = onFailure;
  const query = at("query");
  query.addEventListener("input", () => {
    search.abort();
    close(); // Enter must not take what an earlier query found
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE_MS);
  });
  query.addEventListener("focus", look);
  query.addEventListener("keydown", onKey);
  query.addEventListener("blur", () => setTimeout(close, 200));
  show();
}

/** What the server is asked for. */
export function asked() {
  return [...wishes.values()].map(({ reference, strength }) => ({
    concept: reference, action: strength < 0 ? "suppress" : "amplify", strength_logits: Math.abs(strength),
  }));
}

/** Push a concept; its direction is −1 or 1. */
export function wish(concept, direction) {
  const known = concept.kind === "known";
  const reference = `${known ? "concept" : "unknown"} ${concept.concept_id}`;
  const strength = direction * (concept.calibrated_logits ?? USUAL_LOGITS);
  wishes.set(reference, { reference, name: concept.name, kind: concept.kind, strength });
  show();
  at(`slider-${reference}`).focus();
}

export function lookFor(text) {
  at("query").value = text;
  at("query").focus();
}

async function look() {
  search.abort();
  search = new AbortController();
  try {
    const path = `/concepts?limit=${SHOWN}&q=${encodeURIComponent(at("query").value.trim())}`;
    const { concepts } = await get(path, search.signal);
    list(concepts);
  } catch (error) {
    if (error.name !== "AbortError") failed(error);
  }
}

function list(concepts) {
  const rows = concepts.map((concept, i) =>
    make(
      "li",
      { role: "option", id: `option-${i}`, "aria-selected": i === 0 ? "true" : "false", onmousedown: (event) => take(event, concept) },
      make("span", {}, ...named(concept)),
      make("span", { class: "described" }, concept.description),
    ),
  );
  rows.forEach((row, i) => (row.concept = concepts[i]));
  fill(at("found"), ...(rows.length ? rows : [make("li", { class: "empty" }, "No concept has a name like this.")]));
  at("query").setAttribute("aria-expanded", "true");
  mark(0);
}

function take(event, concept) {
  event.preventDefault();
  close();
  at("query").value = "";
  wish(concept, 1);
}

function close() {
  fill(at("found"));
  at("query").setAttribute("aria-expanded", "false");
  at("query").removeAttribute("aria-activedescendant");
}

function onKey(event) {
  const rows = [...at("found").querySelectorAll("[role=option]")];
  const now = rows.findIndex((row) => row.getAttribute("aria-selected") === "true");
  if (event.key === "ArrowDown") mark((now + 1) % rows.length);
  else if (event.key === "ArrowUp") mark((now - 1 + rows.length) % rows.length);
  else if (event.key === "Enter" && rows[now]) take(event, rows[now].concept);
  else if (event.key === "Escape") close();
  else return;
  event.preventDefault();
}

function mark(chosen) {
  at("found").querySelectorAll("[role=option]").forEach((row, i) => {
    row.setAttribute("aria-selected", i === chosen ? "true" : "false");
    if (i !== chosen) return;
    at("query").setAttribute("aria-activedescendant", row.id);
    row.scrollIntoView({ block: "nearest" });
  });
}

function show() {
  const rows = [...wishes.values()].map(row);
  fill(at("wishes"), ...(rows.length ? rows : [make("li", { class: "empty" }, "None yet. Search, or press + or \u2212 beside a concept above.")]));
  refresh();
}

/** There is something to compare once there is a wish. */
export function refresh() {
  at("compare").disabled = !wishes.size;
}

function row(one) {
  const id = `slider-${one.reference}`;
  const output = make("output", { for: id }, said(one.strength));
  const slider = make("input", {
    id, type: "range", min: -LARGEST_LOGITS, max: LARGEST_LOGITS, step: 0.5, value: one.strength,
    "aria-label": `Strength of ${one.name}, in logits`,
    oninput: () => {
      one.strength = Number(slider.value);
      output.textContent = said(one.strength);
      slider.setAttribute("aria-valuetext", said(one.strength));
    },
  });
  const remove = () => {
    wishes.delete(one.reference);
    show();
  };
  return make(
    "li",
    {},
    make("div", { class: "wish-head" }, make("strong", {}, ...named(one)), make("button", { type: "button", class: "small", "aria-label": `Remove ${one.name}`, onclick: remove }, "\u00d7")),
    make("div", { class: "push-row" }, make("span", {}, "suppress"), slider, make("span", {}, "amplify")),
    output,
  );
}

function said(strength) {
  if (strength === 0) return "no change";
  return `${strength < 0 ? "suppress" : "amplify"} by ${Math.abs(strength).toFixed(1)} logits`;
}
