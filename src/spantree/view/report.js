"use strict";
// The report's script: no dependencies, no requests. First the mathematics, then the picture, then the page.

// ---------------------------------------------------------------------------------------------------------------
// Marginals of all arborescences, without a subtraction. A walk goes from a word to its head; E[i][j] is the
// probability that from i it reaches ROOT before j, and P(i -> j) is proportional to w[i][j] E[i][j]. All of E by
// divide and conquer, eliminating words as Grassmann, Taksar and Heyman do. Numbers are logarithms. With one root,
// edges from ROOT are infinitely small: sums keep their leading order in that smallness, 0 or 1. O(n^3).

const NONE = -Infinity;

function add(a, b) {
  if (a < b) [a, b] = [b, a];
  return b === NONE ? a : a + Math.log1p(Math.exp(b - a));
}

// scores: Float64Array (n+1) x (n+1), [head, dep]. Returns {marginals, logZ}, or null if there is no tree.
function solveTrees(scores, n, temperature, single) {
  const nodes = n + 1;
  const walk = new Float64Array(n * n).fill(NONE); // [word, head]
  const root = new Float64Array(n);
  let logZ = 0;
  const shift = new Float64Array(n);
  for (let d = 1; d <= n; d++) {
    let most = NONE;
    for (let h = 0; h <= n; h++) if (h !== d) most = Math.max(most, scores[h * nodes + d] / temperature);
    if (most === NONE) return null;
    shift[d - 1] = most;
    logZ += most;
    root[d - 1] = scores[d] / temperature - most;
    for (let h = 1; h <= n; h++) if (h !== d) walk[(d - 1) * n + h - 1] = scores[h * nodes + d] / temperature - most;
  }
  const none = new Float64Array(n).fill(NONE);
  const [root0, root1] = single ? [none, root] : [root, none];
  const escape0 = new Float64Array(n * n).fill(NONE), escape1 = new Float64Array(n * n).fill(NONE);
  const total = {log: 0, order: 0};
  const all = Array.from({length: n}, (_, i) => i);
  if (!solveOn(all, walk, root0, root1, n, escape0, escape1, total)) return null;
  if (single && total.order !== 1) return null;
  const marginals = new Float64Array(nodes * nodes);
  for (let j = 0; j < n; j++) {
    for (const [ofRoot, escape] of [[root0, escape0], [root1, escape1]]) {
      let sum = ofRoot[j];
      for (let i = 0; i < n; i++) if (i !== j) sum = add(sum, walk[j * n + i] + escape[i * n + j]);
      if (sum === NONE) continue;
      marginals[j + 1] = Math.exp(ofRoot[j] - sum);
      for (let i = 0; i < n; i++)
        if (i !== j) marginals[(i + 1) * nodes + j + 1] = Math.exp(walk[j * n + i] + escape[i * n + j] - sum);
      break;
    }
  }
  return {marginals, logZ: logZ + total.log};
}

// Fills E on the words `set`; the chain (walk, r0, r1) has n columns, of which only those of `set` are alive.
function solveOn(set, walk, r0, r1, n, escape0, escape1, total) {
  if (set.length === 1) {
    if (total) {
      const k = set[0];
      const last = r0[k] > NONE ? r0[k] : r1[k];
      if (last === NONE) return false;
      total.log += last;
      total.order += r0[k] > NONE ? 0 : 1;
    }
    return true;
  }
  const half = set.length >> 1;
  const halves = [set.slice(0, half), set.slice(half)];
  for (const first of [0, 1]) {
    const keep = halves[first], drop = halves[1 - first];
    const w = walk.slice(), s0 = r0.slice(), s1 = r1.slice();
    const alive = new Set(set);
    const rows = [];
    for (const k of drop) {
      alive.delete(k);
      const left = [...alive];
      let pivot = s0[k];
      for (const l of left) pivot = add(pivot, w[k * n + l]);
      const infinitesimal = pivot === NONE;
      if (infinitesimal) pivot = s1[k];
      if (pivot === NONE) return false;
      if (total && first === 0) {
        total.log += pivot;
        total.order += infinitesimal ? 1 : 0;
      }
      const step = left.map((l) => (infinitesimal ? NONE : w[k * n + l] - pivot));
      const f0 = infinitesimal ? 0 : s0[k] - pivot, f1 = infinitesimal ? NONE : s1[k] - pivot;
      for (const i of left) {
        const way = w[i * n + k];
        if (way === NONE) continue;
        for (let x = 0; x < left.length; x++)
          if (left[x] !== i) w[i * n + left[x]] = add(w[i * n + left[x]], way + step[x]);
        s0[i] = add(s0[i], way + f0);
        s1[i] = add(s1[i], way + f1);
      }
      rows.push([k, left, step, f0, f1]);
    }
    if (!solveOn(keep, w, s0, s1, n, escape0, escape1, first === 0 ? total : null)) return false;
    for (const [k, left, step, f0, f1] of rows.reverse())
      for (const j of keep) {
        let e0 = f0, e1 = f1;
        for (let x = 0; x < left.length; x++) {
          e0 = add(e0, step[x] + escape0[left[x] * n + j]);
          e1 = add(e1, step[x] + escape1[left[x] * n + j]);
        }
        escape0[k * n + j] = e0;
        escape1[k * n + j] = e1;
      }
  }
  return true;
}

