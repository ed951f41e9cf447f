// The answer: its prompt shaded by what the chosen chunk owes to it, its chunks to choose from.

import { at, fill, make, percent, signed, styled } from "./dom.js";

const SPECIAL = /^<\|.*\|>$/;
const N_COLOURS = 6;
const STRONGEST_PERCENT = 62;

/** Text that is still being written. */
export function writing(prompt, text) {
  at("explained").hidden = false;
  at("answer-lead").textContent = "Writing, block by block …";
  fill(at("answer"), make("span", { class: "prompt" }, prompt), make("span", { class: "written" }, text));
  fill(at("shading"));
}

/** The whole answer; `choose(chunk)` is called when a person picks one. */
export function show(explanation, chosen, choose) {
  const { generation, chunks, tokens } = explanation;
  const n = chunks.length;
  at("answer-lead").textContent = n
    ? `${n} ${n === 1 ? "chunk" : "chunks"}, ${generation.tokens.length} tokens. Choose a chunk to see what stands behind it.`
    : "The network ended its text at once; ask for a longer prompt or another seed.";
  const owed = shares(chunks[chosen]);
  fill(
    at("answer"),
    make("span", { class: "prompt", title: "your prompt" }, ...prompt(generation.prompt_tokens, owed)),
    ...chunks.map((chunk, number) => chunkSpan(chunk, tokens, number, number === chosen, choose)),
  );
  legend(chunks[chosen]);
}

function shares(chunk) {
  const inputs = chunk && chunk.inputs ? chunk.inputs.shares : [];
  return new Map(inputs.map((input) => [input.position, input.signed_share]));
}

function prompt(pieces, owed) {
  const largest = Math.max(0, ...[...owed.values()].map(Math.abs));
  return pieces.map((piece, position) => {
    if (SPECIAL.test(piece)) return special(piece);
    const share = owed.get(position);
    if (share === undefined || largest === 0) return document.createTextNode(piece);
    const side = share >= 0 ? "for" : "against";
    const mark = make("mark", { class: side, title: `${signed(100 * share, 1)} % of what the chunk owes` }, piece);
    return styled(mark, "--w", `${(STRONGEST_PERCENT * Math.abs(share)) / largest}%`);
  });
}

function chunkSpan(chunk, tokens, number, isChosen, choose) {
  const mine = tokens.filter((token) => token.chunk_index === chunk.chunk_index);
  return make(
    "span",
    {
      class: `chunk c${number % N_COLOURS}`, role: "button", tabindex: 0, "aria-pressed": isChosen ? "true" : "false",
      "aria-label": `Chunk ${number + 1}: ${chunk.text}`,
      onclick: () => choose(number),
      onkeydown: (event) => {
        if (event.key === "Enter" || event.key === " ") choose(number);
        else if (event.key === "ArrowRight") step(event.currentTarget.nextElementSibling);
        else if (event.key === "ArrowLeft") step(event.currentTarget.previousElementSibling);
        else return;
        event.preventDefault();
      },
    },
    ...mine.map((token) => (SPECIAL.test(token.token) ? special(token.token) : tokenSpan(token))),
  );
}

function step(element) {
  if (element && element.getAttribute("role") === "button") element.focus();
}

function tokenSpan(token) {
  const parts = [
    ["known", token.known_logits], ["unknown", token.unknown_logits], ["residual", token.residual_logits],
  ].map(([name, logits]) => `${name} ${signed(logits)}`);
  const top = token.concepts.map((concept) => `${concept.name} ${signed(concept.contribution_logits)}`);
  const title = [`logit ${token.logit.toFixed(2)} = ${parts.join(", ")}`, ...top].join("\n");
  return make("span", { class: "token", title }, token.token);
}

function special(name) {
  return make("span", { class: "special", title: name, "aria-hidden": "true" }, "·");
}

function legend(chunk) {
  const inputs = chunk && chunk.inputs;
  if (!inputs) return fill(at("shading"));
  fill(
    at("shading"),
    make("span", {}, make("i", { class: "for" }), "input speaks for the chosen chunk"),
    make("span", {}, make("i", { class: "against" }), "speaks against it"),
    make("span", {}, `adds up to within ${percent(inputs.completeness_error_share)}`),
  );
}
