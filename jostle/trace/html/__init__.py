"""The trace of a run as a web page: `page(events)`. Each part of the page has a file."""

from jostle.trace.html.page import page

__all__ = ["page"]
