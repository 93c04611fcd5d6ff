"""Ten journeys through the pages in Chromium, by keyboard; slow, and skipped where there is no Chromium.

With `JOSTLE_PICTURES=FOLDER` each leaves pictures to look at. Accessibility is tested by axe where it is installed
(`axe_playwright_python`, of which only its script is used), and by rules of ours everywhere.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
import unicodedata
from collections.abc import Callable, Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from chromium import PROGRAM, Chromium, Page
from serve_place import PASSWORD, ROWS, shares

from jostle.accounting.amounts import QUANTA, Amount
from jostle.privacy.ledger.ledger import Ledger
from jostle.serve.store import Home

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not PROGRAM, reason="there is no Chromium")]
ANSWER = 60.0  # seconds that an answer may take: 20 are declared
SCHEMA = '{age: 17..90, sex: {"F", "M"}}'
DECLARED = 'private people = dataset("people")\n'
BY_SEX = "release by_sex = {{ select count(*), avg(age) from people group by sex with epsilon 0.4 }}"


class Site:
    """`jostle serve` in a process of its own, over a home that is set up."""

    def __init__(self, folder: Path) -> None:
        self.home = folder / "home"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = int(free.getsockname()[1])
        self.url, self.process = f"http://127.0.0.1:{self.port}", None

    def set_up(self) -> None:
        """`people` under epsilon 5, an analyst for each journey, one of whom is reviewed, a reviewer and an auditor."""
        home = Home(self.home)
        roles = {"olga": "owner", "rita": "reviewer", "aldo": "auditor"}
        analysts = {"ana": 1.0, "ben": 1.0, "cleo": 0.5, "dora": 0.5, "emil": 0.5, "fay": 0.5}
        for name, role in {**roles, **dict.fromkeys(analysts, "analyst")}.items():
            home.set_password(home.add_account(name, role, "system"), PASSWORD)
        from argparse import Namespace

        from jostle.tools.data import register

        (self.home / "data" / "people.csv").write_text("\n".join(ROWS) + "\n")
        register(Namespace(
            name="people", file=str(self.home / "data" / "people.csv"), schema=SCHEMA, protecting="rows",
            budget="epsilon 5", ledger=home.ledger, copy=False, sheet=None, header=None, engine=None,
        ))  # fmt: skip
        for name, epsilon in analysts.items():
            Ledger(home.ledger).grant("people", name, Amount("epsilon", round(epsilon * QUANTA)))
        home.set_review("people@ben", "olga", needed=True)
        home.close()

    def start(self) -> str:
        """Starts the server; gives what it prints, the link of the first owner."""
        self.process = subprocess.Popen(
            [sys.executable, "-m", "jostle", "serve", "--home", str(self.home), "--port", str(self.port)],
            stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        lines = [self.process.stdout.readline()]
        if not (self.home / "data" / "people.csv").exists():
            lines.append(self.process.stdout.readline())
        for _ in range(300):
            with socket.socket() as there:
                if there.connect_ex(("127.0.0.1", self.port)) == 0:
                    return lines[-1].split()[-1]
            time.sleep(0.1)
        raise AssertionError("the server does not start")

    def kill(self) -> None:
        if self.process is not None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
            self.process.stdout.close()


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Chromium]:
    browser = Chromium(tmp_path_factory.mktemp("chromium"))
    yield browser
    browser.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    site = Site(tmp_path_factory.mktemp("site"))
    site.set_up()
    site.start()
    yield site
    site.kill()


@pytest.fixture
def keep(request: pytest.FixtureRequest) -> Callable[..., None]:
    """Keeps a picture of a page, tests its accessibility, and that it is no wider than its window."""
    folder = os.environ.get("JOSTLE_PICTURES")

    def keep(page: Page, name: str) -> None:
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            page.picture(Path(folder) / f"{request.node.name.removeprefix('test_')[:40]}-{name}.png")
        root = "document.documentElement"
        assert page.ask(f"{root}.scrollWidth <= {root}.clientWidth"), f"{name} is too wide"
        assert wrong_with(page) == [], name

    return keep


OURS = """(() => {
  const bad = [], name = e => (e.getAttribute('aria-label') || [...(e.labels || [])].map(l => l.innerText).join(' ')
    || e.innerText || e.alt || '').trim();
  const named = 'input:not([type=hidden]), select, textarea, button, a[href], img, summary';
  for (const e of document.querySelectorAll(named))
    if (e.checkVisibility() && !name(e)) bad.push('no name: ' + e.outerHTML);
  for (const e of document.querySelectorAll('[tabindex]'))
    if (e.tabIndex > 0) bad.push('tabindex: ' + e.outerHTML);
  const ids = [...document.querySelectorAll('[id]')].map(e => e.id);
  if (new Set(ids).size !== ids.length) bad.push('an id is there twice: ' + ids);
  for (const one of ['main', 'header', 'h1'])
    if (document.querySelectorAll(one).length !== 1) bad.push('not one ' + one);
  if (!document.documentElement.lang || !document.title) bad.push('no language or title');
  const seen = [...document.querySelectorAll('h1, h2, h3')].filter(e => e.checkVisibility());
  const heads = seen.map(e => Number(e.tagName[1]));
  heads.forEach((h, k) => { if (k && h > heads[k - 1] + 1) bad.push('a heading is skipped: ' + heads); });
  return bad;
})()"""


def wrong_with(page: Page) -> list[str]:
    """What keeps people out of a page: by rules of ours, and by axe where it is there."""
    wrong = list(page.ask(OURS))
    package = find_spec("axe_playwright_python")
    script = os.environ.get("AXE") or (str(Path(str(package.origin)).with_name("axe.min.js")) if package else "")
    if script and Path(script).is_file():
        page.ask(Path(script).read_text(encoding="utf-8") + "; true")
        given = page.ask(
            "axe.run(document, {resultTypes: ['violations']}).then(r => r.violations.map("
            "v => [v.impact, v.id, v.nodes.map(n => n.html.slice(0, 120) + ' ' + n.failureSummary)]))"
        )
        wrong += [f"{name}: {nodes[:3]}" for impact, name, nodes in given if impact in ("serious", "critical")]
    return wrong


def spent(site: Site, analyst: str) -> int:
    home = Home(site.home)
    try:
        return shares(home)[f"people@{analyst}"]
    finally:
        home.close()


def log_in(browser: Chromium, site: Site, name: str, *size: int, dark: bool = False) -> Page:
    page = browser.page(*size, dark=dark)
    page.go(f"{site.url}/login")
    page.until("document.activeElement.name === 'name'")
    page.type(name)
    page.key("Tab")
    page.type(PASSWORD)
    page.key("Enter")
    page.until(
        "document.querySelector('nav') && [...document.querySelectorAll('[data-show]')].every(e => e.children.length)"
    )
    return page


def write(page: Page, program: str) -> None:
    """Types a program into the empty editor; words that are offered are left where they are."""
    page.until("!!window.reprice")  # words are offered from then on
    if page.focused() != "A program in Jostle":
        page.tab_to("A program in Jostle")
    for line in program.split("\n"):
        page.type(line)
        page.key("Escape")
        page.key("Enter")


# The journeys ----------------------------------------------------------------------------------------


def test_01_an_owner_sets_up(browser: Chromium, tmp_path: Path, keep: Callable[..., None]) -> None:
    site = Site(tmp_path)
    link = site.start()
    try:
        (site.home / "data" / "people.csv").write_text("\n".join([*ROWS, "40,other"]) + "\n")
        page = browser.page()
        page.go(link)
        page.shows("Set your password")
        page.until("document.activeElement.name === 'password'")
        keep(page, "1-welcome")
        page.type(PASSWORD)
        page.key("Enter")
        page.shows("No data are registered yet")
        page.until("document.querySelector('[name=file]').options.length > 1")
        page.tab_to("Name")
        page.type("people")
        page.tab_to("File")
        page.choose("people.csv")
        page.tab_to("Description")
        page.type(SCHEMA)
        page.tab_to("Register")
        page.key("Enter")
        page.shows("protects rows")
        page.shows("registered")
        keep(page, "2-registered")
        page.tab_to("People", 120)
        page.key("Enter")
        page.shows("New account")
        page.tab_to("Name")
        page.type("ana")
        page.tab_to("Make a link")
        page.key("Enter")
        page.shows("Send this link to ana")
        keep(page, "3-people")
        page.go(f"{site.url}/")
        page.until("(e => e && e.options.length > 1)(document.querySelector('[name=analyst]'))")
        page.tab_to("Amount")
        page.tab_to("At most per program")
        page.type("epsilon 0.5")
        page.tab_to("Until")
        page.tab_to("each program waits")
        page.key(" ")
        page.tab_to("Grant")
        page.key("Enter")
        page.shows("at most epsilon 0.5 a program, each program waits for a reviewer")
        keep(page, "4-granted")
    finally:
        site.kill()


def test_02_an_analyst_goes_from_a_link_to_a_plot(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    home = Home(site.home)
    link = home.renew_link("ana", "olga")
    home.close()
    page = browser.page()
    page.go(f"{site.url}/welcome#{link}")
    page.until("document.activeElement.name === 'password'")
    page.type(PASSWORD)
    page.key("Enter")
    page.shows("Your data")
    page.tab_to("Write its line people")
    page.key("Enter")
    page.until("document.activeElement.id === 'text'")
    page.key("ArrowDown")
    page.type("release by_sex = {{ select count(*), avg(a")
    page.until("!words.hidden && words.innerText.includes('age')", ANSWER)
    keep(page, "1-words")
    page.key("ArrowDown")
    page.key("Enter")
    page.until("text.value.includes('avg(age')")
    page.type(") from people group by sex with epsilon 0.4 }}")
    page.shows("Costs epsilon 0.4 of people.", ANSWER)
    page.shows("epsilon 0 of 1 spent, 0.4 with this program")
    keep(page, "2-price")
    page.key("Control+Enter")
    page.shows("The answer leaves in")
    page.until("document.querySelector('svg.chart')", ANSWER)
    assert "epsilon 0.4 of 1 spent" in page.ask("document.body.innerText")  # as soon as it is there
    page.shows("Costs nothing while the data stay")
    assert page.ask("[...document.querySelectorAll('td.number')].every(e => e.innerText.includes('±'))")
    keep(page, "3-plot")
    page.tab_to("by_sex.csv")
    text = page.ask("fetch(document.activeElement.href).then(r => r.text())")
    assert text.splitlines()[0] == "sex,count,count_error,avg,avg_error"
    page.tab_to("What it did, step by step")
    page.key("Enter")
    page.until("location.pathname.endsWith('/trace') && document.readyState === 'complete'")
    assert "by_sex" in page.ask("document.body.innerText")


def test_03_a_program_is_reviewed(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    ben, rita = log_in(browser, site, "ben"), log_in(browser, site, "rita")
    ben.shows("each program waits for a reviewer")
    write(ben, DECLARED + BY_SEX)
    ben.shows("Costs epsilon 0.4 of people.")
    ben.key("Control+Enter")
    ben.shows("It waits for a reviewer")
    keep(ben, "1-waits")
    rita.go(f"{site.url}/reviews")
    rita.shows("It is the first of this analyst")
    for _ in range(90):
        if "The trace of the simulation" in str(rita.ask("document.body.innerText")):
            break
        time.sleep(1)
        rita.ask("refresh()")
    rita.shows("The trace of the simulation")
    keep(rita, "2-simulated")
    rita.tab_to("Note to the analyst")
    rita.type("half of that will do")
    rita.tab_to("Send back")
    rita.key("Enter")
    rita.shows("Nothing waits.")
    ben.go(f"{site.url}/history")
    ben.shows("half of that will do")
    keep(ben, "3-sent-back")
    ben.tab_to("release by_sex")
    ben.key("Enter")
    ben.shows("rita sent it back to be changed")
    ben.tab_to("Open in the editor")
    ben.key("Enter")
    ben.until("document.getElementById('text') && text.value.includes('0.4')")
    ben.tab_to("A program in Jostle")
    ben.ask("text.setSelectionRange(text.value.indexOf('0.4') + 2, text.value.indexOf('0.4') + 3)")
    ben.type("2")
    ben.shows("Costs epsilon 0.2 of people.")
    ben.key("Control+Enter")
    ben.shows("It waits for a reviewer")
    rita.ask("refresh()")
    rita.tab_to("Note to the analyst")
    rita.tab_to("Approve")
    rita.key("Enter")
    rita.shows("ben's program: running")
    ben.go(f"{site.url}/history")
    ben.tab_to("release by_sex")
    ben.key("Enter")
    ben.shows("Approved by rita", ANSWER)
    keep(ben, "4-approved")
    assert spent(site, "ben") == QUANTA // 5


def test_04_a_mistake_has_a_way_out(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    page = log_in(browser, site, "cleo")
    write(page, DECLARED + "release m = {{ select avg(agee) from people with epsilon 0.1 }}")
    page.shows("there is no column agee")
    page.shows("select avg(age) from people")
    keep(page, "1-mistake")
    page.key("F8")
    assert page.ask("text.value.slice(text.selectionStart, text.selectionEnd)") == "agee"
    page.type("age")
    page.shows("Costs epsilon 0.1 of people.")
    page.key("F1")
    page.until("!about.hidden")
    keep(page, "2-mended")
    page.tab_to("Tidy")
    page.key("Enter")
    page.key("Control+Enter")


TYPED_AHEAD = """new MutationObserver((_, seen) => {
  const box = document.getElementById("text");
  if (box) { seen.disconnect(); box.value = "y = 2"; }
}).observe(document, {childList: true, subtree: true});"""


def test_what_is_typed_before_the_page_is_ready_is_not_lost(browser: Chromium, site: Site) -> None:
    """The script of the page put what was stored into the editor, in place of what had been typed meanwhile."""
    page = log_in(browser, site, "cleo")
    page.until("!!window.reprice")
    page.call("Page.addScriptToEvaluateOnNewDocument", source=TYPED_AHEAD)
    for stored, shown in (("", "y = 2"), ("x = 1\n", "x = 1\ny = 2"), ("y = 2", "y = 2")):
        page.ask(f"sessionStorage.setItem('program', {stored!r})")
        page.go(f"{site.url}/")
        page.until("!!window.reprice")
        assert page.ask("text.value") == shown


def test_a_server_that_is_busy_is_asked_again(browser: Chromium, site: Site) -> None:
    """Where all its connections are taken, it says so in words that are no JSON: the price never came then."""
    page = log_in(browser, site, "cleo")
    page.until("!!window.reprice")
    busy = "new Response('Service Unavailable', {status: 503})"
    page.ask(f"sessionStorage.clear(); real = window.fetch; window.fetch = async () => {busy}; true")
    write(page, "release x = 1")
    page.shows("The server is busy.")
    page.ask("window.fetch = real; true")
    page.shows("Costs nothing")


def test_05_a_budget_is_gone(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    page = log_in(browser, site, "dora")
    write(page, DECLARED + "release n = {{ select count(*) from people with epsilon 0.9 }}")
    page.shows("More than the epsilon 0.5 that is left of your grant")
    keep(page, "1-too-much")
    page.key("Control+Enter")
    page.until("document.querySelector('[data-result] .fault')", ANSWER)
    page.shows("epsilon 0 of 0.5 spent")
    keep(page, "2-refused")


def test_06_a_freeze_while_a_program_waits(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    ben, olga, rita = (log_in(browser, site, name) for name in ("ben", "olga", "rita"))
    write(ben, DECLARED + "release n = {{ select count(*) from people with epsilon 0.3 }}")
    ben.shows("Costs epsilon 0.3 of people.")
    ben.key("Control+Enter")
    ben.shows("It waits for a reviewer")
    olga.tab_to("Freeze the grant of ben")
    olga.key("Enter")
    olga.shows("frozen")
    keep(olga, "1-frozen")
    rita.go(f"{site.url}/reviews")
    rita.tab_to("Approve")
    rita.key("Enter")
    rita.shows("ben's program: running")
    ben.go(f"{site.url}/history")
    ben.tab_to("release n =")
    ben.key("Enter")
    ben.shows("your grant on people is frozen", ANSWER)
    keep(ben, "2-refused")
    assert spent(site, "ben") <= QUANTA // 5


def test_07_on_a_phone(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    page = log_in(browser, site, "emil", 390, 844)
    keep(page, "1-work")
    write(page, DECLARED + BY_SEX)
    page.shows("Costs epsilon 0.4 of people.")
    page.key("Control+Enter")
    page.until("document.querySelector('svg.chart')", ANSWER)
    page.shows("Costs nothing while the data stay")
    keep(page, "2-answer")
    for name in ("olga", "aldo", "rita"):
        other = log_in(browser, site, name, 390, 844)
        keep(other, f"3-{name}")
        for path in {"olga": ("/people", "/audit"), "aldo": ("/audit",), "rita": ("/reviews", "/account")}[name]:
            other.go(site.url + path)
            other.until("document.querySelector('[data-show]').children.length")
            keep(other, f"4-{name}{path.replace('/', '-')}")


def test_08_in_the_dark(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    page = log_in(browser, site, "emil", dark=True)
    write(page, DECLARED + BY_SEX.replace("avg(age)", "avg(agee)"))
    page.shows("avg(age)")
    keep(page, "1-work")
    page.go(f"{site.url}/history")
    page.tab_to("release by_sex")
    page.key("Enter")
    page.until("document.querySelector('svg.chart')", ANSWER)
    keep(page, "2-run")
    owner = log_in(browser, site, "olga", dark=True)
    owner.until("document.querySelector('article')")
    keep(owner, "3-data")


def test_09_a_page_reconnects_after_a_crash(browser: Chromium, site: Site, keep: Callable[..., None]) -> None:
    page = log_in(browser, site, "fay")
    write(page, DECLARED + "release n = {{ select count(*) from people with epsilon 0.25 }}")
    page.shows("Costs epsilon 0.25 of people.")
    page.key("Control+Enter")
    page.shows("The answer leaves in")
    site.kill()
    page.shows("the answer will be there when it is back")
    keep(page, "1-away")
    site.start()
    page.until("document.querySelector('.value')", ANSWER)
    keep(page, "2-back")
    assert spent(site, "fay") == QUANTA // 4


def test_10_an_auditor_verifies(browser: Chromium, site: Site, keep: Callable[..., None], tmp_path: Path) -> None:
    from jostle.tools.entry import main

    page = log_in(browser, site, "aldo")
    page.shows("protects rows")
    page.tab_to("Verify people")
    page.key("Enter")
    page.shows("The history of people holds")
    keep(page, "1-data")
    page.go(f"{site.url}/audit")
    page.shows("The chain holds")
    keep(page, "2-log")
    page.tab_to("Download the log")
    log = page.ask("fetch(document.activeElement.href).then(r => r.text())")
    (tmp_path / "log.json").write_text(log)
    assert main(["serve", "--verify", str(tmp_path / "log.json")]) == 0
    (tmp_path / "log.json").write_text(json.dumps({"audit": json.loads(log)["audit"][1:]}))
    assert main(["serve", "--verify", str(tmp_path / "log.json")]) == 1
    assert shutil.which("chromium") or PROGRAM


def test_a_page_shows_texts_as_a_terminal_does(site: Site, browser: Chromium) -> None:
    """Of all below U+30000: what turns a line or is shown as nothing is a sign, in the script as in the package."""
    from jostle.trace.text import clean

    page = browser.page()
    page.go(f"{site.url}/login")
    page.shows("Log in")
    codes = [code for code in range(0x30000) if not 0xD800 <= code < 0xE000]
    changed = page.ask(
        "Array.from({length: 0x30000}, (_, k) => k).filter(k => (k < 0xd800 || k > 0xdfff) && "
        "shown(String.fromCodePoint(k)) !== String.fromCodePoint(k)).join(' ')"
    )
    here, there = {code for code in codes if clean(chr(code)) != chr(code)}, set(map(int, changed.split()))
    assert {one for one in here ^ there if unicodedata.category(chr(one)) not in ("Cn", "Co")} == set()
