"""A value that looks like a secret, near a word that says one is there: whatever syntax lies between the two.

`etl/redact/named.py` knows the syntaxes in which a name and its value are one thing, and takes nearly any value there.
Calls, forms, tables, documents and sentences put other things between them; there, the value itself has to look like
a password somebody chose or a key a machine made, and must not go by a name of its own.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Iterator, Sequence

from etl.redact.abroad import ASIDE, ASIDE_SIGN
from etl.redact.credentials import Credential, credential, is_of_text, looks_chosen, looks_random, memorable
from etl.redact.escapes import View
from etl.redact.families import Closer, Kind, Shown
from etl.redact.named import name_before
from etl.redact.near_values import (
    BOTH,
    IN_QUOTES,
    PRESSED,
    STRONG_ENOUGH,
    TWO_DIGITS,
    fits,
    has_both,
    has_value,
)
from etl.redact.regex import regex
from etl.redact.spans import LABEL, Span

_SPOKEN = (
    *(
        "passwort",
        "pass wort",
        "kennwort",
        "contrase?a",
        "mot de passe",
        "senha",
        "wachtwoord",
        "clave",
        "l?senord",
        "has?o",
    ),
    *("salasana", "adgangskode", "parola", "heslo", "jelsz?", "pass word", "pass phrase", "pass code"),
    *("kata sandi", "kata sandinya", "m?t kh?u", "slapta?odis", "?ifrem", "?ifresi", "passwordnya"),
    *("l?senordet", "passord", "passordet", "adgangskoden", "?ifre", "sifre", "parool", "lozinka", "haslo"),
)
"""In languages of Latin letters and in two words; `?` is a letter with an accent."""
_STEMS = ("pass", "pwd", "pw", "psk", "secret", "token", "credential", "key")
_NOUN = regex(
    r"(?P<noun>passw(?:or)?d|pass[_-]?(?:word|phrase|code)|"
    r"(?<![a-z0-9+/])pass|(?<=[a-z])(?-i:Pass)|pwd|(?<![a-z0-9+/])(?:pw|psk)"
    r"|secret|token|credential|key)s?(?![A-Za-z+]|/(?![a-z]{0,2}[),\s])|"
    r"[_-](?!pr|de|te|st|li|lo)[A-Za-z])(?:[_-]?[0-9]{1,2}(?![0-9]))?",
    re.IGNORECASE,
)
_AHEAD, _BEHIND = 140, 72
"""Characters that are looked at after a name, and before one."""
_LONGEST_NAME = 64
_OF_TABLE = regex(r"(?i) (?:prim|for.nea|ajena|p.blica|.nica|extern|del? (?:objeto|registro|cach|tabla|fila|mapa))")
"""What makes a key of a table, or one that all may know, of the word for a password."""
_DIGIT = regex("[0-9]")
"""In every value that is no word."""
_MIXED = regex(r"[0-9][^\s\"'`\\<>A-Za-z0-9]*[A-Za-z]|[A-Za-z][^\s\"'`\\<>A-Za-z0-9]*[0-9]")
"""In every value: characters without a gap, with digits and letters among them."""
_CLOSE = 12
"""Characters between a value and a word that may mean other things."""
_CANDIDATE = regex(
    r"""(?P<quote>["'`])(?P<quoted>(?![)\],;:}.])[^"'`\s\\<>]{6,512})(?P=quote)|[=:~>+-]*"""
    r"""(?P<bare>[^\s"'`<>(){}\[\],;|\\?=:](?:(?!&[\w.-]+=)[^\s"'`<>(){}\[\],;|\\?]){7,511})"""
)
_OWN_NAME = regex(
    r"""(?P<name>[A-Za-z_][A-Za-z0-9_.-]*)["'`]?(?:[ \t]?(?:=>|[:=])|\()[ \t\n]{0,3}(?:[bfru@]|N)?["'`]?\Z"""
)
_INNER_NAME = regex(r"(?P<name>-{0,2}(?:[a-z_.-]{2,}|[A-Z_]{3,}|[a-z]+(?:[A-Z][a-z]+)+))[=:](?P<value>.*)")
_PAIR = regex(r"(?P<name>[A-Za-z][\w.@+-]{1,40})(?P<between>[/:])(?P<value>.{8,})")
"""A login and its password in one."""
_NEUTRAL = regex(
    r"(?i)(?:[a-z]+_|parameter|secret)?(?:value|text|default|content|"
    r"contents|string|str|data|input|char|const|val|fill|type|send|keys"
    r"|send_keys|sendkeys|set_?value|secretstr|field|with|extra|tobe|equals?|eq|to_?be|is|to|return|or|write|put|env"
    r"|insert_text|answer|result|it)"
)
"""Names and calls that say nothing on what they hold."""
_SPEAKER = regex(r"\A[^\n?]{0,40}\?[\"']?\n[^\n:]{1,24}: ?(?:\w+ ){0,4}\Z")
_OF_ANOTHER = regex(
    r"(?i)(?:\b(?:ids?|trace|span|sha|sha1|sha256|md5|commit|"
    r"hash(?:ed)?|digest|checksum|fingerprint|uuid|request|version|"
    r"model|since|line|ref|build|file|path|users?|username|login|"
    r"step|in|from|at|see|by|named|called|bucket|host|server|"
    r"on|account|for|branch|revision|tag|release|run|job|jti|kid|email|and|using|via|than|nonce|salt|iv|against|like"
    r"|pkg|package|image|url|endpoint|stored|under|policy|requires?|must|e\.g\.|min|max)[ \t]{1,3}[\"'`(]?"
    r"|\b(?:ids?|trace|span|sha|sha1|sha256|md5|commit|hash|digest|"
    r"checksum|fingerprint|uuid|version|model|users?|username"
    r"|login|email|host|server|jti|kid|salt|nonce|iv|url|file|path)[\"'`]?[:=][ \t]{1,3}[\"'`(]?|[/\\@#$%&.-])\Z"
)
"""What stands before a value that is something else's."""
_HAS_VALUE = regex(r"""["'`]?\]?[ ]?[:=][ ]?["']?[^\s"'=:({\[<>|-][^\s"'=:({\[]+["']?[,;\n]""")
"""A name with a value that does not look like one: what comes later is something else's."""
_SENTENCE_END = regex(r"[.!?;](?=[ \n])|\n\s*\n")
_BELOW = regex(
    r"""(?:[:=(\[{>|\\-]|=>|>-)[ \t]{0,3}\n|["'`]?,?[ \t]{0,3}\n|\{[ \t]{0,3}\n[^{}]{0,60}\Z|[:?]["'][ \t]{0,3}\n"""
)
_NO_NAME = regex(r"[a-z]+(?:[-_][a-z]+)?[-_]?[0-9]{1,2}|[\w.-]+(?:/[\w.-]+)+|[a-z]\w*\.\w+|[\w-]+:[\w-]+")
"""What may as well be the name of a field or an element."""
_HANDED = regex(
    r"""(?i)(?:(?:send_?keys|fill|type|insert_?text|set_?value|val|press_?sequentially|"""
    r"""input|fill_?in|enter_?text|set_?text|keyboard_?input|type_?text)"""
    r"""\([^()]{0,40}|\.(?:value|text)[ ]?=[ ]?|\A\([NEUb]?|\A[ ](?:=[ ])?[NEUb]?|"""
    r"""with:[ ]|\A\(\)[^\n]{0,40}:?\s{1,12}return[ ])["'`]\Z|\A["']?[ ]\Z"""
)
"""What gives a value to a field of a form, or to the setter that the noun ends."""
_FIELD = regex(
    r"""(?i)\A[^{}\n]{0,80}["'](?:text|value|content|input_text|keys|fill)["']?[ ]?[:=][ ]?["']\Z|"""
    r"""\A[^(){}\n]{0,80}\b(?:text|value)=["']\Z|\A[^{};]{0,40}\),[ ]?["']\Z"""
)
_NEXT_WORD = regex(r"(?:[ ](?:is|was|to|be|will be|of|with|=)){0,2}[:=]?[ ][\"'`]?")
_BARE_PASS = regex(r"(?i)(?<![a-z_-])pass\Z")
_ARGUMENT = regex(r"""\([bfruN@]{0,2}["']""")
"""What is between the name of a call and its only argument: `setApiKey("...")`."""
_IN_QUERY = regex(r"\A[\w/.-]*\?[^\s\"']*\Z")
"""The rest of a path and its query: what stands there has a name of its own."""
_CALLED_BACK = regex(
    r"""["'`]?[ ]{0,2}(?:
        ,?[ ]{0,2}\)?;?[ ]{0,2}(?://|\#|/\*|--)[ ]?(?:\w+[ ,]{1,2}(?:and[ ])?)?
      | [ ](?:is|was|as|for|als|como|comme|=)[ ](?:the|my|your|a|our|an|this|das|mein|dein|la|mi|le|mon|el)?
        [ ]?(?:\w+[ ]){0,2}
      | [ ]?[(\[](?:that'?s|this[ ]is|it'?s|is|the|my|our)?[ ]?(?:the|my|our|your)?[ ]?(?:\w+[ ]){0,2}
      | ["'],[ ]{0,2}["'](?:name|key|variable)["'][ ]?:[ ]?["']
      | [ ]?\|[ ]?(?:[\w./-]+[ ]){1,6}
      | [ ]?->[ ]?
    )\Z""",
    re.VERBOSE | re.IGNORECASE,
)
"""What stands between a value and a word after it that says what it is."""

_Names = Iterator[tuple[int, int, Credential]]
"""Words that promise a credential: where each begins with all that belongs to it, where it ends, what it promises."""


def _near(names: Callable[[View], _Names], view: View) -> Iterator[Span]:
    """Values that look like what a word near them says."""
    labels = [match.span() for match in LABEL.finditer(view.text)]
    for start, end, promise in names(view):
        if not any(first <= start < last for first, last in labels):
            found = _ahead(view, end, promise) or _behind(view.text, start, promise)
            if found:
                yield view.span(*found, promise.rule, 0)


def _nouns(view: View) -> _Names:
    text = view.text
    for stem in _STEMS:
        for place in view.places(stem):
            noun = _NOUN.match(text, place)
            first = max(0, place - _BEHIND - _LONGEST_NAME)
            if not noun or not _DIGIT.search(text, first, place + _LONGEST_NAME + _AHEAD):
                continue
            if not _MIXED.search(text, max(0, first - _LONGEST_NAME), noun.end() + _AHEAD):
                continue
            if named := _promise(text, place, noun):
                yield named[0], noun.end(), named[1]


def _spoken(view: View) -> _Names:
    text = view.text
    for word in _SPOKEN:
        for place in view.places(word):
            end = place + len(word)
            if (
                not text[place - 1 : place].isalpha()
                and not text[end : end + 2].isalpha()
                and not _OF_TABLE.match(text, end)
            ):
                yield place, end, Credential("password", True)


def _in_other_letters(view: View) -> _Names:
    for word in ASIDE:
        for match in re.finditer(word, view.flat, re.IGNORECASE):
            yield *match.span(), Credential("password", True)


def _promise(text: str, place: int, noun: re.Match[str]) -> tuple[int, Credential] | None:
    """Where the name begins, and what it promises; None where it is no name of a credential."""
    start, name = name_before(text, place, noun.end())
    if looks_random(name) and len(name) > 20:
        return None
    word = noun["noun"].lower()
    if word in ("pass", "pw", "psk"):
        return start, Credential("password", True)
    promise = credential(name.rstrip("s0123456789_-") if len(name) > 4 else name)
    if word == "credential":
        return start, Credential("password", True)
    if promise is None or (
        not promise.strong and is_of_text(text[max(0, start - 24) : start].rpartition(" ")[0][-16:].split(" ")[-1])
    ):
        return None
    return start, promise


def _ahead(view: View, place: int, promise: Credential) -> tuple[int, int] | None:
    """The first value after a name that looks like what it promises, with nothing between them that forbids it."""
    text = view.text
    region, shown = text[place : place + _AHEAD], view.flat[place : place + _AHEAD]
    if not _MIXED.search(region):
        return None
    for found in _CANDIDATE.finditer(region):
        start, end = found.span("quoted" if found["quoted"] else "bare")
        glue = shown[:start]
        if not start or (not promise.strong and len(glue) > _CLOSE):
            return None
        if glue.count("\n") > 2 or "ENC[" in glue or LABEL.search(glue) or _HAS_VALUE.match(glue):
            return None
        if found["bare"]:
            if end == len(region) and not text[place + end : place + end + 1].isspace() and place + end < len(text):
                return None  # cut where the looking ends
            if _SENTENCE_END.search(glue) and not _SPEAKER.match(glue):
                return None
            inner = _INNER_NAME.fullmatch(region, start, end)
            if inner:
                if not _says_nothing(inner["name"]) or len(inner["value"]) < 8:
                    continue
                start = inner.start("value")
            pair = _PAIR.fullmatch(region, start, end)
            if pair and not looks_random(pair["name"]) and looks_chosen(pair["value"]):
                start = pair.start("value")
            end = start + len(region[start:end].rstrip(".,:"))
        pressed = PRESSED.search(region, start, end)
        end = pressed.start() if pressed else end
        if _IN_QUERY.search(glue):
            return None
        if "\n" in glue and not _BELOW.search(glue) and not _SPEAKER.match(glue):
            return None
        if not has_both(region[start:end]) or not (
            fits(region[start:end], promise, quoted=bool(found["quoted"]))
            or (
                promise.strong
                and bool(_ARGUMENT.fullmatch(glue))
                and memorable(region[start:end])
                and end - start >= 16
            )
            or (
                promise.rule == "password"
                and not _BARE_PASS.search(text, place - 5, place)
                and _belongs(region[start:end], glue, quoted=bool(found["quoted"]))
            )
        ):
            continue
        own = _OWN_NAME.search(glue)
        if own and own.start() > 0 and not _SPEAKER.match(glue) and not _says_nothing(own["name"]):
            continue
        if _OF_ANOTHER.search(glue) and not found["quoted"]:
            continue
        if text[place + end : place + end + 1] in ("(", "["):
            continue
        return place + start, place + end
    return None


def _behind(text: str, start: int, promise: Credential) -> tuple[int, int] | None:
    """The last value before a name, where what is between them says that it is its value."""
    if not promise.strong:
        return None
    first = max(0, start - _BEHIND)
    region = text[first:start]
    if not _MIXED.search(region):
        return None
    for found in reversed(list(_CANDIDATE.finditer(region))):
        begin, end = found.span("quoted" if found["quoted"] else "bare")
        if not _CALLED_BACK.match(region, end) or not has_both(region[begin:end]):
            continue
        if _OWN_NAME.search(region[:begin]) and not region.endswith(('"', "'")):
            return None
        if begin == 0 and first > 0 and not found["quoted"]:
            return None
        return (first + begin, first + end) if fits(region[begin:end], promise, quoted=True) else None
    return None


def _belongs(value: str, glue: str, *, quoted: bool) -> bool:
    """Whether a value that need not look like a password is the password's by what is between the two."""
    if not memorable(value):
        return False
    if quoted:
        return bool(_HANDED.search(glue) or _FIELD.search(glue))
    if _NO_NAME.fullmatch(value):
        return False
    return bool(_NEXT_WORD.fullmatch(glue)) and sum(map(str.isdigit, value)) >= 2


def _says_nothing(name: str) -> bool:
    bare = name.strip("-").rpartition(".")[2]
    promise = credential(bare)
    return bool(_NEUTRAL.fullmatch(bare)) or (promise is not None and promise.strong)


_ANY_NOUN = r"(?i:passw|passphrase|pass[_-](?:phrase|code)|passcode|pass|pwd|pw|psk|secret|token|credential|key)"
_OF_PASSWORD = (
    r"(?i:(?:passw(?:or)?d|pass[_-]?(?:word|phrase|code)|[a-z_-]pass|pwd|pw|psk|credential)s?(?:[_-]?[0-9]{1,2})?)"
)
_REACH = _AHEAD + 12
_HANDED_CLOSE = r"(?:\([NEUb]?| (?:= )?[NEUb]?)[\"'`]"
_HANDED_FAR = (
    r"(?i:\([^()]{0,40}|\.(?:value|text) ?= ?|with: |return "
    r"|[\"'](?:text|value|content|input_text|keys|fill)[\"']? ?[:=] ?|(?:text|value)=|\), ?)[\"'`]"
)


def _has_value_before(shown: Shown, ends: Sequence[int]) -> bool:
    """Whether a value before a noun is said to be its."""
    text = shown.text
    for end in ends:
        stem = _STEM_BEFORE.search(text, max(0, end - 10), end)
        noun = _NOUN.match(text, stem.start()) if stem else None
        named = _promise(text, stem.start(), noun) if stem and noun else None
        if named and _behind(text, *named):
            return True
    return False


_CALLED = (
    r"[!-~](?i:[\"'`]? {0,2}(?:,? {0,2}\)?;? {0,2}(?://|#|/\*|--) ?(?:\w+[ ,]{1,2}(?:and )?)?"
    r"| (?:is|was|as|for|als|como|comme|=) (?:\w+ {1,2}| ){0,4}| ?[(\[](?:[\w']+ {1,2}| ){0,6}"
    r"| ?\| ?(?:[\w./-]+ ){1,6}| ?-> ?)|[\"'], {0,2}[\"'](?:name|key|variable)[\"'] ?: ?[\"'])"
    r"(?:[A-Za-z]{2,16} )?[A-Za-z0-9_.:$-]{0,64}"
)
_STEM_BEFORE = regex(rf"(?i)(?:{'|'.join(_STEMS)})\Z")
_SIFT_SPOKEN = "|".join(_SPOKEN).replace("?", "[^ -~]")
KINDS = (
    Kind(
        "near a noun",
        r"(?i:pass ?(?:wor[dt]|wd|phrase|code)|(?:^|[^a-z0-9+/])pass(?:$|[^a-z+]|s(?:$|[^a-z+]))"
        r"|[a-z](?-i:Pass(?:$|[^A-Za-z+]|[sS](?:$|[^A-Za-z+])))|pass[_-](?:word|phrase|code)|pwd|(?:^|[^a-z])pw|psk|secret"
        r"|token(?:$|[^s]|s(?:$|[^\"_ ]| [^\":=]))|credential|(?:api|access|secret|private|account|auth|encryption"
        r"|signing|master|subscription|storage|service|deploy|admin|shared|app|application|client|server|session|jwt"
        r"|hmac|webhook|functions|[a-z]{4})[_. -]?key)",
        functools.partial(_near, _nouns),
        (
            Closer(rf"{_ANY_NOUN}[\x00-\x7f]{{0,{_REACH}}}{STRONG_ENOUGH}", has_value),
            Closer(rf"{_CALLED}(?i:{'|'.join(_STEMS)})", _has_value_before),
            Closer(rf"{_OF_PASSWORD}[\x00-\x7f]{{0,{_REACH}}}{_HANDED_FAR}{IN_QUOTES}{{0,128}}{BOTH}"),
            Closer(rf"{_OF_PASSWORD}{_HANDED_CLOSE}{IN_QUOTES}{{0,128}}{BOTH}"),
            Closer(rf"{_OF_PASSWORD}(?i: (?:is|was|to|be|will be|of|with|=)){{0,2}}[:=]? [\"'`]?[=:~>+-]*{TWO_DIGITS}"),
            Closer(rf"{_ANY_NOUN}[\w-]{{0,6}}\([bfruN@]{{0,2}}[\"'](?:{IN_QUOTES}{{16}})"),
        ),
    ),
    Kind(
        "near a spoken word",
        rf"(?i:(?:^|[^a-z])(?:{_SIFT_SPOKEN})(?:$|[^a-z]))",
        functools.partial(_near, _spoken),
    ),
    Kind("near a word in other letters", ASIDE_SIGN, functools.partial(_near, _in_other_letters)),
)
"""They take what nothing else has found."""
