"""Secrets that have a format of their own: password files, JSON Web Keys, seed phrases, unseal keys, wrapped files.

What the formats are is public; here, a mark that each always has is looked for first.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterator

from etl.redact.anchors import starting
from etl.redact.credentials import credential, is_value, looks_random, memorable, mixed
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.spans import Span

_HASH = regex(
    r"(?:(?<=[\w.@-]:)|(?<=[|\t\"'= ]))(?P<value>\${1,2}(?:apr1|1|2[abxy]?|5|6|7|y|gy|"
    r"sha1|md5|argon2(?:id|i|d)|scrypt)\${1,2}(?:[A-Za-z0-9./+=$@!-]|,(?=[a-z]=)){8,256}"
    r"|\{(?:SHA|SSHA|SHA256|SHA512|SSHA512|CRYPT|MD5|SMD5)\}[A-Za-z0-9+/=$.]{16,200})"
)
"""What stands after a login in `htpasswd` and `shadow` files."""
_DERIVED = regex(
    r"(?<![\w$])(?:pbkdf2_sha(?:1|256|512)\$[0-9]{1,9}\$[A-Za-z0-9./+]{1,64}\$|bcrypt_sha256\$\$2[aby]\$[0-9]{2}\$|argon2\$argon2i?d?\$"
    r"[^\s\"'$]{1,16}\$[^\s\"'$]{1,48}\$[^\s\"'$]{4,64}\$|pbkdf2:sha(?:1|256|512):[0-9]{1,9}\$[A-Za-z0-9]{4,32}\$"
    r"|scrypt:[0-9]{1,9}:[0-9]{1,3}:[0-9]{1,3}\$[A-Za-z0-9]{4,32}\$|\$pbkdf2-sha(?:1|256|512)\$[0-9]{1,9}\$[A-Za-z0-9./]{4,64}\$)"
    r"[A-Za-z0-9+/.=]{20,256}"
)
"""Hashes as frameworks keep them."""
_JWK_MEMBER = regex(r"""["'](?:d|p|q|dp|dq|qi|k)["']\s{0,3}:\s{0,3}["'](?P<value>[A-Za-z0-9_-]{16,1024}={0,2})["']""")
_UNSEAL = regex(
    r"(?i)(?:(?:unseal|recovery)[ _]keys?(?:_b64|_hex)?(?:[ ](?:share[ ])?\(?(?:[0-9]{1,2}|"
    r"[a-z]+)\)?)?(?:[ ]\([a-z0-9 ]{1,12}\))?[\"']?\s{0,3}(?:[:=]|is)\s{0,3}\[?"
    r"|operator[ ]unseal[ ](?:-[a-z-]+(?:=\S+)?[ ])*)\s{0,12}[\"']?(?P<value>[A-Za-z0-9+/=]{32,100})"
)
_KEY_LIST = regex(
    r"""["']?(?:(?:unseal_|recovery_)?keys(?:_base64|_b64|_hex)|(?:unseal|"""
    r"""recovery)_keys)["']?\s{0,3}[:=]\s{0,3}\[?(?P<body>[^\]{}]{32,2048})"""
)
_IN_LIST = regex(r"[A-Za-z0-9+/]{32,100}={0,2}")
_WORDS_AFTER = regex(
    r"(?i)(?:(?:seed|recovery|backup|secret|wallet|mnemonic)[ _-]?(?:recovery[ _-])?(?:phrase|"
    r"words?|key)|mnemonic|bip-?39)[^\n]{0,48}?[:=\"'( ]\s{0,12}"
    r"(?P<value>(?-i:(?:[0-9]{1,2}[.):][ ]?)?[a-z]{3,8}(?:[ ,]{1,2}|\n[ ]{0,8}|"
    r"[ ]?[0-9]{1,2}[.):][ ]?)(?:(?:[0-9]{1,2}[.):][ ]?)?[a-z]{3,8}(?:[ ,]{1,2}|"
    r"\n[ ]{0,8})){10,22}(?:[0-9]{1,2}[.):][ ]?)?[a-z]{3,8})(?![a-z]))"
)
_NO_SEED = regex(r"\b(?:the|and|for|are|was|has|not|your|must|have|been|from|which|should|these)\b")
_WRAPPED = (
    "LS0tLS1CRUdJTi", "eyJhdXRocyI", "eyAiYXV0aHMi", "ewogICAgImF1dGhzI", "ewoJImF1dGhzI", "ewogICJhdXRocyI",
    "ewoiYXV0aHMi",
    "ewogICJ0eXBlIjogInNlcnZpY2V", "eyJ0eXBlIjoic2VydmljZV", "eyJ0eXBlIjogInNlcnZpY2V",
    "ewogICAgInR5cGUiOiAic2VydmljZV",
)  # fmt: skip
"""How base64 begins of keys, logins of Docker and service accounts of Google."""
_BASE64 = regex(r"[A-Za-z0-9+/]{16,}={0,2}")
_SASL = regex(
    r"(?:AUTH(?:ENTICATE)?[ ](?:PLAIN|LOGIN|XOAUTH2|OAUTHBEARER)[ ]|"
    r"334 UGFzc3dvcmQ6\s{1,3}(?:[\w ]{0,4}[:<>] ?)?)(?P<value>[A-Za-z0-9+/]{6,}={0,2})"
)
_PASS_LINE = regex(r"(?:(?<![\s\S])|(?<=[\n> :\"'+-]))PASS[ ](?P<value>[^\s\"'`<>]{4,256})(?=[ ]?(?:\n|\Z|[\"']))")
_SESSION = regex(r"\b(?:USER|NICK|331|230|221|\+OK|LOGIN)\b|001 ")
_SECRET_KIND = regex(r"""kind["']?:\s{0,3}["']?Secret\b""")
_DATA_LINE = regex(
    r"""["']?(?P<name>[A-Za-z_.][\w.-]{1,80})["']?:[ ]{0,3}["']?(?P<value>[A-Za-z0-9+/]{4,}={0,2})["']?(?=[\s,}]|\Z)"""
)
_NO_SECRET_NAME = regex(
    r"(?i)\.crt|cert|\bca\b|user|host|port|name|email|region|"
    r"pub|mode|issuer|bucket|version|kind|type|namespace|uid|time"
)
_IN_URL = re.compile(rb"://[^\s/:@]*:[^\s/@]+@")
_DEFAULT = regex(
    r"""variable[ ]{1,3}["'](?P<name>[\w-]{2,64})"""
    r"""["'][ ]{0,3}\{[^{}]{0,400}?\bdefault[ ]{0,12}=[ ]{0,3}["'](?P<value>[^"'\n$]{6,256})["']"""
)
_ARGUMENT = regex(
    r"""["'](?P<name>--?[\w-]{3,64})["'],[^()\n]{0,120}?\bdefault[ ]?=[ ]?["'](?P<value>[^"'\s]{6,256})["']"""
)
_FIELD_NAME = regex(
    r"""(?P<name>[A-Za-z_][\w.-]{2,64})["']?[ ]{0,2}(?:\w{1,24}=["'][^"'<>]{0,24}["'][ ]?)?/?>?(?:</key>)?[\s,;>+|"""
    r"""?0-9:<{-]{0,48}["'<]?(?:parameter|string|secret|default|plain)?[_-]?\Z""",
    re.IGNORECASE,
)
_FIELD_VALUE = regex(
    r"""(?:value|"""
    r"""string)["']?\s{0,3}[:=>]\s{0,3}(?:\{\s{0,3}"""
    r"""["']string_?value["']\s{0,3}:\s{0,3})?["']?(?P<value>[^\s"'<>]{6,512})""",
    re.IGNORECASE,
)
_ENTRY = regex(
    r"""<(?P<tag>[a-z]{3,12})[ ](?:key|name|"""
    r"""id)=["'](?P<name>[\w.-]{3,80})["'][^<>]{0,40}>(?P<value>[^\s<>"']{6,256})</(?P=tag)>""",
    re.IGNORECASE,
)
_FOR = regex(
    r"(?i)(?:password|passphrase|passcode)(?: for [^\n]{1,96}?|"
    r"(?<=[a-z]'s password))['\"]?: (?P<value>[^\s\"'`]{6,128})"
)


