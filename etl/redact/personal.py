"""Personal data by its form: addresses, numbers with a check digit or a checked structure, each with a pseudonym.

Equal values get equal labels within a lake (a keyed HMAC), however they are written, so that calls, results and text
still agree and joins work. What can be checked is checked, by libraries whose work that is: IBANs, cards and national
ids by python-stdnum, phone numbers by phonenumbers, IP addresses by Python. Names and postal addresses have no form
that could be told; they stay.
"""

from __future__ import annotations

import hashlib
import hmac
import ipaddress
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

import phonenumbers
from stdnum import iban, luhn
from stdnum.br import cpf
from stdnum.ch import ssn as swiss
from stdnum.es import dni, nie
from stdnum.fr import nir
from stdnum.it import codicefiscale
from stdnum.se import personnummer
from stdnum.us import ssn

from etl.redact.escapes import View
from etl.redact.spans import Span, pseudonym

VERSION = "personal-1"
"""Changes when one of these rules does."""
RANK = 1
"""Below the rules for secrets: an address in the login of a URL is the login's."""

_BEFORE, _AFTER = r"(?<![\w.+-])", r"(?![\w-])"
_EMAIL = re.compile(
    r"(?<![\w.%+'/:@-])(?:mailto:)?(?P<value>[A-Za-z0-9_?](?:[\w.%+'?-]{0,62}[\w?])?(?:@|%40)(?:[A-Za-z0-9?](?:[A-Za-z0-9?-]{0,61}[A-Za-z0-9?])?\.)+[A-Za-z]{2,24})(?![\w@])"
)
_FILES = frozenset(
    {
        "css", "csv", "gif", "htm", "html", "ico", "jpeg", "jpg", "js", "json", "jsx", "md", "mjs", "png", "py", "scss",
        "svg", "ts", "tsx", "txt", "webp", "xml", "yaml", "yml",
    }
)  # fmt: skip
"""Ends of file names, such as icon@2x.png."""
_NO_PERSON = frozenset({"git", "hg", "svn"})
"""Logins of code hosts: git@host:owner/name is an address of code."""

_DIGITS = re.compile(rf"{_BEFORE}(?P<value>\d(?:[ -]?\d){{11,18}}){_AFTER}(?!\.\d)")
_CARD = re.compile(
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
)
"""Lengths and beginnings of the networks' numbers (ISO/IEC 7812)."""
_IBAN = re.compile(r"(?<![A-Za-z0-9])(?P<value>[A-Z]{2}\d{2}(?:[ -]?[A-Z0-9]){11,30})(?![A-Za-z0-9])")

_PLUS = re.compile(r"(?<![\w+])(?P<value>(?:\+|00)[1-9](?:[ ().\-/]{0,2}\d){6,14})(?![\w-])(?!\.\d)")
_NORTH_AMERICA = re.compile(
    r"(?<![\w.+-])(?P<value>(?:1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-. ])[2-9]\d\d[-. ]\d{4})(?![\w-])(?!\.\d)"
)
_CALLED = re.compile(
    r"(?i)(?:phone|\btel\b|\btel[.:]|telef|t[?e]l[?e]ph|mobil|\bcell|\bcall (?:me|us|him|her|them)\b"
    r"|\bfax|whats?app|\bsms|handy|hotline|rufnummer|m[?o]vil)"
    r"[^\d+\n]{0,24}?(?P<value>\(?0?\d(?:[ ().\-/]{0,2}\d){6,13})(?![\w-])(?!\.\d)"
)
_REGIONS = ("US", "GB", "DE", "FR", "ES", "IT", "IN", "BR", "AU")
"""Where a number without a country code may be of, when a word says that it is one."""

_IPV4 = re.compile(r"(?<![\w.])(?<!v)(?P<value>(?:\d{1,3}\.){3}\d{1,3})(?![\w-])(?!\.\d)")
_IPV6 = re.compile(r"(?<![\w:.])(?P<value>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:.])")
_VERSION_WORD = re.compile(r"(?i)(?:version|release|build|\bv|ver\.?)[ :=\"']{0,3}\Z")


class National(NamedTuple):
    """Ids of one country: how they are written, and whether one is valid."""

    form: re.Pattern[str]
    is_valid: Callable[[str], bool]


_NATIONAL = (
    National(re.compile(rf"{_BEFORE}(?P<value>\d{{3}}-\d{{2}}-\d{{4}}){_AFTER}"), ssn.is_valid),
    National(re.compile(rf"{_BEFORE}(?P<value>\d{{3}}\.\d{{3}}\.\d{{3}}-\d{{2}}){_AFTER}"), cpf.is_valid),
    National(re.compile(rf"{_BEFORE}(?P<value>756\.\d{{4}}\.\d{{4}}\.\d{{2}}){_AFTER}"), swiss.is_valid),
    National(re.compile(rf"{_BEFORE}(?P<value>(?:\d{{2}})?\d{{6}}[-+]\d{{4}}){_AFTER}"), personnummer.is_valid),
    National(re.compile(rf"{_BEFORE}(?P<value>\d{{8}}-?[A-Z]){_AFTER}"), dni.is_valid),
    National(re.compile(rf"{_BEFORE}(?P<value>[XYZ]-?\d{{7}}-?[A-Z]){_AFTER}"), nie.is_valid),
    National(
        re.compile(rf"{_BEFORE}(?P<value>[A-Z]{{6}}\d{{2}}[A-Z]\d{{2}}[A-Z]\d{{3}}[A-Z]){_AFTER}"),
        codicefiscale.is_valid,
    ),
    National(
        re.compile(rf"{_BEFORE}(?P<value>[12] ?\d\d ?\d\d ?\d[\dAB] ?\d{{3}} ?\d{{3}} ?\d\d){_AFTER}"), nir.is_valid
    ),
    National(
        re.compile(rf"{_BEFORE}(?P<value>[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]){_AFTER}"),
        lambda value: value[:2] not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ"),
    ),
)
"""Numbers that show what they are: by their form and, but for the last (United Kingdom), by what can be checked."""

