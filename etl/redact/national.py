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
    return is_valid


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
    Named(r"rut|\brun", r"\d{7,8}-?[\dKk]", "cl.rut"),
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
_GAP = r"[^\w\n]{0,6}(?:(?:is|of|no|number|num|nr|n|value|text|:|=|#)[^\w\n]{0,6}){0,2}"
"""What may stand between the word and the number."""

SUSPECT = (
    f"{_NOT_BEFORE}(?:{'|'.join(national.form for national in _FORMS)}){_NOT_AFTER}"
    rf"|(?i:(?:^|[^A-Za-z])(?:{'|'.join(named.word.replace('[?e]', '.') for named in _WORDS)})"
    rf"(?:[^\w\n]|is|of|no|number|num|nr|n|value|text)*(?:\d[\d ./-]{{7}}|[A-Z]{{2}} *\d|[A-Z]{{5}}\d))"
)
"""What a string must match (in RE2, on its padded form) before `found` can find something."""


@functools.cache
def _compiled() -> list[tuple[re.Pattern[str], str]]:
    """Every form as Python looks for it, with what checks it."""
    forms = [(f"{_BEFORE}(?P<value>{national.form}){_AFTER}", national.check) for national in _FORMS]
    forms += [
        (rf"(?i)(?<![A-Za-z])(?:{named.word}){_GAP}(?P<value>{named.form}){_AFTER}", named.check) for named in _WORDS
    ]
    return [(re.compile(form), check) for form, check in forms]


def found(view: View) -> Iterator[Found]:
    """The national ids in a view."""
    text = view.text
    for form, check in _compiled():
        for match in form.finditer(text):
            if _checker(check)(match["value"]):
                yield "national_id", *match.span("value"), re.sub(r"\W", "", match["value"]).upper()