def _hashes(view: View) -> Iterator[Span]:
    for match in _HASH.finditer(view.text):
        yield view.span(*match.span("value"), "password_hash", 2)


def _derived(view: View) -> Iterator[Span]:
    for match in starting(view, ("pbkdf2", "bcrypt_sha256$", "argon2$", "scrypt:", "$pbkdf2-"), _DERIVED):
        yield view.span(*match.span(), "password_hash", 2)


def _unsealing(view: View) -> Iterator[Span]:
    for match in _UNSEAL.finditer(view.text):
        if mixed(match["value"]):
            yield view.span(*match.span("value"), "unseal_key", 2)


def _found(form: re.Pattern[str], text: str, *marks: str) -> Iterator[re.Match[str]]:
    """Where a form is; it is not looked for in a text without any of its marks."""
    return form.finditer(text) if any(mark in text for mark in marks) else iter(())


def _web_keys(view: View) -> Iterator[Span]:
    text = view.text
    for literal in ('"kty"', "'kty'"):
        for place in view.places(literal):
            begin, end = text.rfind("{", max(0, place - 4096), place) + 1, text.find("}", place)
            for match in _JWK_MEMBER.finditer(text, max(begin, place - 4096), end if end > 0 else len(text)):
                yield view.span(*match.span("value"), "jwk", 2)