SUSPECT = "|".join(
    (
        r"(?:@|%40)[^\s@]{1,64}\.",
        r"\d(?:[ ().\-/]{0,2}\d){6}",
        r"\d\.\d{1,3}\.\d{1,3}\.\d",
        r":[0-9A-Fa-f]{0,4}:",
        r"[A-Z]{2} ?\d\d",
        r"[XYZ]-?\d{7}",
    )
)
"""What a string must match (in RE2, on its padded form) before any rule here can find something."""


class Personal:
    """The rules with the key of a lake's pseudonyms."""

    suspect = SUSPECT

    def __init__(self, key: bytes) -> None:
        """`key` is secret: whoever has it can tell whether a value that he knows stands in a lake."""
        self._key = key

    def spans(self, view: View) -> Iterator[Span]:
        """What is personal in a view, in places of the raw text, each with what stands in its place."""
        for kind, start, end, canonical in _found(view.text):
            name = self._name(kind, canonical)
            first, last = view.raw_span(start, end)
            yield Span(first, last, kind, RANK, name)

    def _name(self, kind: str, canonical: str) -> str:
        mark = hmac.new(self._key, f"{kind}\0{canonical}".encode(), hashlib.sha256).hexdigest()
        return pseudonym(kind, mark)


def _found(text: str) -> Iterator[tuple[str, int, int, str]]:
    """Kind, place, and the value as it is written in one way only."""
    if "@" in text or "%40" in text:
        yield from _emails(text)
    yield from _numbers(text)
    yield from _addresses(text)


def _emails(text: str) -> Iterator[tuple[str, int, int, str]]:
    for match in _EMAIL.finditer(text):
        value = match["value"].replace("%40", "@")
        login, _, host = value.rpartition("@")
        if host.rpartition(".")[2].lower() not in _FILES and login.lower() not in _NO_PERSON:
            yield "email", *match.span("value"), value.lower()


def _numbers(text: str) -> Iterator[tuple[str, int, int, str]]:
    for match in _IBAN.finditer(text):
        end = _iban_end(match["value"])
        if end:
            start = match.start("value")
            yield "iban", start, start + end, _bare(match["value"][:end])
    for match in _DIGITS.finditer(text):
        digits = _bare(match["value"])
        if _CARD.fullmatch(digits) and luhn.is_valid(digits) and len(set(digits)) > 1:
            yield "card", *match.span("value"), digits
    for national in _NATIONAL:
        for match in national.form.finditer(text):
            if national.is_valid(match["value"]):
                yield "national_id", *match.span("value"), _bare(match["value"])
    yield from _phones(text)


def _iban_end(value: str) -> int:
    """Where the IBAN ends that this begins with; 0 where it begins with none. A word in capitals may follow it."""
    for end in range(len(value), 14, -1):
        if value[end - 1] not in " -" and iban.is_valid(value[:end]):
            return end
    return 0


def _phones(text: str) -> Iterator[tuple[str, int, int, str]]:
    for match in _PLUS.finditer(text):
        number = _parsed("+" + _bare(match["value"]).removeprefix("00").lstrip("+"), None)
        if number:
            yield "phone", *match.span("value"), number
    for match in _NORTH_AMERICA.finditer(text):
        digits = _bare(match["value"])
        yield "phone", *match.span("value"), "+1" + digits[-10:]
    for match in _CALLED.finditer(text):
        for region in _REGIONS:
            number = _parsed(match["value"], region, valid=True)
            if number:
                yield "phone", *match.span("value"), number
                break


def _parsed(value: str, region: str | None, *, valid: bool = False) -> str | None:
    """The number in E.164 form, where it can be one."""
    try:
        number = phonenumbers.parse(value, region)
    except phonenumbers.NumberParseException:
        return None
    fits = phonenumbers.is_valid_number(number) if valid else phonenumbers.is_possible_number(number)
    return str(phonenumbers.format_number(number, phonenumbers.PhoneNumberFormat.E164)) if fits else None


def _addresses(text: str) -> Iterator[tuple[str, int, int, str]]:
    for form in (_IPV4, _IPV6):
        for match in form.finditer(text):
            try:
                address = ipaddress.ip_address(match["value"])
            except ValueError:
                continue
            if form is _IPV4 and _VERSION_WORD.search(text[max(0, match.start() - 12) : match.start()]):
                continue
            if _is_of_somebody(address):
                yield "ip", *match.span("value"), str(address)


def _is_of_somebody(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Not loopback, private, a mask or a group: these are of a network and no person."""
    inside = any(address in network for network in _INSIDE if network.version == address.version)
    return not (
        inside or address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local
    )


_INSIDE = tuple(
    map(ipaddress.ip_network, ("0.0.0.0/8", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "224.0.0.0/3", "fc00::/7"))
)


def _bare(value: str) -> str:
    return re.sub(r"[^\w+]", "", value)
