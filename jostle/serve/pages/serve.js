"use strict";
// Everything is text: nothing that comes from the server or a program becomes markup.
const csrf = document.querySelector("meta[name=csrf]").content;
const said = document.getElementById("said");

function make(tag, text, ...children) {
  const node = document.createElement(tag);
  if (text !== null && text !== undefined) node.textContent = text;
  node.append(...children);
  return node;
}

async function call(how, body) {
  const [method, path] = how.split(" ");
  const answer = await fetch(path, {
    method, credentials: "same-origin", headers: {"Content-Type": "application/json", "X-CSRF": csrf},
    body: method === "GET" ? undefined : JSON.stringify(body || {}),
  });
  if (answer.status === 401) location.href = "/login";
  const document_ = await answer.json();
  if (!answer.ok) throw new Error(`${document_.error.message}. ${document_.error.help || ""}`);
  return document_;
}

function tell(text, bad) { said.textContent = text; said.className = bad ? "bad" : ""; }
const failed = error => tell(error.message, true);

function table(titles, rows) {
  const numeric = value => typeof value === "number";
  const cell = value => value instanceof Node ? make("td", null, value) : Object.assign(make("td", value ?? ""), {className: numeric(value) ? "number" : ""});
  const head = make("tr", null, ...titles.map(title => Object.assign(make("th", title), {scope: "col"})));
  const box = make("div", null, make("table", null, make("thead", null, head), make("tbody", null, ...rows.map(row => make("tr", null, ...row.map(cell))))));
  box.className = "table"; box.tabIndex = 0;
  return box;
}

function bar(budget) {
  const line = make("div", `${budget.unit} ${budget.spent} of ${budget.total} `);
  const progress = Object.assign(make("progress"), {max: Number(budget.total), value: Number(budget.spent)});
  progress.setAttribute("aria-label", `spent of ${budget.unit} ${budget.total}`);
  line.append(progress);
  return line;
}

function button(text, how, body) {
  const node = make("button", text);
  node.type = "button";
  node.onclick = () => call(how, body).then(given => { announce(given); refresh(); }, failed);
  return node;
}

function announce(given) {
  if (given.link) tell(`Send this link to ${given.name}; it works once: ${location.origin}${given.link}`);
  else if (given.token) tell(`Copy this token now, it is not shown again: ${given.token}`);
  else tell(given.notes || "Done.");
}

const owner = Boolean(document.querySelector("[data-form='POST /api/grants']"));
const shows = {
  async datasets(box) {
    const {datasets} = await call("GET /api/datasets");
    if (!datasets.length) box.append(make("p", owner ? "No data are registered yet." : "You have no grant yet; ask the owner of the data for one."));
    for (const data of datasets) {
      box.append(make("h3", data.name + (data.state ? ` (${data.state})` : "")), make("p", `protects ${data.protects}`));
      if (data.budget) box.append(bar(data.budget));
      for (const grant of data.grants) {
        const line = make("div", [grant.analyst, grant.until && `until ${grant.until}`, grant.state, grant.review && "reviewed"].filter(Boolean).join(", "), bar(grant.budget));
        if (owner) line.append(...(grant.state === "closed" ? [] : [
          button(grant.state === "frozen" ? "Open" : "Freeze", "POST /api/status", {name: grant.name, status: grant.state === "frozen" ? "" : "frozen"}),
          button("Close", "POST /api/status", {name: grant.name, status: "closed"})]));
        box.append(line);
      }
      if (owner) box.append(button(data.state ? "Open" : "Freeze", "POST /api/status", {name: data.name, status: data.state ? "" : "frozen"}));
      const details = make("details", null, make("summary", `${data.columns.length} columns`), table(["column", "values", ""], data.columns.map(one => [one.name, one.values, one.missing ? "" : "never missing"])));
      box.append(details);
    }
  },
  async accounts(box) {
    const {accounts} = await call("GET /api/accounts");
    box.append(table(["name", "role", "", ""], accounts.map(one => [one.name, one.role,
      button("New link", `POST /api/accounts/${one.name}`, {}), button(one.active ? "Close" : "Open", `POST /api/accounts/${one.name}`, {active: !one.active})])));
  },
  async tokens(box) {
    const {tokens} = await call("GET /api/tokens");
    box.append(table(["for", "scope", "until", ""], tokens.map(one => [one.label, one.scope, new Date(one.until * 1000).toLocaleDateString(), button("Revoke", `DELETE /api/tokens/${one.number}`)])));
  },
  async history(box) {
    const {runs} = await call("GET /api/runs");
    box.append(table(["handed in", "state", "note"], runs.map(one => [Object.assign(make("a", new Date(one.accepted * 1000).toLocaleString()), {href: `/runs/${one.id}`}), one.state, one.note])));
  },
  async reviews(box) {
    const {runs} = await call("GET /api/reviews");
    if (!runs.length) box.append(make("p", "Nothing waits."));
    for (const one of runs) {
      const note = make("input");
      const decide = approve => () => call(`POST /api/reviews/${one.id}`, {approve, note: note.value}).then(() => { tell("Done."); refresh(); }, failed);
      const yes = Object.assign(make("button", "Approve"), {type: "button", onclick: decide(true)});
      const no = Object.assign(make("button", "Refuse"), {type: "button", onclick: decide(false)});
      box.append(make("h2", one.analyst), make("pre", one.program), costs(one.cost), make("label", "Note", note), yes, no);
    }
  },
  async audit(box) {
    const {audit} = await call("GET /api/audit");
    box.append(table(["", "time", "who", "what", "hash"], audit.map(({number, content: {time, by, did, ...more}, hash}) => [number, time, by, `${did} ${Object.keys(more).length ? JSON.stringify(more) : ""}`, hash.slice(0, 12)])));
  },
};

