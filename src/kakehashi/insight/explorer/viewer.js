"use strict";
// The viewer of attention. Everything that comes from a model or a person is put in as text, never
// as markup, and nothing is asked of the network. Layers and heads count from 0 here, and from 1
// for people. A "row" is what looks (a step of the decoder, a piece in the encoder), a "column" is
// what is looked at.
(() => {

const MEAN = "mean", MAX = "max";
const LEAST = 0.05; // weight of a line that is drawn when all are
const LEAST_OF_ONE = 0.005; // and when those of one piece are
const MOST_PIXELS = 16e6; // of a canvas; phones show none that has more
const LONG = 40; // pieces, from which the type is smaller

// ---- small things ----

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value !== null && value !== false) made.setAttribute(key, value === true ? "" : value);
  }
  made.append(...children);
  return made;
}

function drawn(name, properties = {}) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(properties)) made.setAttribute(key, value);
  return made;
}

function isolated(text) {
  return element("bdi", { dir: "auto" }, text);
}

function percent(share) {
  if (share <= 0) return "0\u00a0%";
  if (share < 0.005) return "under 1\u00a0%";
  return share > 0.995 && share < 1 ? "over 99\u00a0%" : `${Math.round(share * 100)}\u00a0%`;
}

function signed(number, digits = 2) {
  return number.toFixed(digits).replace("-", "\u2212");
}

function quoted(label) {
  return label[1] & 2 ? `the ${label[0]}` : `\u201c\u2068${label[0]}\u2069\u201d`;
}

function language(code) {
  try {
    return new Intl.DisplayNames(["en"], { type: "language" }).of(code.replace("_", "-")) || code;
  } catch {
    return code;
  }
}

const bounded = (number, least, most) => Math.max(least, Math.min(most, number));

// ---- weights ----

// The numbers of 0 to 65535 that a base64 text holds, two bytes each, as weights of 0 to 1.
function numbers(data) {
  const bytes = atob(data);
  const found = new Float32Array(bytes.length / 2);
  for (let at = 0; at < found.length; at += 1) {
    found[at] = (bytes.charCodeAt(2 * at) + 256 * bytes.charCodeAt(2 * at + 1)) / 65535;
  }
  return found;
}

class Maps {
  constructor(scene) {
    this.scene = scene;
    this.weights = {};
    for (const kind of ["encoder", "cross", "decoder"]) {
      if (scene[kind]) this.weights[kind] = numbers(scene[kind].data);
    }
    // where the decoder's weights of each step start: it reads one piece more than the one before
    this.reads = new Array(scene.candidates.length).fill(0);
    for (const path of scene.paths) path.steps.forEach((step, n) => { this.reads[step] = n + 1; });
    if (scene.decoder) {
      const { layers, heads } = scene.decoder;
      let start = 0;
      this.starts = this.reads.map((read) => {
        const here = start;
        start += layers * heads * read;
        return here;
      });
    }
  }

  kinds() {
    return ["cross", "encoder", "decoder"].filter((kind) => this.scene[kind]);
  }

  // One head's weights [rows x columns].
  head(kind, layer, head, path) {
    const weights = this.weights[kind], { layers, heads } = this.scene[kind];
    const sources = this.scene.source.length, rows = kind === "encoder" ? sources : path.steps.length;
    const columns = kind === "decoder" ? rows : sources;
    const values = new Float32Array(rows * columns);
    if (kind === "encoder") {
      const start = (layer * heads + head) * rows * columns;
      values.set(weights.subarray(start, start + rows * columns));
    } else {
      path.steps.forEach((step, n) => {
        const read = kind === "cross" ? sources : n + 1;
        const start = kind === "cross"
          ? ((step * layers + layer) * heads + head) * sources
          : this.starts[step] + (layer * heads + head) * read;
        values.set(weights.subarray(start, start + read), n * columns);
      });
    }
    return { rows, columns, values };
  }

  // Those of a head, or the mean or the maximum of the layer's heads.
  of(kind, layer, head, path) {
    if (typeof head === "number") return this.head(kind, layer, head, path);
    const count = this.scene[kind].heads;
    const all = this.head(kind, layer, 0, path);
    for (let other = 1; other < count; other += 1) {
      const { values } = this.head(kind, layer, other, path);
      for (let at = 0; at < values.length; at += 1) {
        all.values[at] = head === MEAN ? all.values[at] + values[at] : Math.max(all.values[at], values[at]);
      }
    }
    if (head === MEAN) for (let at = 0; at < all.values.length; at += 1) all.values[at] /= count;
    return all;
  }
}

// Mean over the rows of the entropy in bits.
function entropy({ rows, values }) {
  let sum = 0;
  for (const weight of values) if (weight > 0) sum -= weight * Math.log2(weight);
  return sum / rows;
}