def _key_lists(view: View) -> Iterator[Span]:
    for match in _KEY_LIST.finditer(view.text):
        for key in _IN_LIST.finditer(view.text, *match.span("body")):
            if looks_random(key.group()):
                yield view.span(*key.span(), "unseal_key", 2)


def _seed_phrases(view: View) -> Iterator[Span]:
    for match in _WORDS_AFTER.finditer(view.text):
        if not _NO_SEED.search(match["value"]):
            yield view.span(*match.span("value"), "seed_phrase", 2)


def _wrapped(view: View) -> Iterator[Span]:
    """Whole files in base64 that hold a key or a login."""
    for literal in _WRAPPED:
        for place in view.places(literal, lower=False):
            run = _BASE64.match(view.text, place)
            if run and (literal != _WRAPPED[0] or b"PRIVATE" in _decoded(run.group()[:80])):
                yield view.span(*run.span(), "private_key" if literal == _WRAPPED[0] else "login", 2)


def _mail(view: View) -> Iterator[Span]:
    """What clients say to servers of mail, files and chat."""
    text = view.text
    for match in _found(_SASL, text, "AUTH", "334 "):
        said = _decoded(match["value"])
        if b"\0" in said or b"auth=" in said or text.startswith("334", match.start()):
            yield view.span(*match.span("value"), "login", 2)
    for match in _found(_PASS_LINE, text, "PASS "):
        value = match["value"]
        if (
            _SESSION.search(text, max(0, match.start() - 160), match.end() + 160)
            and is_value(value, "")
            and mixed(value)
        ):
            yield view.span(*match.span("value"), "password", 2)
    for match in _found(_FOR, text, " for ", "'s "):
        if is_value(match["value"], "") and memorable(match["value"].rstrip(".,")):
            yield view.span(*match.span("value"), "password", 2)


def _kubernetes(view: View) -> Iterator[Span]:
    """Data of a manifest that says it is a Secret's, whose value is a secret by its name or by what it wraps."""
    text = view.text
    for kind in _found(_SECRET_KIND, text, "Secret"):
        end = text.find("\n---", kind.end())
        for line in _DATA_LINE.finditer(text, max(0, kind.start() - 2000), end if end > 0 else kind.end() + 4000):
            name, value = line["name"], line["value"]
            said = _decoded(value)
            if not said.isascii() or not said.decode("ascii").isprintable() or _NO_SECRET_NAME.search(name):
                continue
            promise = credential(name)
            if (promise and len(said) >= 4) or _IN_URL.search(said):
                yield view.span(*line.span("value"), promise.rule if promise else "url_password", 1)


def _fields(view: View) -> Iterator[Span]:
    """Names and values that are fields of one object, element or block."""
    text = view.text
    for form, mark in ((_DEFAULT, "variable"), (_ENTRY, "</"), (_ARGUMENT, "default")):
        for match in _found(form, text, mark):
            yield from _named(view, match["name"], match)
    for literal in ("value", "string"):
        for place in view.places(literal):
            value = _FIELD_VALUE.match(text, place)
            name = _FIELD_NAME.search(text, max(0, place - 128), place) if value else None
            if value and name:
                yield from _named(view, name["name"], value)


def _named(view: View, name: str, match: re.Match[str]) -> Iterator[Span]:
    value, promise = match["value"].rstrip(",;"), credential(name)
    if promise is None or not is_value(value, name):
        return
    if (promise.strong and (memorable(value) or len(value) >= 32)) or looks_random(value):
        start = match.start("value")
        yield view.span(start, start + len(value), promise.rule, 1)


def _decoded(value: str) -> bytes:
    """What base64 says; nothing where it is none."""
    try:
        return base64.b64decode(value + "=" * (-len(value) % 4))
    except (binascii.Error, ValueError):
        return b""