function refresh() {
  for (const box of document.querySelectorAll("[data-show]")) {
    box.replaceChildren();
    shows[box.dataset.show](box).catch(failed);
  }
}

function costs(cost) {
  return make("p", cost.length ? "Costs " + cost.map(one => `${one.source}: ${one.exact ? "" : "at most "}${one.asks === null ? "all that is left" : one.asks}`).join(", ") : "Costs nothing.");
}

function errors(list) {
  return make("div", null, ...list.map(one => Object.assign(make("p", `${one.line ? `line ${one.line}: ` : ""}${one.kind}: ${one.message}${one.help ? `. ${one.help}` : ""}`), {className: "bad"})));
}

// A number with its ±, to the digits that its error leaves: what is beyond them is noise.
function rounded(number, error) {
  if (typeof number !== "number" || typeof error !== "number" || !(error > 0)) return number;
  const digits = Math.min(12, Math.max(0, 1 - Math.floor(Math.log10(error))));
  return `${number.toFixed(digits)} ± ${Number(error.toPrecision(2))}`;
}

function value(name, released, margin) {
  const width = margin && margin.error;
  if (typeof released === "number") return make("p", `${name} = ${rounded(released, width)}`);
  if (Array.isArray(released) && released.length && released.every(row => row && typeof row === "object" && !Array.isArray(row))) {
    const names = Object.keys(released[0]);
    const error = (k, one) => { const row = Array.isArray(margin) ? margin[k] : null; return row && row[one] && row[one].error; };
    const cell = (row, k, one) => rounded(row[one], error(k, one));
    return make("div", null, make("h3", name), table(names, released.map((row, k) => names.map(one => cell(row, k, one)))));
  }
  return make("div", null, make("h3", name), make("pre", JSON.stringify(released, null, 1)));
}

function result(box, run) {
  box.replaceChildren();
  const program = document.querySelector("[data-program]");
  if (program) program.textContent = run.program;
  if (run.state !== "done") {
    const seconds = Math.max(0, Math.round(run.answer_at - Date.now() / 1000));
    const word = {waiting: "Waits for a reviewer.", refused: `Refused by ${run.reviewer}. ${run.note}`, running: `The answer leaves in ${seconds} seconds.`};
    box.append(make("p", word[run.state]), costs(run.cost));
    return;
  }
  const answer = run.answer;
  box.append(errors(answer.errors || (answer.error ? [answer.error] : [])));
  for (const name of Object.keys(answer.released || {})) box.append(value(name, answer.released[name], (answer.margins || {})[name]));
  if ((answer.output || []).length) box.append(make("pre", answer.output.join("\n")));
  for (const source of Object.values(answer.budget || {})) for (const [unit, amounts] of Object.entries(source)) box.append(bar({unit, ...amounts}));
  box.append(Object.assign(make("a", "What it did, step by step"), {href: `/runs/${run.id}/trace`}));
}

async function follow(box, id) {
  let run = await call(`GET /api/runs/${id}`);
  result(box, run);
  if (run.state === "running") result(box, await call(`GET /api/runs/${id}?wait=1`));
  if (document.querySelector("[data-run]")) refresh();
}

for (const node of document.querySelectorAll("[data-call]")) node.onclick = () => call(node.dataset.call).then(() => { location.href = node.dataset.then; }, failed);
for (const node of document.querySelectorAll("[data-fragment]")) { node.value = location.hash.slice(1); history.replaceState(null, "", location.pathname); }
for (const form of document.querySelectorAll("[data-form]")) form.onsubmit = event => {
  event.preventDefault();
  const body = {};
  for (const field of form.elements) if (field.name) body[field.name] = field.type === "checkbox" ? field.checked : "number" in field.dataset ? Number(field.value) : field.value;
  call(form.dataset.form, body).then(given => {
    if (!("run" in form.dataset)) { announce(given); refresh(); return; }
    const section = document.querySelector("[data-answer]");
    section.hidden = false;
    tell("");
    return follow(section.querySelector("[data-result]"), given.id);
  }).catch(failed);
};
const text = document.getElementById("text"), price = document.getElementById("price");
if (text) {
  let timer = 0, asked = 0;
  text.oninput = () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const mine = ++asked;
      const given = await call("POST /api/check", {program: text.value}).catch(error => ({ok: false, errors: [{kind: "Busy", message: error.message}], cost: []}));
      if (mine === asked) price.replaceChildren(given.ok ? costs(given.cost) : errors(given.errors));
    }, 400);
  };
  text.onkeydown = event => { if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) text.form.requestSubmit(); };
}
for (const box of document.querySelectorAll("[data-result][data-id]")) follow(box, box.dataset.id).catch(failed);
refresh();
