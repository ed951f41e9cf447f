"""Style and script of a questionnaire. In Python, because a stage's key covers modules alone.

Everything shown is set as text, never as markup. Digits, arrows and Enter do all that a mouse does.
"""

FORM_STYLE = """
*{box-sizing:border-box}
body{margin:0 auto;max-width:46rem;padding:1.5rem clamp(1rem,4vw,2rem) 3rem;
background:var(--paper);color:var(--ink);
font:17px/1.55 ui-sans-serif,system-ui,"Segoe UI","DejaVu Sans",sans-serif}
h1{font:600 1.7rem/1.2 ui-serif,Georgia,"DejaVu Serif",serif;margin:0}
header p,.keys{color:var(--soft);font-size:.9rem}.keys{margin-top:1.2rem}
.progress{display:flex;gap:1rem;align-items:center;margin:1rem 0}
progress{flex:1;height:.6rem;accent-color:var(--accent)}output{font-variant-numeric:tabular-nums}
.words{display:flex;flex-wrap:wrap;gap:.5rem;list-style:none;margin:0 0 1.4rem;padding:1.1rem;
background:var(--card);border:1px solid var(--line);border-radius:.7rem}
.words li{padding:.15rem .7rem;border-radius:1rem;font-size:1.05rem;
background:color-mix(in srgb,var(--accent) 10%,transparent)}
h2{font-size:1.05rem;margin:0 0 .6rem}
label.name{display:block;margin:0 0 1.2rem;font-weight:600}
input[type=text]{display:block;width:100%;margin-top:.35rem;padding:.55rem .7rem;font:inherit;
color:inherit;background:var(--card);border:1px solid var(--soft);border-radius:.5rem}
fieldset{border:2px solid var(--line);border-radius:.7rem;margin:0 0 .8rem;padding:.7rem 1rem 1rem;
background:var(--card)}
fieldset:focus-within{border-color:var(--accent)}
legend{font-weight:600;padding:0 .4rem;overflow-wrap:anywhere}
.scale{display:flex;flex-wrap:wrap;gap:.4rem .9rem;align-items:center}
.scale label{display:flex;gap:.35rem;align-items:center;padding:.25rem .6rem;cursor:pointer;
border:1px solid var(--line);border-radius:.5rem}
.scale label:has(:checked){background:var(--accent);color:var(--paper);border-color:transparent}
.scale small{color:var(--soft)}input[type=radio]{accent-color:var(--accent)}
nav{display:flex;flex-wrap:wrap;gap:.7rem}
button{font:inherit;color:inherit;background:var(--card);border:1px solid var(--soft);
border-radius:.5rem;padding:.5rem 1.1rem;cursor:pointer}
button.main{background:var(--accent);color:var(--paper);border-color:transparent}
button:disabled{opacity:.45;cursor:default}
:focus-visible{outline:3px solid var(--accent);outline-offset:2px}
#said{min-height:1.6em;color:var(--bad);margin:.4rem 0}
"""

