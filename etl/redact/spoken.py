"""Passwords and keys that somebody says: "the password for the zip is …", in the languages that people write in.

A noun, what may stand between it and the word that says what it is, and a value. What a value must look like depends
on how little the sentence leaves open. Words in letters that are no Latin ones are `etl/redact/nearby.py`'s.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from etl.redact.credentials import is_of_text, is_owner, is_value, looks_chosen, looks_random, memorable, phrased
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.spans import Span

_BACK = 240
"""Characters before a literal that a form which looks back may ask for."""


class Saying(NamedTuple):
    """A form of sentence, matched where one of its literals stands, with the value in it.

    Its sign begins with the literal: from short words that all texts have, a sieve would set out at every line.
    """

    literals: tuple[str, ...]
    """In lower case."""
    form: re.Pattern[str]
    sign: str
    """What a string must match (in RE2, on its padded form) before this can find something."""
    test: Literal["memorable", "chosen", "key", "any", "given"] = "memorable"
    rule: str = "password"
    back: bool = False
    """The form ends where the literal begins."""
    alone: bool = False
    """A letter before the literal makes it another word."""
    closer: str = ""
    """What a suspicious view must match besides, where the sign is in many (`families.Closer`)."""


def _form(pattern: str) -> re.Pattern[str]:
    return regex(pattern, re.IGNORECASE | re.DOTALL)


_NOUN = (
    r"(?:pass[ _-]?word|pass[ _-]?phrase|passcode|pass ?wort|kennwort|contrase[?n]a|mot de passe|senha|wachtwoord|clave"
    r"|l[?o]senord(?:et)?|passord(?:et)?|adgangskode(?:n)?|has[?l]o|"
    r"heslo|[?s]ifre(?:niz|si|miz|m)?|parola|jelsz[?o]|salasana(?:ni)?|parool|lozinka"
    r"|kata sandi(?:nya|ku|mu)?|sandi(?:nya)?|m[?]t kh[?]u|slapta[?z]od[?i][?s]|parole|geslo|fjalekalimi"
    r"|password(?:nya|en)"
    r"|pw|pwd|pass)"
)
_NOUNS = (
    "passwor", "pass wor", "pass_wor", "pass-wor", "pass phrase", "pass_phrase", "pass-phrase", "passphrase",
    "passcode", "kennwort", "contrase",
    "mot de passe", "senha", "wachtwoord", "clave", "l?senord", "losenord", "passord",
    "adgangskode", "has?o", "haslo", "heslo", "?ifre", "sifre", "parola", "jelsz", "salasana", "parool", "lozinka",
    "kata sandi", "m?t kh?u", "slapta?od", "slaptazod",
)  # fmt: skip
_SHORT = ("pw", "pass", "sandi", "parole", "geslo")
"""Those that are a part of other words."""
_SAID = (
    r"(?P<said>is|was|are|be|to|as|ist|lautet|lauten|war|es|est|era|(?<= )[?e](?= )|(?<= )[?]r(?= )"
    r"|(?<= )[?]{3}(?= )|sera|jest"
    r"|heter|je|er|ir|este|yra|adalah|ialah|l[?]|(?<=salasana )on|(?<=salasanani )on|'s|=>|->|:|=)"
)
_OTHER_NOUN = (
    r"(?![ _-](?:manager|field|polic|length|input|label|column|param|variable|setting|page|form|check|validat|algorithm"
    r"|encod|encrypt|hash|stor|reset (?:link|page|flow|email|form)|strength|rule|expir|rotation|generator|hint|prompt"
    r"|attempt|change|complexity|requirement|min|max)|s? (?:at least|between|of at)|less)"
)
"""What makes another noun of the one before it."""
_BETWEEN = (
    r"(?:[ ]\([^()\n]{1,40}\))?(?:[ ](?!user\b|username|ids?\b|hash|name\b|must|should|may\b|can\b|cannot|primaria"
    r"|prim?ria|for?nea|estrangeira|p?blica|and\b|or\b|und\b"
    r"|but\b)(?=[A-Za-z?\[(])[\w.@?\[\]()-]{1,40}(?:'s)?){0,8}?[ ]?"
)
_FILLED = (
    r"(?:[ ](?:now|still|just|simply|currently|set|reset|changed|updated|to|the following|this|probably|actually|jetzt"
    r"|aktuell|weiterhin|ahora|siempre|maintenant|toujours|ancora|sempre|nu|again|temporarily|literally)){0,3}"
)
_LIKELY = (
    r"(?=[^\s\"'`<>]{0,63}?(?:[0-9!@#^*+~$%&=]|(?-i:[a-z][A-Z]|[A-Z]{2}[a-z]|[A-Z][a-z][A-Z]))|[a-z]{10}"
    r"|[a-z]+(?:-[a-z]+){2})"
)
_VALUE = r"(?P<value>[^\s\"'`<>]{6,64})"
_TOLD = _NOUN + _OTHER_NOUN + _BETWEEN + _SAID + _FILLED + r":?[ ][\"'`*(]{0,3}" + _LIKELY + _VALUE
_BELOW = (
    _NOUN
    + _OTHER_NOUN
    + _BETWEEN
    + r"(?P<said>is|:|is:|ist:?)[ ]?\n{1,2}[ ]{0,8}[\"'`]{0,3}"
    + _VALUE
    + r"(?=[\"'`]{0,3}[ ]?(?:\n|\Z|[\"']))"
)
_SIGN_NOUN = "(?:" + re.sub(r"\[\?([a-z]?)\]", r"(?:[^ -~]|[?\1])", _NOUN.removesuffix(r"|pw|pwd|pass)")) + "))"
_TOLD_SIGN = rf"(?i:{_SIGN_NOUN}[^\n :=]*[ :=])"
_SHORT_SIGN = r"(?i:(?:^|[^a-z])(?:pw|pwd|pass|sandi|parole|geslo)'?s?:? )"
_SHORT_CLOSER = (
    r"(?i:(?:pwd?|pass|sandi(?:nya)?|parole|geslo)(?:[ '\t][\t -~]{0,420})?(?:is|was|are|be|to|as|ist|lautet|lauten|war"
    r"|es|est|era|\?|sera|jest|heter|je|er|ir|este|yra|adalah|ialah|l|on|'s|=>|->|:|=)"
    r"[\t -~]{0,90} [\"'`*(]{0,3}[^\s\"'`<>]{6})"
)
_ASKED = (
    r"password[^\n]{0,40}\?[\"']?[ \n]{1,3}[^\n:]{0,24}?(?:it'?s|it[ ]is|sure[,:]|: ?|- )[ ]?(?:it'?s |it is )?"
    r"[\"'`]?(?P<value>[^\s\"'`,]{6,64})(?=[\"'`.,!]{0,3}(?:[ ]?\n|\Z|[\"'`]|[ ]))"
)
_TAKEN = (
    r"""(?:["'`](?P<value>[^\s"'`]{6,64})["'`]|(?:uses?|using|used|with|has|have|chose|picked|took|type"""
    r"""|enter|set|try)[ ]"""
    r"""(?P<free>[^\s"'`<>,]{6,64})),?[ ](?:as|for|als|como|comme)[ ](?:the|my|your|a|our|its|his|her|their"""
    r"""|admin|root)?"""
    r"""[ ]?(?:[a-z]+[ ]){0,2}\Z"""
)
_FROM_TO = r"password[^\n.]{0,24}?[ ](?:from|von)[ ][\"'`]?(?P<value>[^\s\"'`<>,]{6,64})[\"'`]?[ ](?:to|zu|auf)[ ]"
_TO = r"password[^\n.]{0,24}?[ ](?:from|von)[ ]\S{4,64}[ ](?:to|zu|auf)[ ][\"'`]?(?P<value>[^\s\"'`<>,]{6,64})"
_GIVEN = (
    r"(?:pass[ _-]?word|pass[ _-]?phrase|passcode)[ ][\"'`(]{0,2}(?P<value>[^\s\"'`<>,()]{8,64})"
    r"(?=[\"'`)]{0,2}(?:[ ](?:for|to|when|on|at|in|into|and|if|as|please|here|there|again|from|with|is)\b"
    r"|[,.;!?]|[ ]*(?:\n|\Z)))"
)
_GIVING = regex(
    r"(?i)\b(?:enter|use|used|using|type|give|provide|supply|try|with|input|say|gave|typed|entered|is|was|put|need|send)"
    r"[ ](?:in[ ])?(?:(?:the|this|my|our|your|his|her|a|its)[ ])?(?:[\w-]{1,20}[ ]){0,2}\Z"
)
_PHRASE = regex(r"[a-z]{3,}(?:[-_.][a-z]{3,}){2,}[-_.]?[0-9]*")
"""Words put together as hardly anything but passphrases is."""
_ODD = regex(
    r"(?=[A-Za-z]{8,24}\Z)[A-Z]?[a-z]+[A-Z]{3,}[a-z]+|(?=[A-Za-z]{8,24}\Z)(?:[A-Z]{1,3}[a-z]{1,2}){3,}[A-Z]{0,3}"
)
_ACRONYM = regex(r"API|URL|HTTP|JSON|XML|SQL|HTML|SSO|JWT|AWS|SSH|LDAP|UUID|IDs?\Z|DB|UI|OAuth")
_NOW = r"password[^\n.]{0,72}?[ ,]now[ ]?(?:it'?s|it is|is|=|:)?[ ][\"'`]?(?P<value>[^\s\"'`<>,]{6,64})"
_TYPED = (
    r"(?:type|enter|use|try|with|say|put)[ ](?:in[ ])?[\"'`]?(?P<value>[^\s\"'`<>,]{6,64})[\"'`]?,?[ ]"
    r"(?:when|if|once|as|for|at|where)[ ](?:[a-z]+[ ]){0,6}\Z"
)
_GUARDED = (
    r"(?:protected|encrypted|locked|secured|unlock(?:s|ed)?|decrypt(?:s|ed)?)[ ](?:it[ ]"
    r"|them[ ])?(?:with|using)"
    r"[ ](?:the[ ]|a[ ])?(?:(?:password|passphrase|passcode|pw|code)[ :]{1,2})?[\"'`]?(?P<value>[^\s\"'`<>,]{8,64})"
)
_PIN = (
    r"(?:(?-i:PINs?)|pin[ -]?code|(?:door|access|alarm|entry|gate|safe|locker"
    r"|keypad)[ -]?code)(?![ -]?(?:length|digits))"
    r"(?:[ ](?:for|of|to|on|at)(?:[ ](?!\d)[\w'-]{1,20}){1,5}?)?[ ]?(?:is|was|:|="
    r"|to)[ ]?[\"'`]?(?P<value>\d{4,8})(?![\w.:/-]?\w)"
)
_PINS = (
    "pin",
    *(f"{owner} code" for owner in ("door", "access", "alarm", "entry", "gate", "safe", "locker", "keypad")),
)
_PIN_SIGN = (
    r"(?:PINs?|(?i:pin|door|access|alarm|entry|gate|safe|locker|keypad)[ -]?(?i:code))[^\n]*(?:is|was|:|="
    r"|to) *[\"'`]?\d{4}"
)
_KEY_NOUN = r"(?:tokens?|secrets?|api[ _-]?keys?|keys?|credentials?|pat)"
_KEY_TOLD = (
    r"(?P<owner>[a-z][\w-]{0,24}[ _-])?"
    + _KEY_NOUN
    + r"(?P<between>(?:[ ]\([^()\n]{1,40}\))?(?:[ ][\w.@?/-]{1,40}(?:'s)?){0,8}?)[ ]?"
    r"(?P<said>is|was|ist|lautet|es|est|(?<= )[?e](?= )|jest|:)" + _FILLED + r":?[ ]?\n?[ ]{0,4}[\"'`*(]{0,3}"
    r"(?P<value>(?=[^\s\"'`<>]{0,64}[0-9])[A-Za-z0-9_.~+/-]{16,512}={0,3})(?![=:(\[])"
)
_KEY_SIGN = (
    r"(?i:(?:token|secret|key|credential|(?:^|[^a-z])pat)s?(?: [^\n{}\"<>;=]*)? ?(?:is|was|ist|lautet|es|est|jest"
    r"|[^ -~]|:)[^\n]*\n? *[\"'`*(]*[a-z0-9_.~+/=-]{16})"
)
_NO_KEY = regex(
    r"(?i)\b(?:ids?|hash(?:ed|es)?|sha[-\d]*|md5|digest|checksum|fingerprint|commit|counts?|limit|budget"
    r"|names?|versions?|public"
    r"|primary|cache|partition|idempotency|foreign|sort|routing|object|s3|page|next|prev|cursor"
    r"|continuation|uuid|kid|jti"
    r"|expir\w*|length|nonce|trace|span|request|thumbprint|type|types|file|path|stored|named|called|publishable|model"
    r"|revision|branch|etag|image|build|job|run|message|event|sync|resume|lookup|signature|signed"
    r"|deduplication|map|row)\b"
)
"""What makes a value near "key" or "token" something else's."""
_OF_US = regex(
    r"(?i)(?:my|our|your|this|new|prod|production|staging|test|live|dev|sandbox|license|licence|activation)[ ]\Z"
)
_FOR_US = regex(
    r"(?i)\b(?:api|account|service|server|client|app|integration|gateway|cluster|dashboard|console|billing)\b"
)
_OF_HASH = regex(r"(?i)\b(?:commit|revision|sha[-\d]*|hash|digest|checksum|build|image)\b[^.;]*\Z")
_TOUCHING = regex(r"[A-Za-z][A-Za-z0-9_-]*\Z")
_CAMEL = regex(r"(?<=[a-z])(?=[A-Z])")
_CHANGED = regex(
    r"(?i)(?<![a-z])(?:re)?(?:set|chang|updat|rotat|switch|make|made|put|pick|chose|modif|alter|configur|init)|has.?o"
)
_TRAILING = ".,;:!?)]}>*"
_SAYINGS = (
    Saying(_NOUNS, _form(_TOLD), _TOLD_SIGN),
    Saying(_SHORT, _form(_TOLD), _SHORT_SIGN, alone=True, closer=_SHORT_CLOSER),
    Saying((*_NOUNS, "pw"), _form(_BELOW), rf"(?i:{_SIGN_NOUN}[^\n]*(?:is|ist|:):? *\n)|(?i:(?:^"
        rf"|[^a-z])pwd?[^\n]*(?:is|:):? *\n)", "chosen"),
    Saying(("password",), _form(_ASKED), r"(?i:password[^\n]*\?)"),
    Saying(("password",), _form(_NOW), r"(?i:password[^\n]* now(?: |'))", "chosen"),
    Saying(("password",), _form(_TO), r"(?i:password[^\n]* (?:from|von) )"),
    Saying(("password",), _form(_FROM_TO), r"(?i:password[^\n]* (?:from|von) )"),
    Saying(("password", "passphrase"), _form(_TYPED), r"(?i: pass(?:word|phrase))", back=True),
    Saying(
        ("password", "passphrase", "passcode", "pass phrase"), _form(_GIVEN),
        r"(?i: pass(?:word|[ _-]?phrase|code) [\"'`(]*[^\s]{8})", "given",
    ),
    Saying(("passwor", "passphrase"), _form(_TAKEN), r"(?i:pass(?:wor|phrase))", back=True),
    Saying(
        ("protected", "encrypted", "locked", "secured", "unlock", "decrypt"), _form(_GUARDED),
        r"(?i:(?:protected|encrypted|locked|secured|unlocks?|decrypts?) (?:it |them )?(?:with"
        r"|using) [^\n]*[^\s]{8})", "chosen",
    ),
    Saying(_PINS, _form(_PIN), _PIN_SIGN, "any", alone=True),
    Saying(("token", "secret", "key", "credential", "pat "), _form(_KEY_TOLD), _KEY_SIGN, "key", "token"),
)  # fmt: skip