// That of weights which are all alike. A step of the decoder reads one piece more than the one before.
function evenly(kind, { rows, columns }) {
  if (kind !== "decoder") return Math.log2(columns);
  return Array.from({ length: rows }, (_, n) => Math.log2(n + 1)).reduce((sum, bits) => sum + bits, 0) / rows;
}

// ---- colours ----

function linear(channel) {
  return channel <= 0.04045 ? channel / 12.92 : ((channel + 0.055) / 1.055) ** 2.4;
}

function lab(colour) { // OKLab (Ottosson, 2020) of #rrggbb: in it equal steps look equal
  const [r, g, b] = [1, 3, 5].map((at) => linear(parseInt(colour.slice(at, at + 2), 16) / 255));
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function rgb([L, a, b]) {
  const l = (L + 0.3963377774 * a + 0.2158037573 * b) ** 3;
  const m = (L - 0.1055613458 * a - 0.0638541728 * b) ** 3;
  const s = (L - 0.0894841775 * a - 1.291485548 * b) ** 3;
  return [
    4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
    -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
    -0.0041960863 * l - 0.7034186147 * m + 1.707614701 * s,
  ].map((v) => Math.round(255 * bounded(v <= 0.0031308 ? 12.92 * v : 1.055 * v ** (1 / 2.4) - 0.055, 0, 1)));
}

// 256 colours for weights: the place is the square root of the weight, so that small ones show.
class Scale {
  constructor(root) {
    const style = getComputedStyle(root);
    const channels = (name) => [1, 3, 5].map((at) => parseInt(style.getPropertyValue(name).trim().slice(at, at + 2), 16));
    [this.sheet, this.mark] = [channels("--sheet"), channels("--mark")];
    const stops = ["--map-0", "--map-1", "--map-2"].map((name) => lab(style.getPropertyValue(name).trim()));
    this.colours = Array.from({ length: 256 }, (_, n) => {
      const place = (n / 255) * 2, first = Math.min(1, Math.floor(place)), share = place - first;
      return rgb(stops[first].map((value, at) => value + share * (stops[first + 1][at] - value)));
    });
  }

  at(weight) {
    return this.colours[Math.round(255 * Math.sqrt(bounded(weight, 0, 1)))];
  }

  tint(weight) { // of a piece that is looked at
    if (weight < LEAST_OF_ONE) return "";
    const share = Math.sqrt(Math.min(1, weight));
    return `rgb(${this.sheet.map((value, at) => Math.round(value + share * (this.mark[at] - value)))})`;
  }

  paint(canvas, { rows, columns, values }) { // a pixel a weight
    canvas.width = columns;
    canvas.height = rows;
    const context = canvas.getContext("2d"), image = context.createImageData(columns, rows);
    const { data } = image;
    values.forEach((weight, at) => {
      const [red, green, blue] = this.at(weight);
      data[4 * at] = red;
      data[4 * at + 1] = green;
      data[4 * at + 2] = blue;
      data[4 * at + 3] = 255;
    });
    context.putImageData(image, 0, 0);
  }
}

// ---- one model's view of one sentence ----

class Panel {
  constructor(viewer, scene, name) {
    this.viewer = viewer;
    this.scene = scene;
    this.name = name;
    this.maps = new Maps(scene);
    this.path = scene.paths[0];
    this.kind = "cross";
    this.layers = {};
    this.heads = {};
    for (const kind of this.maps.kinds()) {
      this.layers[kind] = scene[kind].layers - 1;
      this.heads[kind] = scene[kind].heads > 1 ? MEAN : 0;
    }
    this.layers.cross = scene.first.layer;
    if (scene.first.head !== null) this.heads.cross = scene.first.head;
    this.held = null; // what stays lit: {row} or {column}
    this.pointed = null; // what is lit while it is pointed at: the same, or both
    this.box = element("section", { class: "panel", "aria-label": scene.model });
    this.build();
    this.draw();
  }

  // What looks and what is looked at, in words.
  sides() {
    const { from, to, source, direction } = this.scene;
    const text = { labels: source, lang: from, direction, title: `${language(from)}: the source` };
    const output = { labels: this.path.output, lang: to, direction: this.path.direction, title: `${language(to)}: the translation` };
    if (this.kind === "encoder") return { rows: { ...text, title: `${language(from)}: each piece looks` }, columns: { ...text, title: `${language(from)}: at all of the source` } };
    if (this.kind === "cross") return { rows: { ...output, title: `${language(to)}: each step looks, and writes` }, columns: { ...text, title: `${language(from)}: at the source` } };
    const read = [["start", 2], ...this.path.output.slice(0, -1)];
    return { rows: { ...output, title: `${language(to)}: each step looks, and writes` }, columns: { ...output, labels: read, title: `${language(to)}: at what has been written` } };
  }

  build() {
    const kinds = {
      cross: "Cross: translation to source", encoder: "Encoder: source to itself", decoder: "Decoder: translation to itself",
    };
    this.kindButtons = new Map(this.maps.kinds().map((kind) => {
      const button = element("button", { type: "button", "aria-pressed": "false" }, kinds[kind]);
      button.addEventListener("click", () => { this.kind = kind; this.held = null; this.draw(); });
      return [kind, button];
    }));
    this.parts = {
      stage: element("section", { class: "stage-part" }), considered: element("section", { class: "considered" }), side: element("section", { class: "side" }),
      picture: element("section", { class: "picture" }), alternatives: element("section", { class: "alternatives" }),
    };
    this.box.append(
      element("header", {}, element("h2", {}, this.scene.model),
        element("div", { class: "segments", role: "group", "aria-label": "Kind of attention" }, ...this.kindButtons.values())),
      element("div", { class: "parts" }, ...Object.values(this.parts)),
    );
    this.watcher = new ResizeObserver(() => { if (this.stage) this.lines(); this.join(); });
  }

  draw() {
    this.pointed = null;
    for (const [kind, button] of this.kindButtons) button.setAttribute("aria-pressed", String(kind === this.kind));
    this.map = this.maps.of(this.kind, this.layers[this.kind], this.heads[this.kind], this.path);
    this.drawStage();
    this.drawSide();
    this.drawMap();
    this.drawAlternatives();
    this.light();
  }

  again() { // another head, the same sentence
    this.map = this.maps.of(this.kind, this.layers[this.kind], this.heads[this.kind], this.path);
    this.drawMap();
    this.light();
  }

  // The two lines of text.
  drawStage() {
    const { rows, columns } = this.sides();
    const make = (side, which) => {
      const box = element("div", { class: "tokens", role: "group", dir: side.direction, lang: side.lang, "aria-label": side.title });
      const buttons = side.labels.map((label, n) => {
        const button = element("button", {
          type: "button", tabindex: n ? "-1" : "0", "aria-pressed": "false",
          class: `token${label[1] & 2 ? " spaced control" : label[1] & 1 ? " spaced" : n ? " joined" : ""}`,
        }, isolated(label[0]), element("small", { "aria-hidden": "true" }));
        const here = { [which]: n };
        button.addEventListener("pointerenter", (event) => { if (event.pointerType !== "touch") this.point(here); });
        button.addEventListener("pointerleave", () => this.point(null));
        button.addEventListener("focus", () => { if (button.matches(":focus-visible")) this.point(here, true); });
        button.addEventListener("blur", () => this.point(null));
        button.addEventListener("click", () => this.hold(this.held && this.held[which] === n ? null : here));
        button.addEventListener("keydown", (event) => this.move(event, which, n));
        return button;
      });
      box.append(...buttons);
      return { box, buttons, labels: side.labels };
    };
    this.columns = make(columns, "column");
    this.rows = make(rows, "row");
    this.curves = drawn("svg", { "aria-hidden": "true" });
    const long = Math.max(rows.labels.length, columns.labels.length) > LONG;
    this.stage = element("div", { class: `stage${long ? " long" : ""}` }, this.curves,
      element("h3", {}, columns.title), this.columns.box, element("div", { class: "gap" }),
      this.rows.box, element("h3", {}, rows.title));
    this.says = element("p", { class: "says" });
    this.parts.stage.replaceChildren(this.stage, this.drawStepper(rows.labels.length), this.says);
    this.watcher.disconnect();
    this.watcher.observe(this.stage);
  }

  drawStepper(count) {
    const step = (n) => () => this.hold(n === null ? null : { row: bounded(n(), 0, count - 1) });
    const now = () => (this.held && this.held.row !== undefined ? this.held.row : -1);
    const button = (text, label, action) => {
      const made = element("button", { type: "button", "aria-label": label }, text);
      made.addEventListener("click", action);
      return made;
    };
    const what = this.kind === "encoder" ? "piece" : "step";
    this.slider = element("input", { type: "range", min: "0", max: String(count), value: "0", "aria-label": `Which ${what}; 0 is all` });
    this.slider.addEventListener("input", () => {
      const n = Number(this.slider.value);
      this.hold(n ? { row: n - 1 } : null);
    });
    this.everything = button("All", `All ${what}s`, step(null));
    this.everything.setAttribute("aria-pressed", "true");
    this.counter = element("span", { class: "quiet" });
    this.back = button("\u2190", `${what} before`, step(() => now() - 1));
    this.next = button("\u2192", `Next ${what}`, step(() => now() + 1));
    return element("div", { class: "stepper", role: "group", "aria-label": `Stepping` },
      this.everything, this.back, this.slider, this.next, this.counter);
  }

  move(event, which, n) {
    const side = which === "row" ? this.rows : this.columns, other = which === "row" ? this.columns : this.rows;
    const onwards = side.box.getAttribute("dir") === "rtl" ? -1 : 1;
    const step = { ArrowRight: onwards, ArrowLeft: -onwards, Home: -n, End: side.buttons.length }[event.key];
    let next = null;
    if (event.key === "Escape") { this.hold(null); return; }
    if (step !== undefined) next = side.buttons[bounded(n + step, 0, side.buttons.length - 1)];
    if (event.key === (which === "row" ? "ArrowUp" : "ArrowDown")) next = other.buttons[bounded(n, 0, other.buttons.length - 1)];
    if (!next) return;
    event.preventDefault();
    for (const button of [...side.buttons, ...other.buttons].filter((one) => next.parentElement.contains(one))) button.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }

  point(what, aloud = false) {
    this.pointed = what;
    this.light(aloud);
  }

  hold(what) {
    this.held = what;
    this.pointed = null;
    this.light(true);
  }

  weight(row, column) {
    return this.map.values[row * this.map.columns + column];
  }

  // Show what is pointed at, or held, or everything.
  light(aloud = false) {
    const lit = this.pointed || this.held || {};
    const { scale } = this.viewer;
    const stepping = this.held && this.held.row !== undefined && this.kind !== "encoder" ? this.held.row : null;
    const paint = (side, of, own) => side.buttons.forEach((button, n) => {
      const weight = of === undefined ? 0 : own === "row" ? this.weight(n, of) : this.weight(of, n);
      button.style.backgroundColor = of === undefined ? "" : scale.tint(weight);
      button.lastChild.textContent = of !== undefined && weight >= LEAST_OF_ONE ? Math.round(weight * 100) : "";
      button.classList.toggle("lit", of !== undefined && weight >= LEAST_OF_ONE);
      button.classList.toggle("on", lit[own] === n);
      button.setAttribute("aria-pressed", String(!!this.held && this.held[own] === n));
      button.classList.toggle("later", stepping !== null && own === "row" && n > stepping);
    });
    const both = lit.row !== undefined && lit.column !== undefined;
    paint(this.columns, lit.row, "column");
    paint(this.rows, both ? undefined : lit.column, "row");
    const count = this.rows.buttons.length, row = this.held && this.held.row !== undefined ? this.held.row : -1;
    this.slider.value = String(row + 1);
    this.back.disabled = row <= 0;
    this.next.disabled = row === count - 1;
    this.everything.setAttribute("aria-pressed", String(!this.held));
    const what = this.kind === "encoder" ? "Piece" : "Step";
    this.counter.textContent = row < 0 ? `All ${count} ${what.toLowerCase()}s` : `${what} ${row + 1} of ${count}`;
    this.slider.setAttribute("aria-valuetext", this.counter.textContent);
    const words = this.words(lit);
    this.says.textContent = words;
    if (aloud) this.viewer.announce(words);
    this.lines();
    this.drawCandidates(lit.row !== undefined ? lit.row : null);
    this.cursor(lit);
    this.mark(lit.row);
  }

  words({ row, column }) {
    const rows = this.rows.labels, columns = this.columns.labels;
    const acts = this.kind === "encoder" ? "looks" : "is written, looking";
    if (row !== undefined && column !== undefined) {
      return `${quoted(rows[row])} \u2192 ${quoted(columns[column])}: ${this.weight(row, column).toFixed(4)}`;
    }
    const list = (labels, of) => {
      const found = labels.map((label, n) => [of(n), label]).filter(([weight]) => weight >= LEAST_OF_ONE)
        .sort((a, b) => b[0] - a[0]);
      const shown = found.slice(0, 5).map(([weight, label]) => `${quoted(label)} ${percent(weight)}`).join(", ");
      return shown + (found.length > 5 ? `, and ${found.length - 5} more` : "") || "nothing by half a percent";
    };
    if (row !== undefined) {
      const sum = this.heads[this.kind] === MAX ? " (the largest of the heads)" : "";
      return `${quoted(rows[row])} ${acts} at ${list(columns, (n) => this.weight(row, n))}${sum}.`;
    }
    if (column !== undefined) {
      return `${quoted(columns[column])} is looked at by ${list(rows, (n) => this.weight(n, column))}.`;
    }
    return "Point at a piece, reach it with Tab and the arrow keys, or tap it, to see where it looks.";
  }

  lines() {
    const box = this.stage.getBoundingClientRect();
    if (!box.width) return;
    const lit = this.pointed || this.held || {};
    const places = (side, low) => side.buttons.map((button) => {
      const at = button.getBoundingClientRect();
      return [(at.left + at.right) / 2 - box.left, (low ? at.bottom : at.top) - box.top];
    });
    const above = places(this.columns, true), below = places(this.rows, false);
    const one = lit.row !== undefined || lit.column !== undefined, least = one ? LEAST_OF_ONE : LEAST;
    const curves = [];
    below.forEach(([x, y], n) => above.forEach(([u, v], m) => {
      if ((lit.row !== undefined && lit.row !== n) || (lit.column !== undefined && lit.column !== m)) return;
      const weight = this.weight(n, m);
      if (weight < least) return;
      const middle = (y + v) / 2;
      curves.push(drawn("path", {
        d: `M${x.toFixed(1)} ${y.toFixed(1)}C${x.toFixed(1)} ${middle.toFixed(1)} ${u.toFixed(1)} ${middle.toFixed(1)} ${u.toFixed(1)} ${v.toFixed(1)}`,
        "stroke-opacity": ((one ? 0.15 : 0.05) + (one ? 0.85 : 0.6) * weight).toFixed(3), "stroke-width": (0.75 + 3.25 * weight).toFixed(2),
      }));
    }));
    this.curves.replaceChildren(...curves);
  }

  // Heads to choose from, and what the step could have written.
  drawSide() {
    const { layers, heads } = this.scene[this.kind];
    const chosen = [...Array(heads).keys(), ...(heads > 1 ? [MEAN, MAX] : [])];
    const table = element("table", { role: "presentation" });
    const titles = chosen.map((head) => element("th", { scope: "col" }, typeof head === "number" ? String(head + 1) : head));
    table.append(element("tr", {}, element("th", {}, "head"), ...titles));
    const buttons = [];
    for (let layer = 0; layer < layers; layer += 1) {
      const row = element("tr", {}, element("th", { scope: "row" }, `layer ${layer + 1}`));
      for (const head of chosen) {
        const map = this.maps.of(this.kind, layer, head, this.path), canvas = element("canvas", { "aria-hidden": "true" });
        this.viewer.scale.paint(canvas, map);
        const bits = head === MAX ? "" : entropy(map).toFixed(2);
        const name = heads === 1 ? "its one head" : typeof head === "number" ? `head ${head + 1}` : `${head} of the heads`;
        const button = element("button", {
          type: "button", role: "radio", "aria-checked": "false", tabindex: "-1",
          "aria-label": `Layer ${layer + 1}, ${name}${bits ? `, ${bits} bits` : ""}`,
        }, canvas, bits || "\u2013");
        button.addEventListener("click", () => {
          this.layers[this.kind] = layer;
          this.heads[this.kind] = head;
          check();
          this.again();
          this.viewer.announce(button.getAttribute("aria-label"));
        });
        button.dataset.layer = layer;
        button.dataset.head = head;
        buttons.push(button);
        row.append(element("td", {}, button));
      }
      table.append(row);
    }
    const check = () => {
      for (const button of buttons) {
        const on = Number(button.dataset.layer) === this.layers[this.kind] && button.dataset.head === String(this.heads[this.kind]);
        button.setAttribute("aria-checked", String(on));
        button.tabIndex = on ? 0 : -1;
      }
    };
    check();
    const group = element("div", { class: "heads", role: "radiogroup", "aria-label": "Layer and head" }, table);
    group.addEventListener("keydown", (event) => {
      const at = buttons.indexOf(event.target), step = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: chosen.length, ArrowUp: -chosen.length }[event.key];
      if (at < 0 || step === undefined) return;
      event.preventDefault();
      const next = buttons[at + step];
      if (next) { next.focus(); next.click(); }
    });
    const most = evenly(this.kind, this.map).toFixed(1);
    this.candidates = element("div", {});
    this.parts.considered.replaceChildren(this.candidates);
    this.parts.side.replaceChildren(
      element("h3", {}, "Layers and heads"), group,
      element("p", { class: "quiet" }, `The figure is the head's entropy in bits, the mean of its rows: 0 looks at one piece, ${most} at all alike.`),
    );
  }

  drawCandidates(row) {
    this.parts.considered.hidden = this.kind === "encoder";
    if (this.kind === "encoder") return this.candidates.replaceChildren();
    const { path, scene } = this, lang = scene.to;
    const title = element("h3", {}, row === null ? "Where it was least sure" : `What step ${row + 1} could write`);
    const item = (label, share, chosen) => {
      const bar = element("span", { class: "bar" });
      bar.style.width = `${(100 * share).toFixed(1)}%`;
      return element("li", { class: chosen ? "chosen" : null },
        element("span", { lang }, isolated(label[0]), chosen ? element("span", { class: "unseen" }, " (written)") : ""),
        element("span", { "aria-hidden": "true" }, bar), element("span", { class: "figure" }, percent(share)));
    };
    if (row === null) {
      const unsure = path.probabilities.map((share, n) => [path.output[n], share]).slice(0, path.finished ? undefined : -1)
        .sort((a, b) => a[1] - b[1]).slice(0, 5).map(([label, share]) => item(label, share, false));
      return this.candidates.replaceChildren(title, element("p", { class: "written quiet" },
        "The pieces that it gave the least probability. Choose a step to see what else it considered."), element("ol", { class: "candidates" }, ...unsure));
    }
    const written = path.output.slice(0, row).map(([text, flags], n) => (flags & 1 && n ? " " : "") + text).join("");
    const list = element("ol", { class: "candidates" });
    const own = path.output[row], candidates = scene.candidates[path.steps[row]].map(([text, flags, share]) => [[text, flags], share]);
    const same = ([label]) => label[0] === own[0] && label[1] === own[1];
    const cut = !path.finished && row === path.steps.length - 1;
    if (!cut && !candidates.some(same)) candidates.push([own, path.probabilities[row]]);
    for (const [label, share] of candidates) list.append(item(label, share, same([label])));
    this.candidates.replaceChildren(title,
      element("p", { class: "written quiet" }, "Written so far: ", element("bdi", { lang, dir: path.direction }, written || "nothing")), list);
  }

  // The heat map.
  drawMap() {
    const { rows, columns, values } = this.map, { scale } = this.viewer;
    const most = Math.max(rows, columns), cell = most <= 24 ? 28 : most <= 44 ? 20 : 16;
    const names = (side, name, size) => element("div", { class: name, lang: side.box.lang, "aria-hidden": "true" },
      ...side.labels.map((label) => {
        const made = element("span", { class: label[1] & 2 ? "control" : null }, isolated(label[0]));
        made.style[size] = `${cell}px`;
        if (size === "height") made.style.lineHeight = `${cell}px`;
        return made;
      }));
    this.columnNames = names(this.columns, "columns", "width");
    this.rowNames = names(this.rows, "lines", "height");
    const sharpest = Math.floor(Math.sqrt(MOST_PIXELS / (rows * columns)) / cell);
    const ratio = Math.max(1, Math.min(Math.round(devicePixelRatio || 1), sharpest));
    const { head, layer } = { head: this.heads[this.kind], layer: this.layers[this.kind] };
    const canvas = element("canvas", {
      tabindex: "0", role: "application", "aria-roledescription": "heat map",
      "aria-label": `Weights, ${rows} rows by ${columns} columns; arrow keys read them one by one`,
      width: String(columns * cell * ratio), height: String(rows * cell * ratio),
    });
    canvas.style.width = `${columns * cell}px`;
    canvas.style.height = `${rows * cell}px`;
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    const gap = cell > 16 ? 1 : 0.5;
    values.forEach((weight, at) => {
      const n = Math.floor(at / columns), m = at % columns;
      context.fillStyle = `rgb(${scale.at(weight)})`;
      context.fillRect(m * cell, n * cell, cell - gap, cell - gap);
    });
    this.cell = cell;
    this.cursorBox = element("div", { class: "cursor", hidden: true });
    this.cursorBox.style.width = this.cursorBox.style.height = `${cell - gap}px`;
    this.canvas = canvas;
    const place = (event) => {
      const at = canvas.getBoundingClientRect();
      return {
        row: bounded(Math.floor((event.clientY - at.top) / cell), 0, rows - 1),
        column: bounded(Math.floor((event.clientX - at.left) / cell), 0, columns - 1),
      };
    };
    canvas.addEventListener("pointermove", (event) => this.point(place(event)));
    canvas.addEventListener("pointerdown", (event) => this.point(place(event)));
    canvas.addEventListener("pointerleave", (event) => { if (event.pointerType !== "touch") this.point(null); });
    let at = { row: 0, column: 0 };
    canvas.addEventListener("focus", () => { if (canvas.matches(":focus-visible")) this.point(at, true); });
    canvas.addEventListener("blur", () => this.point(null));
    canvas.addEventListener("keydown", (event) => {
      const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1], Home: [0, -columns], End: [0, columns] }[event.key];
      if (!step) return;
      event.preventDefault();
      at = { row: bounded(at.row + step[0], 0, rows - 1), column: bounded(at.column + step[1], 0, columns - 1) };
      this.point(at, true);
      this.cursorBox.scrollIntoView({ block: "nearest", inline: "nearest" });
    });
    const sheet = element("div", { class: `sheet${cell < 20 ? " small" : ""}` }, element("div", { class: "corner" }), this.columnNames,
      this.rowNames, element("div", { class: "cells" }, canvas, this.cursorBox));
    const which = this.scene[this.kind].heads === 1 ? "its one head" : typeof head === "number" ? `head ${head + 1}` : head === MEAN ? "mean of the heads" : "maximum of the heads";
    const legend = element("canvas", { "aria-hidden": "true" });
    scale.paint(legend, { rows: 1, columns: 256, values: Float32Array.from({ length: 256 }, (_, n) => (n / 255) ** 2) });
    const ticks = [0, 0.1, 0.3, 0.6, 1].map((weight) => {
      const tick = element("i", {}, String(weight));
      tick.style.left = `${100 * Math.sqrt(weight)}%`;
      return tick;
    });
    const kind = { cross: "Cross-attention", encoder: "Encoder self-attention", decoder: "Decoder self-attention" }[this.kind];
    const before = this.parts.picture.querySelector(".map");
    const map = element("div", { class: "map" }, sheet);
    this.parts.picture.replaceChildren(
      element("h3", {}, `${kind}, layer ${layer + 1} of ${this.scene[this.kind].layers}, ${which}: a row for each ${this.kind === "encoder" ? "piece" : "step, named by what it writes"}`),
      map, element("div", { class: "legend" }, "weight", element("div", {}, legend, ...ticks)));
    if (before) { map.scrollLeft = before.scrollLeft; map.scrollTop = before.scrollTop; }
  }

  cursor({ row, column }) {
    const both = row !== undefined && column !== undefined;
    this.cursorBox.hidden = !both;
    if (both) {
      this.cursorBox.style.left = `${column * this.cell}px`;
      this.cursorBox.style.top = `${row * this.cell}px`;
    }
    [...this.rowNames.children].forEach((name, n) => name.classList.toggle("on", n === row));
    [...this.columnNames.children].forEach((name, m) => name.classList.toggle("on", m === column));
  }

  // The list of what the search ended with, and what it held on the way.
  drawAlternatives() {
    const { scene, parts } = this;
    this.nodes = null;
    if (scene.paths[0].score === null) return parts.alternatives.replaceChildren();
    const list = element("ol", { class: "list" });
    scene.paths.forEach((path, n) => {
      const button = element("button", { type: "button", "aria-pressed": String(path === this.path) },
        element("bdi", { dir: path.direction, lang: scene.to }, path.text || "(nothing)"),
        element("small", {}, `score ${signed(path.score)}, log p ${signed(path.logProbability)}${path.finished ? "" : ", cut at the limit"}`));
      button.addEventListener("click", () => {
        this.path = path;
        this.held = null;
        this.draw();
        this.parts.alternatives.querySelectorAll(".list button")[n].focus();
        this.viewer.announce(path.text);
      });
      list.append(element("li", {}, button));
    });
    const several = scene.paths.length > 1;
    parts.alternatives.replaceChildren(element("h3", {}, several ? `What the search ended with: ${scene.paths.length} hypotheses, best first` : "What the search ended with"), list);
    if (scene.beam.length && scene.beam.some((slots) => slots.length > 1)) parts.alternatives.append(this.drawBeam());
  }

  drawBeam() {
    const { scene } = this, taken = new Set(this.path.steps);
    const ends = scene.beam.map(() => []);
    scene.paths.forEach((path, n) => {
      const length = path.output.length;
      if (!path.finished) return;
      while (ends.length < length) ends.push([]);
      ends[length - 1].push([path, n]);
    });
    const columns = element("ol", {});
    this.nodes = [];
    this.beamColumns = [];
    ends.forEach((ended, n) => {
      const slots = scene.beam[n] || [];
      const column = element("li", {}, element("span", { class: "number" }, element("span", { class: "unseen" }, "Step "), String(n + 1)));
      const here = slots.map(([text, flags, parent, total, step]) => {
        const on = step !== null && taken.has(step);
        const node = element("span", { class: `node${step !== null ? " kept" : ""}${on ? " taken" : ""}`, title: `log p ${signed(total)}` },
          element("bdi", { dir: "auto", lang: scene.to }, text), element("small", {}, signed(total, 1)));
        column.append(node);
        return { node, on, step, parent: n ? this.nodes[n - 1][parent] : null };
      });
      for (const [path, rank] of ended) {
        const on = path === this.path, last = path.steps[path.steps.length - 1];
        const node = element("span", { class: `node ended kept${on ? " taken" : ""}`, title: `log p ${signed(path.logProbability)}` },
          element("span", {}, element("span", { class: "unseen" }, "ended: "), `no. ${rank + 1}`), element("small", {}, signed(path.logProbability, 1)));
        column.append(node);
        here.push({ node, on, step: null, parent: n ? this.nodes[n - 1].find((one) => one.step === last) || null : null });
      }
      this.nodes.push(here);
      this.beamColumns.push(column);
      columns.append(column);
    });
    this.links = drawn("svg", { "aria-hidden": "true" });
    this.lattice = element("div", { class: "lattice", tabindex: "0", role: "region", "aria-label": "The beam, step by step" }, this.links, columns);
    const details = element("details", { open: true }, element("summary", {}, "The beam on its way: what was alive after each step, and what it came from"),
      this.lattice,
      element("p", { class: "quiet" }, "The figure is the log probability so far. In colour: the translation shown. Framed: others of the list. Pale: given up on the way. Round: ended, with its place in the list. What ended without getting into the list is not shown."));
    details.addEventListener("toggle", () => this.join());
    this.watcher.observe(this.lattice);
    return details;
  }

  join() { // lines between the beam's nodes
    if (!this.nodes || !this.lattice.offsetWidth) return;
    const at = (node) => {
      let [x, y] = [0, 0];
      for (let box = node; box && box !== this.lattice; box = box.offsetParent) { x += box.offsetLeft; y += box.offsetTop; }
      return [x, y + node.offsetHeight / 2];
    };
    const curves = [];
    for (const { node, parent, on } of this.nodes.flat()) {
      if (!parent) continue;
      const [x, y] = at(node), [u, v] = at(parent.node), from = u + parent.node.offsetWidth, middle = (x + from) / 2;
      curves.push(drawn("path", { class: on && parent.on ? "taken" : "", d: `M${from} ${v}C${middle} ${v} ${middle} ${y} ${x} ${y}` }));
    }
    this.links.replaceChildren(...curves);
  }

  mark(row) { // the step that is shown, in the beam
    if (!this.nodes) return;
    this.beamColumns.forEach((column, n) => column.classList.toggle("on", this.kind !== "encoder" && n === row));
  }
}

