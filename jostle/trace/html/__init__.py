"""The web page of a run, and that of two runs side by side."""

from jostle.trace.html.page import difference_page, page

__all__ = ["difference_page", "page"]
