// Two texts side by side: what changed, whether the concepts moved, and what it cost.

import { at, fill, make, meter, named, percent, signed } from "./dom.js";

export function writing(text) {
  at("compared").hidden = false;
  fill(at("comparison"), make("p", { class: "lead" }, "Writing both texts …"), make("p", { class: "text written" }, text));
}

export function show(steered) {
  const share = percent(steered.changed_tokens_share);
  at("compared").hidden = false;
  fill(
    at("comparison"),
    make("p", { class: "lead" }, `${share} of the tokens of both texts are in one of them alone.`),
    make("div", { class: "columns" }, side("As it comes", steered, "before"), side("With your changes", steered, "after")),
    make("h3", {}, "Effect"),
    table(["Concept", "change", "present before", "present after", "share before", "share after"], steered.effects.map(effect)),
    make("p", { class: "hint" }, "Present: the probability that the text carries the concept, as the unsteered network reads it. Share: of its logits’ magnitude, likewise."),
    make("h3", {}, "Cost"),
    table(["In the unsteered network’s eyes", "as it comes", "with changes", "difference"], cost(steered)),
    ...steered.notes.map((note) => make("p", { class: "hint" }, note)),
  );
}

function side(title, steered, which) {
  const tag = which === "before" ? "del" : "ins";
  const pieces = steered.edits.map((edit) =>
    edit.kind === "same" ? document.createTextNode(edit[which]) : make(tag, {}, edit[which]),
  );
  return make("div", {}, make("h3", {}, title), make("p", { class: "text", id: `text-${which}` }, ...pieces));
}

function effect(one) {
  const { concept, action, strength_logits, strength_from, strength_n_texts: n } = one;
  const from = n ? `${strength_from} on ${n} texts` : strength_from;
  return [
    named(concept),
    [`${action} by ${strength_logits.toFixed(1)} logits`, make("small", {}, from)],
    [meter(one.presence_before), percent(one.presence_before)],
    [meter(one.presence_after), percent(one.presence_after)],
    [percent(one.signed_share_before)],
    [percent(one.signed_share_after)],
  ];
}

function cost({ quality_before: before, quality_after: after }) {
  const loss = after.loss_nats_per_token - before.loss_nats_per_token;
  return [
    [["Loss", make("small", {}, "nats a token; lower is more fluent")], [before.loss_nats_per_token.toFixed(2)], [after.loss_nats_per_token.toFixed(2)], [signed(loss)]],
    shares("Different pairs", "of neighbouring tokens", before.distinct_2_share, after.distinct_2_share),
    shares("Repeated", "tokens that end a run of four seen before", before.repeated_share, after.repeated_share),
    [["Length", make("small", {}, "tokens")], [before.n_tokens], [after.n_tokens], [signed(after.n_tokens - before.n_tokens, 0)]],
  ];
}

function shares(name, unit, before, after) {
  return [[name, make("small", {}, unit)], [percent(before)], [percent(after)], [`${signed(100 * (after - before), 1)} points`]];
}

function table(columns, rows) {
  const head = columns.map((name, i) => make("th", { scope: "col", class: i ? "number" : "" }, name));
  const body = rows.map((cells) =>
    make("tr", {}, ...cells.map((cell, i) => make(i ? "td" : "th", i ? { class: "number" } : { scope: "row" }, ...cell.map((part) => (part instanceof Node ? part : String(part)))))),
  );
  return make("div", { class: "scroll" }, make("table", {}, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body)));
}
