// The page: ask, look, change, compare. Each part has a file of its own.

import * as answer from "./answer.js";
import { ask, get, Problem, unlock } from "./api.js";
import * as comparison from "./comparison.js";
import { at, fill, make } from "./dom.js";
import * as evidence from "./evidence.js";
import * as wishes from "./wishes.js";

const TABS = ["concepts", "sources", "inputs"];
const SHOWN_DIGEST = 10;

let explanation = null;
let asksForToken = false;

function request() {
  return {
    prompt: at("prompt").value,
    form: at("form").value,
    sampling: {
      n_new: Number(at("n-new").value),
      temperature: Number(at("temperature").value),
      seed: Number(at("seed").value),
    },
  };
}

function failed(error) {
  if (error.name === "AbortError") return clear();
  const candidates = error instanceof Problem ? error.candidates : [];
  const offers = candidates.map((name) =>
    make("button", { type: "button", class: "small", onclick: () => wishes.lookFor(name) }, name),
  );
  fill(at("problem"), error.message, ...offers);
  at("problem").hidden = false;
  if (error.status === 401) {
    at("unlock").hidden = false;
    at("token").focus();
  }
}

function clear() {
  at("problem").hidden = true;
}

/** Run something that can be stopped, and show what went wrong. */
async function running(goId, stopId, action) {
  const control = new AbortController();
  const [go, stop] = [at(goId), at(stopId)];
  const end = () => control.abort();
  clear();
  go.disabled = true;
  stop.hidden = false;
  stop.addEventListener("click", end);
  document.body.setAttribute("aria-busy", "true");
  try {
    await action(control.signal);
  } catch (error) {
    failed(error);
  } finally {
    go.disabled = false;
    wishes.refresh();
    stop.hidden = true;
    stop.removeEventListener("click", end);
    document.body.removeAttribute("aria-busy");
  }
}

async function explain(signal) {
  const wanted = request();
  answer.writing(wanted.prompt, "");
  const tell = (text) => answer.writing(wanted.prompt, text);
  const found = await ask("/explain", { request: wanted }, { signal, tell }).catch((error) => {
    at("answer-lead").textContent = "Stopped before it was explained.";
    throw error;
  });
  explanation = found.answer;
  keptAs(found.kept);
  choose(0);
}

async function compare(signal) {
  const wanted = { request: request(), wishes: wishes.asked() };
  comparison.writing("");
  at("compared").scrollIntoView({ behavior: "smooth", block: "nearest" });
  const found = await ask("/steer", wanted, { signal, tell: comparison.writing });
  comparison.show(found.answer);
}

function choose(number) {
  const hadFocus = document.activeElement?.classList.contains("chunk");
  answer.show(explanation, number, choose);
  evidence.show(explanation, number, wishes.wish);
  if (hadFocus) document.querySelector('.chunk[aria-pressed="true"]')?.focus();
}

function keptAs(name) {
  const page = `/kept/${name}/page.html`;
  if (!name) return fill(at("kept"));
  fill(at("kept"), "Kept as ", asksForToken ? name : make("a", { href: page }, name), ".");
}

function startTabs() {
  const open = (name) => {
    for (const tab of TABS) {
      at(tab).hidden = tab !== name;
      at(`tab-${tab}`).setAttribute("aria-selected", tab === name ? "true" : "false");
      at(`tab-${tab}`).tabIndex = tab === name ? 0 : -1;
    }
  };
  TABS.forEach((name, i) => {
    at(`tab-${name}`).addEventListener("click", () => open(name));
    at(`tab-${name}`).addEventListener("keydown", (event) => {
      const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      if (!step) return;
      const next = TABS[(i + step + TABS.length) % TABS.length];
      open(next);
      at(`tab-${next}`).focus();
    });
  });
}

async function facts() {
  const { loaded, limits, asks_for_token } = await get("/healthz");
  asksForToken = asks_for_token;
  at("n-new").max = Math.min(limits.new_tokens, loaded.max_length_tokens - 1);
  at("prompt").maxLength = limits.prompt_chars;
  const count = (n, what) => `${n.toLocaleString("en")} ${what}`;
  at("facts").textContent = [
    `checkpoint ${loaded.checkpoint.slice(0, SHOWN_DIGEST)}`,
    `${count(loaded.n_known, "known")} and ${count(loaded.n_unknown, "unknown concepts")}`,
    loaded.n_index_chunks ? count(loaded.n_index_chunks, "training chunks") : "no index",
  ].join(" · ");
}

at("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  running("go", "stop", explain);
});
at("prompt").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) at("ask").requestSubmit();
});
at("compare").addEventListener("click", () => running("compare", "stop-compare", compare));
at("unlock").addEventListener("submit", (event) => {
  event.preventDefault();
  unlock(at("token").value);
  at("unlock").hidden = true;
  clear();
});
startTabs();
wishes.start(failed);
facts().catch(failed);