// Marginals of the trees without crossing arcs: inside sums over spans (Eisner 1996), then their slopes backwards.
// right[i, j]: node i with all that hangs on it up to j; left[i, j]: node j with all that hangs on it down to i; inner: both
// between i and j, before an arc joins them; openRight, openLeft: with the arc i -> j, j -> i. Logarithms; O(n^3).
function solveProjective(scores, n, temperature, single) {
  const nodes = n + 1, chart = (value) => new Float64Array(nodes * nodes).fill(value);
  const score = chart(NONE), right = chart(NONE), left = chart(NONE), inner = chart(NONE), openRight = chart(NONE), openLeft = chart(NONE);
  let shifts = 0;
  for (let d = 1; d <= n; d++) {
    let most = NONE;
    for (let h = 0; h <= n; h++) if (h !== d) most = Math.max(most, scores[h * nodes + d] / temperature);
    if (most === NONE) return null;
    shifts += most;
    for (let h = 0; h <= n; h++) if (h !== d) score[h * nodes + d] = scores[h * nodes + d] / temperature - most;
  }
  for (let i = 0; i <= n; i++) right[i * nodes + i] = left[i * nodes + i] = 0;
  const first = single ? 1 : 0; // with one root, ROOT stands outside of the chart
  for (let width = 1; width <= n; width++)
    for (let i = first, j = i + width; j <= n; i++, j++) {
      const here = i * nodes + j;
      let sum = NONE;
      for (let k = i; k < j; k++) sum = add(sum, right[i * nodes + k] + left[(k + 1) * nodes + j]);
      inner[here] = sum;
      openRight[here] = sum + score[here];
      openLeft[here] = sum + score[j * nodes + i];
      for (let k = i + 1; k <= j; k++) right[here] = add(right[here], openRight[i * nodes + k] + right[k * nodes + j]);
      for (let k = i; k < j; k++) left[here] = add(left[here], left[i * nodes + k] + openLeft[k * nodes + j]);
    }
  const ofRight = chart(0), ofLeft = chart(0), ofOpenRight = chart(0), ofOpenLeft = chart(0), marginals = chart(0);
  let logZ = right[n];
  if (single) {
    for (let d = 1; d <= n; d++) logZ = add(logZ, left[nodes + d] + score[d] + right[d * nodes + n]);
    if (logZ === NONE) return null;
    for (let d = 1; d <= n; d++) {
      const p = Math.exp(left[nodes + d] + score[d] + right[d * nodes + n] - logZ);
      marginals[d] = p;
      ofLeft[nodes + d] += p;
      ofRight[d * nodes + n] += p;
    }
  } else {
    if (logZ === NONE) return null;
    ofRight[n] = 1;
  }
  for (let width = n; width >= 1; width--)
    for (let i = first, j = i + width; j <= n; i++, j++) {
      const here = i * nodes + j;
      if (ofRight[here] > 0)
        for (let k = i + 1; k <= j; k++) {
          const p = ofRight[here] * Math.exp(openRight[i * nodes + k] + right[k * nodes + j] - right[here]);
          ofOpenRight[i * nodes + k] += p;
          ofRight[k * nodes + j] += p;
        }
      if (ofLeft[here] > 0)
        for (let k = i; k < j; k++) {
          const p = ofLeft[here] * Math.exp(left[i * nodes + k] + openLeft[k * nodes + j] - left[here]);
          ofLeft[i * nodes + k] += p;
          ofOpenLeft[k * nodes + j] += p;
        }
      if (ofOpenRight[here] > 0) marginals[here] = ofOpenRight[here];
      if (ofOpenLeft[here] > 0) marginals[j * nodes + i] = ofOpenLeft[here];
      const open = ofOpenRight[here] + ofOpenLeft[here];
      if (open > 0)
        for (let k = i; k < j; k++) {
          const p = open * Math.exp(right[i * nodes + k] + left[(k + 1) * nodes + j] - inner[here]);
          ofRight[i * nodes + k] += p;
          ofLeft[(k + 1) * nodes + j] += p;
        }
    }
  return {marginals, logZ: logZ + shifts};
}

