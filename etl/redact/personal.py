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
from collections.abc import Iterator, Set

from stdnum import iban, luhn
from stdnum.exceptions import ValidationError

from etl.redact import national, phones
from etl.redact.escapes import View
from etl.redact.families import Family, Found
from etl.redact.regex import regex
from etl.redact.sieve import Sieve, by_place
from etl.redact.spans import Span, pseudonym
from etl.redact.texts import Texts

VERSION = "personal-5"
"""Changes when one of these rules does."""
RANK = 1
"""Below the rules for secrets: an address in the login of a URL is the login's."""

_EMAIL = regex(
    r"(?<![\w.%+/@-])(?:mailto:)?(?P<value>[A-Za-z0-9_?](?:[\w.%+'?-]{0,62}[\w?])?(?:@"
    r"|%40)(?:[A-Za-z0-9?](?:[A-Za-z0-9?-]{0,61}[A-Za-z0-9?])?\.)+[A-Za-z]{2,24})(?![A-Za-z0-9@])"
)
_LATIN = 0x24F
"""The last letter of Latin Extended-B."""
_FILES = frozenset(
    {
        "css", "csv", "gif", "htm", "html", "ico", "jpeg", "jpg", "js", "json", "jsx", "md", "mjs", "png", "py",
        "scss", "svg", "ts", "tsx", "txt", "webp", "xml", "yaml", "yml", "bak", "bin", "cfg", "class", "conf", "cpp",
        "device", "dll", "docx", "env", "exe", "gz", "ini", "java", "kt", "length", "lock", "log", "lua", "mount",
        "mp3", "mp4", "path", "pdf", "php", "prototype", "rb", "service", "slice", "socket", "swift", "tar", "target",
        "tf", "timer", "toml", "wav", "webm", "xlsx",
    }
)  # fmt: skip
"""Ends of names of files and units, such as icon@2x.png and getty@tty1.service."""
_LOGIN = regex(r"//[^\s/@]{0,128}:\Z")
"""What stands before the password of a URL."""
_NO_PERSON = frozenset({"git", "hg", "svn", "this", "super"})
"""Logins of code hosts (git@host:owner/name), and what a language puts there (this@Outer.name)."""

_NETWORKS = (
    r"4\d{12}(?:\d{3}){0,2}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17}"
    r"|(?:50(?:18|20|38|[6-8]\d)|5893|6304|6390|67\d\d|220[0-4]|9792)\d{12}"
)
"""Lengths and beginnings of the networks' numbers (ISO/IEC 7812)."""
_BARE_CARD = (
    r"4\d{15}|5[1-5]\d{14}|2(?:22[1-9]|2[3-9]\d|[3-6]\d\d|7[01]\d|720)\d{12}|3[47]\d{13}"
    r"|6(?:011|5\d\d|4[4-9]\d)\d{12}|35(?:2[89]|[3-8]\d)\d{12}|62\d{14}"
)
"""Those that count without groups: 13, 14, 17 to 19 digits in a row are rather a time or an id."""
_GROUPS = r"[2-6]\d{3}GAP\d{4}GAP\d{4}GAP\d{1,7}|3\d{3}GAP\d{6}GAP\d{4,5}|[2-6](?:GAP\d){12,18}"
"""How numbers of cards are grouped, `GAP` standing for what is between the groups."""
_SIFT_GROUPS = r"[2-6]\d{3}GAP\d{4}GAP\d{4}|3\d{3}GAP\d{6}GAP\d{4}|[2-6](?:GAP\d){6}"
"""Their beginnings."""
_SIFT_GAP = r"(?:[ .-]|[^\x00-\x7f]){1,2}"
_SIFT_GROUPS = _SIFT_GROUPS.replace("GAP", _SIFT_GAP)
_DIGITS = regex(r"[2-6](?<![\w.+-].)(?:[ .?-]?\d){11}")
_CARD = regex(_NETWORKS)
_CARD_FORM = regex(rf"(?:{_BARE_CARD}|{_GROUPS.replace('GAP', '[ .?-]')})(?![\w-])(?!\.\d)")
_IBAN = regex(r"[A-Za-z](?<![A-Za-z0-9].)[A-Za-z]\d{2}(?:[ .?-]?[A-Za-z0-9]){11,30}(?![A-Za-z0-9])")