def _said(saying: Saying, view: View) -> Iterator[Span]:
    text = view.text
    for literal in saying.literals:
        for place in view.places(literal):
            if saying.alone and (text[place - 1 : place].isalnum() or text.startswith("PASS", place)):
                continue
            match = _match(saying, text, place)
            if not match:
                continue
            group = "value" if match["value"] else "free"
            value = match[group].rstrip(_TRAILING)
            if _holds(saying, match, value, text):
                start = match.start(group)
                yield view.span(start, start + len(value), saying.rule, 1)


def _match(saying: Saying, text: str, place: int) -> re.Match[str] | None:
    if saying.back:
        return saying.form.search(text, max(0, place - _BACK), place)
    if saying.test != "key":
        return saying.form.match(text, place)
    before = text[max(0, place - 26) : place]
    start = place - len(before) + before.rfind(" ", 0, -1) + 1 if before.endswith(" ") else place
    return saying.form.match(text, start) or saying.form.match(text, place)


def _holds(saying: Saying, match: re.Match[str], value: str, text: str) -> bool:
    """Whether a value is one, and its sentence says so."""
    if saying.test == "any":
        return True
    if "(" in value or not is_value(value, ""):
        return False
    if saying.test == "key":
        return _is_key(match, value, text)
    if saying.test == "given":
        written = memorable(value) and bool(_PHRASE.fullmatch(value) or looks_chosen(value))
        return written and bool(_GIVING.search(text, max(0, match.start() - 64), match.start()))
    if "said" in match.groupdict() and match["said"].lower() in ("to", "as"):
        asked = text[max(0, match.start() - 40) : match.start("said")]
        if not _CHANGED.search(asked):
            return False
    if saying.test == "chosen":
        return looks_chosen(value) or phrased(value)
    return memorable(value) or (bool(_ODD.fullmatch(value)) and not _ACRONYM.search(value))


def _is_key(match: re.Match[str], value: str, text: str) -> bool:
    head = text[max(0, match.start() - 72) : match.start()].rpartition("\n")[2]
    touching = _TOUCHING.search(head) if not match["owner"] else None
    owner, between = (match["owner"] or (touching.group() if touching else "")).strip(" _-"), match["between"]
    named = _CAMEL.sub(" ", f"{owner} {between}".replace("_", " "))
    if _NO_KEY.search(named) or _OF_HASH.search(head) or is_of_text(owner) or not looks_random(value):
        return False
    noun = match.group()[len(match["owner"] or "") :][:3].lower()
    if noun != "key":
        return True
    before = text[max(0, match.start() - 16) : match.start()] + (match["owner"] or "")
    return is_owner(owner) or bool(_OF_US.search(before)) or bool(_FOR_US.search(between))


KINDS = tuple(
    Kind(f"saying {place}", saying.sign, functools.partial(_said, saying), closers(saying.closer))
    for place, saying in enumerate(_SAYINGS)
)