// ---- sentences and models ----

class Viewer {
  constructor(root, data) {
    this.root = root;
    this.scale = new Scale(root);
    this.sentences = []; // of each what the models made of it, each model once
    for (const scene of data.scenes) {
      const same = this.sentences.find((scenes) => scenes[0].line === scene.line && !scenes.some((one) => one.model === scene.model));
      if (same) same.push(scene);
      else this.sentences.push([scene]);
    }
    this.said = element("p", { class: "unseen", "aria-live": "polite" });
    this.top = element("div", { class: "top" });
    this.panels = element("div", { class: "panels" });
    const keys = element("details", {}, element("summary", {}, "Keys"), element("p", { class: "quiet" },
      "Tab goes from part to part. In a line of text the arrow keys go from piece to piece and between the lines, Enter keeps a piece lit, Escape lets go. The slider and its arrows step through the decoder. Among the heads the arrow keys choose. In the heat map they go from weight to weight."));
    root.replaceChildren(this.said, this.top, this.panels,
      element("p", { class: "quiet caveat" }, "Attention is where the weight goes while the model reads and writes. It is no proof of why a word was chosen: a head can look at a piece and make nothing of it."), keys);
    this.which = 0; // a model of the sentence; null: all, side by side
    this.choose(0);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const changed = () => {
      if (!root.isConnected) return dark.removeEventListener("change", changed); // the page has let go of it
      this.scale = new Scale(root);
      for (const panel of this.shown) panel.draw();
    };
    dark.addEventListener("change", changed);
  }