_OF_CREDENTIAL = r"(?:pass|pw|psk|secret|key|token|credential)"
"""In every name that promises one."""
KINDS = (
    Kind(
        "password hashes",
        r"(?i:[a-z0-9_.@|\t\"'= -][:|\t\"'= ]?\$+(?:apr1|1|2[abxy]?|5|6|7|y|gy|argon2)|:\{s?s?(?:ha|md5|crypt))",
        _hashes,
    ),
    Kind(
        "derived hashes",
        r"(?:pbkdf2_sha(?:1|256|512)\$|bcrypt_sha256\$\$|argon2\$argon2|pbkdf2:sha[0-9]+:[0-9]+\$|scrypt:[0-9]+:[0-9]+:|\$pbkdf2-sha)",
        _derived,
    ),
    Kind("unseal keys", r"(?i:unseal|recovery[ _]key)", _unsealing),
    Kind("web keys", r"(?i:[\"']kty *[\"'])", _web_keys),
    Kind("lists of keys", r"(?i:keys_(?:b|h))", _key_lists),
    Kind(
        "seed phrases",
        r"(?i:mnemonic|bip-?39|(?:seed|recovery|backup|secret|wallet)[ _-](?:recovery )?(?:phrase|word|key))",
        _seed_phrases,
        closers(
            r"(?i:mnemonic|bip-?39|(?:seed|recovery|backup|secret|wallet)[ _-]?(?:recovery[ _-])?(?:phrase|words?|key))"
            r"[\t -~]{0,48}[:=\"'( ]\s{0,12}(?:(?:[0-9]{1,2}[.):] ?)?[a-z]{3,8}[ ,\n0-9.):]{1,16}){11}[a-z]{3}"
        ),
    ),
    Kind("wrapped", "|".join(_WRAPPED), _wrapped),
    Kind(
        "mail",
        r"(?i:auth[a-z]* (?:plain|login|xoauth2|oauthbearer) [a-z0-9+/]|334 UGFzc3dvcmQ6"
        r"|pass(?:word|phrase|code) for [^\n]*: [^\s]|'s password: [^\s])|(?:^|[^A-Za-z])PASS ",
        _mail,
    ),
    Kind("kubernetes", r"(?i:kind *[\"']?:\s*[\"']?secret)", _kubernetes),
    Kind(
        "fields",
        r"(?i:variable +[\"'][\w-]+ *[\"'] *\{"
        r"|(?:pass|secret|token(?:$|[^s])|key|pwd|credential)[\w.-]*[\"']? *[\"']? *"
        r"(?:[a-z]+= ?[\"'][^\"'<>]*[\"'] ?)?(?:/?>)?(?:</key>)?[\s,;>+|?0-9:<{-]*"
        r"[\"'<]?(?:parameter|string|secret|default|plain)?[_-]?(?:value|string)"
        r"|(?:key|name|id)= *[\"'][\w.-]+ *[\"'][^<>]*>[^\s<>]|default ?= ?[\"'][^\s\"'])",
        _fields,
        closers(
            rf"(?i:variable {{1,3}}[\"'][\w-]*{_OF_CREDENTIAL}[\w-]*[\"'] {{0,3}}\{{[^{{}}]{{0,400}}default {{0,12}}="
            r" {0,3}[\"'][^\"'\n$]{6})",
            rf"(?i:[\"']-[\w-]*{_OF_CREDENTIAL}[\w-]*[\"'],[^()\n]{{0,120}}default ?= ?[\"'][^\"'\s]{{6}})",
            rf"(?i:<[a-z]{{3,12}} (?:key|name|id)=[\"'][\w.-]*{_OF_CREDENTIAL}[\w.-]*[\"'][^<>]{{0,40}}>"
            r"[^\s<>\"']{6})",
            rf"(?i:{_OF_CREDENTIAL}[\w.-]{{0,64}}[\"']? {{0,2}}(?:\w{{1,24}}=[\"'][^\"'<>]{{0,24}}[\"'] ?)?/?>?"
            r"(?:</key>)?[\s,;>+|?0-9:<{-]{0,48}[\"'<]?(?:parameter|string|secret|default|plain)?[_-]?(?:value|string)"
            r"[\"']?\s{0,3}[:=>]\s{0,3}(?:\{\s{0,3}[\"']string_?value[\"']\s{0,3}:\s{0,3})?[\"']?[^\s\"'<>]{6})",
        ),
    ),
)
