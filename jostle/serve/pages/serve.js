"use strict";
// Everything is text: nothing that comes from the server or a program becomes markup.
const meta = name => document.querySelector(`meta[name=${name}]`).content;
const csrf = meta("csrf"), role = meta("role"), owner = role === "owner";
const said = document.getElementById("said");

// What turns the order of a line, or is shown as nothing, stands as a sign, as in `jostle.trace.text.clean`.
const hidden = /(?![\n\t ])[\p{C}\p{Z}\p{Default_Ignorable_Code_Point}]/gu;
const sign = code => code < 32 ? String.fromCodePoint(0x2400 + code) : code === 127 ? "\u2421" : "\ufffd";
const shown = text => String(text).replace(hidden, one => sign(one.codePointAt(0)));

function make(tag, text, ...children) {
  const node = document.createElement(tag);
  if (text !== null && text !== undefined) node.textContent = shown(text);
  node.append(...children.map(one => typeof one === "string" ? shown(one) : one));
  return node;
}
// A sentence of the language's, its code as code.
const prose = sentence => sentence.split("`").map((part, k) => k % 2 ? make("code", part) : shown(part));
const classed = (node, name) => Object.assign(node, {className: name});
const link = (text, href) => Object.assign(make("a", text), {href});

async function call(how, body) {
  const [method, path] = how.split(" ");
  let answer;
  try {
    answer = await fetch(path, {
      method, credentials: "same-origin", headers: {"Content-Type": "application/json", "X-CSRF": csrf},
      body: method === "GET" ? undefined : JSON.stringify(body || {}),
    });
  } catch { throw Object.assign(new Error("The server cannot be reached."), {away: true}); }
  if (answer.status === 401) location.href = "/login";
  const given = await answer.json().catch(() => { throw Object.assign(new Error("The server is busy."), {away: true}); });  // all its connections are taken
  if (!answer.ok) throw Object.assign(new Error([given.error.message, given.error.help].filter(Boolean).join(". ")), {busy: answer.status === 429, away: answer.status === 503});
  return given;
}

function tell(text, bad) {
  said.replaceChildren(...prose(text));
  said.className = bad ? "bad" : "";
  said.tabIndex = said.scrollHeight > said.clientHeight ? 0 : -1;  // what is long is scrolled by keys
}
const failed = error => tell(error.message, true);

function table(titles, rows, name) {
  const numeric = one => typeof one === "number";
  const right = titles.map((_, k) => rows.length > 0 && rows.every(row => numeric(row[k]) || row[k] && row[k].number));
  const cell = (one, k) => {
    const node = one instanceof Node ? make("td", null, one) : make("td", one && one.number ? one.text : one ?? "");
    return right[k] ? classed(node, "number") : node;
  };
  const head = make("tr", null, ...titles.map((title, k) => Object.assign(make("th", title), {scope: "col", className: right[k] ? "number" : ""})));
  const box = classed(make("div", null, make("table", null, make("thead", null, head), make("tbody", null, ...rows.map(row => make("tr", null, ...row.map(cell)))))), "table");
  box.tabIndex = 0;
  box.setAttribute("role", "region");
  box.setAttribute("aria-label", shown(name || "table"));
  return box;
}

// What was spent of a budget and, striped, what a program would add.
function bar(budget, more = 0) {
  const total = Number(budget.total), spent = Number(budget.spent), tidy = x => String(Number(x.toPrecision(6)));
  const ever = budget.for_ever ? `, ${tidy(Number(budget.all_periods))} of ${tidy(Number(budget.for_ever))} in all` : "";
  const words = `${budget.unit} ${tidy(spent)} of ${tidy(total)} spent${budget.each ? ` each ${budget.each}` : ""}${ever}` + (more ? `, ${spent ? "up to " : ""}${tidy(spent + more)} with this program` : "");
  const box = classed(make("div"), "bar");
  for (const part of [spent, Math.min(more, total - spent)]) box.append(Object.assign(make("span"), {}));
  [...box.children].forEach((one, k) => { one.style.width = `${100 * Math.max(0, k ? Math.min(more, total - spent) : spent) / total}%`; });
  box.setAttribute("role", "img");
  box.setAttribute("aria-label", words);
  return make("div", null, make("div", words), box);
}

