"""Text out of the little HTML that help desks keep messages in."""

from __future__ import annotations

import html
import re
from html.parser import HTMLParser

_TAG = re.compile(
    r"<(?:p|br|div|a|ul|ol|li|b|i|strong|em|img|h[1-6]|pre|code|span|table|blockquote)(?:\s+[\w-]+\s*=[^>]*|\s*/?)>",
    re.IGNORECASE,
)
_BLOCKS = frozenset(
    {"p", "div", "br", "li", "ul", "ol", "h1", "h2", "h3", "h4", "h5", "h6", "pre", "table", "tr", "blockquote"}
)
_PLAIN = frozenset({"p", "br", "div"})


class _Text(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.pieces: list[str] = []
        self.files: list[str] = []
        self.rich = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.rich = self.rich or tag not in _PLAIN or bool(attrs)
        if tag in _BLOCKS:
            self.pieces.append("\n")
        if tag == "li":
            self.pieces.append("- ")
        self.files += [value for name, value in attrs if tag == "img" and name == "src" and value]

    def handle_endtag(self, tag: str) -> None:
        if tag in _BLOCKS:
            self.pieces.append("\n")

    def handle_data(self, data: str) -> None:
        self.pieces.append(data)


def text_of_html(body: str) -> tuple[str, list[str], bool]:
    """The text, the images, and whether the HTML says more than that (links, emphasis, lists).

    >>> text_of_html("<p>Hello &amp; welcome</p><p>Bye</p>")
    ('Hello & welcome\\nBye', [], False)
    >>> text_of_html("1 < 2")
    ('1 < 2', [], False)
    """
    if _TAG.search(body) is None:
        return html.unescape(body) if "&" in body and ";" in body else body, [], False
    reading = _Text()
    reading.feed(body)
    reading.close()
    lines = [line.strip() for line in "".join(reading.pieces).split("\n")]
    return "\n".join(line for line in lines if line), reading.files, reading.rich
