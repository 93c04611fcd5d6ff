"use strict";
// The editor: a text field, with its colours and marks on a sheet behind it. What it knows, the server's language says.
const text = document.getElementById("text"), shadow = document.getElementById("shadow"), numbers = document.getElementById("numbers");
const words = document.getElementById("words"), faults = document.getElementById("faults"), priceBox = document.getElementById("price"), about = document.getElementById("about");
const COLOURS = /(#.*)|("(?:[^"\\\n]|\\.)*"?)|\b(private|release|dataset|described|protecting|budget|select|from|where|group|by|groupby|with|epsilon|delta|rho|as|and|or|not|in|if|elif|else|for|def|return|use|param|join|on|having|order|among|informed|trained|wrt|true|false|none|assert|print|while|try|jointly|over)\b/g;
let marks = [], offered = [], chosen = -1, typed = "", checking = 0, checked = 0, offering = 0;

const lines = () => text.value.split("\n");
function place(at = text.selectionStart) {
  const before = text.value.slice(0, at).split("\n");
  return {line: before.length - 1, column: before.at(-1).length};
}
const offset = (line, column) => lines().slice(0, line).reduce((sum, one) => sum + one.length + 1, 0) + column;

function coloured(line) {
  const parts = [];
  let last = 0;
  for (const match of line.matchAll(COLOURS)) {
    parts.push(line.slice(last, match.index), make(match[1] ? "s" : match[2] ? "i" : "b", match[0]));
    last = match.index + match[0].length;
  }
  parts.push(line.slice(last));
  return parts.filter(one => one !== "");
}

function paint() {
  const all = lines();
  shadow.replaceChildren(...all.flatMap((line, k) => {
    const mine = marks.filter(one => one.line <= k + 1 && (one.end_line || one.line) >= k + 1).toSorted((a, b) => a.column - b.column);
    const parts = [];
    let last = 0;
    for (const one of mine) {
      const from = Math.max(last, one.line === k + 1 ? one.column - 1 : 0), to = one.end_line === k + 1 ? Math.min(one.end_column - 1, line.length) : line.length;
      if (from > line.length || to <= from) continue;
      parts.push(...coloured(line.slice(last, from)), classed(make("mark", line.slice(from, to)), one.kind === "Warning" ? "hint" : ""));
      last = to;
    }
    return [...parts, ...coloured(line.slice(last)), "\n"];
  }));
  numbers.textContent = all.map((_, k) => k + 1).join("\n");
  text.setAttribute("aria-invalid", String(marks.some(one => one.kind !== "Warning")));
  scrolled();
}
function scrolled() { shadow.scrollTop = numbers.scrollTop = text.scrollTop; shadow.scrollLeft = text.scrollLeft; numbers.style.height = `${text.clientHeight}px`; }

function goTo(one) {
  text.focus();
  const line = Math.min(one.line, lines().length) - 1, from = offset(line, Math.min(one.column - 1, lines()[line].length));
  text.setSelectionRange(from, one.end_line === one.line ? Math.min(offset(line, one.end_column - 1), text.value.length) : from);
}
window.goTo = goTo;
let priced = null;
window.reprice = () => { if (priced) priceBox.replaceChildren(text.value === window.answeredText ? make("p", "Costs nothing while the data stay as they are: this text was answered, and is answered again as it was.") : costs(priced)); };

function replace(from, to, by) {
  text.focus();
  text.setSelectionRange(from, to);
  if (!document.execCommand("insertText", false, by)) text.setRangeText(by, from, to, "end");  // the first can be undone
  changed();
}
function insert(by, first) {
  if (first) by = by.split("\n").filter(line => line && !text.value.includes(line)).map(line => `${line}\n`).join("");
  if (!by) { text.focus(); return; }
  if (first) replace(0, 0, by); else replace(text.selectionStart, text.selectionEnd, by);
}

function changed() {
  marks = [];
  const ch = parseFloat(getComputedStyle(text).fontSize) * .62;
  if (place().column * ch < text.clientWidth - 40) text.scrollLeft = 0;
  paint();
  sessionStorage.setItem("program", text.value);
  clearTimeout(checking);
  checking = setTimeout(check, 350);
}

// One question at a time, the last one of each kind: the server answers few at once.
let asking = Promise.resolve();
function ask(how, body, still) {
  const mine = asking.then(() => still() ? call(how, body) : null);
  asking = mine.catch(() => null);
  return mine;
}

async function check() {
  const mine = ++checked, program = text.value;
  if (!program.trim()) { faults.replaceChildren(); priceBox.textContent = "The price stands here as you write."; return; }
  let given;
  try { given = await ask("POST /api/check", {program}, () => mine === checked); } catch (error) {
    priceBox.textContent = error.message;
    if (error.busy || error.away) { clearTimeout(checking); checking = setTimeout(check, 2000); }
    return;
  }
  if (!given || mine !== checked || program !== text.value) return;
  marks = [...given.errors, ...(given.warnings || []).map(one => ({...one, kind: "Warning"}))].filter(one => one.line);
  paint();
  faults.replaceChildren(errors([...given.errors, ...(given.warnings || []).map(one => ({...one, kind: "Warning"}))], goTo));
  priced = given.ok ? given.cost : null;
  window.reprice();
  if (!priced) priceBox.textContent = "The price stands here when the mistakes are mended.";
}

function close() { words.hidden = true; offered = []; chosen = -1; text.removeAttribute("aria-activedescendant"); offering++; }

async function offer(asked) {
  const at = place(), mine = ++offering;
  const before = lines()[at.line].slice(0, at.column);
  if (!asked && !/[\w.{"]$/.test(before)) { close(); return; }
  let given;
  try { given = await ask("POST /api/editor", {program: text.value, ask: "completions", ...at}, () => mine === offering); } catch { return; }
  if (!given || mine !== offering) return;
  offered = given.words || [];
  typed = given.typed;
  if (!offered.length || (!asked && !typed && !/[.{"]$/.test(before))) { close(); return; }
  words.replaceChildren(...offered.map((one, k) => {
    const item = Object.assign(make("li", one.word, make("span", one.kind)), {id: `word${k}`, onmousedown: event => { event.preventDefault(); take(k); }});
    item.setAttribute("role", "option");
    item.setAttribute("aria-selected", "false");
    return item;
  }));
  chosen = -1;
  const ruler = Object.assign(make("span"), {textContent: before.slice(0, before.length - typed.length) || "\u200b"}), sheet = make("pre", null, ruler);
  Object.assign(sheet.style, {position: "absolute", visibility: "hidden", padding: "0", border: "0"});
  text.parentNode.append(sheet);
  const line = parseFloat(getComputedStyle(text).lineHeight), inset = parseFloat(getComputedStyle(text).paddingLeft);
  words.hidden = false;
  const left = Math.min(inset + ruler.offsetWidth - text.scrollLeft, text.clientWidth - words.offsetWidth);
  words.style.left = `${Math.max(0, left)}px`;
  words.style.top = `${inset + (at.line + 1) * line - text.scrollTop + 2}px`;
  sheet.remove();
}

function choose(k) {
  chosen = (k + offered.length) % offered.length;
  [...words.children].forEach((item, n) => item.setAttribute("aria-selected", String(n === chosen)));
  words.children[chosen].scrollIntoView({block: "nearest"});
  text.setAttribute("aria-activedescendant", `word${chosen}`);
}
function take(k) {
  const end = text.selectionStart, word = offered[k].word;
  close();
  replace(end - typed.length, end, word);
}

// The documentation of a word, as paragraphs of text and code.
function described(markdown) {
  return markdown.split(/```\w*\n?/).flatMap((part, k) => k % 2 ? [make("pre", part.trimEnd())] : part.split(/\n{2,}/).filter(one => one.trim() && one.trim() !== "---").map(one => make("p", one.replace(/[*`]/g, "").trim())));
}
async function explain(asked) {
  const given = await ask("POST /api/editor", {program: text.value, ask: "hover", ...place()}, () => document.activeElement === text).catch(() => null);
  if (!given) return;
  const parts = [...(given.signature ? [make("p", given.signature)] : []), ...described(given.hover || "")];
  about.hidden = !parts.length && !asked;
  about.replaceChildren(...(parts.length ? parts : [make("p", "Nothing is known of this place.")]));
  if (asked) tell(about.textContent.slice(0, 300));
}

const examples = document.getElementById("examples");
if (examples) call("GET /api/examples").then(({examples: all}) => {
  examples.append(...all.map(one => make("option", one.name)));
  const show = name => { const one = all.find(each => each.name === name); if (one) { replace(0, text.value.length, one.program); text.setSelectionRange(0, 0); } };
  examples.onchange = () => show(examples.value);
  show(new URLSearchParams(location.search).get("example"));
}, failed);

text.oninput = event => { changed(); if (event.inputType === "insertText" || event.inputType === "deleteContentBackward" && !words.hidden) offer(false); else close(); };
text.onscroll = () => { scrolled(); if (!words.hidden) close(); };
text.onblur = () => { text.scrollLeft = 0; setTimeout(() => document.activeElement === text || close(), 150); };
let resting = 0;
text.onclick = text.onkeyup = () => { clearTimeout(resting); if (!words.hidden) return; resting = setTimeout(() => document.activeElement === text && explain(false), 700); };
text.onkeydown = event => {
  const open = !words.hidden, key = event.key;
  if (key === "Enter" && (event.ctrlKey || event.metaKey)) { close(); text.form.requestSubmit(); }
  else if (key === " " && event.ctrlKey) offer(true);
  else if (key === "F1") explain(true);
  else if (key === "F8") { if (marks.length) { const at = place(); goTo(marks.find(one => one.line - 1 > at.line || one.line - 1 === at.line && one.column - 1 > at.column) || marks[0]); } else tell("There are no mistakes."); }
  else if (open && key === "ArrowDown") choose(chosen + 1);
  else if (open && key === "ArrowUp") choose(chosen < 0 ? -1 : chosen - 1);
  else if (open && (key === "Enter" || key === "Tab") && chosen >= 0) take(chosen);
  else if (open && key === "Escape") close();
  else if (key === "Enter" && !event.shiftKey) { const line = lines()[place().line], indent = /^\s*/.exec(line)[0] + (/:\s*$/.test(line.slice(0, place().column)) ? "    " : ""); close(); replace(text.selectionStart, text.selectionEnd, `\n${indent}`); }
  else return;
  event.preventDefault();
};
document.getElementById("tidy").onclick = () => call("POST /api/editor", {program: text.value, ask: "format", line: 0, column: 0}).then(given => replace(0, text.value.length, given.text), failed);

const earlier = new URLSearchParams(location.search).get("from");
if (earlier && /^[0-9a-f]+$/.test(earlier)) call(`GET /api/runs/${earlier}`).then(run => replace(0, text.value.length, run.program), failed);
else {
  const before = sessionStorage.getItem("program") || "";
  if (text.value !== before) text.value = before + text.value;  // what was typed before this ran stands behind it
}
new ResizeObserver(scrolled).observe(text);
changed();