function button(text, act, about) {
  const node = Object.assign(make("button", text), {type: "button", onclick: act, className: "small"});
  if (about) node.setAttribute("aria-label", `${text} ${about}`);
  return node;
}
const asks = (text, how, body, about) => button(text, () => call(how, body).then(given => { announce(given); refresh(); }, failed), about);

function announce(given) {
  if (given.link && given.name === document.querySelector("nav a[href='/account']").textContent) location.href = given.link;
  else if (given.link) tell(`Send this link to ${given.name}; it works once: ${location.origin}${given.link}`);
  else if (given.token) tell(`Copy this token now, it is not shown again: ${given.token}`);
  else tell(given.notes || "Done.");
}

const when = seconds => new Date(seconds * 1000).toLocaleString(undefined, {dateStyle: "medium", timeStyle: "short"});
let budgets = {};

function grantLine(grant) {
  const limits = [grant.per_program && `at most ${grant.per_program} a program`, grant.per_week && `at most ${grant.per_week} in seven days`];
  const words = [grant.until && `until ${grant.until}`, ...limits, grant.state, grant.review && "each program waits for a reviewer"].filter(Boolean).join(", ");
  const line = classed(make("div"), role === "analyst" ? "" : "grant");
  line.append(...(role === "analyst" ? [] : [make("strong", grant.analyst)]), make("div", words), grant.budget ? bar(grant.budget) : classed(make("div", `under the grant on ${grant.persons}`), "hint"));
  const about = `the grant of ${grant.analyst}`;
  if (owner && grant.state !== "closed") line.append(
    asks(grant.state === "frozen" ? "Open" : "Freeze", "POST /api/status", {name: grant.name, status: grant.state === "frozen" ? "" : "frozen"}, about), " ",
    button("Close", () => confirm(`End the grant of ${grant.analyst} for good? What is left of it can be granted to others.`) && call("POST /api/status", {name: grant.name, status: "closed"}).then(given => { announce(given); refresh(); }, failed), about));
  if (role === "auditor") line.append(verifier(grant.name));
  return line;
}

// The line that opens a dataset, behind those that open the tables of its persons.
function opening(data, all) {
  const persons = all.find(one => one.name === data.persons), line = `private ${data.name} = dataset("${data.name}")\n`;
  return persons ? opening(persons, all) + line : line;
}

const verifier = name => button("Verify", () => call(`GET /api/ledger/${encodeURIComponent(name)}`).then(given => tell(`The history of ${name} holds: ${given.verified} entries, up to ${given.head.slice(0, 16)}.`), failed), name);