  announce(words) {
    this.said.textContent = words;
  }

  choose(number) {
    const scenes = this.sentences[number];
    this.top.replaceChildren();
    if (this.sentences.length > 1) {
      const select = element("select", {});
      this.sentences.forEach(([{ line, paths }], n) => {
        const twice = this.sentences.some(([other], m) => m !== n && other.line === line);
        select.append(element("option", { value: String(n), dir: "auto" }, twice ? `${line} \u2192 ${paths[0].text}` : line));
      });
      select.selectedIndex = number;
      select.addEventListener("change", () => {
        this.choose(select.selectedIndex);
        this.top.querySelector("select").focus();
      });
      this.top.append(element("label", {}, "Sentence", select));
    }
    if (scenes.length > 1) {
      const group = element("div", { class: "segments", role: "group", "aria-label": "Model" });
      const choices = [...scenes.map((scene, n) => [scene.model, n]), ["Side by side", null]];
      choices.forEach(([name, which], n) => {
        const button = element("button", { type: "button", "aria-pressed": String(which === this.which) }, name);
        button.addEventListener("click", () => {
          this.which = which;
          this.choose(number);
          this.top.querySelectorAll(".segments button")[n].focus();
        });
        group.append(button);
      });
      this.top.append(group);
    }
    this.top.hidden = !this.top.childElementCount;
    if (this.which !== null && this.which >= scenes.length) this.which = 0;
    this.draw(this.which === null ? scenes : [scenes[this.which]]);
  }

  draw(scenes) {
    for (const panel of this.shown || []) panel.watcher.disconnect();
    this.shown = scenes.map((scene) => new Panel(this, scene));
    this.panels.replaceChildren(...this.shown.map((panel) => panel.box));
    for (const panel of this.shown) { panel.lines(); panel.join(); }
  }
}

function show(root, data) {
  root.classList.add("attention-viewer");
  return new Viewer(root, data);
}

function start() {
  for (const root of document.querySelectorAll(".attention-viewer")) {
    const data = root.querySelector('script[type="application/json"]');
    if (data) show(root, JSON.parse(data.textContent));
  }
}

globalThis.attentionViewer = { show };
if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
else start();

})();