_IPV4 = regex(r"(?<![\w.])(?<!v)(?P<value>(?:\d{1,3}\.){3}\d{1,3})(?![\w-])(?!\.\d)")
_IPV6 = regex(r"(?<![\w:.])(?P<value>(?:[0-9A-Fa-f]{0,4}:){2,7}[0-9A-Fa-f]{0,4})(?![\w:])(?!\.\w)")
_VERSION_WORD = regex(
    r"(?i)(?:versions?|release|build|\bv(?![a-z])|ver\.?|\bsections?|\bsec\.?|chapter|clause|paragraph"
    r"|figure|table|rule|rfc"
    r"|driver|firmware|\boid|upgrade[ds]? (?:from|to)|step|appendix|revision|\brev\.?|patch|kernel|\bsdk|assembly)"
    r"[\w.-]{0,12}[ :=>\"'`(\[]{0,6}\Z|[A-Za-z]/\Z|==\Z|[A-Za-z][_-]\Z"
)
"""What stands before numbers with dots that are none of a host: versions, sections, what a browser says it is."""
_SHELL = regex(r"\b(?:ssh(?:-copy-id)?|scp|sftp|rsync|mosh)(?![\w-])[^\n|;&]{0,80}\Z")
_INSIDE_HOSTS = frozenset({"internal", "intranet", "lan", "local", "localdomain", "localhost", "corp", "home"})


class Personal:
    """The rules with the key of a lake's pseudonyms."""

    version = VERSION

    def __init__(self, key: bytes) -> None:
        """`key` is secret: whoever has it can tell whether a value that he knows stands in a lake."""
        self._key = key

    @property
    def families(self) -> tuple[Family, ...]:
        """The rules by family, each with what tells in no time whether a text is worth a look."""
        return FAMILIES

    def suspects(self, texts: Texts) -> dict[int, frozenset[str]]:
        """The places of the texts that may hold something personal, and of which families."""
        return by_place(_SIEVE.matching(texts))

    def spans(self, view: View, sought: Set[str] | None = None) -> Iterator[Span]:
        """What is personal in a view, in places of the raw text, each with what stands in its place.

        `sought` are the families that may have something here; None is all of them.
        """
        for family in self.families:
            if sought is None or family.name in sought:
                for kind, start, end, canonical in family.find(view):
                    yield self.span(view, kind, start, end, canonical)

    def span(self, view: View, kind: str, start: int, end: int, canonical: str) -> Span:
        """The offer to put the pseudonym of a value in its place. `canonical` is the value written in one way only."""
        mark = hmac.new(self._key, f"{kind}\0{canonical}".encode(), hashlib.sha256).hexdigest()
        first, last = view.raw_span(start, end)
        return Span(first, last, kind, RANK, pseudonym(kind, mark))


def _emails(view: View) -> Iterator[Found]:
    text = view.text
    for match in _EMAIL.finditer(text):
        start, end = match.span("value")
        login, _, host = match["value"].replace("%40", "@").rpartition("@")
        if host.rpartition(".")[2].lower() in _FILES | _INSIDE_HOSTS or login.lower() in _NO_PERSON:
            continue
        if text[end : end + 1] == ":" and text[end + 1 : end + 2] in ("~", "/"):
            continue
        if _SHELL.search(text, max(0, start - 120), start) or _LOGIN.search(text, max(0, start - 132), start):
            continue
        if text[end : end + 1] == "_" and "_" in login:  # The name of a file, of parts.
            start += login.rindex("_") + 1
            login = login[login.rindex("_") + 1 :]
        # A language without spaces may touch an address: what is no Latin letter is no part of a login.
        of_login = range(start, start + len(login))
        first = max((at + 1 for at in of_login if ord(view.flat[at]) > _LATIN), default=start)
        if first < start + len(login):
            yield "email", first, end, text[first:end].replace("%40", "@").lower()


def _ibans(view: View) -> Iterator[Found]:
    text = view.text
    for match in _IBAN.finditer(text):
        end = _iban_end(match.group())
        if end:
            start = match.start()
            yield "iban", start, start + end, _bare(match.group()[:end]).upper()


def _cards(view: View) -> Iterator[Found]:
    text = view.text
    for begin in _DIGITS.finditer(text):
        match = _CARD_FORM.match(text, begin.start())
        digits = _bare(match.group()) if match else ""
        if match and _CARD.fullmatch(digits) and luhn.is_valid(digits) and len(set(digits)) > 1:
            yield "card", *match.span(), digits