const shows = {
  async datasets(box) {
    const {datasets} = await call("GET /api/datasets");
    budgets = Object.fromEntries(datasets.flatMap(data => data.grants.filter(grant => grant.budget).map(grant => [data.name, grant.budget])));
    const none = owner ? "No data are registered yet: put a file into the folder “data”, then register it here." : "You have no grant yet; ask the owner of the data for one.";
    if (!datasets.length) box.append(classed(make("p", role === "analyst" || owner ? none : "No data are registered yet."), "card"));
    for (const data of datasets) {
      const card = classed(make("article", null, make(document.getElementById("text") ? "h3" : "h2", data.name + (data.state ? ` (${data.state})` : "")), classed(make("p", `protects ${data.protects}`), "hint")), "card");
      if (data.budget) card.append(bar(data.budget));
      else if (data.persons && role !== "analyst") card.append(make("div", `under the budget of ${data.persons}`));
      if (owner) card.append(asks(data.state ? "Open" : "Freeze", "POST /api/status", {name: data.name, status: data.state ? "" : "frozen"}, data.name));
      if (role === "auditor") card.append(verifier(data.name));
      card.append(...data.grants.map(grantLine));
      if (document.getElementById("text")) card.append(button("Write its line", () => insert(opening(data, datasets), true), data.name));
      const columns = data.columns.map(one => [one.name, one.values + (one.missing ? "" : ", never missing")]);
      if (columns.length) card.append(make("details", null, make("summary", `${columns.length} columns`), table(["column", "values"], columns, `columns of ${data.name}`)));
      box.append(card);
    }
    options("datasets", datasets.map(data => data.name));
  },
  async accounts(box) {
    const {accounts} = await call("GET /api/accounts");
    box.append(table(["name", "role", "", ""], accounts.map(one => [one.name, one.role + (one.active ? "" : ", closed") + (one.has_password ? "" : ", no password yet"),
      asks("New link", `POST /api/accounts/${one.name}`, {}, `for ${one.name}`), asks(one.active ? "Close" : "Open", `POST /api/accounts/${one.name}`, {active: !one.active}, one.name)]), "accounts"));
  },
  async tokens(box) {
    const {tokens} = await call("GET /api/tokens");
    if (tokens.length) box.append(table(["for", "scope", "until", ""], tokens.map(one => [one.label, one.scope, when(one.until), asks("Revoke", `DELETE /api/tokens/${one.number}`, {}, one.label)]), "tokens"));
  },
  async history(box) {
    const {runs} = await call("GET /api/runs");
    if (!runs.length) box.append(make("p", "You have handed nothing in yet."));
    else box.append(table(["program", "handed in", "state", "cost", "note"], runs.map(one => [link(one.title || "(empty)", `/runs/${one.id}`), when(one.accepted),
      one.state === "done" ? (one.ok ? "answered" : "failed") : one.state === "returned" ? "sent back" : one.state, price(one.cost), one.note]), "your runs"));
  },
  async reviews(box) {
    const {runs} = await call("GET /api/reviews");
    if (!runs.length) box.append(make("p", "Nothing waits."));
    for (const one of runs) {
      const note = Object.assign(make("textarea"), {rows: 2, maxLength: 2000});
      const decide = decision => () => call(`POST /api/reviews/${one.id}`, {decision, note: note.value, digest: one.digest}).then(given => { tell(`${one.analyst}'s program: ${given.state}.`); refresh(); }, failed);
      const card = classed(make("article", null, make("h2", `A program of ${one.analyst}`), classed(make("p", `handed in ${when(one.accepted)}, SHA-256 ${one.digest.slice(0, 16)}…`), "hint")), "card");
      card.append(costs(one.cost), make("h3", "Program"), focusable(make("pre", one.program), "program"));
      if (Object.keys(one.settings).length) card.append(make("p", `with ${JSON.stringify(one.settings)}`));
      card.append(make("h3", "What it changes"), one.difference === null ? make("p", "It is the first of this analyst.") : one.difference.length ? difference(one.difference) : make("p", "Nothing: it is the text that was approved last."));
      card.append(make("h3", "A simulated answer"));
      if (one.simulated === null) card.append(make("p", "It is not there yet, or did not end in time."));
      else card.append(answered(one.simulated), link("The trace of the simulation", `/reviews/${one.id}/trace`));
      card.append(make("label", "Note to the analyst", note), classed(make("p", null,
        classed(button("Approve", decide("approved")), "main"), button("Send back", decide("returned")), button("Refuse", decide("refused"))), "actions"));
      box.append(card);
    }
  },
  async audit(box) {
    const {audit, verified, head} = await call("GET /api/audit");
    box.append(classed(make("p", `The chain holds: ${verified} entries, up to ${head}`), "good"), make("p", null, Object.assign(link("Download the log", "/api/audit"), {download: "log.json"}), " and test it anywhere: ", make("code", "jostle serve --verify log.json")));
    const rest = more => Object.entries(more).map(([k, v]) => `${k} ${typeof v === "string" ? v : JSON.stringify(v)}`).join(", ");
    box.append(table(["", "time", "who", "did", "what", "hash"], audit.toReversed().slice(0, 500).map(({number, content: {time, by, did, ...more}, hash}) => [number, time.slice(0, 19), by, did, classed(make("span", rest(more).slice(0, 300)), "hint"), hash.slice(0, 12)]), "log"));
  },
};

function options(what, names) {
  for (const select of document.querySelectorAll(`[data-options=${what}]`)) {
    const before = select.value;
    if (select.tagName === "DATALIST") { select.replaceChildren(...names.map(name => Object.assign(make("option"), {value: name}))); continue; }
    select.replaceChildren(select.options[0], ...names.map(name => make("option", name)));
    select.value = names.includes(before) ? before : names.length === 1 ? names[0] : "";
  }
}

function refresh() {
  const all = [...document.querySelectorAll("[data-show]")].map(box => {
    const fresh = make("div");
    return shows[box.dataset.show](fresh).then(() => box.replaceChildren(fresh), failed);
  });
  if (owner && document.querySelector("[data-options]")) {
    call("GET /api/accounts").then(({accounts}) => options("analysts", accounts.filter(one => one.role === "analyst" && one.active).map(one => one.name)), failed);
    call("GET /api/files").then(({files}) => options("files", files), failed);
  }
  return Promise.all(all);
}

