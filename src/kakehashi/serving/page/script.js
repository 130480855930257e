"use strict";
// Everything that comes from the model or the person is put in as text, never as markup.

const PAUSE = 500; // milliseconds without typing before a request
const SURE = 0.6, UNSURE = 0.25;
const LOOKED = 10; // lines that are looked into
const at = (id) => document.getElementById(id);
const source = at("source"), result = at("result"), lines = at("lines");

let model = null;
let timer = 0;
let running = null; // the AbortController of the request under way
let translations = [];
let chosen = []; // which candidate of each line is shown
let pinned = null;

function element(name, properties = {}, text = null) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  if (text !== null) made.textContent = text;
  return made;
}

function percent(probability) {
  const number = Math.round(probability * 100);
  if (number < 1) return "under 1 %";
  return probability < 0.995 ? `${number} %` : "over 99 %";
}

function language(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code.replace("_", "-")) || code;
  } catch {
    return code;
  }
}

// ---- asking ----

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Error("The service cannot be reached; is it still running?");
  }
  let body = null;
  try {
    body = await response.json();
  } catch (error) {
    if (error.name === "AbortError") throw error;
  }
  if (response.ok && body) return body;
  const said = (body && body.error) || `The service answered with status ${response.status}.`;
  const later = response.headers.get("Retry-After");
  const refused = new Error(later ? `${said} (in about ${later} s)` : said);
  refused.status = response.status;
  throw refused;
}

async function translate() {
  clearTimeout(timer);
  if (running) running.abort(); // the service drops what nobody waits for
  running = null;
  const texts = source.value.split(/\r\n|[\n\r\u2028\u2029]/);
  while (texts.length && !texts[texts.length - 1].trim()) texts.pop();
  if (!texts.length) return show([]);
  const mine = new AbortController();
  running = mine;
  result.setAttribute("aria-busy", "true");
  const beam = model ? model.beam : 1;
  try {
    const body = await answer("translate", {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ texts, n_best: Math.min(4, beam), details: true, split: true }),
      signal: mine.signal,
    });
    if (running === mine) show(body.translations.map((one, n) => ({ ...one, typed: texts[n] })));
  } catch (error) {
    if (error.name !== "AbortError" && running === mine) fail(error.message);
  } finally {
    if (running === mine) {
      running = null;
      result.setAttribute("aria-busy", "false");
    }
  }
}

function fail(sentence) {
  show([]); // what stands there is no translation of this text
  at("empty").hidden = true;
  const said = at("error");
  said.textContent = sentence.charAt(0).toUpperCase() + sentence.slice(1);
  said.hidden = false;
}

// ---- showing ----

function show(found) {
  translations = found;
  chosen = found.map(() => 0);
  at("error").hidden = true;
  result.setAttribute("aria-busy", "false");
  lines.replaceChildren();
  draw();
  at("announcement").textContent = found.map((one) => one.text).join("\n");
  attend();
}

function draw() {
  unpin();
  const boxes = [];
  translations.forEach((translation, index) => {
    if (translation.text || translation.warnings.length) boxes.push(pair(translation, index));
  });
  lines.replaceChildren(...boxes);
  const any = lines.childElementCount > 0;
  at("empty").hidden = any;
  at("copy").hidden = !any || !navigator.clipboard;
  at("word").hidden = at("legend").hidden = !lines.querySelector(".word");
  tell();
}

function pair(translation, index) {
  const box = element("div", { class: "pair", "data-line": index });
  const candidate = translation.candidates[chosen[index]];
  const words = candidate.words || [];
  const targets = line(candidate.text, words.map((word) => word.text), {
    class: "target", lang: model ? model.target_language : "", label: "Translation, word by word",
  });
  targets.marks.forEach((mark, n) => {
    if (words[n].probability < UNSURE) mark.classList.add("doubtful");
    else if (words[n].probability < SURE) mark.classList.add("unsure");
  });
  const typed = translation.source_words || [];
  const as = { class: "from", lang: model ? model.source_language : "", label: "Your text, word by word" };
  let sources = line(translation.typed, typed, as);
  // a tokenizer may spell otherwise than the person: then its words by themselves
  if (!sources.marks.length) sources = line(typed.join(" "), typed, as);
  connect(targets.marks, sources.marks, words);
  box.append(targets.box);
  if (typed.length) box.append(sources.box);
  for (const warning of translation.warnings) {
    box.append(element("p", { class: "warning" }, `Note: ${warning}.`));
  }
  if (translation.candidates.length > 1) box.append(others(translation, index));
  return box;
}