def _iban_end(value: str) -> int:
    """Where the IBAN ends that this begins with; 0 where it begins with none. A word in capitals may follow it."""
    for end in range(len(value), 14, -1):
        if value[end - 1].isalnum() and _is_iban(_bare(value[:end])):
            return end
    return 0


def _is_iban(value: str) -> bool:
    """By its length, its letters and ISO 7064; what single banks check besides is their own."""
    try:
        iban.validate(value, check_country=False)
    except ValidationError:
        return False
    return True


def _addresses(view: View) -> Iterator[Found]:
    text = view.text
    for form in (_IPV4, _IPV6):
        for match in form.finditer(text):
            try:
                address = ipaddress.ip_address(match["value"])
            except ValueError:
                continue
            if form is _IPV4 and _VERSION_WORD.search(text[max(0, match.start() - 32) : match.start()]):
                continue
            if form is _IPV4 and _counts_up(text, match):
                continue
            if _is_of_somebody(address):
                yield "ip", *match.span("value"), str(address)


def _counts_up(text: str, match: re.Match[str]) -> bool:
    """Four small numbers that nothing around them says to be an address: a version or a section."""
    if max(map(int, match["value"].split("."))) >= _SMALL or _OF_PORT.match(text, match.end()):
        return False
    return not _ADDRESSED.search(text, max(0, match.start() - 64), match.end() + 40)


_SMALL = 32
_OF_PORT = regex(r":\d{2,5}(?!\d)|/(?:[89]|[12]\d|3[0-2])(?!\d)| - - \[")
_ADDRESSED = regex(
    r"(?i)(?<![a-z])ip(?![a-z])|ipv4|addr|host|server|client|subnet|network|gateway|\bdns\b|ping|\bssh\b"
    r"|\bcurl\b|peer|remote"
    r"|router|firewall|source|src|dst|\bA [0-9]|://|inet|listen|bind|connect|login|log in"
    r"|signed? in|forwarded"
)
"""What says that numbers with dots are an address."""


def _is_of_somebody(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Not loopback, private, a mask, a group or kept for documents (RFC 5737, RFC 3849): these are of no person."""
    if (address.version == 6 and address not in _GLOBAL) or str(address).endswith(".0"):
        return False
    inside = any(address in network for network in _INSIDE if network.version == address.version)
    return not (
        inside or address.is_loopback or address.is_multicast or address.is_unspecified or address.is_link_local
    )


_GLOBAL = ipaddress.IPv6Network("2000::/3")
"""Where the addresses of people are: `a::b` of a language is one too, but elsewhere."""
_INSIDE = tuple(
    map(
        ipaddress.ip_network,
        (
            "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "172.16.0.0/12", "192.0.2.0/24", "192.168.0.0/16",
            "198.51.100.0/24", "203.0.113.0/24", "224.0.0.0/3", "fc00::/7", "2001:db8::/32",
        ),
    )
)  # fmt: skip


def _bare(value: str) -> str:
    return re.sub(r"[^\w+]", "", value)


FAMILIES = (
    Family("email", r"[^\s@](?:@|%40)[^\s@]+\.[A-Za-z]{2}", _emails),
    Family("card", rf"(?:^|[^\w.+-])(?:{_BARE_CARD}|{_SIFT_GROUPS})", _cards),
    Family("iban", rf"(?:^|[^A-Za-z0-9])[A-Za-z]{{2}}\d{{2}}(?:(?:{_SIFT_GAP})?[A-Za-z0-9]){{11}}", _ibans),
    Family(
        "ip",
        r"(?:^|[^\w.])\d{1,3}\.\d{1,3}\.\d{1,3}\.\d|(?:^|[^\w:.])(?:[0-9A-Fa-f]{1,4}:){1,6}:"
        r"|(?:^|[^\w:.])::[0-9A-Fa-f]|(?:[0-9A-Fa-f]{1,4}:){7}[0-9A-Fa-f]",
        _addresses,
    ),
    *national.FAMILIES,
    *phones.FAMILIES,
)
SIGNS = {family.name: family.suspect for family in FAMILIES}
_SIEVE = Sieve(SIGNS)