// ---------------------------------------------------------------------------------------------------------------
// The picture: as spantree.view.svg draws it.

const SVG = "http://www.w3.org/2000/svg";
const WORD = 15, LABEL = 11, GAP = 14, EDGE = 20, STEP = 22, SLOT = 7, ROUND = 9, ARROW = 3.5;

function element(name, attributes, ...children) {
  const made = ["svg", "g", "path", "text", "title", "rect", "line", "circle"].includes(name)
    ? document.createElementNS(SVG, name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

const canvas = document.createElement("canvas").getContext("2d");

function textWidth(text, size) {
  canvas.font = `${size}px system-ui, sans-serif`;
  return canvas.measureText(text).width;
}

// How high each arc is: above all arcs inside it, and on no level of one that it crosses.
function levels(spans) {
  const height = spans.map(() => 0), placed = [];
  const order = spans.map((_, i) => i).sort((a, b) => spans[a][1] - spans[a][0] - (spans[b][1] - spans[b][0]) || a - b);
  for (const i of order) {
    const [left, right] = spans[i];
    let level = 1;
    const crossed = new Set();
    for (const j of placed) {
      if (left <= spans[j][0] && spans[j][1] <= right) level = Math.max(level, height[j] + 1);
      if (spans[j][0] < right && left < spans[j][1]) crossed.add(height[j]);
    }
    while (crossed.has(level)) level++;
    height[i] = level;
    placed.push(i);
  }
  return height;
}

// The middle of a label: as near to its line's middle as it can be where nothing crosses the label.
function freePlace(left, right, width, crossing) {
  const middle = (left + right) / 2, places = [middle];
  for (const x of crossing) places.push(x - width / 2, x + width / 2);
  const free = places.filter((at) => left <= at - width / 2 && at + width / 2 <= right &&
    crossing.every((x) => Math.abs(at - x) >= width / 2 - 1e-9));
  return free.length ? free.reduce((a, b) => (Math.abs(b - middle) < Math.abs(a - middle) ? b : a)) : middle;
}

// What stands at an arc's apex: an arrow that comes from nowhere says from where.
const apexText = (arc) => arc.label || (arc.h === 0 ? "ROOT" : "");
const apexWidth = (arc) => (apexText(arc) ? textWidth(apexText(arc), LABEL) + 8 : 0);

// A word to stand in a line of Latin text: after right-to-left letters a mark, so that only they are turned around.
function inLine(word) {
  return /[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc]/.test(word) ? word + "\u200e" : word;
}

// `gold`: heads to compare with, or null. `backwards`: the first word stands on the right.
function drawTree(words, heads, labels, marginals, threshold, gold, backwards) {
  const n = words.length, nodes = n + 1;
  const above = [], below = [];
  for (let d = 1; d <= n; d++) {
    const h = heads[d - 1];
    if (h >= 0) above.push({h, d, label: labels ? labels[d - 1] : "", p: marginals[h * nodes + d], wrong: gold && gold[d - 1] !== h});
    for (let h = 0; h <= n; h++) {
      const p = marginals[h * nodes + d];
      if (h !== d && h !== heads[d - 1] && p >= threshold) below.push({h, d, label: p.toFixed(2), p, dashed: true});
    }
  }
  const count = (arcs) => {
    const ends = new Array(nodes).fill(0);
    for (const arc of arcs) { ends[arc.h]++; ends[arc.d]++; }
    return ends;
  };
  const over = count(above), under = count(below), ends = over.map((c, i) => Math.max(c, under[i]));
  const widths = words.map((word, i) => Math.max(textWidth(word, WORD), 14, SLOT * ends[i + 1]));
  const centres = [];
  for (let j = 0; j < n; j++) {
    let at = j === 0 ? widths[0] / 2 : centres[j - 1] + (widths[j - 1] + widths[j]) / 2 + GAP;
    for (const arc of [...above, ...below]) {
      if (arc.h > 0 && Math.max(arc.h, arc.d) - 1 === j) {
        const i = Math.min(arc.h, arc.d) - 1;
        at = Math.max(at, centres[i] + textWidth(arc.label, LABEL) + 20 + SLOT * (ends[arc.h] + ends[arc.d]) / 2);
      }
      if (arc.h === 0 && j > 0 && (arc.d - 1 === j || arc.d === j)) at = Math.max(at, centres[j - 1] + textWidth(apexText(arc), LABEL) / 2 + 12);
    }
    centres.push(at);
  }
  const width = (n ? centres[n - 1] + widths[n - 1] / 2 : 0) + 2 * EDGE;
  const x = centres.map((c) => (backwards ? width - c - EDGE : c + EDGE));
  const top = place(above, x), bottom = place(below, x);
  const base = top + 6, foot = base + WORD + 22;
  const svg = element("svg", {width: Math.round(width), height: Math.round(foot + bottom), role: "img", "font-size": WORD,
    "aria-label": "Dependency tree: " + words.join(" "), fill: "currentColor", class: "tree"});
  for (const arc of above) svg.append(drawArc(arc, base, -1, words));
  for (const arc of below) svg.append(drawArc(arc, foot, 1, words));
  words.forEach((word, i) => {
    svg.append(element("text", {x: x[i].toFixed(1), y: base + WORD, "text-anchor": "middle"}, word));
    let entropy = 0;
    for (let h = 0; h <= n; h++) { const p = marginals[h * nodes + i + 1]; if (p > 0) entropy -= p * Math.log(p); }
    const share = n > 1 ? Math.min(entropy / Math.log(n), 1) : 0, w = Math.max(textWidth(word, WORD), 14), left = x[i] - w / 2, y = base + WORD + 11;
    svg.append(element("g", {}, element("title", {}, `${word}: entropy of its head ${entropy.toFixed(3)} nats`),
      element("rect", {x: left, y, width: w, height: 4, rx: 2, opacity: 0.15}),
      element("rect", {x: left, y, width: Math.max(w * share, 0), height: 4, rx: 2, class: "entropy"})));
  });
  return svg;
}

// Gives each arc its level, its ends (the higher the nearer to the word's middle) and the place of its label; returns the
// room they need.
function place(arcs, x) {
  const inner = arcs.filter((arc) => arc.h > 0);
  const heights = levels(inner.map((arc) => [Math.min(x[arc.h - 1], x[arc.d - 1]), Math.max(x[arc.h - 1], x[arc.d - 1])]));
  inner.forEach((arc, i) => { arc.level = heights[i]; });
  const most = Math.max(0, ...heights);
  const roots = arcs.filter((arc) => arc.h === 0);
  for (const arc of roots) arc.level = most + 1;
  const at = x.map(() => []);
  const where = (here, there, level) => (there > here ? 1 : -1) / level;
  for (const arc of arcs) {
    at[arc.d - 1].push([arc.h === 0 ? 0 : where(x[arc.d - 1], x[arc.h - 1], arc.level), arc, "dx"]);
    if (arc.h > 0) at[arc.h - 1].push([where(x[arc.h - 1], x[arc.d - 1], arc.level), arc, "hx"]);
  }
  at.forEach((here, i) => {
    here.sort((a, b) => a[0] - b[0]);
    here.forEach(([, arc, end], k) => { arc[end] = x[i] + SLOT * (k - (here.length - 1) / 2); });
  });
  for (const arc of arcs) {
    const higher = arcs.filter((one) => one.level > arc.level).flatMap((one) => (one.h > 0 ? [one.hx, one.dx] : [one.dx]));
    arc.at = arc.h === 0 ? arc.dx : freePlace(Math.min(arc.hx, arc.dx), Math.max(arc.hx, arc.dx), apexWidth(arc), higher);
  }
  const highest = most + (roots.length ? 1 : 0);
  return highest ? ROUND + highest * STEP + 8 : 0;
}

function drawArc(arc, base, up, words) {
  const apex = base + up * (ROUND + arc.level * STEP - 8), tip = base + up * 2, stem = tip + up * 2 * ARROW;
  const gap = apexWidth(arc), middle = arc.at;
  let line;
  if (arc.h === 0) {
    line = `M${arc.dx} ${apex - up * 8}V${stem}`;
  } else {
    const left = Math.min(arc.hx, arc.dx), right = Math.max(arc.hx, arc.dx), r = Math.min(ROUND, (right - left) / 2);
    const turn = apex - up * r, from = left === arc.dx ? stem : base, to = right === arc.dx ? stem : base;
    line = `M${left} ${from}V${turn}Q${left} ${apex} ${left + r} ${apex}H${Math.max(middle - gap / 2, left + r)}` +
      `M${Math.min(middle + gap / 2, right - r)} ${apex}H${right - r}Q${right} ${apex} ${right} ${turn}V${to}`;
  }
  const head = arc.h === 0 ? "ROOT" : words[arc.h - 1];
  const named = arc.label && !arc.dashed ? ` (${arc.label})` : "";
  const stroke = {d: line, fill: "none", stroke: "currentColor", "stroke-width": (0.8 + arc.p).toFixed(2)};
  if (arc.dashed) stroke["stroke-dasharray"] = "4 3";
  return element("g", {class: "arc" + (arc.dashed ? " other" : arc.wrong ? " wrong" : "")},
    element("title", {}, `${inLine(head)} → ${inLine(words[arc.d - 1])}${named} ${arc.p.toFixed(3)}${arc.wrong ? ", not in the gold tree" : ""}`),
    element("g", {opacity: (0.7 + 0.3 * arc.p).toFixed(2)}, element("path", stroke),
      element("path", {d: `M${arc.dx} ${tip}l${-ARROW} ${up * 2 * ARROW}h${2 * ARROW}z`, stroke: "none"})),
    element("text", {x: middle, y: apex + 0.35 * LABEL, "font-size": LABEL, "text-anchor": "middle"}, apexText(arc)));
}

function drawHeatMap(words, heads, marginals, threshold) {
  const n = words.length, nodes = n + 1, cell = 14, names = ["ROOT", ...words];
  const edge = Math.max(...names.map((name) => textWidth(name, 10))) + 8;
  const svg = element("svg", {width: Math.round(edge + n * cell + 10), height: Math.round(edge + nodes * cell + 10), role: "img",
    "font-size": 10, fill: "currentColor", class: "heat", "aria-label": "Probability of each head (rows) for each word (columns)"});
  let grid = "", itself = "";
  for (let i = 0; i <= nodes; i++) grid += `M${edge} ${edge + i * cell}h${n * cell}`;
  for (let i = 0; i <= n; i++) grid += `M${edge + i * cell} ${edge}v${nodes * cell}`;
  for (let i = 0; i < n; i++) itself += `M${edge + i * cell} ${edge + (i + 1) * cell}l${cell} ${cell}`;
  svg.append(element("path", {d: grid, fill: "none", stroke: "currentColor", "stroke-opacity": 0.12}),
    element("path", {d: itself, fill: "none", stroke: "currentColor", "stroke-opacity": 0.3}));
  names.forEach((name, i) => {
    const middle = edge + (i + 0.5) * cell;
    svg.append(element("text", {x: edge - 4, y: middle + 3.5, "text-anchor": "end"}, name));
    if (i) svg.append(element("text", {x: middle - cell + 3.5, y: edge - 4, transform: `rotate(-90 ${middle - cell + 3.5} ${edge - 4})`}, name));
  });
  for (let h = 0; h <= n; h++) for (let d = 1; d <= n; d++) {
    const p = marginals[h * nodes + d];
    if (p < threshold && heads[d - 1] !== h) continue;
    svg.append(element("g", {class: heads[d - 1] === h ? "chosen" : ""}, element("title", {}, `${inLine(names[h])} → ${inLine(names[d])} ${p.toFixed(3)}`),
      element("rect", {x: edge + (d - 1) * cell + 1, y: edge + h * cell + 1, width: cell - 2, height: cell - 2, "fill-opacity": p.toFixed(3)})));
  }
  return svg;
}

// ---------------------------------------------------------------------------------------------------------------
// The page.

const byId = (id) => document.getElementById(id);
const report = JSON.parse(byId("data").textContent);
const state = {shown: [], at: 0, threshold: 0.1, temperature: 1, tree: "best"};
const LONG = 60; // words: beyond, arcs are wider than any screen

// The scores of a sentence: column by column, only the n candidates of each word, as 32- or 64-bit numbers in base 64.
function scoresOf(sentence) {
  const n = sentence.words.length, bytes = Uint8Array.from(atob(sentence.scores), (c) => c.charCodeAt(0));
  const values = report.bits === 32 ? new Float32Array(bytes.buffer) : new Float64Array(bytes.buffer);
  const scores = new Float64Array((n + 1) * (n + 1)).fill(NONE);
  let at = 0;
  for (let d = 1; d <= n; d++) for (let h = 0; h <= n; h++) if (h !== d) scores[h * (n + 1) + d] = values[at++];
  return scores;
}

function solve(sentence, temperature) {
  const method = report.projective ? solveProjective : solveTrees;
  return method(scoresOf(sentence), sentence.words.length, temperature, report.root === "single");
}

function matches(sentence, query) {
  return !query || (sentence.id + " " + sentence.words.join(" ")).toLowerCase().includes(query);
}

function listSentences() {
  const query = byId("search").value.trim().toLowerCase(), only = byId("filter").value, order = byId("order").value;
  const current = state.shown[state.at];
  state.shown = report.sentences.filter((s) => matches(s, query) &&
    (only === "all" || (only === "wrong" && s.gold && s.gold.some((h, i) => h !== s.heads[i])) || (only === "mbr" && s.mbr)));
  const key = {uncertain: (s) => -s.entropy, word: (s) => -s.entropy / s.words.length, certain: (s) => s.entropy, long: (s) => -s.words.length, file: (s) => s.number}[order];
  state.shown.sort((a, b) => key(a) - key(b) || a.number - b.number);
  const most = Math.max(1e-9, ...report.sentences.map((s) => s.entropy));
  byId("list").replaceChildren(...state.shown.map((s, i) => {
    const bar = element("span", {class: "bar"}, element("span", {style: `width:${(100 * Math.sqrt(s.entropy / most)).toFixed(1)}%`}));
    const button = element("button", {type: "button", "data-at": i}, element("span", {class: "name"}, s.id),
      element("span", {class: "words", dir: "auto"}, s.words.join(" ")), bar, element("span", {class: "number"}, s.entropy.toFixed(2)));
    return element("li", {}, button);
  }));
  byId("count").textContent = `${state.shown.length} of ${report.sentences.length} sentences; bars: entropy, in nats`;
  show(Math.max(0, state.shown.indexOf(current)));
}

function show(at) {
  state.at = at;
  for (const button of byId("list").querySelectorAll("button")) {
    const here = Number(button.dataset.at) === at;
    if (here) { button.setAttribute("aria-current", "true"); button.scrollIntoView({block: "nearest"}); }
    else button.removeAttribute("aria-current");
  }
  render();
  byId("place").textContent = state.shown.length ? `${at + 1} of ${state.shown.length}` : "";
  byId("previous").disabled = at === 0;
  byId("next").disabled = at >= state.shown.length - 1;
  const backwards = state.shown[at] && state.shown[at].backwards;
  byId("picture").scrollLeft = backwards ? byId("picture").scrollWidth : 0; // to the first word
}

function move(step) {
  show(Math.max(0, Math.min(state.at + step, state.shown.length - 1)));
}

// The tree that was asked for, if this sentence has it; else the best one.
function treeShown(sentence) {
  const trees = {best: [sentence.heads, sentence.labels], mbr: sentence.mbr && [sentence.mbr, null],
    gold: sentence.gold && [sentence.gold, sentence.goldLabels]};
  const shown = trees[state.tree] ? state.tree : "best";
  for (const input of document.querySelectorAll("input[name=tree]")) {
    input.disabled = !trees[input.value];
    input.parentElement.title = trees[input.value] ? "" : input.value === "mbr" ? "it is the best tree" : "there is none for this sentence";
    input.checked = input.value === shown;
  }
  return trees[shown];
}

function render() {
  const sentence = state.shown[state.at];
  byId("sentence").hidden = !sentence;
  if (!sentence) return;
  const solved = solve(sentence, state.temperature);
  const [heads, labels] = treeShown(sentence);
  byId("title").textContent = sentence.id;
  byId("text").textContent = sentence.words.join(" ");
  const long = sentence.words.length > LONG;
  byId("picture").replaceChildren(long ? drawHeatMap(sentence.words, heads, solved.marginals, state.threshold)
    : drawTree(sentence.words, heads, labels, solved.marginals, state.threshold, sentence.gold, sentence.backwards));
  byId("legend").textContent = long ? "Rows are heads, columns are words: the stronger, the likelier. Frames: the tree."
    : "Above: the tree" + (sentence.gold ? ", red where it is not the gold tree" : "") +
      ". Below, dashed: other heads and their probability. Bars: entropy of a word's head.";
  byId("facts").textContent = facts(sentence, solved);
  byId("compare").textContent = comparison(sentence);
  showBest(sentence, solved);
}

function facts(sentence, solved) {
  const n = sentence.words.length;
  let expected = 0, least = 2, word = 0;
  for (let d = 1; d <= n; d++) {
    const p = solved.marginals[sentence.heads[d - 1] * (n + 1) + d];
    expected += p;
    if (p < least) { least = p; word = d; }
  }
  const p = Math.exp(sentence.best[0][0] / state.temperature - solved.logZ);
  return `${n} words. The best tree has probability ${p < 1e-4 ? p.toExponential(1) : p.toFixed(4)}; expected share of right heads ${(expected / n).toFixed(3)}. ` +
    `Least certain: the head of ${numbered(sentence, word)}, ${least.toFixed(3)}.`;
}

// A word in running text, with its number below it: a comma that is a word is then seen to be one.
function numbered(sentence, node) {
  return node === 0 ? "ROOT" : inLine(sentence.words[node - 1]) + [...String(node)].map((digit) => "₀₁₂₃₄₅₆₇₈₉"[digit]).join("");
}

function difference(sentence, heads) {
  const changed = heads.map((h, i) => [h, i]).filter(([h, i]) => h !== sentence.heads[i]);
  return changed.map(([h, i]) => `${numbered(sentence, h)} → ${numbered(sentence, i + 1)}`).join("; ");
}

function comparison(sentence) {
  const parts = [];
  if (sentence.gold) {
    const wrong = difference(sentence, sentence.gold);
    parts.push(wrong ? `Gold differs from the best tree: ${wrong}.` : "The best tree is the gold tree.");
  }
  parts.push(sentence.mbr ? `The tree with most expected right heads (MBR) differs: ${difference(sentence, sentence.mbr)}.`
    : "The tree with most expected right heads (MBR) is the best tree.");
  return parts.join(" ");
}

function showBest(sentence, solved) {
  let sum = 0;
  byId("best").replaceChildren(...sentence.best.map(([score, changes], i) => {
    const heads = sentence.heads.slice();
    for (const [dep, head] of changes) heads[dep - 1] = head;
    const p = Math.exp(score / state.temperature - solved.logZ);
    sum += p;
    const gold = sentence.gold && heads.every((h, j) => h === sentence.gold[j]) ? " (gold)" : "";
    return element("tr", {}, ...[i + 1, (difference(sentence, heads) || "the best tree") + gold, p.toFixed(4), Math.min(sum, 1).toFixed(4)]
      .map((cell) => element("td", {}, String(cell))));
  }));
}

// Bins of ten: words, sum of probabilities, how many right.
function calibrationAt(temperature) {
  const bins = Array.from({length: 10}, () => [0, 0, 0]);
  for (const sentence of report.sentences) {
    if (!sentence.gold) continue;
    const n = sentence.words.length, solved = solve(sentence, temperature);
    sentence.heads.forEach((h, i) => {
      const p = Math.min(solved.marginals[h * (n + 1) + i + 1], 1), bin = bins[Math.min(Math.floor(p * 10), 9)];
      bin[0]++; bin[1] += p; bin[2] += h === sentence.gold[i] ? 1 : 0;
    });
  }
  return bins;
}

function drawCalibration(bins) {
  const size = 260, edge = 40, at = (v) => edge + v * (size - edge - 10), down = (v) => size - at(v);
  const svg = element("svg", {width: size, height: size, role: "img", "font-size": 10, fill: "currentColor", class: "curve",
    "aria-label": "Calibration: probability said against share of right heads"});
  svg.append(element("path", {d: `M${at(0)} ${down(0)}H${at(1)}M${at(0)} ${down(0)}V${down(1)}`, stroke: "currentColor", fill: "none"}),
    element("path", {d: `M${at(0)} ${down(0)}L${at(1)} ${down(1)}`, stroke: "currentColor", "stroke-dasharray": "3 3", opacity: 0.5}));
  let line = "", error = 0, words = 0;
  for (const [count] of bins) words += count;
  for (const [count, said, right] of bins) {
    if (!count) continue;
    const x = at(said / count), y = down(right / count);
    error += Math.abs(right - said) / Math.max(words, 1);
    line += `${line ? "L" : "M"}${x} ${y}`;
    svg.append(element("g", {}, element("title", {}, `said ${(said / count).toFixed(3)}, right ${(right / count).toFixed(3)}, ${count} words`),
      element("circle", {cx: x, cy: y, r: 2 + 5 * Math.sqrt(count / Math.max(words, 1)), class: "dot"})));
  }
  svg.append(element("path", {d: line || "M0 0", fill: "none", class: "line"}),
    element("text", {x: at(0.5), y: size - 6, "text-anchor": "middle"}, "probability of the head"),
    element("text", {x: 12, y: down(0.5), "text-anchor": "middle", transform: `rotate(-90 12 ${down(0.5)})`}, "share that is right"));
  for (const tick of [0, 0.5, 1])
    svg.append(element("text", {x: at(tick), y: down(0) + 12, "text-anchor": "middle"}, String(tick)),
      element("text", {x: at(0) - 4, y: down(tick) + 3.5, "text-anchor": "end"}, String(tick)));
  byId("curve").replaceChildren(svg);
  byId("error").textContent = `expected calibration error ${error.toFixed(4)} on ${words} words at temperature ${state.temperature.toFixed(2)}`;
}

function listen() {
  byId("list").addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (button) show(Number(button.dataset.at));
  });
  byId("search").addEventListener("input", listSentences);
  for (const id of ["filter", "order"]) byId(id).addEventListener("change", listSentences);
  byId("threshold").addEventListener("input", (event) => {
    state.threshold = Number(event.target.value);
    byId("threshold-value").textContent = state.threshold.toFixed(2);
    render();
  });
  byId("temperature").addEventListener("input", (event) => {
    state.temperature = Math.pow(10, Number(event.target.value)); // from a tenth to ten
    byId("temperature-value").textContent = state.temperature.toFixed(2);
    render();
  });
  byId("temperature").addEventListener("change", () => { if (report.calibration) drawCalibration(calibrationAt(state.temperature)); });
  for (const input of document.querySelectorAll("input[name=tree]"))
    input.addEventListener("change", () => { state.tree = input.value; render(); });
  byId("previous").addEventListener("click", () => move(-1));
  byId("next").addEventListener("click", () => move(1));
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.target.blur();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.matches("input[type=search], select")) return;
    const arrows = !event.target.matches("input"); // sliders and choices have their own use for them
    if (event.key === "j" || (arrows && event.key === "ArrowDown")) move(1);
    else if (event.key === "k" || (arrows && event.key === "ArrowUp")) move(-1);
    else if (event.key === "/") byId("search").focus();
    else return;
    event.preventDefault();
  });
}

listen();
listSentences();
if (report.calibration) { byId("calibration").hidden = false; drawCalibration(report.calibration); }
