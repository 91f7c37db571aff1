"""Phone numbers: by their country code, by the form they have in North America, or by a word that says so.

Whether digits can be a number of a country is told by phonenumbers, Google's data on every numbering plan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from etl.redact.anchors import merged
from etl.redact.escapes import View
from etl.redact.families import Family, Found
from etl.redact.regex import regex

_GAP = r"[ ().\-/?]{0,3}"
"""What stands between the digits of one number; a `?` is a character outside ASCII, such as a space that holds."""
_PLUS = regex(
    rf"(?<![\w+.])(?P<value>\+[1-9]\d{{7,14}}(?![\d.])|(?:\+ ?|00|011[ -]?)[1-9](?:{_GAP}\d){{6,14}}(?![\w-])(?!\.\d))"
)
_NORTH_AMERICA = regex(
    r"(?<![\w.+-])(?<!\d )(?P<value>(?:1[-. ?])?(?:\([2-9]\d\d\)[ ?-]?|[2-9]\d\d[-. ?/])[2-9]\d\d[-. ?]\d{4}"
    r"(?: ?(?:x|ext\.?) ?\d{1,6})?)(?![\w-])(?!\.\d)(?! \d)"
)
_WORDS = (
    r"phone|\btel\b|\btel[.:]|telef|telephone|t[?]l[?]phone|t[?]phone|mobil|m[?]vil|m[?]bil|\bcell|\bcelular"
    r"|\b(?:call|text|ring|reach|message) (?:me|us|him|her|them)\b|\bcall(?:ed|ing)? back\b|\bcallback\b|\bcaller\b"
    r"|\btfno\b|\btlf\b|puhelin|cellulare|\bgsm\b|\bmob[.:]|\bt[?]l[.:]?\b|\bfone\b|landline|helpline"
    r"|\bfax\b|whats?app|\bsms\b|handy|hotline|rufnummer|\bcontact.?(?:no|number)|msisdn"
)
_CALLED = regex(
    rf"(?i)(?:{_WORDS})(?!_?ids?\b)[^\d+\n]{{0,24}}?(?P<value>\(?0?\d(?:{_GAP}\d){{6,13}})(?![\w-])(?!\.\d)"
)
_NEAR_WORDS = (
    r"\bcall(?:s|ed|ing)?\b|\bdial(?:l?ed|l?ing)?\b|\bring\b"
    r"|[\"'](?:to|from|recipients?|sender|callee|ani|dnis) *[\"'] *[:=]|\b(?:to|from_|from|recipient)=[\"']"
)
"""What says no more than that a number in groups may be a phone's."""
_NUMBER = r"\bnumber (?:is|can|to|from|at|on)\b"
_OF_ANOTHER = "".join(
    rf"(?<!{word} )"
    for word in ("order", "serial", "ticket", "case", "invoice", "account", "tracking", "reference", "part")
)
"""What says before that word that it is no phone's."""
_WORD = regex(rf"(?i)(?:{_WORDS}|{_NEAR_WORDS}|{_OF_ANOTHER}{_NUMBER})")
_NATIONAL = regex(
    rf"(?<![\w.+#/-])(?<!\d )(?P<value>(?:\(0?\d{{1,4}}\)|0\d|\d{{2,5}}[ /-])(?:{_GAP}\d){{5,12}})(?![\w-])(?!\.\d)"
)
"""A number as people write one of their own country: with its area code, a zero before it, or in groups."""
_ASIDE = regex("телефон|тел\\.|电话|電話|手机|手機|携帯|전화|휴대폰|טלפון|هاتف|फ़ोन|फोन")
"""Words for a phone in letters that are no Latin ones."""
_DATE = regex(
    r"(?:19|20)\d\d[-/ ](?:0?[1-9]|1[0-2])[-/ ](?:0?[1-9]|[12]\d|3[01])(?!\d)|\d{1,2}[-/]\d{1,2}[-/](?:19|20)?\d\d\Z"
)
_DUMP = regex(r"\b(?:[0-9][a-f]|[a-f][0-9a-f])\b")
"""A byte beside others in a dump of a file or a network."""
_RUN = regex(r"\d[\d ().\-/?]{5,}")
_FEWEST = 6
"""Digits of the shortest number that is told from others."""
_AROUND = 72
"""Characters around digits that are looked at: more than a word right before them needs."""
_LONGEST_WORD = 32
_NEAR = 80
"""Characters between a word and a number of its own country that is not right after it."""
_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "NL", "IN", "BR", "MX", "AU", "JP", "PL", "SE", "CH", "AT", "BE")
"""Where a number without a country code may be of, when a word says that it is one."""

