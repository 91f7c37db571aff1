"""Secrets that programs print: passwords they have made, tokens they were asked for, codes for a second factor.

What a line says before the value, or the command that was typed above it, tells what it is.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from etl.redact.anchors import near, starting
from etl.redact.credentials import is_value, looks_chosen, looks_random, memorable, mixed, pieced
from etl.redact.escapes import View
from etl.redact.families import Kind, closers
from etl.redact.regex import regex
from etl.redact.spans import Span


class Print(NamedTuple):
    """A form of output with the value in it."""

    marks: tuple[str, ...]
    """In lower case: one of them is in every match."""
    form: re.Pattern[str]
    sign: str
    """What a string must match (in RE2, on its padded form) before the form can match."""
    rule: str
    test: Literal["any", "memorable", "chosen", "shown", "alone", "random"] = "any"
    reach: int = 5_000
    """Characters of a match."""
    first: bool = False
    """Every match begins with one of the marks."""
    closer: str = ""
    """What a suspicious view must match besides, where the sign is in many (`families.Closer`)."""


_LINE_END = r"(?=[\"'`]{0,2}[ \t\r]*(?:\n|\Z|[\"'`]))"
_NEXT_LINE = r"\n *[^\s<>]"
"""In signs: a line ends, and a value may follow."""
_TYPED = r"(?:^|\n|[$#>%] )"
"""In signs: what a command that is typed begins after."""
_UUID = r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
_SEED = r"(?-i:[A-Z2-7]{16,64}|(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}|[a-z2-7]{32}|(?:[a-z2-7]{4}[ -]){3,15}[a-z2-7]{4})"
_MAKING = (
    r"wg gen(?:key|psk)|consul keygen|nomad operator gossip keyring generate"
    r"|php artisan key:generate --show|(?:python|node|ruby|perl|php)[0-9.]*[ ]"
    r"-[a-zA-Z]*[ce][^\n]{0,160}"
    r"(?:token_(?:hex|urlsafe)|randombytes|generate_key|random_bytes|securerandom|get_random_secret_key)[^\n]*"
    r"|(?:bin/)?rails secret|(?:bin/)?rake secret|mix phx\.gen\.secret[^\n]*|[^\n]{0,80}/dev/u?random[^\n]*"
    r"|kubeadm token (?:create|generate)[^\n]*|npx auth secret[^\n]*|age-keygen -y[^\n]*|tailscale[^\n]*authkey[^\n]*"
    r"|gh auth token[^\n]*|glab auth[^\n]*token[^\n]*|npm token create[^\n]*|rclone (?:obscure|reveal) [^\n]*"
    r"|ansible-vault (?:view|decrypt)[^\n]*|bao (?:kv get|read) [^\n]{0,80}-field[^\n]*|keyring get [^\n]*"
    r"|sops[^\n]*--extract[^\n]*"
    r"|cat [^\n]{0,80}(?:/\.pgpass|/run/secrets/[^\n]*|\.vault[-_]pass\w*"
    r"|/\.erlang\.cookie|/var/lib/jenkins/secrets/[^\n]*)"
    r"|docker exec [^\n]{0,80}cat [^\n]{0,60}(?:initialadminpassword|initial_root_password|secret)[^\n]*"
)
_MAKING_SIGN = (
    r"(?i:(?:wg gen(?:key|psk)|consul keygen|gossip keyring"
    r"|key:generate --show|token_hex|token_urlsafe|randombytes|generate_key|random_bytes"
    r"|securerandom|get_random_secret_key|(?:rails|rake) secret|phx\.gen\.secret|/dev/u?random"
    r"|kubeadm token|npx auth secret"
    r"|gh auth token|npm token create|rclone (?:obscure|reveal)|ansible-vault (?:view|decrypt)|bao (?:kv|read)"
    r"|keyring get|sops[^\n]*--extract|/run/secrets/|vault[-_]pass|erlang\.cookie|jenkins/secrets/"
    rf"|initialadminpassword|initial_root_password)[^\n]*{_NEXT_LINE})"
)
"""Commands that make a key, and print it or keep it, and those whose only output is one."""
_SHOWING = (
    r"(?:\b(?:cat|less|head|more|type|bat)[ ][^\n|;&]{0,80}(?:passw|secret|token|api_?key|credential)[^\n|;&]{0,40}"
    r"|argocd admin initial-password[^\n]*|(?:kubectl|oc)[ ][^\n]{0,160}(?:secret|token"
    r"|passw)[^\n]{0,160}(?:base64 (?:-d|-D|--decode)"
    r"|base64decode[^\n]*|create token[^\n]*)|kubectl create token [^\n]*|[\w-]+ auth[: ](?:token"
    r"|print-access-token|print-identity-token)"
    r"[^\n]{0,60}|[\w-]+ auth application-default print-access-token|pass (?:show )?[\w./-]+/[\w./-]+"
    r"|op read [^\n]{4,120}|op item get [^\n]{0,120}(?:passw|credential|--reveal)[^\n]{0,80}"
    r"|gopass (?:show )?(?:-o |--password )?[\w./-]+"
    r"|vault (?:kv get|read) [^\n]{0,80}-field[= ][^\n]{0,80}|(?:aws|az|gcloud|doppler|infisical|chamber|bw"
    r"|lpass|gopass)[ ]"
    r"[^\n]{0,60}(?:secret|passw|get-parameter|token)[^\n]{0,200}|heroku config:get [^\n]*(?:SECRET|KEY"
    r"|TOKEN|PASS)[^\n]*"
    r"|(?:echo[ ][\"']?\$\{?|printenv[ ])\w*(?:PASS(?:WORD|WD|PHRASE)?|SECRET(?:_ACCESS)?(?:_KEY)?|TOKEN"
    r"|API_?KEY|PWD)\}?[\"']?"
    r"|openssl rand [^\n]{0,40}|pwgen[^\n]{0,30}"
    r"|security find-(?:generic|internet)-password[^\n]*-w[^\n]*|secret-tool lookup[^\n]*|terraform output -raw [^\n]*"
    r"(?:pass|secret|token|key)[^\n]*|pulumi config get [^\n]*(?:[Pp]ass|[Ss]ecret|[Tt]oken|[Kk]ey)[^\n]*"
    r"|apg[ ][^\n]{0,30}"
    r"|consul acl [^\n]*|step crypto rand[^\n]*|xkcdpass[^\n]{0,20}|diceware[^\n]{0,20})"
)
"""Commands that print a secret and nothing else."""
_SHOWING_SIGN = (
    rf"(?i:(?:{_TYPED}(?:cat|less|head|more|type|bat) [^\n|;&]*(?:passw|secret|token|api_?key|credential)[^\n|;&]*"
    r"|(?:argocd admin|base64 (?:-d|--decode)|base64decode"
    r"|create token|auth[: ](?:token|print)|print-access-token"
    r"|pass (?:show )?(?:-o |--password )?[a-z0-9_.]+/|op (?:read|item get) "
    rf"|-field[= ]|{_TYPED}(?:aws|az|gcloud|doppler"
    r"|infisical|chamber|bw|lpass|gopass) [^\n]*(?:secret|passw|get-parameter|token)|config:get"
    r"|echo [\"']?\$\{?[a-z0-9_]*(?:pass|secret"
    r"|token|api_?key|pwd)|printenv |openssl rand|pwgen|find-(?:generic|internet)-pass|secret-tool"
    rf"|output -raw|pulumi config get|apg -|crypto rand|xkcdpass|diceware)[^\n]*){_NEXT_LINE})"
)
_PRINTS = (
    Print(
        ("password",),
        regex(r"(?i)password[^\n:]{0,60} for [^\n]{1,100}?:[ \n]{1,8}(?P<value>[^\s\"'`]{6,64})" + _LINE_END),
        r"(?i:password[^\n]* for [^\n]*:\s)",
        "password",
        "memorable",
    ),
    Print(
        ("password",),
        regex(r"(?i)(?:password[^\n]{0,120}\n{1,2}|)[ ]{0,8}New value:[ ](?P<value>[^\s\"'`]{6,64})" + _LINE_END),
        r"(?i:new value: )",
        "password",
        "chosen",
    ),
    Print(
        ("password",),
        regex(
            r"(?i)(?:following|this|generated|new|initial|temporary|one-time|admin|default)[ ](?:\w+[ ]){0,2}password\b"
            r"[^\n]{0,60}?(?::|is)?[ ]?\n{1,3}[ >|*\"'`]{0,8}(?P<value>[^\s\"'`]{8,64})" + _LINE_END
        ),
        r"(?i: password[^\n]*\n[\s>|*\"'`]*[^\s\"'`]{8})",
        "password",
        "shown",
    ),
    Print(
        ("password",),
        regex(
            r"(?i)password(?:[ ]\([^()\n]{1,40}\))?(?:[ ](?:is|was|has been))?[ ](?:generated|created"
            r"|assigned|issued|set)"
            r"[^\n:=]{0,80}[:=][ ]{0,4}[\"'`]?(?P<value>[^\s\"'`,;]{6,64})"
        ),
        r"(?i:password[^\n]*(?:generated|created|assigned|issued|set)[^\n]*[:=] )",
        "password",
        "memorable",
    ),
    Print(
        ("::server:", "::node:"),
        regex(r"\bK10[0-9a-f]{64}::(?:server|node):[0-9a-zA-Z.]{16,64}"),
        r"K10[0-9a-f]{64}::",
        "token",
    ),
    Print(
        ("secret id", "secretid", "secret_id"),
        regex(rf"(?i)secret[ _]?id[\"']?[ ]{{0,8}}[:=|]{{0,1}}[ \t]{{0,8}}[\"']?(?P<value>{_UUID})"),
        r"(?i:secret[ _]?id *[\"']? *[:=|]?[ \t]*[\"']?[0-9a-f]{8}-)",
        "token",
    ),
    Print(
        ("setup key", "setup code", "set-up key", "secret key", "manual", "enter this", "qr code", "qr-code"),
        regex(
            r"(?i)(?:(?:setup|set-up|secret|manual(?: entry)?) (?:key|code)|enter this(?: (?:key|code|secret))?"
            r"|qr[ -]code)"
            r"[^\n]{0,60}?[:=\"'` ]\n?[ ]{0,8}"
            r"(?P<value>(?=[A-Za-z ]{0,80}[2-7])"
            r"(?-i:(?:[A-Z2-7]{4}[ -]){3,15}[A-Z2-7]{4}|(?:[a-z2-7]{4}[ ]){3,15}[a-z2-7]{4}|[A-Z2-7]{32}))"
            r"(?![A-Za-z0-9-])"
        ),
        r"(?i:(?:setup|set-up|secret|manual|entry|enter|qr)[ -][^\n]*\n?[^\n]*(?:[A-Z2-7]{4}[ -]){3})"
        r"|(?i:(?:setup|set-up|secret|manual|entry|enter|qr)[ -])[^\n]*\n?[^\n]*[A-Z2-7]{32}",
        "otp_seed",
        first=True,
    ),
    Print(
        ("permissions", "full "),
        regex(
            r"(?i)(?:\"permissions\": ?\"full\",\s{0,12}\"value\": ?\"|\bfull[ \t]{1,40})"
            r"(?P<value>[A-Za-z0-9+/]{86}==)"
        ),
        r"(?i:full(?:\", *\"value\": *\"|[ \t]+)[A-Za-z0-9+/]{86})|(?i:permissions)",
        "secret_key",
        closer=r"(?i:(?:\"permissions\": ?\"full\",\s{0,12}\"value\": ?\"|full[ \t]{1,40})[A-Za-z0-9+/]{86})",
    ),
    Print(
        ("totp", "otp", "2fa", "mfa", "two-factor", "two factor", "authenticator", "oathtool", "second factor"),
        regex(
            rf"(?i)(?:\b[th]?otp|2fa|mfa|two[- ]factor|authenticator|oathtool"
            rf"|second factor)(?![^\n]{{0,90}}recovery)[^\n]{{0,90}}?[:=\"'` ]"
            rf"(?P<value>(?=[A-Za-z ]{{0,80}}[2-7]){_SEED})(?![A-Za-z0-9-])"
        ),
        r"(?i:otp|2fa|mfa|two[- ]factor|authenticator|oathtool|second factor)[^\n]*(?:[A-Z2-7]{16}"
        r"|[a-z2-7]{32}|(?:[A-Z2-7]{4}[ -]){3}"
        r"|(?:[a-z2-7]{4}[ -]){3})",
        "otp_seed",
    ),
    Print(
        ("token", "secret", "key", "password"),
        regex(rf"(?m)(?:^|[$#>%][ ]|\n){_SHOWING}\n(?:\w+=)?[\"'`]?(?P<value>[^\s\"'`<>]{{8,4096}}){_LINE_END}"),
        _SHOWING_SIGN,
        "secret",
        "shown",
    ),
    Print(
        (
            "rand ",
            "pwgen",
            "apg",
            "xkcdpass",
            "diceware",
            "auth:",
            "auth ",
            "pass ",
            "get-parameter",
            "op item",
            "op read",
        ),
        regex(rf"(?m)(?:^|[$#>%][ ]|\n){_SHOWING}\n(?:\w+=)?[\"'`]?(?P<value>[^\s\"'`<>]{{8,4096}}){_LINE_END}"),
        _SHOWING_SIGN,
        "secret",
        "shown",
    ),
    Print(
        (
            *(
                "wg gen",
                "consul keygen",
                "gossip keyring",
                "key:generate",
                "token_hex",
                "token_urlsafe",
                "randombytes",
                "generate_key",
                "random_bytes",
            ),
            *("securerandom", "random_secret_key", "rails secret", "rake secret", "phx.gen.secret", "/dev/urandom"),
            *("/dev/random", "kubeadm token", "auth secret", "gh auth token", "glab auth", "npm token", "rclone "),
            *("ansible-vault", "bao ", "keyring get", "--extract", "/run/secrets", "vault-pass", "vault_pass"),
            *("erlang.cookie", "jenkins/secrets", "initialadminpassword", "initial_root_password"),
        ),
        regex(
            rf"(?im)(?:^|[$#>%][ ]|\n)(?:{_MAKING})\n(?:\w+=)?[\"'`]?(?:base64:)?"
            rf"(?P<value>[^\s\"'`<>]{{8,1024}}){_LINE_END}"
        ),
        _MAKING_SIGN,
        "secret",
        "alone",
        reach=1_500,
    ),
    Print(
        ("base64 -d", "base64 --decode"),
        regex(
            r"(?i)(?:kubectl|oc)[ ][^\n]{0,160}secret[^\n]{0,160}\|[ ]?base64 (?:-d|--decode)[^\n]{0,40}\n"
            rf"(?P<value>[^\s\"'`<>]{{6,4096}}){_LINE_END}"
        ),
        rf"(?i:base64 (?:-d|--decode)[^\n]*{_NEXT_LINE})",
        "secret",
        "alone",
    ),
    Print(
        ("(key ", "(token ", "(secret ", "(password "),
        regex(r"(?i)\((?:api )?(?:key|token|secret|password):? [\"'`]?(?P<value>[A-Za-z0-9_.~+/=-]{16,512})[\"'`]?\)"),
        r"(?i:\((?:api )?(?:key|token|secret|password):? [\"'`]?[A-Za-z0-9_.~+/=-]{16})",
        "token",
        "random",
    ),
    Print(
        ("api key", "api-key", "apikey", "access key", "token", "secret", "password"),
        regex(
            r"(?i)(?:api[ -]?key|access[ -]?key|token|secret(?:[ -]?key)?|password)\b[^\n]{0,160}"
            r"(?:shown?[ ]again|see[ ](?:it|this)|only[ ](?:be[ ])?(?:time|once|shown|display)|once\b"
            r"|(?:copy|save|store|keep|write)"
            r"[ ](?:it|this|them|the)|below|as[ ]follows"
            r"|(?:created|generated|issued|minted)[.!:]?[ ]*$)[^\n]{0,120}\n{1,3}"
            r"[ \t>|*\"'`-]{0,12}(?P<value>[A-Za-z0-9_.~+/=-]{16,2048})" + _LINE_END,
            re.MULTILINE,
        ),
        r"(?i:(?:key|token|secret|password)[^\n]*(?:again|see |only|once|copy|save|store|keep|write|below|follows"
        r"|created"
        r"|generated|issued|minted)[^\n]*\n[\s>|*\"'`-]*[A-Za-z0-9_.~+/=-]{16})",
        "token",
        "random",
        first=True,
    ),
    Print(
        ("random_password",),
        regex(r"random_password[\s\S]{0,1500}?[\"']?\bresult[\"']?[ ]?[:=][ ]?[\"'](?P<value>[^\"'\n(]{6,256})[\"']"),
        r"random_password",
        "password",
    ),
)
_CODES = regex(
    r"(?i)(?:backup|recovery|scratch|emergency|one-time|rescue)[ _-]?(?:codes?|keys?)[^\n]{0,80}?[:\[=(\n]\s{0,8}"
    r"(?P<body>(?:[\s\d.)*\"',>|-]{0,12}?(?:[a-zA-Z0-9]{4,6}(?:-[a-zA-Z0-9]{4,6}){1,4}|[0-9a-f]{8,12}"
    r"|[a-z0-9]{10,12}|\d{6,10})"
    r"(?=[\s\"',\])|]|\Z)){1,20})"
)
_CODE = regex(
    r"[a-zA-Z0-9]{4,6}(?:-[a-zA-Z0-9]{4,6}){1,4}|(?<![\w-])(?:[0-9a-f]{8,12}|[a-z0-9]{10,12}|\d{6,10})(?![\w-])"
)


def _printed(printed: Print, view: View) -> Iterator[Span]:
    group = "value" if "value" in printed.form.groupindex else 0
    if printed.first:
        found = starting(view, printed.marks, printed.form)
    else:
        found = near(view, printed.marks, printed.form, reach=printed.reach)
    for match in found:
        value = match[group].rstrip(".,")
        if _holds(printed.test, value):
            yield view.span(match.start(group), match.start(group) + len(value), printed.rule, 1)


def _codes(view: View) -> Iterator[Span]:
    for codes in _CODES.finditer(view.text):
        for code in _CODE.finditer(view.text, *codes.span("body")):
            if any(map(str.isdigit, code.group())):
                yield view.span(*code.span(), "recovery_code", 1)


def _holds(test: str, value: str) -> bool:
    if test == "any":
        return True
    if not is_value(value, "") or "/" in value[:1]:
        return False
    if test == "random":
        return looks_random(value, strict=True) and not pieced(value)
    if test == "alone":
        return mixed(value) and "://" not in value and not value.endswith((":", "/"))
    if test == "memorable":
        return memorable(value)
    if test == "chosen":
        return looks_chosen(value) or looks_random(value)
    return looks_chosen(value) or looks_random(value) or (memorable(value) and "." not in value and "/" not in value)


KINDS = (
    *(
        Kind(f"printed {place}", printed.sign, functools.partial(_printed, printed), closers(printed.closer))
        for place, printed in enumerate(_PRINTS)
    ),
    Kind("recovery codes", r"(?i:(?:backup|recovery|scratch|emergency|one-time|rescue)[ _-]?(?:code|key))", _codes),
)