function difference(lines) {
  const kind = line => line.startsWith("+") ? "plus" : line.startsWith("-") ? "minus" : "";
  return focusable(classed(make("pre", null, ...lines.map(line => classed(make("span", line || " "), kind(line)))), "diff"), "difference");
}
function focusable(node, name) { node.tabIndex = 0; node.setAttribute("role", "region"); node.setAttribute("aria-label", shown(name)); return node; }

const price = cost => cost.map(one => `${one.exact ? "" : "at most "}${one.asks === null ? "all that is left" : `${one.unit} ${one.asks}`} of ${one.source}`).join(", ");

// What a program costs each of its sources, beside what is left of the grant.
function costs(all) {
  const cost = all.filter(one => one.asks !== "0");
  if (!cost.length) return make("p", "Costs nothing.");
  const box = make("div", null, make("p", `Costs ${price(cost)}.`));
  for (const one of cost) {
    const budget = budgets[one.source];
    if (!budget || one.asks === null || budget.unit !== one.unit) continue;
    const left = Number(budget.total) - Number(budget.spent);
    if (Number(one.asks) > left + 1e-12) box.append(classed(make("p", `More than the ${budget.unit} ${Number(left.toPrecision(6))} that is left of your grant: it will be refused, but for what was answered before, which is free.`), "bad"));
    box.append(bar(budget, Number(one.asks)));
    if (Number(budget.spent)) box.append(classed(make("p", "What was answered before is given again for nothing."), "hint"));
  }
  return box;
}

function errors(list, go) {
  return make("div", null, ...list.map(one => {
    const warns = one.kind === "Warning";
    const box = classed(make("div", null, make("p", null, make("strong", one.line ? `Line ${one.line}: ` : ""), ...prose(one.message))), warns ? "fault warning" : "fault");
    if (one.help) box.append(classed(make("p", null, ...prose(one.help)), "hint"));
    if (go && one.line) box.append(button(`Go to line ${one.line}`, () => go(one)));
    return box;
  }));
}

// A number with its ±, to the digits that its error leaves: what is beyond them is noise.
function rounded(number, error) {
  if (typeof number !== "number" || typeof error !== "number" || !(error > 0)) return typeof number === "number" ? Number(number.toPrecision(8)) : number;
  const digits = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(error))));
  const plain = x => Math.abs(x) >= 1e15 ? x.toPrecision(6) : x.toLocaleString("en", {minimumFractionDigits: 0, maximumFractionDigits: digits, useGrouping: false});
  return {number: true, text: `${plain(number)} ± ${plain(Number(error.toPrecision(2)))}`};
}

function drawn(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  if (text !== undefined) node.textContent = shown(text);
  return node;
}

// Round numbers for an axis, four or so between its ends.
function ticks(low, high) {
  const rough = (high - low) / 4, ten = 10 ** Math.floor(Math.log10(rough)), size = ten * [1, 2, 5, 10].find(m => m * ten >= rough * .999);
  return Array.from({length: Math.floor(high / size) - Math.ceil(low / size) + 1}, (_, k) => Number(((Math.ceil(low / size) + k) * size).toPrecision(12)));
}

// Bars with whiskers: a value for each label, with its 95 % error where one is known.
function chart(title, labels, values, margins) {
  const low = Math.min(0, ...values.map((v, k) => v - (margins[k] || 0))), high = Math.max(0, ...values.map((v, k) => v + (margins[k] || 0)));
  const span = high - low || 1, axis = ticks(low, low + span), wide = Math.min(640, Math.max(300, innerWidth - 48)), tall = 240, head = 30, foot = 26;
  const left = 14 + 7 * Math.max(...axis.map(v => String(v).length)), step = (wide - left - 8) / values.length;
  const y = v => head + (tall - head - foot) * (high - v) / span;
  const svg = drawn("svg", {viewBox: `0 0 ${wide} ${tall}`, width: wide, height: tall, class: "chart", role: "img"});
  svg.append(drawn("title", {}, `${title}: ${labels.map((one, k) => `${one} ${Number(values[k].toPrecision(5))}`).slice(0, 12).join(", ")}`));
  svg.append(drawn("text", {x: 0, y: 12}, title));
  for (const v of axis) svg.append(drawn("path", {d: `M${left} ${y(v)}H${wide}`, class: v ? "grid" : "ink", fill: "none"}), drawn("text", {x: left - 6, y: y(v) + 4, "text-anchor": "end"}, v));
  const every = Math.max(1, Math.ceil(values.length / Math.min(16, wide / 40)));
  values.forEach((v, k) => {
    const x = left + step * (k + .5), half = Math.min(48, Math.max(.5, step * .35)), from = y(Math.max(0, v)), to = y(Math.min(0, v));
    svg.append(drawn("rect", {x: x - half, y: from, width: 2 * half, height: Math.max(.5, to - from), class: "part"}));
    if (margins[k] > 0) svg.append(drawn("path", {d: `M${x} ${y(v - margins[k])}V${y(v + margins[k])}`, class: "ink", "stroke-width": 1.5, fill: "none"}));
    if (k % every === 0) {
      const room = Math.max(3, Math.floor(step * every / 7)), name = String(labels[k]);
      svg.append(drawn("text", {x, y: tall - 8, "text-anchor": "middle"}, name.length > room ? `${name.slice(0, room - 1)}…` : name));
    }
  });
  return svg;
}

