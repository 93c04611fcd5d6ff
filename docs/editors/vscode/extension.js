"use strict";
// The client of `jostle lsp`, and three commands: run a program, show what it would spend, show what it did.

const { execFile } = require("node:child_process");
const fs = require("node:fs/promises");
const path = require("node:path");
const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;
let output;

async function activate(context) {
  output = vscode.window.createOutputChannel("Jostle");
  context.subscriptions.push(output);
  const commands = { "jostle.run": run, "jostle.dryRun": dryRun, "jostle.trace": (uri) => trace(context, uri) };
  for (const [name, action] of Object.entries(commands)) {
    context.subscriptions.push(vscode.commands.registerCommand(name, action));
  }
  const server = { command: jostle(), args: ["lsp"] };
  client = new LanguageClient("jostle", "Jostle", server, { documentSelector: [{ language: "jostle" }] });
  try {
    await client.start();
  } catch (fault) {
    vscode.window.showWarningMessage(
      `The language server did not start (${fault.message}). Is \`jostle.path\` the command, and pygls installed?`,
    );
  }
}

async function deactivate() {
  await client?.stop();
}

function jostle() {
  return vscode.workspace.getConfiguration("jostle").get("path");
}

// The file of a program, saved; undefined where none is open.
async function saved(uri) {
  const document = uri ? await vscode.workspace.openTextDocument(uri) : vscode.window.activeTextEditor?.document;
  const kept = !document?.isDirty || (await document.save());
  if (document?.languageId !== "jostle" || !vscode.workspace.isTrusted || !kept) {
    vscode.window.showInformationMessage("Open a program of Jostle in a trusted folder, and save it.");
    return undefined;
  }
  return document.uri.fsPath;
}

async function run(uri) {
  const file = await saved(uri);
  if (file) {
    await inTerminal("run", file, []);
  }
}

async function dryRun(uri) {
  const file = await saved(uri);
  if (file) {
    await inTerminal("dry run", file, ["--dry"]);
  }
}

// Runs `jostle run FILE` in a terminal of the editor.
async function inTerminal(name, file, more) {
  const execution = new vscode.ProcessExecution(jostle(), ["run", file, ...more], { cwd: path.dirname(file) });
  const scope = vscode.workspace.getWorkspaceFolder(vscode.Uri.file(file)) ?? vscode.TaskScope.Workspace;
  const task = new vscode.Task({ type: "process" }, scope, `${name} ${path.basename(file)}`, "Jostle", execution);
  task.presentationOptions = { clear: true };
  await vscode.tasks.executeTask(task);
}

// Runs a program once, and shows the page of its trace beside it: also of a run that failed, since the page says where.
async function trace(context, uri) {
  const file = await saved(uri);
  if (!file) {
    return;
  }
  const folder = context.storageUri?.fsPath ?? context.globalStorageUri.fsPath;
  await fs.mkdir(folder, { recursive: true });
  const [events, page] = ["run.jsonl", "run.html"].map((name) => path.join(folder, name));
  await Promise.all([events, page].map((old) => fs.rm(old, { force: true })));
  const name = path.basename(file);
  const where = { location: vscode.ProgressLocation.Notification, title: `Running ${name}`, cancellable: true };
  const ran = await vscode.window.withProgress(where, (_, stop) => ended(["run", file, "--trace", events], file, stop));
  output.append(ran.said);
  const drawn = await ended(["trace", events, "--html", page], file);
  if (drawn.failed) {
    vscode.window.showErrorMessage(`There is no trace of ${name}: ${ran.failed || drawn.failed}`);
    return;
  }
  const beside = vscode.ViewColumn.Beside;
  const panel = vscode.window.createWebviewPanel("jostle.trace", `Trace of ${name}`, beside, { enableScripts: true });
  panel.webview.html = await fs.readFile(page, "utf8");
}

// What `jostle` said with these words, and its error where it failed; `stop` ends it as Ctrl-C does.
function ended(words, file, stop) {
  return new Promise((resolve) => {
    const options = { cwd: path.dirname(file), maxBuffer: 1 << 26 };
    const process = execFile(jostle(), words, options, (fault, said, errors) =>
      resolve({ said: said + errors, failed: fault ? errors || fault.message : "" }),
    );
    stop?.onCancellationRequested(() => process.kill("SIGINT"));
  });
}

module.exports = { activate, deactivate };
