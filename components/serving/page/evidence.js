// What stands behind a chunk: concepts that made its logits, training text like it, its inputs.

import { at, bar, digitsFor, fill, make, meter, named, percent, signed, styled } from "./dom.js";

const SHOWN_INPUTS = 16;

export function show(explanation, number, wish) {
  const chunk = explanation.chunks[number];
  if (!chunk) {
    for (const tab of ["concepts", "sources", "inputs"]) fill(at(tab));
    return;
  }
  fill(at("concepts"), ...concepts(explanation, chunk, wish));
  fill(at("sources"), ...sources(explanation, chunk));
  fill(at("inputs"), ...inputs(explanation, chunk));
}

function quoted(chunk) {
  return make("blockquote", { class: "chosen" }, chunk.text.trim() || "(no text, a special token alone)");
}

function concepts(explanation, chunk, wish) {
  const largest = Math.max(0, ...chunk.concepts.map((one) => Math.abs(one.contribution_logits)));
  const rows = chunk.concepts.map((one) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, ...named(one)),
      make("td", {}, bar(one.contribution_logits, largest)),
      make("td", { class: "number" }, signed(one.contribution_logits, Math.max(2, digitsFor(one.contribution_logits)))),
      make("td", { class: "number" }, percent(one.signed_share)),
      make("td", { class: "push" }, pusher("\u2212", "Suppress", one, wish, -1), pusher("+", "Amplify", one, wish, 1)),
    ),
  );
  const head = ["Concept", "", "logits", "share", "change"].map((name, i) =>
    make("th", { scope: "col", class: i === 2 || i === 3 ? "number" : "" }, name),
  );
  return [
    quoted(chunk),
    stacked(chunk.shares),
    make("div", { class: "scroll" }, make("table", { class: "stack" }, make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...rows))),
    make(
      "p",
      { class: "hint" },
      `Mean over the chunk’s ${chunk.n_tokens} tokens; a share is of the magnitude of all parts. Known, unknown and residual add up to every token’s logit within ${explanation.largest_sum_error_logits.toExponential(0)}.`,
    ),
  ];
}

function pusher(sign, verb, one, wish, direction) {
  const label = `${verb} ${one.name}`;
  return make("button", { type: "button", class: "small", title: label, "aria-label": label, onclick: () => wish(one, direction) }, sign);
}

function stacked(shares) {
  const parts = [
    ["known concepts", shares.known_share], ["unknown concepts", shares.unknown_share], ["residual", shares.residual_share],
  ];
  return make(
    "div",
    { class: "whole" },
    make("span", { class: "stacked", "aria-hidden": "true" }, ...parts.map(([, share], i) => styled(make("i", { class: `c${i}` }), "width", `${100 * share.value}%`))),
    make(
      "span",
      { class: "legend" },
      ...parts.map(([name, share], i) =>
        make("span", { title: `95 % interval, ${share.n} tokens` }, make("i", { class: `c${i}` }), `${name} ${percent(share.value)} `, make("small", {}, `${percent(share.low)} – ${percent(share.high)}`)),
      ),
    ),
  );
}

function sources(explanation, chunk) {
  const index = explanation.index;
  if (!index) return [make("p", { class: "empty" }, "The server was started without an index, so there is no training text to look in.")];
  const recall = index.recall_at_10;
  const lead = `Training text like this chunk: ${index.claims}. Of ${index.n_chunks.toLocaleString("en")} chunks; a held-back chunk finds its own text among the first ten in ${percent(recall.value)} of cases (95 %: ${percent(recall.low)} – ${percent(recall.high)}, n = ${recall.n}).`;
  if (!chunk.sources.length) return [make("p", { class: "hint" }, lead), make("p", { class: "empty" }, "This chunk has no text to compare.")];
  return [quoted(chunk), make("p", { class: "hint" }, lead), make("ol", { class: "sources" }, ...chunk.sources.map(source))];
}

function source(one) {
  return make(
    "li",
    {},
    make("div", { class: "source-head" }, make("strong", {}, one.title || one.doc_id), make("span", { class: "cosine" }, meter(one.cosine), `cosine ${one.cosine.toFixed(2)}`)),
    make("p", { class: "hint" }, `${one.source} · ${one.domain} · ${one.licence} · characters ${one.start_char} – ${one.end_char} · more alike than ${most(one.random_below_share)} of random pairs`),
    make("blockquote", {}, one.text),
  );
}

/** A share of pairs, never rounded up to all of them. */
function most(share) {
  return share > 0.99 ? `over ${Math.min(99, Math.floor(100 * share))} %` : percent(share);
}

function inputs(explanation, chunk) {
  if (!chunk.inputs) return [make("p", { class: "empty" }, "Inputs were not attributed for this chunk.")];
  const strongest = [...chunk.inputs.shares].sort((a, b) => Math.abs(b.signed_share) - Math.abs(a.signed_share)).slice(0, SHOWN_INPUTS);
  const largest = Math.max(0, ...strongest.map((one) => Math.abs(one.signed_share)));
  const nPrompt = explanation.generation.prompt_tokens.length;
  const rows = strongest.map((one) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("code", {}, visible(one.token)), make("small", {}, one.position < nPrompt ? "prompt" : "answer")),
      make("td", {}, bar(one.signed_share, largest)),
      make("td", { class: "number" }, `${signed(100 * one.signed_share, 1)} %`),
    ),
  );
  const { n_targets, mean_evaluations, completeness_error_share, mean_gap_logits } = chunk.inputs;
  return [
    quoted(chunk),
    make("div", { class: "scroll" }, make("table", {}, make("tbody", {}, ...rows))),
    make("p", { class: "hint" }, `Integrated gradients from [MASK] for ${n_targets} of the chunk’s tokens, ${Math.round(mean_evaluations)} passes each on average: they miss their sum, ${mean_gap_logits.toFixed(2)} logits on average, by ${percent(completeness_error_share)}.`),
  ];
}

/** A token whose spaces and line ends can be seen. */
function visible(token) {
  return token.replaceAll("\n", "\u23ce").replaceAll(" ", "\u2423");
}