// A line of text with its words as parts that can be pointed at. What stands between them stays.
function line(text, words, { label, ...properties }) {
  const box = element("p", { dir: "auto", ...properties });
  const marks = [];
  let end = 0;
  for (const word of words) {
    const start = text.indexOf(word, end);
    if (start < 0) { // spelt otherwise than the text: then the text alone
      box.replaceChildren(text);
      return { box, marks: [] };
    }
    const mark = element("span", {
      class: "word", role: "button", "aria-pressed": "false", tabindex: marks.length ? "-1" : "0",
    }, word);
    box.append(text.slice(end, start), mark);
    marks.push(mark);
    end = start + word.length;
  }
  box.append(text.slice(end));
  if (marks.length) {
    box.setAttribute("role", "group");
    box.setAttribute("aria-label", label);
  }
  return { box, marks };
}

function connect(targets, sources, words) {
  const links = new Map();
  const describe = new Map();
  const link = (a, b) => links.get(a).push(b);
  for (const mark of [...targets, ...sources]) links.set(mark, []);
  targets.forEach((target, n) => {
    for (const s of words[n].source) {
      if (!sources[s]) continue;
      link(target, sources[s]);
      link(sources[s], target);
    }
  });
  const names = (mark) => links.get(mark).map((other) => `“${other.textContent}”`).join(", ");
  targets.forEach((target, n) => {
    const from = names(target);
    describe.set(target, `“${target.textContent}”: ${percent(words[n].probability)}` +
      (from ? `, from ${from}` : ""));
  });
  for (const mark of sources) {
    const to = names(mark);
    describe.set(mark, `“${mark.textContent}” became ${to || "no word of its own"}`);
  }
  for (const row of [targets, sources]) {
    row.forEach((mark, n) => {
      mark.setAttribute("aria-label", describe.get(mark));
      const on = () => tell(mark, links.get(mark), describe.get(mark));
      mark.addEventListener("pointerenter", () => { if (!pinned) on(); });
      mark.addEventListener("pointerleave", () => { if (!pinned) tell(); });
      mark.addEventListener("focus", () => { unpin(); on(); });
      mark.addEventListener("blur", () => { unpin(); tell(); });
      mark.addEventListener("click", () => pin(mark, on));
      mark.addEventListener("keydown", (event) => move(event, row, n, () => pin(mark, on)));
    });
  }
}

function move(event, row, n, press) {
  const leftwards = getComputedStyle(row[0].parentElement).direction === "rtl";
  const step = {
    ArrowRight: leftwards ? -1 : 1, ArrowLeft: leftwards ? 1 : -1,
    Home: -row.length, End: row.length,
  }[event.key];
  if (event.key === "Enter" || event.key === " ") press();
  else if (event.key === "Escape") { unpin(); tell(); }
  else if (step !== undefined) {
    const next = row[Math.max(0, Math.min(row.length - 1, n + step))];
    row[n].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  } else return;
  event.preventDefault();
}

function pin(mark, on) {
  const again = pinned === mark;
  unpin();
  if (again) return tell();
  on();
  pinned = mark;
  mark.setAttribute("aria-pressed", "true");
}

function unpin() {
  if (pinned) pinned.setAttribute("aria-pressed", "false");
  pinned = null;
}

function tell(mark = null, linked = [], sentence = "Point at a word to see where it comes from.") {
  for (const old of lines.querySelectorAll(".on, .linked")) old.classList.remove("on", "linked");
  if (mark) mark.classList.add("on");
  for (const other of linked) other.classList.add("linked");
  at("word").textContent = sentence;
}