function value(name, released, margin) {
  const width = margin && margin.error;
  if (typeof released === "number") { const one = rounded(released, width); return classed(make("p", `${name} = ${one.text ?? one}`), "value"); }
  const list = Array.isArray(released) && released.length;
  if (list && released.every(row => row && typeof row === "object" && !Array.isArray(row))) {
    const names = Object.keys(released[0]);
    const error = (k, one) => { const row = Array.isArray(margin) ? margin[k] : null; return (row && row[one] && row[one].error) || 0; };
    const box = make("div", null, make("h3", name), table(names, released.map((row, k) => names.map(one => rounded(row[one], error(k, one)))), name));
    const noisy = names.filter(one => released.every(row => typeof row[one] === "number") && released.some((_, k) => error(k, one)));
    const keys = names.filter(one => !noisy.includes(one));
    if (released.length > 1 && released.length <= 400 && keys.length) for (const one of noisy.slice(0, 4)) box.append(chart(`${one} by ${keys.join(", ")}`, released.map(row => keys.map(key => row[key]).join(" ")), released.map(row => row[one]), released.map((_, k) => error(k, one))));
    return box;
  }
  if (list && released.length > 1 && released.every(one => typeof one === "number")) {
    const error = released.map((_, k) => Array.isArray(margin) && margin[k] ? margin[k].error : width || 0);
    return make("div", null, make("h3", name), chart(name, released.map((_, k) => k), released, error), make("details", null, make("summary", `${released.length} numbers`), focusable(make("pre", released.map(one => Number(one.toPrecision(8))).join(", ")), name)));
  }
  if (typeof released === "string" || typeof released === "boolean") return classed(make("p", `${name} = ${released}`), "value");
  return make("div", null, make("h3", name), focusable(make("pre", JSON.stringify(released, null, 1)), name));
}

function answered(answer) {
  const box = make("div", null, errors(answer.errors || (answer.error ? [answer.error] : []), window.goTo));
  for (const [name, one] of Object.entries(answer.released || {})) box.append(value(name, one, (answer.margins || {})[name]));
  if ((answer.output || []).length) box.append(make("h3", "Printed"), focusable(make("pre", answer.output.join("\n")), "printed"));
  if ((answer.warnings || []).length) box.append(errors(answer.warnings.map(one => ({...one, kind: "Warning"}))));
  return box;
}

function files(run) {
  const rows = one => Array.isArray(one) && one.length && one.every(row => row && typeof row === "object" && !Array.isArray(row));
  const names = Object.entries(run.answer.released || {}).filter(([, one]) => rows(one)).map(([name]) => `${name}.csv`);
  const links = [...names, "answer.json"].flatMap(name => [Object.assign(link(name, `/runs/${run.id}/files/${encodeURIComponent(name)}`), {download: name}), " "]);
  return make("p", "Keep: ", ...links);
}