_SIFT_GAP = r"(?:[ ().\-/]|[^\x00-\x7f]){0,4}"
_SIFT_WORDS = _WORDS.replace("[?]", ".") + f"|{_NEAR_WORDS}|{_NUMBER}"


def _with_country(view: View) -> Iterator[Found]:
    """Kind, place, and E.164."""
    for match in _PLUS.finditer(view.text):
        number = _parsed("+" + re.sub(r"\A(?:00|011)|\D", "", match["value"].replace(" ", "")), None)
        if number:
            yield "phone", *match.span("value"), number


def _of_north_america(view: View) -> Iterator[Found]:
    for match in _NORTH_AMERICA.finditer(view.text):
        digits = re.sub(r"\D", "", re.split("[xe]", match["value"])[0])
        yield "phone", *match.span("value"), "+1" + digits[-10:]


def _called(view: View) -> Iterator[Found]:
    """Numbers that a word says are phones', where digits are that can be a number's."""
    text = view.text
    for start, end in _regions(text):
        for match in _CALLED.finditer(text, start, end):
            number = _national(match["value"])
            if number and not _DUMP.search(text, match.end(), match.end() + 8):
                yield "phone", *match.span("value"), number
        for match in _NATIONAL.finditer(text, start, end):
            first, last = match.span("value")
            if not _DUMP.search(text, max(0, first - 8), last + 8) and _is_near_word(view, first, last):
                number = _national(match["value"])
                if number:
                    yield "phone", first, last, number


def _regions(text: str) -> Iterator[tuple[int, int]]:
    """Where digits are that can be a number's, with what may be said of it around them."""
    runs = (run for run in _RUN.finditer(text) if sum(map(str.isdigit, run.group())) >= _FEWEST)
    return merged((run.start() - _AROUND, run.end() + _AROUND) for run in runs)


def _is_near_word(view: View, first: int, last: int) -> bool:
    start, end = max(0, first - _NEAR - _LONGEST_WORD), last + _NEAR // 2 + _LONGEST_WORD
    words = list(_WORD.finditer(view.text, start, end))
    if not view.flat.isascii():
        words += _ASIDE.finditer(view.flat, start, end)
    return any(word.start() - _NEAR // 2 <= last and first <= word.end() + _NEAR for word in words)


def _national(value: str) -> str | None:
    """The number in E.164 form, in the first country where it is one."""
    if _DATE.match(value):
        return None
    numbers = (_parsed(value.replace("?", " "), region, valid=True) for region in _REGIONS)
    return next((number for number in numbers if number), None)


def _parsed(value: str, region: str | None, *, valid: bool = False) -> str | None:
    """The number in E.164 form, where it can be one."""
    import phonenumbers

    try:
        number = phonenumbers.parse(value, region)
    except phonenumbers.NumberParseException:
        return None
    fits = phonenumbers.is_valid_number(number) if valid else phonenumbers.is_possible_number(number)
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)) if fits else None


FAMILIES = (
    Family("phone of a country", rf"(?:\+ ?|(?:^|[^\w+.])(?:00|011[ -]?))[1-9](?:{_SIFT_GAP}\d){{6}}", _with_country),
    Family(
        "phone of North America",
        r"(?:^|[^\w.+-])(?:1(?:[-. ]|[^\x00-\x7f])?)?(?:\([2-9]\d\d\)|[2-9]\d\d)(?:[-. /]|[^\x00-\x7f])?"
        r"[2-9]\d\d(?:[-. ]|[^\x00-\x7f])\d{4}",
        _of_north_america,
    ),
    Family("phone that is called so", rf"(?i:{_SIFT_WORDS})|{_ASIDE.pattern}", _called),
)