function others(translation, index) {
  const before = lines.querySelector(`[data-line="${index}"] details`);
  const box = element("details");
  box.open = before ? before.open : translations.filter((one) => one.text).length === 1;
  const list = element("ul", { class: "others" });
  translation.candidates.forEach((candidate, number) => {
    const button = element("button", {
      type: "button", "aria-pressed": String(number === chosen[index]),
    });
    button.append(
      element("span", { dir: "auto", lang: model ? model.target_language : "" },
        candidate.text || "(nothing)"),
      element("small", {}, `score ${candidate.score.toFixed(2).replace("-", "\u2212")}`),
    );
    button.addEventListener("click", () => {
      chosen[index] = number;
      draw();
      lines.querySelector(`[data-line="${index}"]`).querySelectorAll(".others button")[number].focus();
      at("announcement").textContent = candidate.text;
    });
    const item = element("li");
    item.append(button);
    list.append(item);
  });
  box.append(element("summary", {}, "Alternatives"), list);
  return box;
}

// ---- how it attends ----

let attending = null; // the AbortController of the request under way
let attended = ""; // the lines that are shown

async function attend() {
  const texts = [...new Set(translations.filter((one) => one.text).map((one) => one.typed))];
  const box = at("attention"), said = at("attention-said"), place = at("attention-place");
  box.hidden = !texts.length;
  if (!box.open || !texts.length || attended === texts.join("\n")) return;
  if (attending) attending.abort();
  const mine = attending = new AbortController();
  place.replaceChildren();
  attended = "";
  said.textContent = "Reading once more, with every weight kept\u2026";
  try {
    const scenes = [], refused = [];
    for (const text of texts.slice(0, LOOKED)) {
      try {
        const body = await answer("attention", {
          method: "POST",
          headers: { "Content-Type": "application/json" },
          body: JSON.stringify({ text }),
          signal: mine.signal,
        });
        scenes.push(...body.scenes);
      } catch (error) {
        if (!(error.status < 500)) throw error; // nor would the other lines be answered
        refused.push(error); // one that is too long takes nothing from the others
      }
    }
    if (attending !== mine) return;
    if (!scenes.length) throw refused[0];
    const inside = element("div");
    place.append(inside);
    attentionViewer.show(inside, { scenes });
    attended = texts.join("\n");
    const rest = texts.length - LOOKED;
    said.textContent = "Each line as one sentence, read and translated at once." + (rest > 0 ? ` The first ${LOOKED} lines.` : "") +
      (refused.length ? ` Without ${refused.length === 1 ? "one of them" : `${refused.length} of them`}: ${refused[0].message}.` : "");
  } catch (error) {
    if (error.name === "AbortError" || attending !== mine) return;
    said.textContent = `${error.message.charAt(0).toUpperCase()}${error.message.slice(1)}`;
  }
}

at("attention").addEventListener("toggle", attend);

// ---- starting ----

function counted() {
  clearTimeout(timer);
  timer = setTimeout(translate, PAUSE);
  const most = model ? model.limits.characters : Infinity;
  const longest = Math.max(...source.value.split("\n").map((text) => [...text].length));
  const count = at("count");
  const over = longest > most;
  count.textContent = over ? `${longest.toLocaleString("en")} of ${most.toLocaleString("en")} characters` : "";
  count.classList.toggle("over", over);
}

function facts(found) {
  model = found;
  const from = language(found.source_language), to = language(found.target_language);
  at("languages").textContent = `${from} to ${to}`;
  document.title = `${from} to ${to} · Kakehashi`;
  at("source-label").textContent = `Text in ${from}`;
  at("target-label").textContent = `Translation into ${to}`;
  source.lang = found.source_language;
  const rows = [
    ["Architecture", found.architecture],
    ["Vocabulary", `${found.vocabulary.toLocaleString("en")} pieces`],
    ["Engine", found.engine],
    ["Beam", String(found.beam)],
    ["Version", found.kakehashi],
  ];
  for (const [name, value] of rows) {
    at("facts").append(element("dt", {}, name), element("dd", {}, value));
  }
  at("readme").textContent = found.card;
  at("readme").hidden = !found.card;
}

at("form").addEventListener("submit", (event) => { event.preventDefault(); translate(); });
source.addEventListener("input", counted);
source.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); translate(); }
});
at("copy").addEventListener("click", async () => {
  const text = translations.map((one, n) => one.candidates[chosen[n]].text).join("\n");
  try {
    await navigator.clipboard.writeText(text);
    at("copy").textContent = "Copied";
  } catch {
    at("copy").textContent = "Not allowed";
  }
  setTimeout(() => { at("copy").textContent = "Copy"; }, 1500);
});
answer("model").then(facts, (error) => fail(error.message)).then(() => {
  if (source.value) translate(); // what a browser kept over a reload
});
