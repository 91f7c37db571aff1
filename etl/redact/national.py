"""National ids: numbers that one country gives to one person, told by their form and what of it can be checked.

What is checked is checked by python-stdnum. A number that is written like any other (nine or eleven digits in a row)
counts only where a word before it says what it is.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from etl.redact.escapes import View
from etl.redact.families import Found

_BEFORE, _AFTER = r"(?<![\w.+-])", r"(?![\w-])"
_NOT_BEFORE, _NOT_AFTER = r"(?:^|[^\w.+-])", r"(?:[^\w-]|$)"
"""The same for the sifting of whole columns, which looks neither back nor ahead."""


class National(NamedTuple):
    """Ids of one country: how they are written (in RE2 and Python alike), and what checks them."""

    form: str
    check: str
    """The module of python-stdnum, or `british`."""


class Named(NamedTuple):
    """Ids of one country that are told only by the word before them."""

    word: str
    form: str
    check: str


@functools.cache
def _checker(name: str) -> Callable[[str], bool]:
    """Loaded when a number of that form is met: most logs hold few kinds."""
    if name == "british":
        return _is_british
    is_valid: Callable[[str], bool] = importlib.import_module(f"stdnum.{name}").is_valid

    def check(value: str) -> bool:
        try:
            return is_valid(value)
        except LookupError:  # of a place that the tables of the library do not know (python-stdnum 2.2, China)
            return False

    return check


def _is_british(value: str) -> bool:
    """True but for the prefixes that are never given (HMRC's NIM39110); there is no check digit."""
    return value[:2].upper() not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


_FORMS = (
    National(r"\d{3}-\d{2}-\d{4}", "us.ssn"),
    National(r"\d{3}\.\d{3}\.\d{3}-\d{2}", "br.cpf"),
    National(r"756\.\d{4}\.\d{4}\.\d{2}", "ch.ssn"),
    National(r"(?:19|20)?\d{6}[-+]\d{4}", "se.personnummer"),
    National(r"\d{8}-?[A-Z]", "es.dni"),
    National(r"[XYZ]-?\d{7}-?[A-Z]", "es.nie"),
    National(r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", "it.codicefiscale"),
    National(r"[12] \d\d (?:0[1-9]|1[0-2]) \d[\dAB] \d{3} \d{3} \d\d", "fr.nir"),
    National(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", "british"),
    National(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", "be.nn"),
    National(r"\d{6}[-+A]\d{3}[0-9A-Y]", "fi.hetu"),
    National(r"\d{1,2}\.\d{3}\.\d{3}-[\dKk]", "cl.rut"),
    National(r"\d{6}-[1-4]\d{6}", "kr.rrn"),
    National(r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d", "mx.curp"),
    National(r"[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])[0-3]\d{4}[\dX]", "cn.ric"),
    National(r"[2-9]\d{3} \d{4} \d{4}", "in_.aadhaar"),
    National(r"\d{6}/\d{3,4}", "cz.rc"),
)
_WORDS = (
    Named(r"ssn|social.?security(?:.?(?:number|no))?", r"\d{9}|\d{3} \d{2} \d{4}", "us.ssn"),
    Named(r"social.?insurance(?:.?(?:number|no))?|\bsin", r"\d{3}[ -]?\d{3}[ -]?\d{3}", "ca.sin"),
    Named(r"nhs(?:.?(?:number|no))?", r"\d{3}[ -]?\d{3}[ -]?\d{4}", "gb.nhs"),
    Named(r"tfn|tax.?file(?:.?(?:number|no))?", r"\d{3} ?\d{3} ?\d{2,3}", "au.tfn"),
    Named(r"cpf", r"\d{11}", "br.cpf"),
    Named(r"rut|(?-i:\bRUN)", r"\d{7,8}-?[\dKk]", "cl.rut"),
    Named(r"aadhaar|aadhar", r"\d{12}|\d{4}-\d{4}-\d{4}", "in_.aadhaar"),
    Named(r"pesel", r"\d{11}", "pl.pesel"),
    Named(r"bsn|burgerservicenummer", r"\d{9}", "nl.bsn"),
    Named(
        r"steuer(?:liche )?.?(?:id(?:entifikationsnummer)?|nummer)|identifikationsnummer|idnr|tax.?id",
        r"\d{2} ?\d{3} ?\d{3} ?\d{3}",
        "de.idnr",
    ),
    Named(r"nir|s[?e]curit[?e].sociale|num[?e]ro.de.s[?e]cu", r"[12]\d{12}(?:\d{2})?", "fr.nir"),
    Named(r"personnummer|personal.?(?:identity.?)?number", r"\d{10}|\d{12}", "se.personnummer"),
    Named(r"national.?insurance|\bnino", r"[A-Za-z]{2} ?\d\d ?\d\d ?\d\d ?[A-Da-d]", "british"),
    Named(r"(?:sa|south.african).?id|id.?number|identity.?number", r"\d{13}|\d{6} \d{4} \d{3}", "za.idnr"),
    Named(r"pan(?:.?(?:card|number|no))?|permanent.account.number", r"[A-Za-z]{5}[0-9]{4}[A-Za-z]", "in_.pan"),
    Named(r"rijksregister|national.?register", r"\d{11}", "be.nn"),
)
_APART = 72
"""Characters between a word and a number that stands further on, with no other number between them."""
_GAP = r"[^\w\n]{0,6}(?:(?:is|of|no|number|num|nr|n|value|text|:|=|#)[^\w\n]{0,6}){0,2}"
"""What may stand between the word and the number."""

SUSPECT = (
    f"{_NOT_BEFORE}(?:{'|'.join(national.form for national in _FORMS)}){_NOT_AFTER}"
    rf"|(?i:(?:^|[^A-Za-z])(?:{'|'.join(named.word.replace('[?e]', '.') for named in _WORDS)})"
    rf"[^\n]*(?:\n[^\n]*)?(?:\d[\d ./-]{{7}}|[A-Z]{{2}} *\d|[A-Z]{{5}}\d))"
)
"""What a string must match (in RE2, on its padded form) before `found` can find something."""


@functools.cache
def _compiled() -> list[tuple[re.Pattern[str], str]]:
    """Every form as Python looks for it, with what checks it."""
    forms = [(rf"{_BEFORE}(?<!\d )(?P<value>{national.form}){_AFTER}(?! \d)", national.check) for national in _FORMS]
    for named in _WORDS:
        forms.append((rf"(?i)(?<![A-Za-z])(?:{named.word})(?!\(){_GAP}(?P<value>{named.form}){_AFTER}", named.check))
        apart = (
            rf"(?<![A-Za-z])(?P<word>(?i:{named.word}))(?![A-Za-z(])[^\d]{{1,{_APART}}}?"
            rf"(?:(?<=\s)\d{{1,5}}[?\t|:][^\d]{{0,{_APART}}}?)?"
        )
        forms.append((rf"{apart}{_BEFORE}(?P<value>(?i:{named.form})){_AFTER}", named.check))
    return [(re.compile(form), check) for form, check in forms]


def found(view: View) -> Iterator[Found]:
    """The national ids in a view."""
    text = view.text
    for form, check in _compiled():
        for match in form.finditer(text):
            if "word" in form.groupindex and not _says_enough(match):
                continue
            if _checker(check)(match["value"]):
                yield "national_id", *match.span("value"), _bare(match["value"])
    yield from _in_columns(text)


def _says_enough(match: re.Match[str]) -> bool:
    """A word that is short counts at a distance where it is written as an abbreviation; two lines are the most."""
    word = match["word"]
    return (word.isupper() or len(word) > 6) and match.group().count("\n") <= 1


def _in_columns(text: str) -> Iterator[Found]:
    """What stands in a column of a table (CSV and its like) whose head is a word for an id."""
    for named in _WORDS:
        for head in re.finditer(
            rf"(?im)^(?P<before>[^\n]*[,;\t|?> ]|)[\"']?(?:{named.word})[\"']?[ ]*(?=[,;\t|\n])", text
        ):
            before = _LINE_NUMBER.sub("", _OF_JSON.sub("", head["before"]))
            mark = next((mark for mark in ",;\t|" if mark in before or text.startswith(mark, head.end())), None)
            if mark is None:
                continue
            yield from _column(text, text.find("\n", head.end()), mark, before.count(mark), named)


def _column(text: str, place: int, mark: str, index: int, named: Named) -> Iterator[Found]:
    while 0 <= place < len(text) - 1:
        end = text.find("\n", place + 1)
        line = text[place + 1 : end if end >= 0 else len(text)]
        shown = _LINE_NUMBER.sub(lambda match: " " * len(match.group()), line)
        cells = shown.split(mark)
        if len(cells) <= index:
            return
        cell = cells[index]
        value = cell.strip(" \"'\r}])")
        if re.fullmatch(named.form, value, re.IGNORECASE) and _checker(named.check)(value):
            start = place + 1 + len(mark.join(cells[:index])) + (index > 0) + cell.index(value)
            yield "national_id", start, start + len(value), _bare(value)
        place = end


def _bare(value: str) -> str:
    return re.sub(r"\W", "", value).upper()


_OF_JSON = re.compile(r".*[:\[,] ?\"(?=[\w ])")
"""What stands before a text that is a value of JSON."""
_LINE_NUMBER = re.compile(r"^[ >+-]*(?:\d{1,5}[ ]?[?\t|:][ ]?)?")
"""What views of files and patches put before a line."""