SCRIPT = r"""
"use strict";
const study = JSON.parse(document.getElementById("study").textContent);
const slot = "clearstory " + study.study_id + " " + study.rater_id;
const element = id => document.getElementById(id);
let at = 0, answers = {};

function load() {
  try {
    const kept = JSON.parse(localStorage.getItem(slot));
    if (kept) { at = kept.at; answers = kept.answers; }
  } catch (error) {
    say("This browser keeps nothing: save your answers to a file before you close the page.");
  }
}
function keep() {
  try { localStorage.setItem(slot, JSON.stringify({at, answers})); }
  catch (error) { say("Not kept by this browser: save your answers to a file often."); }
}
function say(text) { element("said").textContent = text; }
function answer(id) { return answers[id] || {}; }
function isAnswered(asked) { return asked.shown.every(shown => answer(shown.item_id).rating); }

function make(tag, text, settings) {
  const made = document.createElement(tag);
  if (text) made.textContent = text;
  return Object.assign(made, settings || {});
}
function scale(shown, title) {
  const group = make("fieldset"), row = make("div", "", {className: "scale"});
  group.append(make("legend", title));
  row.append(make("small", study.ends[0]));
  for (let value = 1; value <= 5; value++) {
    const label = make("label"), radio = make("input", "", {
      type: "radio", name: shown.item_id, value: String(value),
      checked: answer(shown.item_id).rating === value,
      onchange: () => rate(shown.item_id, value),
    });
    label.append(radio, String(value));
    row.append(label);
  }
  row.append(make("small", study.ends[1]));
  group.append(row);
  return group;
}
function rate(id, value) {
  answers[id] = Object.assign(answer(id), {rating: value});
  say(""); keep(); progress();
}
function nameField(shown) {
  const label = make("label", "In your own words, what do they share?", {className: "name"});
  const field = make("input", "", {
    type: "text", id: "name", maxLength: 80, autocomplete: "off",
    value: answer(shown.item_id).name || "",
    oninput: () => {
      answers[shown.item_id] = Object.assign(answer(shown.item_id), {name: field.value});
      keep();
    },
  });
  label.append(field);
  return label;
}
function progress() {
  const done = study.asked.filter(isAnswered).length, n = study.asked.length;
  element("progress").value = done;
  element("where").textContent =
    (at < n ? "List " + (at + 1) + " of " + n + ", " : "") + done + " answered";
  element("back").disabled = at === 0;
  element("next").disabled = at >= n;
}
function show() {
  const stage = element("stage"), n = study.asked.length;
  stage.replaceChildren();
  if (at >= n) { end(stage); progress(); return; }
  const asked = study.asked[at], words = make("ul", "", {className: "words"});
  words.setAttribute("aria-label", "words of list " + (at + 1));
  words.append(...asked.words.map(word => make("li", word)));
  stage.append(words);
  if (study.phase === 1) stage.append(nameField(asked.shown[0]));
  else stage.append(make("h2", study.question));
  for (const shown of asked.shown)
    stage.append(scale(shown, study.phase === 1 ? study.question : shown.name));
  progress();
  if (study.phase === 1) element("name").focus();
  else focusGroup(0);
}
function end(stage) {
  const open = study.asked.map((asked, i) => [asked, i]).filter(([asked]) => !isAnswered(asked));
  stage.append(make("h2", open.length ? "Almost done" : "Thank you, that was all"));
  stage.append(make("p", open.length
    ? open.length + " lists still lack an answer:"
    : "Save your answers to a file and send it to whoever gave you this page."));
  for (const [, i] of open)
    stage.append(make("button", "List " + (i + 1), {type: "button", onclick: () => go(i)}), " ");
  element("save").focus();
}
function go(where) {
  at = Math.max(0, Math.min(study.asked.length, where));
  say(""); keep(); show();
}
function next() {
  if (at >= study.asked.length) return;
  const open = study.asked[at].shown.findIndex(shown => !answer(shown.item_id).rating);
  if (open < 0) { go(at + 1); return; }
  say("Please choose 1 to 5 first.");
  focusGroup(open);
}
function groups() { return [...document.querySelectorAll("fieldset")]; }
function focusGroup(i) {
  const group = groups()[i];
  if (group) (group.querySelector(":checked") || group.querySelector("input")).focus();
}
function focused() {
  return Math.max(0, groups().findIndex(group => group.contains(document.activeElement)));
}
function save() {
  const given = study.asked.flatMap(asked => asked.shown)
    .filter(shown => answer(shown.item_id).rating)
    .map(shown => ({item_id: shown.item_id, rating: answer(shown.item_id).rating,
                    name: (answer(shown.item_id).name || "").trim()}));
  const text = JSON.stringify({study_id: study.study_id, rater_id: study.rater_id,
                               phase: study.phase, answers: given}, null, 1);
  const link = make("a", "", {
    href: URL.createObjectURL(new Blob([text], {type: "application/json"})),
    download: "answers-" + study.study_id + "-" + study.rater_id + ".json",
  });
  document.body.append(link); link.click(); link.remove();
  say(given.length + " answers saved to " + link.download);
}
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.target.tagName === "BUTTON") return;
  const inText = event.target.type === "text", i = focused();
  if (event.key === "Enter") {
    event.preventDefault();
    if (event.shiftKey) go(at - 1);
    else if (inText) focusGroup(0);
    else next();
  } else if (!inText && /^[1-5]$/.test(event.key) && at < study.asked.length) {
    event.preventDefault();
    groups()[i].querySelectorAll("input")[Number(event.key) - 1].click();
    focusGroup(Math.min(i + 1, groups().length - 1));
  } else if (event.key === "ArrowDown" && groups().length) {
    event.preventDefault();
    focusGroup(inText ? 0 : Math.min(i + 1, groups().length - 1));
  } else if (event.key === "ArrowUp" && groups().length && !inText) {
    event.preventDefault();
    if (study.phase === 1) element("name").focus(); else focusGroup(Math.max(0, i - 1));
  }
});
element("back").onclick = () => go(at - 1);
element("next").onclick = next;
element("save").onclick = save;
load();
show();
"""
