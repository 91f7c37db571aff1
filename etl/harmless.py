"""Log text made harmless for a terminal: what would move its cursor or reorder its lines becomes visible."""

from __future__ import annotations

import json

_MARKS = (0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A))
"""Characters that change the direction of the text around them."""
_BREAKS = (0x2028, 0x2029)
_INVISIBLE = (0x200B, 0x2060, 0xFEFF, *range(0xE0000, 0xE0080))
"""Characters that show nothing: a text can hide in them."""

_VISIBLE: dict[int, str] = (
    {code: chr(0x2400 + code) for code in range(0x20) if chr(code) not in "\n\t"}
    | {0x7F: "\u2421"}
    | {code: f"\\x{code:02x}" for code in range(0x80, 0xA0)}
    | {code: f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}" for code in (*_MARKS, *_BREAKS, *_INVISIBLE)}
    | dict.fromkeys(range(0xD800, 0xE000), "\ufffd")
)


_ESCAPED: dict[int, str] = {
    code: json.dumps(chr(code))[1:-1] for code in (0x7F, *range(0x80, 0xA0), *_MARKS, *_BREAKS, *_INVISIBLE)
}


def harmless(text: str) -> str:
    r"""The text with control, direction and invisible characters shown instead of obeyed; line ends and tabs stay.

    >>> harmless("a\x1b[2Jb\u202ec\r\nd")
    'a␛[2Jb\\u202ec\nd'
    """
    return text.replace("\r\n", "\n").translate(_VISIBLE)


def harmless_line(text: str) -> str:
    r"""The same on one line.

    >>> harmless_line("a\nb\tc")
    'a␊b c'
    """
    return harmless(text).replace("\n", "\u240a").replace("\t", " ")


def json_escaped(text: str) -> str:
    r"""JSON text that says the same with these characters as escapes.

    >>> json_escaped('"a\u202eb\x9b"')
    '"a\\u202eb\\u009b"'
    """
    return text if text.isascii() and "\x7f" not in text else text.translate(_ESCAPED)