function result(box, run) {
  box.replaceChildren();
  const program = document.querySelector("[data-program]");
  if (program) program.textContent = shown(run.program);
  if (run.state !== "done") {
    const words = {waiting: "It waits for a reviewer. You can leave: its answer will be in your history.", refused: `${run.reviewer} refused it. ${run.note}`, returned: `${run.reviewer} sent it back to be changed. ${run.note}`};
    if (run.state === "running") box.append(countdown(run)); else box.append(make("p", words[run.state]));
    box.append(costs(run.cost));
    return;
  }
  box.append(answered(run.answer));
  if (run.reviewer) box.append(classed(make("p", `Approved by ${run.reviewer}. ${run.note}`), "hint"));
  (run.pictures || []).forEach((title, k) => {
    const image = Object.assign(make("img"), {src: `/runs/${run.id}/pictures/${k}`, alt: shown(title)});
    const dark = Object.assign(make("source"), {srcset: `/runs/${run.id}/pictures/${k}?ink=light`, media: "(prefers-color-scheme: dark)"});
    box.append(make("figure", null, make("picture", null, dark, image)));
  });
  for (const source of Object.values(run.answer.budget || {})) for (const [unit, amounts] of Object.entries(source)) box.append(bar({unit, ...amounts}));
  box.append(files(run));
  if (run.traced) box.append(make("p", null, link("What it did, step by step", `/runs/${run.id}/trace`)));
  if (document.getElementById("text")) box.append(make("p", null, link("A page of this run, to share", `/runs/${run.id}`)));
}

// What is left until the declared moment: it passes whatever the process does.
function countdown(run) {
  const text = make("span"), line = Object.assign(make("progress"), {max: run.seconds});
  line.setAttribute("aria-label", "time until the answer leaves");
  const tick = () => {
    const left = Math.max(0, run.answer_at - Date.now() / 1000);
    line.value = run.seconds - left;
    text.textContent = `The answer leaves in ${Math.ceil(left)} seconds.`;
    if (left > 0 && (line.isConnected || left === run.answer_at)) setTimeout(tick, 500);
  };
  setTimeout(tick, 0);
  return classed(make("p", null, line, text), "wait");
}

const pause = seconds => new Promise(done => setTimeout(done, 1000 * seconds));

// A run until its answer is there, also where the server goes away meanwhile and comes back.
async function follow(box, id) {
  for (let first = true; ; first = false) {
    try {
      const run = await call(`GET /api/runs/${id}${first ? "" : "?wait=1"}`);
      if (!first || run.state !== "running") tell("");
      if (run.state === "done" && run.answer.ok) window.answeredText = run.program;
      if (run.state === "done" && document.querySelector("[data-run]")) { await refresh(); window.reprice(); }  // budgets first
      result(box, run);
      if (run.state !== "running") break;
    } catch (error) {
      if (!error.away) throw error;
      tell("The server cannot be reached; the answer will be there when it is back. Trying again …", true);
      await pause(2);
    }
  }
}

for (const node of document.querySelectorAll("[data-call]")) node.onclick = () => call(node.dataset.call).then(() => { sessionStorage.clear(); location.href = node.dataset.then; }, failed);
for (const node of document.querySelectorAll("[data-fragment]")) { node.value = location.hash.slice(1); history.replaceState(null, "", location.pathname); }
for (const node of document.querySelectorAll("[data-share]")) node.onclick = () => {
  const shared = node.getAttribute("aria-pressed") !== "true";
  call(`POST /api/runs/${node.dataset.share}`, {shared}).then(() => {
    node.setAttribute("aria-pressed", String(shared));
    node.textContent = shared ? "Shared: close it again" : "Share with the accounts of this server";
    tell(shared ? `Who has an account here sees it at ${location.href}` : "Nobody else sees it now.");
  }, failed);
};
for (const form of document.querySelectorAll("[data-form]")) form.onsubmit = event => {
  event.preventDefault();
  const body = {};
  for (const field of form.elements) if (field.name && field.type !== "submit") body[field.name] = field.type === "checkbox" ? field.checked : "number" in field.dataset ? Number(field.value) : field.value;
  const check = event.submitter && event.submitter.name === "check";
  if (check) body.check = true;
  tell("Working …");
  // Not `form.dataset`: a field of that name would stand in its place.
  call(form.getAttribute("data-form"), body).then(given => {
    if (!form.hasAttribute("data-run")) { announce(given); if (!check) { form.reset(); refresh(); } return; }
    const section = document.querySelector("[data-answer]");
    section.hidden = false;
    tell("");
    section.querySelector("h2").focus();
    return follow(section.querySelector("[data-result]"), given.id);
  }).catch(failed);
};
for (const box of document.querySelectorAll("[data-result][data-id]")) follow(box, box.dataset.id).catch(failed);
refresh();
