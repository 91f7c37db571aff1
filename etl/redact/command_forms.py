"""How commands are told from the rest of a text, and those that are fed with a secret: by a pipe or another command."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

from etl.redact.regex import regex

WORD = r"""["']?(?P<value>[^\s"'`<>|;]{4,512})"""
ARGUMENTS = r"[^\n|;&]{0,240}?"


class Command(NamedTuple):
    """One form of a command, matched where `literal` stands."""

    literal: str
    """In lower case, part of every match, and good for the sifting of whole columns."""
    form: re.Pattern[str]
    rule: str = "password"
    test: Literal["mixed", "chosen", "random", "any", "encoded"] = "mixed"
    back: int = 0
    """How many characters before the literal belong to the form, which then ends there."""
    tail: str = ""
    """What follows the literal in every match, as signs say it (in RE2, on the padded form)."""


def option(literal: str, options: str, test: Literal["mixed", "chosen"] = "mixed", rule: str = "password") -> Command:
    """A command whose option, with or without a space or equals sign, is followed by the value."""
    form = rf"{re.escape(literal)}\b{ARGUMENTS}[ ](?:{options}){WORD}"
    return Command(
        literal,
        regex(form, re.IGNORECASE),
        rule,
        test,
        tail=rf"(?: |[^a-z0-9_\n|;&][^\n|;&]* )(?:{options})",
    )


def words(
    literal: str,
    pattern: str,
    test: Literal["mixed", "chosen", "random", "any"],
    rule: str = "token",
    tail: str = "",
) -> Command:
    return Command(literal, regex(pattern, re.IGNORECASE), rule, test, tail=tail)


_PIPED = (
    r"""(?:echo|printf)[ ](?:-\w+[ ])?(?:["']%s(?:\\n)?["'][ ])?["']?(?P<value>[^\s"'|]{4,512})["']?[ ]?\|[ ]?"""
    r"(?:[\w./-]+[ ]){0,12}\Z"
)
_FED = (
    r"""(?:echo|printf)[ ](?:-\w+[ ])?(?:["']?%s(?:\\n)?["']?[ ])?["']?(?:[\w.-]{1,40}:(?=[^\n|"""
    r"""]{4,128}\|[^\n|]{0,40}passwd))?(?P<value>[^\s"'|`]{6,512})["']?[ ]?\|[ ]?"""
    r"(?!(?:grep|rg|sed|awk|tee|cut|jq|wc|tr|base64|sha\w+|md5\w*|xargs|less|head|tail|sort)\b)"
    r"[^\n|;&]{0,100}?(?:[ -]|\A)(?:log-?in|sign-?in|auth\w*|passwd|password[\w-]*|smbpasswd|"
    r"chpasswd|secrets?|tokens?|unlock|[\w-]*stdin|passphrase[\w-]*|kinit|cryptsetup|openconnect)\b"
)
"""What is said to a command that asks for a secret."""
_TWICE = r"[ ]?\|[ ]?(?:sudo )?(?:passwd|smbpasswd|htpasswd|su)\b"
FED = (
    *(
        words(
            said,
            rf"{said}[\"']?(?P<value>[^\s\"'|\\]{{6,64}})(?:\n[^|\n]{{0,80}}){{0,2}}[\"']?{_TWICE}",
            "mixed",
            "password",
        )
        for said in ("echo -e ", "printf ", "yes ")
    ),
    *(
        words(said, rf"{said}[\"']?\S{{6,64}}\n(?P<value>[^\s\"'|\\]{{6,64}})\n?[\"']?{_TWICE}", "mixed", "password")
        for said in ("echo -e ", "printf ")
    ),
    Command("| convertto-securestring", regex(r"[\"'](?P<value>[^\"'\n]{4,128})[\"'][ ]?\Z"), back=140),
    *(
        words(
            word,
            rf"{word}[\"']?[ ]{{0,3}}[=:]?[ ]{{0,3}}[\"']{{0,2}}!?(?:echo|printf)[ ]"
            rf"(?:-\w+[ ]|[\"']?%s[\"']?[ ])?{WORD}",
            "mixed",
            "password",
        )
        for word in (
            "passwordeval",
            "passcmd",
            "pass_cmd",
            "password_cmd",
            "passwd_cmd",
            "passphrase_cmd",
            "password_command",
            "password-command",
            "passwordcommand",
        )
    ),
    *(
        words(
            f"$({said} ",
            rf"(?:(?<=pass=)|(?<=pw=)|(?<=pwd=)|(?<=password=)|(?<=passwd=)|(?<=secret=)|(?<=token=)|(?<=key=)|(?<=pass=[\"'])"
            rf"|(?<=password=[\"'])|(?<=secret=[\"'])|(?<=token=[\"'])|(?<=key=[\"']))"
            rf"\$\({said}[ ](?:-\w+[ ]|[\"']?%s[\"']?[ ])?[\"']?(?P<value>[^\s\"'`<>|;)]{{4,512}})(?=[\"']?\))",
            "mixed",
            "secret",
        )
        for said in ("echo", "printf")
    ),
    words(
        "<(",
        r"(?:(?<=password[= ])|(?<=passphrase[= ])|(?<=passwd[= ])|(?<=secret[= ])|(?<=token[= ])|"
        r"(?<=[a-z]-key[= ])|(?<=-file[= ])|(?<=-fd[= ]))<\((?:echo|"
        r"printf)[ ](?:-n[ ]|[\"']?%s[\"']?[ ])?[\"']?(?P<value>[^\s\"'`<>|;)]{4,512})",
        "mixed",
        "secret",
    ),
    Command(
        "echo ",
        regex(_FED, re.IGNORECASE),
        "secret",
        "mixed",
    ),
    Command(
        "printf ",
        regex(_FED, re.IGNORECASE),
        "secret",
        "mixed",
    ),
    Command(
        "| base64",
        regex(
            r"""(?:echo|printf)[ ](?:-\w+[ ])?["']?(?:[\w.@-]{1,40}:)?(?P<value>[^\s"'"""
            r"""|`]{6,512})["']?[ ]?\Z""",
            re.IGNORECASE,
        ),
        "secret",
        "encoded",
        back=240,
    ),
    words(
        "--password-command", rf"--password-command[ =][\"'](?:echo|printf)[ ](?:-\w+[ ])?{WORD}", "mixed", "password"
    ),
    words("--password-file <(", rf"--password-file <\((?:echo|printf)[ ](?:-\w+[ ])?{WORD}", "mixed", "password"),
    words(
        "oathtool", r"oathtool[ ](?:-\S+[ ]){1,4}[\"']?(?P<value>[A-Za-z2-7]{16,64})(?![A-Za-z0-9])", "any", "otp_seed"
    ),
    Command("sudo -s", regex(_PIPED, re.IGNORECASE), back=160),
    Command("passwd --stdin", regex(_PIPED, re.IGNORECASE), back=160),
    Command("--password-stdin", regex(_PIPED, re.IGNORECASE), back=240),
    Command("--with-token", regex(_PIPED, re.IGNORECASE), "token", "random", back=240),
    Command("secret set ", regex(_PIPED, re.IGNORECASE), "secret", back=240),
    Command("secret create ", regex(_PIPED, re.IGNORECASE), "secret", back=240),
)
"""Commands that are told their secret by another one."""
