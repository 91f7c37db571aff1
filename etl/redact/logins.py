"""A login and its password side by side, where nothing names them but the call, file or sentence they are in."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from etl.redact.anchors import near, starting
from etl.redact.credentials import is_value, looks_chosen, looks_random, memorable
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.spans import Span


class Login(NamedTuple):
    """A form of two things beside each other, of which `value` is the secret one."""

    form: re.Pattern[str]
    sign: str
    """What a string must match (in RE2, on its padded form) before the form can match: cheap, and good for sifting."""
    marks: tuple[str, ...]
    """In lower case: one of them is in every match."""
    test: Literal["memorable", "chosen", "any", "token"] = "memorable"
    first: bool = False
    """Every match begins with one of the marks."""
    closer: str = ""
    """What a suspicious view must match besides, where the sign is in many (`families.Closer`)."""


_LITERAL = r"""[bfrNu@]{0,2}["'](?P<value>[^"'\n]{6,256})["']"""
_USER = r"""(?:[A-Za-z_]{2,24}[ ]?[=:][ ]?)?[bfru@]{0,2}["'][^"'\s]{1,80}["']"""
_ARGUMENT = r"""(?:[^()"'\n,]{1,80}|(?:[A-Za-z_]{2,24}[ ]?[=:][ ]?)?[bfru@]{0,2}["'][^"'\n]{1,240}["'])"""
_PAIR_CALLS = (
    r"log_?in|log_?on|sign_?in\w{0,24}|authenticate|auth|"
    r"(?:http)?_?basic_?auth\w{0,8}|http_auth|credentials?|auth_?provider|"
    r"username_pw_set|(?:simple_)?bind(?:_s)?|(?:change|set|create|"
    r"add|reset)_?(?:user|superuser|login|account)(?:_?password)?|"
    r"passwordauthentication|usernamepassword\w{0,24}|set_?basic_?auth|"
    r"http_basic_authenticate_with|set_access_token|register"
)
_CONNECT_CALLS = r"connect|connection|mysqli|pdo|ftp(?:_tls)?|mail|mailer|open_?database"
_HASH_CALLS = (
    r"hashpw|password_hash|make_password|check_password|(?:bcrypt\w{0,8}|argon2\w{0,2}|"
    r"ph|hasher|passwordencoder|pwd_context|crypt)\.\w{3,12}|crypt|"
    r"set_?password|with_?password|to_?be_?password"
)
_SIGNING_CALLS = (
    r"hmac\.new|fernet|signwith|symmetricsecuritykey|secretkeyspec|(?:urlsafe|timed)\w{0,16}serializer"
    r"|algorithm\.hmac(?:256|384|512)|encoding\.(?:utf8|ascii)\.getbytes"
)
"""Calls whose first argument is a key."""
_SIGNED_CALLS = (
    r"jwt\.(?:sign|encode|decode|verify)|jsonwebtoken\.(?:sign|verify)|createhmac|hash_hmac|hmac\.(?:hex)?digest"
    r"|(?:pgp_sym|aes)_(?:en|de)crypt"
)
"""Calls that have a key after what they sign."""
_CREDENTIALS = (
    r"(?:\b(?:credentials?|creds|zugangsdaten|identifiants|"
    r"credenciales|credenciais|credenziali|log ?-?in|sign ?-?in|log ?on"
    r"|(?:user |admin |test |demo |service )?account)"
    r"(?: (?:are|is|sind|sont|son|with|as|using|to \S{2,40}(?: with|"
    r" as)?|details|data|info|for \S{2,40}(?: are| is)?))?[: ]{1,2})"
)
_SEPARATED = (
    r"""["'`]?[\w.@+-]{2,64}["'`]?(?:[ ]?/[ ]?|[ ]?\|[ ]?|:(?! )|"""
    r"""[ ]and[ ](?:the[ ])?)["'`]?(?P<value>[^\s"'`,;)|<>]{6,64})"""
)
_LOGINS = (
    Login(
        regex(
            rf"(?i)(?:{_PAIR_CALLS})[\"']?(?:[ ]?(?:=>|=|"
            rf":)[ ]?)?[(\[]\s{{0,12}}(?:[A-Za-z_$][\w.$]{{0,40}},\s{{0,12}})?{_USER},\s{{0,12}}"
            rf"(?:[\"'][^\"'\s@]{{1,60}}@[^\"'\s]{{2,60}}[\"'],\s{{0,12}})?{_LITERAL}"
        ),
        rf"(?i:(?:{_PAIR_CALLS}) *[\"']?(?: ?(?:=>|=|:) ?)?[(\[][^()]*[\"'],[^()]*[\"'])",
        ('",', "',"),
    ),
    Login(
        regex(rf"(?i)(?:{_CONNECT_CALLS})\(\s{{0,12}}{_ARGUMENT},\s{{0,12}}{_USER},\s{{0,12}}{_LITERAL}"),
        rf"(?i:(?:{_CONNECT_CALLS})\([^()]*,[^()]*[\"'],[^()]*[\"'])",
        ('",', "',"),
    ),
    Login(
        regex(rf"(?i)(?:{_HASH_CALLS})\(\s{{0,12}}{_LITERAL}"),
        rf"(?i:(?:{_HASH_CALLS})\([bfrNu@ ]*[\"'])",
        ('("', "('", "(b", "(f", "(u"),
    ),
    Login(
        regex(rf"(?i)(?:{_SIGNING_CALLS})\(\s{{0,12}}(?:\w+[ ]?=[ ]?)?(?:(?:new[ ])?[\w.]{{0,40}}\()?{_LITERAL}"),
        rf"(?i:(?:{_SIGNING_CALLS})\([^\n)]*[\"'])",
        ("new(", "fernet(", "signwith(", "key(", "serializer(", "hmac256(", "hmac384(", "hmac512(", "getbytes("),
    ),
    Login(
        regex(
            rf"(?i)(?:{_SIGNED_CALLS})\((?:[^()\n]"
            rf"|\([^()\n]{{0,80}}\)){{1,160}}?,\s{{0,12}}(?:\w+[ ]?=[ ]?)?{_LITERAL}(?!\])"
        ),
        rf"(?i:(?:{_SIGNED_CALLS})\([^\n]*[\"'])",
        ("sign(", "encode(", "decode(", "verify(", "hmac(", "digest(", "crypt("),
    ),
    Login(
        regex(r"(?<![\w/:.@])[A-Za-z][\w.-]{0,63}:(?P<value>[^\s\"'`@/]{4,128})@(?:tcp|unix|udp)\("),
        r"@(?:tcp|unix|udp)\(",
        ("@tcp(", "@unix(", "@udp("),
        "any",
    ),
    Login(
        regex(
            r"(?m)(?:^|[\s\"'`:>|+-])(?:[A-Za-z0-9-]+(?:\.[A-Za-z0-9-]+)+|localhost|"
            r"[a-z]{2,16}(?:-[a-z0-9]+)?|\*):(?:5[34][0-9]{2}|6[45][0-9]{2}|[12][0-9]{4}|\*):"
            r"(?:[\w-]+|\*):[\w.@-]+:(?P<value>[^\s\"':]{4,128})(?=[\s\"'`]|\Z)"
        ),
        r":(?:[0-9]{4,5}|\*):[^\s:]+:[^\s:]+:[^\s:]{4}",
        (":*:", ":5", ":6", ":1", ":2"),
    ),
    Login(
        regex(rf"(?i){_CREDENTIALS}{_SEPARATED}"),
        r"(?i:(?:credentials?|creds|zugangsdaten|identifiants|credencia[a-z]+|credenziali|log ?-?in|sign ?-?in|log ?on"
        r"|account)(?: [^\s/:|]+)*[: ]+[\"'`]?[\w.@+-]+[\"'`]?(?: ?[/|] ?|:| and )[^\s]{6})",
        ("cred", "zugangs", "identif", "log", "sign", "account"),
        "memorable",
    ),
    Login(
        regex(
            r"(?i)\b(?:log ?in|sign ?in|connect|ssh(?: in)?)(?: to \S{2,40})? (?:as|with|"
            r"using) (?!google|github|apple|microsoft|sso|okta|your|the |a "
            r"|an )[\"'`]?[\w.@+-]{2,64}[\"'`]? (?:with|and|using|/) [\"'`]?(?P<value>[^\s\"'`,;)]{6,64})"
        ),
        r"(?i:(?:log ?in|sign ?in|connect|ssh)[^\n]* (?:as|with|using) [\"'`]?[\w.@+-]{2,64}[\"'`]? (?:with"
        r"|and|using|/) [^\s]{6})",
        ("login", "log in", "sign", "connect", "ssh"),
        "memorable",
    ),
    Login(
        regex(
            r"(?i)\b(?:u|usr|user(?: ?name)?|login|id|email|e-mail|benutzer(?:name)?|usuario|"
            r"utilisateur)[\"'`]?(?:[ ]?[:=] ?|[ ])[\"'`]?[\w.@+-]{2,64}[\"'`]?(?:&|[,;/]?[ \n+>"
            r"|-]{1,8})(?:[0-9]{1,5}[\t |:]{1,3})?"
            r"(?:p|pw|pwd|pass)(?:[ ]?[:=] ?|(?<=[wds])[ ])(?P<value>[^\s\"'`,;]{6,64})"
        ),
        r"(?i:(?:^|[^a-z])p(?: ?[:=]|(?:w|wd|ass)(?: ?[:=]| [^ ]{6})))",
        ("p:", "p=", "pw", "pass", "p :"),
        closer=r"(?i:(?:u|usr|user(?: ?name)?|login|id|email|e-mail|benutzer(?:name)?|usuario|utilisateur)[\"'`]?"
        r"(?: ?[:=] ?| )[\"'`]?[\w.@+-]{2,64}[\"'`]?(?:&|[,;/]?[ \n+>|-]{1,8})(?:[0-9]{1,5}[\t |:]{1,3})?"
        r"(?:p|pw|pwd|pass)(?: ?[:=] ?| )[^\s\"'`,;]{6})",
    ),
    Login(
        regex(
            r"(?i)\b(?:use|with|try|as)[ ][\"'`]?[\w.@+-]{2,64}[\"'`]?(?:[ ]?/[ ]?|"
            r":)[\"'`]?(?P<value>[^\s\"'`,;)|<>]{6,64})[\"'`]?"
            r"[ ](?:to|for|when|at|on|in)[ ](?:the )?(?:log|sign|auth|connect|access|get)"
        ),
        r"(?i:(?:use|with|try|as) [^\s]{2,64} ?[/:] ?[^\s/:]{5,64} (?:to|for|when|at|on|in) )",
        ("use ", "with ", "try ", "as "),
        "chosen",
    ),
    Login(
        regex(
            r"""(?i)["']?(?:user(?:name)?|login|email|account)["']?[ ]?(?:=>|:|=)[ ]?["'][^"'\s]{1,80}["'],\s{0,12}"""
            r"""["']?pass["']?[ ]?(?:=>|:|=)[ ]?["'](?P<value>[^"'\n]{6,128})["']"""
        ),
        r"(?i:[\"', {(]pass *[\"']? *(?:=>|:|=) *[\"'])",
        ("pass",),
    ),
    Login(
        regex(
            r"(?i)://[^\s/?#\"'`<>@:\\]{0,128}:(?P<value>[^\s/?#\"'`<>@\\]{0,64}[?#][^\s/\"'`<>@\\]{1,64})@"
            r"(?=[a-z0-9\[])"
        ),
        r"://[^\s/?#@:]*:[^\s/@]*[#?][^\s/@]*@",
        ("://",),
    ),
    Login(
        regex(
            r"(?i)\b(?:created|added|seeded|made)(?: the| a)? (?:super ?user|admin(?:istrator)?|root|user)s?"
            r":? [\"'`]?[\w.@+-]{2,64}[\"'`]?(?:[ ]?/[ ]?|:"
            r"|[ ]with[ ](?:password[ ])?)[\"'`]?(?P<value>[^\s\"'`,;)|<>/]{6,64})"
        ),
        r"(?i:(?:super ?user|admin|administrator|root|user)s?:? [^\s]+(?: ?/ ?|:| with )[^\s]{6})",
        ("created", "added", "seeded", "made"),
        "memorable",
    ),
    Login(
        regex(
            r"""(?i)["']user(?:name)?["']:[ ]?["'][\w.@-]{1,64}["'],\s{0,12}"""
            r"""["']key["']:[ ]?["'](?P<value>[A-Za-z0-9_-]{24,128})["']"""
        ),
        r"(?i:[\"']user(?:name)? *[\"']: *[\"'])",
        ('"key"', "'key'"),
        "chosen",
    ),
    Login(
        regex(
            r"(?i)pass(?:word|phrase|"
            r"wd)[^\n]{0,40}\n[^\n]{0,48}?\bsend(?:_?line)?[ (]{1,2}(?:--[ ])?[\"'](?P<value>[^\"'\s\\]{6,128})"
        ),
        r"(?i:send(?:_?line)?[ (]+)",
        ("send",),
        "any",
        closer=r"(?i:pass(?:word|phrase|wd)[^\n]{0,40}\n[^\n]{0,48}send(?:_?line)?[ (]{1,2}(?:-- )?[\"'][^\"'\s\\]{6})",
    ),
    Login(
        regex(
            rf"(?i)(?:\bnew[ ]\w{{2,40}}|client|_api|\bconfigure|"
            rf"\binit(?:ialize)?)\(\s{{0,12}}(?:{_ARGUMENT},\s{{0,12}})?{_LITERAL}[ ]{{0,2}}[,)]"
        ),
        r"(?i:(?:new \w+|client|_api|configure|init(?:ialize)?)\([^()]*[\"'])",
        ("client(", "_api(", "new ", "configure(", "init(", "initialize("),
        "token",
        first=True,
    ),
    Login(
        regex(
            r"(?i)\b(?:wi-?fi|wlan|ssid|network)\b[^\n]{0,60}?\b(?:key|"
            r"pin|psk|pw|pass)[:=] ?[\"']?(?P<value>[^\s\"'`,;]{8,64})"
        ),
        r"(?i:(?:wi-?fi|ssid|wlan|network)[^\n]*(?:key|pin|psk|pw|pass)[:=])",
        ("wi", "ssid", "wlan", "network"),
    ),
)
_ELSEWHERE = regex(
    r"\$\{|\A\$[A-Za-z]|\A%[sdv]|\{[a-z_.]*\}|\A[A-Z_]+\Z|\A[\w.-]+/[\w./-]+\Z|"
    r"\A\w+\.\w+\(|\A/|\.(?:com|io|net|org|dev|local|internal)\b"
)


_PLAIN_ID = regex(r"(?i)\A[0-9a-f-]+\Z|\A(?:ca|pk|pub|public|app|proj|project|org|g|ua|aw|dpl|prj)[_-]|[./:@ ]")
"""Ids and names that clients are made with besides keys."""


def _beside(login: Login, view: View) -> Iterator[Span]:
    for match in (starting if login.first else near)(view, login.marks, login.form):
        value = match["value"].rstrip(".,")
        if is_value(value, "") and not _ELSEWHERE.search(value) and _holds(login.test, value):
            yield view.span(match.start("value"), match.start("value") + len(value), "password", 1)


def _holds(test: str, value: str) -> bool:
    if test == "any":
        return True
    if test == "token":
        return len(value) >= 28 and looks_random(value) and not _PLAIN_ID.search(value)
    if looks_chosen(value) or (len(value) >= 16 and looks_random(value)):
        return True
    return test == "memorable" and memorable(value)


KINDS = tuple(
    Kind(f"login {place}", login.sign, functools.partial(_beside, login), closers(login.closer))
    for place, login in enumerate(_LOGINS)
)
