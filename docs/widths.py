"""Are all pages whole in a browser? `python -m docs.widths SITE [--write]`, for pages that `python -m docs.build` made.

Every page is opened at two widths, in light and in dark. Nothing in it may be cut: the page never scrolls sideways, and
a table or drawing that is wider than its column scrolls in a box of its own. No page may ask another host for anything.
Searches that a reader makes must find the page that answers first. `--write` keeps the result in
`docs/experiments/site.md`.
"""

from __future__ import annotations

import argparse
import datetime
import itertools
import sys
from pathlib import Path
from typing import Any

from docs.browser import Browser, browser

WIDTHS = (1280, 390)
RESULT = Path(__file__).resolve().parent / "experiments" / "site.md"
# What is searched for, and the beginnings of the pages that may come first.
SEARCHES: dict[str, tuple[str, ...]] = {
    "median": ("howto/", "reference/"),
    "average": ("howto/", "reference/"),
    "missing values": ("howto/",),
    "join": ("howto/", "language"),
    "correlation": ("howto/", "reference/", "statistics"),
    "synthetic data": ("howto/", "synthetic", "reference/"),
    "notebook": ("howto/", "tools"),
    "dawa": ("reference/", "stdlib", "howto/"),
    "BudgetExceeded": ("reference/",),
}
MEASURED = """
(async () => {
  const wide = innerWidth, root = document.documentElement, cut = []
  const pause = () => new Promise(r => setTimeout(r, 40))
  await pause()  // what is laid out anew for a width comes to rest within a second
  for (let i = 0; i < 25 && root.scrollWidth > root.clientWidth; i++) await pause()
  if (root.scrollWidth > root.clientWidth) cut.push("the page scrolls sideways")
  const article = document.querySelector("article")
  const scrolls = e => ["auto", "scroll"].includes(getComputedStyle(e).overflowX)
  let tables = 0, boxes = 0
  for (const e of article.querySelectorAll("table, img, svg, pre, p, li, h1, h2, h3, .card")) {
    if (!e.getClientRects().length || e.closest(".visually-hidden, svg svg, .thumb")) continue
    let box = e.parentElement
    while (box !== article && !scrolls(box)) box = box.parentElement
    if (e.tagName === "TABLE" && !e.closest(".highlighttable")) {
      tables++
      if (box !== article && box.scrollWidth > box.clientWidth + 1) boxes++
    }
    const right = e.getBoundingClientRect().right
    const edge = e.tagName === "PRE" ? wide : article.getBoundingClientRect().right  // code is as wide as a phone
    if (box === article && right > edge + 1)
      cut.push(e.tagName.toLowerCase() + " " + Math.round(right) + " " + e.textContent.trim().slice(0, 40))
  }
  return {cut, tables, boxes}
})()
"""
SEARCHED = """
(async () => {
  const input = document.querySelector(".md-search__input")
  document.querySelector("#__search").checked = true
  document.querySelector("#__search").dispatchEvent(new Event("change", {bubbles: true}))
  input.focus()
  input.value = %r
  for (let wait = 0; wait < 100; wait++) {
    input.dispatchEvent(new KeyboardEvent("keyup", {bubbles: true}))
    await new Promise(r => setTimeout(r, 100))
    const found = [...document.querySelectorAll(".md-search-result__link")].map(a => a.href)
    if (found.length) return found.slice(0, 5)
  }
  return []
})()
"""


def measure(tab: Browser, site: Path) -> tuple[dict[str, int], list[str]]:
    """Numbers of what was looked at, and what is wrong."""
    numbers = {"pages": 0, "tables": 0, "in a box": 0}
    faults = []
    pages = sorted(page for page in site.rglob("*.html") if page.name != "404.html")
    for page in pages:
        tab.window(WIDTHS[0], 900, False)
        tab.open(page.as_uri())
        for width, dark in itertools.product(WIDTHS, (False, True)):
            tab.window(width, 900, dark)
            said: dict[str, Any] = tab.value(MEASURED)
            numbers["pages"] += 1
            numbers["tables"] += said["tables"]
            numbers["in a box"] += said["boxes"]
            scheme = "dark" if dark else "light"
            faults += [f"{page.relative_to(site)} at {width}, {scheme}: {words}" for words in said["cut"]]
    elsewhere = {address for address in tab.requests if not address.startswith(("file:", "data:", "about:"))}
    faults += [f"asked another host: {address}" for address in sorted(elsewhere)]
    return numbers, faults


def search(tab: Browser, site: Path) -> tuple[dict[str, str], list[str]]:
    """The first page that each search finds, and the searches that find another than they should."""
    found, faults = {}, []
    tab.window(WIDTHS[0], 900, False)
    for words, wanted in SEARCHES.items():
        tab.open((site / "index.html").as_uri())
        places = [place.removeprefix(site.as_uri() + "/") for place in tab.value(SEARCHED % words)]
        found[words] = places[0].partition("?")[0] if places else "nothing"
        if not found[words].startswith(wanted):
            faults.append(f"{words!r} finds {places}")
    return found, faults


def report(numbers: dict[str, int], found: dict[str, str], day: datetime.date) -> str:
    """The result as a page."""
    rows = "\n".join(f"| {words} | `{place}` |" for words, place in found.items())
    return f"""# These pages in a browser

Whether every page of the documentation is whole in a browser, and what a search finds first.
No page is cut or scrolls sideways, and no page asked another host for anything.

## Method

Headless Chromium, from the disk, without a network: every page at {WIDTHS[0]} and {WIDTHS[1]} pixels, in light and in
dark. {day:%d %B %Y}.

    python -m docs.build build/site && python -m docs.widths build/site --write

## Results

{numbers["pages"]} views have {numbers["tables"]:,} tables, of which {numbers["in a box"]} are wider than their column
and scroll in a box of their own. What a search finds first:

| search | page |
|---|---|
{rows}
"""


def main() -> int:
    """Looks at all pages; 1 where something is wrong."""
    words = argparse.ArgumentParser(prog="python -m docs.widths", description="Are all pages whole in a browser?")
    words.add_argument("site", type=Path, help="the folder of the pages")
    words.add_argument("--write", action="store_true", help=f"keep the result in {RESULT.name}")
    asked = words.parse_args()
    site = asked.site.resolve()
    with browser() as tab:
        numbers, faults = measure(tab, site)
        found, wrong = search(tab, site)
    for fault in faults + wrong:
        print(fault)
    print(numbers)
    if asked.write and not faults + wrong:
        RESULT.write_text(report(numbers, found, datetime.date.today()), encoding="utf-8")
    return 1 if faults or wrong else 0


if __name__ == "__main__":
    sys.exit(main())
