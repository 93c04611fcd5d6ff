"""Parses the command line. Usage errors end here with exit status 2; nothing is run or read.

Reads a program's text, or refuses with one diagnostic; and the file that a misspelt path means.
"""

from __future__ import annotations

import argparse
import io
import os
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout, suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

from jostle.choice import USUAL
from jostle.diagnostics import WARNINGS, Refusal, did_you_mean, refuse
from jostle.language.facts import LAST_HEADER
from jostle.readers.limits import memory_limit
from jostle.source import Source
from jostle.version import __version__

_NAME = re.compile(r"[A-Za-z_]\w*")
_SCHEMA = """such as '{age: 17..90, sex: {"F", "M"}}'"""
_DATA_OF = "CSV, Parquet, counts in a .npy file (which need no schema), or a server's 'postgres(\"ny.flights\")'"
_DESCRIBED = 'codebook or data in CSV, Parquet, SQL, Table Schema in JSON, or a server\'s postgres("…")'


class _Parser(argparse.ArgumentParser):
    """A parser that says which word of its own is nearest to one that it does not know."""

    def error(self, message: str) -> NoReturn:
        unknown = re.search(r"invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if unknown is not None:
            word, commands = unknown[1], re.findall(r"[\w-]+", unknown[2])
            close = f"jostle run {word}" if word.endswith(".jst") else ""
            hint = f"did you mean `{close}`?" if close else did_you_mean(word, commands)
            message = f"there is no `{word}`; {hint or 'there are ' + ', '.join(commands)}"
        if lacks := re.match(r"argument (?:-\w/)?(--[\w-]+): expected one argument", message):
            value = self._option_string_actions[lacks[1]].metavar
            message = f"`{lacks[1]}` needs its value after it: `{lacks[1]} {value}`"
        super().error(message)

    def unknown(self, word: str, command: str, verb: str | None) -> NoReturn:
        """Ends with what is meant by a word that a command, or a `verb` of one, does not know."""
        flags = {name: [*parser._option_string_actions] for name, parser in COMMANDS.items()}
        if verb is not None:
            of = {name: [*parser._option_string_actions] for name, parser in VERBS.items()}
            own, command = [flag for flag in of[verb] if flag not in ("-h", "--help")], f"data {verb}"
            stays = verb == "update" and word in of["register"]
            says = f"`{word[2:]}` is as it was registered, for ever" if stays else did_you_mean(word, own)
            self.error(f"`jostle {command}` has no `{word}`; {says or 'it has ' + ', '.join(own)}")
        homes = [f"`jostle {name} … {word}`" for name, options in flags.items() if word in options]
        if word.endswith(_DATA) and command in ("run", "check", "plan"):
            homes = ['a program names its data, `table("FILE")`, or says `bound("NAME")` for `--bind NAME=FILE`']
        hint = " or ".join(homes[:2]) or did_you_mean(word, flags[command]) or f"`jostle {command} --help` lists all"
        self.error(f"`jostle {command}` has no `{word}`; {hint}")


def parse(words: Sequence[str]) -> argparse.Namespace | int:
    """Returns the parsed options (`command` names the command), or the exit status: 0 after help, 2 after misuse."""
    parser = command_parser()
    if not words:
        parser.print_help(sys.stderr)
        return 2
    if words[0] == "-c":
        words = ["ask", *words[1:]]
    if words[0] == "help":
        words = [*words[1:], "--help"]
    try:
        options, more = parser.parse_known_args(words)
        if more:
            parser.unknown(more[0], options.command, getattr(options, "verb", None))
        if misuse := _misuse(options):
            parser.error(misuse)
    except SystemExit as done:
        return int(done.code or 0)
    return options


def fits(words: Sequence[str]) -> bool:
    """Whether these words are a right command."""
    with redirect_stderr(io.StringIO()), redirect_stdout(io.StringIO()), suppress(SystemExit):
        options, more = command_parser().parse_known_args(words)
        return not more and not _misuse(options)
    return False


def _misuse(options: argparse.Namespace) -> str:
    """What is wrong with flags that are each right, and do not go together; empty where nothing is."""
    match options.command:
        case "init" if (options.file is None) != options.example:
            return "init needs a FILE of data, or --example"
        case "run" if options.seed is not None and not options.simulate:
            return "--seed goes with --simulate; real noise has no seed"
        case "run" | "repl" if wrong := _here_only(options):
            return f"--server runs programs elsewhere, and {wrong} is of this machine"
        case "serve":
            return _serve_flags(options)
        case "run" if options.overwrite and not options.save:
            return "--overwrite goes with --save NAME=PATH"
        case "improve" if options.write and options.file == "-":
            return "--write puts the formulas into a file, and standard input is none"
        case "trace" if options.diff and (options.choice or options.budget or options.otlp):
            return "--diff is shown whole, in the terminal or with --html PAGE"
        case "run" if options.dry or options.explain:
            flag, others = "--dry" if options.dry else "--explain", ("simulate", "trace", "pictures", "save")
            if words := [f"--{name}" for name in (*others, *["explain"] * options.dry) if getattr(options, name)]:
                return f"{flag} runs nothing, and {words[0]} has no part in it"
    return ""


def _serve_flags(options: argparse.Namespace) -> str:
    if bool(options.home) + options.example + options.playground + bool(options.verify) != 1:
        return "serve needs one of --home FOLDER, --example, --playground, --verify LOG"
    alone = not options.home and (options.check or options.backup)
    return "--check and --backup go with --home FOLDER" if alone else ""


def _at_server(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--server", metavar="URL", nargs="?", const="", help="let `jostle serve` there run it (last login)"
    )
    command.add_argument("--seconds", metavar="N", type=float, help="when an answer of a --server leaves, as it offers")


def _here_only(options: argparse.Namespace) -> str:
    """A flag of `run` or `repl` that a server does not take."""
    flags = ("bind", "trace", "pictures", "save", "simulate", "dry", "explain", "ledger", "engine", "memory")
    return next((f"--{flag}" for flag in flags if options.server is not None and getattr(options, flag, None)), "")


def _pair(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not _NAME.fullmatch(name):
        raise argparse.ArgumentTypeError(f"{text!r} is not of the form NAME=VALUE")
    return name, value


def _pairs(parser: argparse.ArgumentParser, flag: str, form: str, help: str) -> None:
    """Adds an option that may be given several times, each time as a pair."""
    parser.add_argument(flag, metavar=form, type=_pair, action="append", default=[], help=help)


def _seed(text: str) -> int:
    if not text.isascii() or not text.isdigit() or len(text) > 18:
        raise argparse.ArgumentTypeError(f"{text!r} is no seed: a whole number from 0 is needed")
    return int(text)


def _events(text: str) -> str:
    if text.endswith((".html", ".htm")):
        raise argparse.ArgumentTypeError("events go to RUN.jsonl, and `jostle trace RUN.jsonl --html PAGE` draws them")
    return text


def _line(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 0 < int(text[:9]) <= LAST_HEADER:
        raise argparse.ArgumentTypeError(f"{text!r} is no line: a whole number from 1 to {LAST_HEADER} is needed")
    return int(text)


def _memory(text: str) -> str:
    try:
        return memory_limit(text)
    except Refusal as refusal:
        raise argparse.ArgumentTypeError(refusal.diagnostics[0].message) from None


COMMANDS: dict[str, argparse.ArgumentParser] = {}
VERBS: dict[str, argparse.ArgumentParser] = {}  # of `jostle data`
_option = partial(partial, argparse.ArgumentParser.add_argument)  # for any parser, by its name
_OPTIONS: dict[str, Callable[..., object]] = {
    "--allow": _option(
        metavar="WARNING", choices=WARNINGS, action="append", default=[],
        help="leave out a warning, by its name (`jostle explain` lists them); may be given several times",
    ),
    "--decimal": _option(choices=[","], help="the decimal point of a CSV file's numbers, where that is a comma"),
    "--encoding": _option(metavar="NAME", help="of a CSV file's texts, such as cp1252, where its header does not tell"),
    "--engine": _option(metavar="URL", help="the server on which the data are ($JOSTLE_ENGINE)"),
    "--format": _option(choices=["text", "json"], default="text"),
    "--header": _option(
        metavar="LINE", type=_line, help="the line that names the columns, where titles or notes stand above it"
    ),
    "--ledger": _option(metavar="PLACE", help="where registered datasets are counted ($JOSTLE_LEDGER)"),
    "--memory": _option(
        metavar="SIZE", type=_memory,
        help="what to hold in memory, such as 2GB, before spilling to the disk ($JOSTLE_MEMORY, else a quarter of it)",
    ),
    "--no-look": _option(
        action="store_true",
        help="spend nothing on looking for cells that do not fit (2 %% of the first charge on a column)",
    ),
    "--sheet": _option(metavar="NAME", help="the sheet of a workbook, or its number"),
}  # fmt: skip
"""What several commands have."""


def _add(parser: argparse.ArgumentParser, *options: str) -> None:
    for option in options:
        _OPTIONS[option](parser, option)


def command_parser() -> _Parser:
    """The parser of the whole command line; the reference of commands is made from it."""
    parser = _Parser(
        prog="jostle",
        description="Jostle: a small language for differential privacy whose runtime chooses the algorithm.",
        epilog="exit status: 0 fine, 1 the program was refused or failed, 2 wrong usage, 130 stopped from the keyboard",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=f"jostle {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)

    run = commands.add_parser("run", help="run a program", allow_abbrev=False)
    run.add_argument("file", metavar="FILE", help="a program, or - for standard input")
    _pairs(run, "--set", "NAME=VALUE", "set a `param` of the program")
    _pairs(run, "--bind", "NAME=PATH", 'the file behind bound("NAME")')
    help = "write the event stream, one JSON object a line, as it happens"
    run.add_argument("--trace", metavar="PATH", type=_events, help=help)
    run.add_argument("--pictures", metavar="FOLDER", help="draw what the program plots, as files in a folder")
    _pairs(run, "--save", "NAME=PATH", "write what the program releases as NAME: .csv .tsv .json .jsonl .parquet")
    run.add_argument("--overwrite", action="store_true", help="let --save write over files that are there")
    run.add_argument("--format", choices=["text", "json"], default="text", help="json: one object on standard output")
    run.add_argument(
        "--simulate", action="store_true", help="open nothing private: rows are drawn from the described domains"
    )
    run.add_argument("--no-rehearsal", action="store_true", help="also run what simulated rows of any number fail on")
    _add(run, "--allow", "--no-look")
    run.add_argument("--dry", action="store_true", help="run nothing: what each line would spend, and what stays")
    run.add_argument("--explain", action="store_true", help="run nothing: each statement's plan, price and form of SQL")
    run.add_argument("--seed", metavar="N", type=_seed, help="the seed of a simulation (1 where it is left out)")
    _add(run, "--ledger", "--memory", "--engine")
    _at_server(run)

    init = commands.add_parser("init", help="write a first program for a file of yours; asks for what it does not know")
    init.add_argument("file", metavar="FILE", nargs="?", help="the data")
    _add(init, "--engine")
    init.add_argument("--example", action="store_true", help="write two programs and their data, to begin with")
    init.add_argument("--no-check", action="store_true", help="read no row: how dates and numbers are written")
    _add(init, "--sheet", "--header")
    init.add_argument("--describe", metavar="SCHEMA", help=_SCHEMA)
    init.add_argument("--codebook", metavar="FILE", help="a codebook, SQL or Table Schema that describes the columns")
    init.add_argument("--protecting", metavar="UNIT", help="such as 'rows' (the default), 'person up to 5 rows'")
    init.add_argument("--budget", metavar="BUDGET", help="such as 'epsilon 1' (the default), 'rho 0.5'")
    init.add_argument("-o", "--out", metavar="PROGRAM", help="the program to write (FILE's own name, .jst)")
    init.add_argument("--overwrite", action="store_true", help="write over a program that is there")

    ask = commands.add_parser("ask", help="one query of a file, without a program: `jostle -c QUERY FILE` is the same")
    ask.add_argument("query", metavar="QUERY", help="such as 'select count(*) from t where age > 40'; t is the file")
    ask.add_argument("file", metavar="FILE", help="the data")
    ask.add_argument("--describe", metavar="SCHEMA", help=f"the columns that it names, {_SCHEMA}")
    ask.add_argument("--epsilon", metavar="E", default="1", help="what it may spend (1)")
    ask.add_argument("--protecting", metavar="UNIT", default="rows", help="such as 'person up to 5 rows'")
    _add(ask, "--sheet", "--header")
    ask.add_argument("--simulate", action="store_true", help="open nothing: rows are simulated")
    _add(ask, "--format")

    find = commands.add_parser("find", help="functions and words for a question: jostle find compare two groups")
    find.add_argument("words", metavar="WORD", nargs="+", help="a question, or a name of pandas, SQL or R")

    completion = commands.add_parser("completion", help="completion of commands and options for a shell, to be sourced")
    completion.add_argument("shell", choices=["bash", "zsh", "fish"])

    commands.add_parser("again", help="print what earlier runs released and could not hand over")

    check = commands.add_parser("check", help="every error of a program at once, before anything runs")
    check.add_argument("file", metavar="FILE")
    check.add_argument("--ledger", metavar="PLACE", help="says what is left of registered datasets ($JOSTLE_LEDGER)")
    _add(check, "--allow", "--format")

    plan = commands.add_parser("plan", help="the error to expect, or the epsilon it takes, before anything is spent")
    plan.add_argument("file", metavar="FILE")
    plan.add_argument("--error", metavar="E", type=float, help="a wanted error, in the unit of the program's Utility")
    plan.add_argument("--epsilon", metavar="e", type=float, help="try amounts around this one")
    plan.add_argument(
        "--rows", metavar="N", type=int, help="so many simulated rows, where an error depends on the data"
    )
    plan.add_argument("--bounds", action="store_true", help="what ranges of columns cost, and a look at them buys")
    plan.add_argument("--pictures", metavar="FOLDER", help="draw the error of each choice's options against epsilon")
    _add(plan, "--format")

    judge = commands.add_parser("evaluate", help="how good a program's choices are on data sets left out")
    judge.add_argument("file", metavar="FILE")
    judge.add_argument("--choice", metavar="NAME", help="only the choice of this name")
    judge.add_argument("--epsilon", metavar="e", type=float, help="in place of the amounts that the program gives")
    judge.add_argument(
        "--data", metavar="NAME", action="append", default=[], help="leave out only this data set, and others so named"
    )
    improve = commands.add_parser("improve", help="formulas that predict how good each Option is, from training runs")
    improve.add_argument("file", metavar="FILE")
    improve.add_argument("--choice", metavar="NAME", help="only the choice of this name")
    improve.add_argument("--epsilon", metavar="e", type=float, help="in place of the amount that the program gives")
    most = f"the largest complexity of a formula ({USUAL})"
    improve.add_argument("--most", metavar="N", type=int, default=USUAL, help=most)
    improve.add_argument("--write", action="store_true", help="put the better formulas into FILE, as `predict`")
    _add(improve, "--format")
    for command in (plan, judge, improve):
        _pairs(command, "--set", "NAME=VALUE", "as for `run`")
        _pairs(command, "--bind", "NAME=PATH", "public stand-ins")
    _add(judge, "--format")

    repl = commands.add_parser("repl", help="an interactive session, in which a file may be loaded first")
    repl.add_argument("file", metavar="FILE", nargs="?")
    _add(repl, "--no-look", "--allow", "--ledger", "--memory", "--engine")
    _at_server(repl)

    trace = commands.add_parser("trace", help="show what a run did, from the file that `run --trace` wrote")
    trace.add_argument("file", metavar="RUN.jsonl")
    which = trace.add_mutually_exclusive_group()
    which.add_argument("--choice", metavar="NAME", help="only the choices of this name, each as a tree")
    which.add_argument("--budget", action="store_true", help="only the spending of each source")
    which.add_argument("--otlp", metavar="FILE", help="write the events as OpenTelemetry spans (OTLP, JSON)")
    trace.add_argument("--diff", metavar="OTHER", help="what another run did otherwise: choices, releases, spending")
    which.add_argument("--html", metavar="PAGE", help="write all of it, or the --diff, as a page that needs no network")

    fmt = commands.add_parser("fmt", help="write programs in the one way to write them")
    fmt.add_argument("files", metavar="FILE", nargs="+", help="programs, folders of programs, or - for standard input")
    fmt.add_argument("--check", action="store_true", help="change nothing; exit with 1 where something would change")

    serve = commands.add_parser("serve", help="let others ask: a server that holds the data and the ledger")
    serve.add_argument("--home", metavar="FOLDER", help="where accounts, ledger, data and runs are")
    serve.add_argument("--example", action="store_true", help="public data and two accounts, to click through")
    serve.add_argument("--playground", action="store_true", help="the workbench over public data, for whoever opens it")
    serve.add_argument("--host", metavar="HOST", default="127.0.0.1", help="the address to listen at (127.0.0.1)")
    serve.add_argument("--port", metavar="PORT", type=int, default=8400)
    serve.add_argument("--name", metavar="HOST", action="append", default=[], help="a name that it is reached by")
    serve.add_argument("--ledger", metavar="PLACE", help="postgresql://…, where that is not a file in the folder")
    serve.add_argument("--ledger-of-runs", metavar="PLACE", help="the same for processes of runs, with fewer rights")
    serve.add_argument("--engine", metavar="URL", help="the server whose tables are registered ($JOSTLE_ENGINE)")
    serve.add_argument("--certificate", metavar="FILE", help="for TLS")
    serve.add_argument("--key", metavar="FILE", help="the certificate's key")
    serve.add_argument("--behind-proxy", action="store_true", help="a proxy on this machine does TLS")
    serve.add_argument("--identity", metavar="HEADER", default="", help="the proxy says in it who somebody is (OIDC)")
    serve.add_argument(
        "--domain", metavar="DOMAIN", default="", help="of the addresses that the proxy says: NAME@DOMAIN"
    )
    serve.add_argument("--owner", metavar="NAME", default="owner", help="the account of the first owner (owner)")
    serve.add_argument("--workers", metavar="N", type=int, default=1, help="processes that answer requests (1)")
    serve.add_argument("--check", action="store_true", help="say what holds of a home, and end")
    serve.add_argument("--backup", metavar="FOLDER", help="copy a home, in use too, but its data, and end")
    serve.add_argument("--verify", metavar="LOG", help="follow an audit log that `/api/audit` gave, and end")
    login = commands.add_parser("login", help="keep a token of a server, for `jostle run --server`")
    login.add_argument("url", metavar="URL")
    login.add_argument("--name", metavar="NAME", help="of the account; asked for where it is left out")
    login.add_argument("--token", action="store_true", help="read a token from standard input, not a password")

    commands.add_parser("lsp", help="serve an editor: faults, hovers, completion, formatting (needs pygls)")
    commands.add_parser("textmate", help="print a TextMate grammar, for editors that colour by one")

    data = commands.add_parser("data", help="for the owner of a file: how it fits a description, and the ledger")
    verbs = data.add_subparsers(dest="verb", metavar="VERB", required=True)
    fits = verbs.add_parser("check", help="how many rows and cells do not fit a schema (private: for the owner's eyes)")
    fits.add_argument("file", metavar="FILE", help=_DATA_OF)
    _add(fits, "--engine", "--sheet", "--header", "--decimal", "--encoding")
    fits.add_argument("--schema", metavar="SCHEMA", required=True, help=_SCHEMA)
    draft = verbs.add_parser("draft", help="a first description, from a schema, a codebook or a header: reads no rows")
    draft.add_argument("source", metavar="FILE", help=_DESCRIBED)
    _add(draft, "--engine", "--sheet", "--header")
    draft.add_argument("--table", metavar="NAME", help="which table of a data package")
    draft.add_argument("--program", action="store_true", help="a whole program")
    draft.add_argument("--protecting", metavar="UNIT", help="of the program, such as 'rows', 'person up to 5 rows'")
    draft.add_argument("--budget", metavar="BUDGET", help="of the program, such as 'epsilon 3', 'rho 0.5'")

    _ledger_verbs(verbs)

    explain = commands.add_parser("explain", help="the page of a kind of error or of a warning")
    explain.add_argument("kind", metavar="KIND", nargs="?", help="such as PrivateValue; without one, a list of all")
    COMMANDS.update(commands.choices)
    VERBS.update(verbs.choices)
    return parser


def _ledger_verbs(verbs: argparse._SubParsersAction[_Parser]) -> None:
    """Adds the commands of an owner on the ledger of registered datasets."""

    def verb(name: str, help: str, *, dataset: bool = True) -> argparse.ArgumentParser:
        parser = verbs.add_parser(name, help=help, allow_abbrev=False)
        parser.add_argument("--ledger", metavar="PLACE", help="a file or postgresql://… ($JOSTLE_LEDGER, or one's own)")
        if dataset:
            parser.add_argument("name", metavar="NAME", type=_dataset)
        return parser

    register = verb("register", "put a file under a budget that lasts for ever")
    register.add_argument("file", metavar="FILE", help=_DATA_OF)
    _add(register, "--sheet", "--header", "--decimal", "--encoding")
    register.add_argument("--schema", metavar="SCHEMA", help=_SCHEMA)
    unit = "such as 'rows', 'person up to 5 rows'; of persons that a dataset has already, 'people.id on customer'"
    register.add_argument("--protecting", metavar="UNIT", required=True, help=unit)
    register.add_argument(
        "--budget", metavar="BUDGET", help="such as 'epsilon 3', 'rho 0.5 each week'; of linked persons none"
    )
    verb("list", "every dataset, its budget and what was spent", dataset=False)
    verb("show", "what was registered of a dataset")
    update = verb("update", "take the file as it is now; what was spent stays spent")
    for one in (register, update):
        one.add_argument("--copy", action="store_true", help="also data with the bytes or rows of another dataset's")
        _add(one, "--engine")
    history = verb("history", "every charge on a dataset")
    history.add_argument("--verify", action="store_true", help="follow the chain to its sealed end")
    certificate = verb("certificate", "write what a run was charged, to go out with its numbers")
    certificate.add_argument("--run", metavar="RUN.jsonl", help="the trace that `run --trace` wrote")
    certificate.add_argument("-o", "--out", metavar="FILE", help="the certificate to write")
    certificate.add_argument("--check", metavar="FILE", help="a certificate to read and check")


def completion(options: argparse.Namespace) -> int:
    """Prints a script that completes commands, options and files: `source <(jostle completion bash)`."""
    command_parser()
    flags = {name: " ".join(command._option_string_actions) for name, command in COMMANDS.items()}
    if options.shell == "fish":
        lines = ["complete -c jostle -n __fish_use_subcommand -f -a '" + " ".join(flags) + "'"]
        lines += [
            f"complete -c jostle -n '__fish_seen_subcommand_from {name}' -l {word[2:]}"
            for name, words in flags.items() for word in words.split() if word.startswith("--")
        ]  # fmt: skip
        print("\n".join(lines))
        return 0
    cases = "\n".join(f'        {name}) words="{words}" ;;' for name, words in flags.items())
    before = "autoload -U +X bashcompinit && bashcompinit\n" if options.shell == "zsh" else ""
    sys.stdout.write(before + _COMPLETION.format(commands=" ".join(flags), cases=cases))
    return 0


_COMPLETION = """_jostle() {{
    local words="{commands}" word="${{COMP_WORDS[COMP_CWORD]}}"
    if [ "$COMP_CWORD" -gt 1 ]; then
        case "${{COMP_WORDS[1]}}" in
{cases}
        esac
        [[ "$word" == -* ]] || {{ COMPREPLY=($(compgen -f -- "$word")); return; }}
    fi
    COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o filenames -F _jostle jostle
"""


def _dataset(text: str) -> str:
    if not _NAME.fullmatch(text):
        raise argparse.ArgumentTypeError(f"{text!r} is no name: letters, digits and _")
    return text


_DATA = (".csv", ".tsv", ".parquet", ".jsonl", ".arrow", ".feather", ".xlsx", ".db", ".csv.gz")


def read_program(path: str | Path) -> Source:
    """The text of a program file, named as it was given; `-` is standard input. Raises `Refusal(DataError)` where it
    cannot be read."""
    if re.search(r"[\n\"{}]|^(?:private|release|select|use) ", str(path)) and not os.path.exists(path):
        raise refuse("DataError", "a text is no path of a program", help="`session.run_text(text)` runs a text")
    if str(path).endswith(_DATA) and Path(path).exists():
        help = f"write a program for it: `jostle init {path}`"
        raise refuse("DataError", f"`{path}` is a file of data, not a program", help=help)
    try:
        if str(path) == "-":
            return Source("-", sys.stdin.read().removeprefix("\ufeff"))
        text = Path(path).read_bytes().decode("utf-8-sig")
    except FileNotFoundError as fault:
        close = misspelt(str(path), [Path()], "*.jst", 0.6) or "give the path of a .jst file"
        raise refuse("DataError", f"there is no program `{path}`", help=close) from fault
    except UnicodeDecodeError as fault:
        raise refuse("DataError", f"`{path}` is not UTF-8 text", help="save the program as UTF-8") from fault
    except IsADirectoryError as fault:
        raise refuse("DataError", f"`{path}` is a folder, not a program", help="name a .jst file in it") from fault
    except (OSError, ValueError) as fault:
        reason = getattr(fault, "strerror", None) or "the system refused"
        raise refuse("DataError", f"the program `{path}` cannot be read: {reason.lower()}") from fault
    return Source(str(path), text)


def misspelt(path: str, folders: Sequence[Path], pattern: str = "*", cutoff: float = 0.8) -> str:
    """`did you mean `x`?`, for a file beside the one that a path would name in one of the folders, or an empty text."""
    if "\0" in path:
        return ""
    names = {file.name for folder in folders for file in (folder / path).parent.glob(pattern)}
    return did_you_mean(path, [str(Path(path).with_name(name)) for name in sorted(names)], cutoff)
