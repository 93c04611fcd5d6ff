"""The web page of a run, and that of two runs side by side."""

from jostle.trace.html.difference import difference_page
from jostle.trace.html.page import page

__all__ = ["difference_page", "page"]
