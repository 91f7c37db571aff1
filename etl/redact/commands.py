"""Passwords and keys that commands take: as an option, as a word in its place, through a pipe, from the environment.

Which option of which command holds one is what their manuals say. What stands there is no placeholder and no
variable, and, where the option is short, is written like a password.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from etl.redact.credentials import is_value, looks_chosen, looks_random, memorable, mixed, phrased
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span

_WORD = r"""["']?(?P<value>[^\s"'`<>|;]{4,512})"""
_ARGUMENTS = r"[^\n|;&]{0,240}?"


class Command(NamedTuple):
    """One form of a command, matched where `literal` stands."""

    literal: str
    """In lower case, part of every match, and good for the sifting of whole columns."""
    form: re.Pattern[str]
    rule: str = "password"
    test: Literal["mixed", "chosen", "random", "any", "encoded"] = "mixed"
    back: int = 0
    """How many characters before the literal belong to the form, which then ends there."""
    sift: str = ""
    """What a string must match (in RE2, on its padded form) before the form can match."""
    option: bool = False
    """The literal is the name of a command, which a space follows."""


def _option(literal: str, options: str, test: Literal["mixed", "chosen"] = "mixed", rule: str = "password") -> Command:
    """A command whose option, with or without a space or equals sign, is followed by the value."""
    form = rf"{re.escape(literal)}\b{_ARGUMENTS}[ ](?:{options}){_WORD}"
    return Command(
        literal,
        regex(form, re.IGNORECASE),
        rule,
        test,
        sift=rf"{literal}[^\n|;&]* (?:{options})[^ ]{{4}}",
        option=True,
    )


def _words(
    literal: str, pattern: str, test: Literal["mixed", "chosen", "random", "any"], rule: str = "token"
) -> Command:
    return Command(literal, regex(pattern, re.IGNORECASE), rule, test)


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
_COMMANDS = (
    *(
        _option(name, r"-p[ =]")
        for name in (
            "docker login",
            "podman login",
            "buildah login",
            "nerdctl login",
            "helm registry login",
            "oc login",
            "az login",
            "skopeo login",
            "crane auth login",
            "oras login",
            "cf login",
            "ibmcloud login",
            "poetry publish",
            "az sql",
            "az vm",
            "az postgres",
            "az mysql",
            "az acr",
            "az webapp",
            "argocd login",
        )
    ),
    *(_option(name, r"-p[ =]?", "chosen") for name in ("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport")),
    *(
        _option(name, r"(?-i:-P)[ ]?", "chosen")
        for name in (
            "sqlcmd",
            "bcp",
            "isql",
            "tsql",
            "mosquitto_pub",
            "mosquitto_sub",
            "ipmitool",
            "zip",
            "unzip",
            "impacket",
        )
    ),
    *(_option(name, r"-p", "chosen") for name in ("7z", "7za", "7zz", "unrar", "mariadb", "mariadb-dump", "arangosh")),
    *(
        _option(name, r"-p[ =]", "chosen")
        for name in (
            "twine",
            "xmlstarlet",
            "useradd",
            "usermod",
            "crackmapexec",
            "evil-winrm",
            "ldapadd",
            "rpcclient",
            "cqlsh",
            "snowsql",
            "nxc",
            "hydra",
        )
    ),
    *(
        _option(name, r"-w[ =]?", "chosen")
        for name in ("ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete", "ldappasswd")
    ),
    _option("openssl", r"(?:-k|-passin|-passout|-pass|-password)[ ](?:pass:)?", "chosen"),
    _option("ssh-keygen", r"(?-i:-[NP])[ ]", "chosen"),
    _option("snmpwalk", r"(?-i:-[AX])[ ]", "chosen"),
    _option("snmpget", r"(?-i:-[AX])[ ]", "chosen"),
    _option("lftp", r"-u[ ][^\s,]{1,64},"),
    _option("dotnet nuget push", r"(?:-k|--api-key)[ =]", "chosen", "api_key"),
    _option("gem push", r"--key[ =]", "chosen", "api_key"),
    _option("curl", r"--proxy-user[ =][\"']?[^\s:]{1,64}:"),
    _words("--proxy-user", rf"--proxy-user[ =][\"']?[^\s:\"']{{1,64}}:{_WORD}", "mixed", "password"),
    _words("setapikey", rf"setapikey[ ]{_WORD}", "random", "api_key"),
    _words("cargo login", rf"cargo login[ ](?:--\S+[ ])?{_WORD}", "random"),
    _words("bw login", rf"bw (?:login[ ]\S+@\S+|unlock)[ ]{_WORD}", "mixed", "password"),
    _words("bw unlock", rf"bw unlock[ ]{_WORD}", "mixed", "password"),
    _words("mc alias set", rf"mc alias set \S+ \S+ \S+ {_WORD}", "mixed", "secret_key"),
    _words("mc config host add", rf"mc config host add \S+ \S+ \S+ {_WORD}", "mixed", "secret_key"),
    _words("bindpw", rf"bindpw[ ]{{1,8}}{_WORD}", "mixed", "password"),
    _words("rootpw", rf"rootpw[ ]{{1,8}}(?:--plaintext[ ])?{_WORD}", "mixed", "password"),
    _words("enable secret", rf"enable (?:secret|password) (?:[0-9]{{1,2}} )?{_WORD}", "mixed", "password"),
    _words("enable password", rf"enable password (?:[0-9]{{1,2}} )?{_WORD}", "mixed", "password"),
    _words(
        "username ",
        rf"username \S{{1,40}}(?: privilege [0-9]{{1,2}})? (?:secret|password) (?:[0-9]{{1,2}} )?{_WORD}",
        "mixed",
        "password",
    ),
    _words("snmp-server community", rf"snmp-server community {_WORD}", "mixed", "password"),
    _words(
        "auth ",
        rf"(?:(?<![\s\S])|(?<=[\n+-])|(?<=> ))(?-i:AUTH) (?:[a-z][\w-]{{1,32}} )?{_WORD}(?=[ ]?(?:\n|\Z))",
        "mixed",
        "password",
    ),
    _words(
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
        sift=r"(?:echo|printf) [^\n|]*\|[^\n|]*(?:log-?in|sign-?in|auth|"
        r"passw|secret|token|unlock|-stdin|passphrase|kinit|cryptsetup)",
    ),
    Command(
        "printf ",
        regex(_FED, re.IGNORECASE),
        "secret",
        "mixed",
        sift=r"printf [^\n|]*\|[^\n|]*(?:log-?in|sign-?in|auth|passw|"
        r"secret|token|unlock|-stdin|passphrase|kinit|cryptsetup)",
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
        sift=r"(?:echo|printf) [^\n|]*\| base64",
    ),
    _words(
        "--password-command", rf"--password-command[ =][\"'](?:echo|printf)[ ](?:-\w+[ ])?{_WORD}", "mixed", "password"
    ),
    _words("--password-file <(", rf"--password-file <\((?:echo|printf)[ ](?:-\w+[ ])?{_WORD}", "mixed", "password"),
    _words(
        "put-parameter",
        r"put-parameter(?=[^\n]{0,300}(?:securestring|passw|secret|token|key))[^\n]{0,300}?[ ]--value[= ]" + _WORD,
        "mixed",
        "secret",
    ),
    *(
        _words(
            command,
            rf"{command}[ ](?:--?\S+[ ]){{0,4}}\S*(?:passw|secret|token|api_?key|pwd)[\"']?[ ](?!-|[\w.-]+=){_WORD}",
            "mixed",
            "secret",
        )
        for command in (
            "kv put",
            "etcdctl put",
            "config set",
            "config:set",
            "secret set",
            "secrets set",
            "parameter set",
        )
    ),
    _words("dev wifi connect", rf"dev wifi connect \S{{1,64}} password {_WORD}", "mixed", "password"),
    _words("psk ", rf"(?<![\w-])psk[ ]{_WORD}", "mixed", "password"),
    _words("wpa_passphrase ", rf"wpa_passphrase[ ][\"']?[^\"'\n]{{1,64}}?[\"']?[ ]{_WORD}", "mixed", "password"),
    _words("networksetup -setairportnetwork", rf"-setairportnetwork \S+ \S+ {_WORD}", "mixed", "password"),
    _words(
        "security add-",
        rf"security add-(?:generic|internet)-password[^\n]{{0,120}}?[ ]-w[ ]{_WORD}",
        "mixed",
        "password",
    ),
    _words("security unlock-keychain", rf"unlock-keychain[ ]-p[ ]{_WORD}", "mixed", "password"),
    _words(
        "oathtool", r"oathtool[ ](?:-\S+[ ]){1,4}[\"']?(?P<value>[A-Za-z2-7]{16,64})(?![A-Za-z0-9])", "any", "otp_seed"
    ),
    _words("age-plugin", rf"age-plugin \S+ {_WORD}", "random"),
    _words("join --token", rf"join --token[ =]{_WORD}", "random"),
    _words(" --token=", rf" --token={_WORD}", "random"),
    _words("tailscale up", r"tailscale up[^\n]{0,120}?--auth-?key[= ]" + _WORD, "random"),
    _words("cloudflared", r"cloudflared[^\n]{0,120}?--token[= ]" + _WORD, "random"),
    _words("config.sh --url", r"config\.sh --url \S+ --token[= ]" + _WORD, "random"),
    _words("--registration-token", rf"--registration-token[= ]{_WORD}", "random"),
    *(_option(name, r"-p[ ]", "chosen") for name in ("rdesktop", "psexec", "psexec.exe", "winexe", "wmic")),
    *(_option(name, r"-a[ ][\"']?[^\s:\"']{1,64}:") for name in ("xh", "https", "httpie")),
    _words("/rp ", rf"/rp {_WORD}", "chosen", "password"),
    _words("olcrootpw", rf"olcrootpw:{{1,2}} {_WORD}", "mixed", "password"),
    _words("isakmp key ", rf"isakmp key (?:[0-9] )?{_WORD}", "mixed", "password"),
    *(
        _words(f"{name}-server key ", rf"{name}-server key (?:[0-9] )?{_WORD}", "mixed", "password")
        for name in ("radius", "tacacs")
    ),
    _option("valkey-cli", r"-a[ ]"),
    _option("doctl", r"(?:-t|--access-token)[ =]", rule="token"),
    _option("netlify", r"--auth[ =]", rule="token"),
    Command(
        "pass:",
        regex(rf"pass:{_WORD}", re.IGNORECASE),
        test="chosen",
        sift=r"pass:[\"']?[^\s\"'`<>|;]{4}",
    ),
    _words("/pass:", rf"/pass:{_WORD}", "mixed", "password"),
    Command("/p:", regex(rf"/p:{_WORD}", re.IGNORECASE), test="chosen", sift=r"/p:[\"']?[^\s\"'`<>|;]{4}"),
    _words("net user ", rf"net user [\w.-]+ {_WORD}", "chosen", "password"),
    _words("htpasswd", r"htpasswd[ ](?:-\w+[ ]){1,4}(?:[^\s]+[ ]){0,1}[\w.@-]+[ ]" + _WORD, "mixed", "password"),
    _words(
        "rabbitmqctl",
        rf"rabbitmqctl[ ](?:-\w+[ ])*(?:add_user|change_password|authenticate_user)[ ]\S+[ ]{_WORD}",
        "mixed",
        "password",
    ),
    _words(
        "smbclient",
        rf"smbclient\b{_ARGUMENTS}[ ]-U[ ]?[\"']?[\w.\\-]+%(?P<value>[^\s\"']{{4,128}})",
        "mixed",
        "password",
    ),
    _words("sqlplus", r"sqlplus\b[^\n]{0,60}?[ ][\"']?\w+/(?P<value>[^\s\"'@/]{6,128})@", "mixed", "password"),
    _words("jdbc:oracle:", r"jdbc:oracle:\w+:\w+/(?P<value>[^\s\"'@/]{4,128})@", "any", "password"),
    _words("requirepass", rf"requirepass[ ]{_WORD}", "mixed", "password"),
    _words("masterauth", rf"masterauth[ ]{_WORD}", "mixed", "password"),
    _words("primaryauth", rf"primaryauth[ ]{_WORD}", "mixed", "password"),
    _words(" on >", r" on >(?P<value>[^\s\"'<>]{6,128})[ ]", "mixed", "password"),
    _words("pragma key", r"pragma key ?= ?[\"'](?P<value>[^\"'\n]{4,128})", "mixed", "password"),
    _words("sshpass=", rf"sshpass={_WORD}", "mixed", "password"),
    _words("rediscli_auth=", rf"rediscli_auth={_WORD}", "mixed", "password"),
    _words(
        "bundle config",
        r"bundle config (?:set )?(?:--\w+ )?\S+ [\"']?[\w.-]+:(?P<value>[^\s\"']{6,256})",
        "mixed",
        "password",
    ),
    _words("http-basic", rf"http-basic\.\S+ \S+ {_WORD}", "mixed", "password"),
    _words("pypi-token", rf"pypi-token\.\S+ {_WORD}", "random"),
    _words("http -a ", r"http -a \S+?:(?P<value>[^\s\"':]{4,128})", "mixed", "password"),
    _words(
        "--auth ", r"https?(?:ie)?\b[^\n]{0,80} --auth [\"']?[\w.@-]+:(?P<value>[^\s\"':]{4,128})", "mixed", "password"
    ),
    _words("--auth=", rf"--auth=[\"']?(?:[\w.@-]+:)?{_WORD}", "mixed", "token"),
    _words("--auth ", rf"--auth [\"']?{_WORD}", "random", "token"),
    _words("--http-user", rf"--http-user[ =]\S+ --http-passw(?:or)?d[ =]{_WORD}", "mixed", "password"),
    *(
        _words(f"{name} login", rf"{name} login[ ](?:--relogin[ ]|--host=?\S+[ ])*(?:--key[ =])?{_WORD}", "random")
        for name in (
            "wandb",
            "vault",
            "railway",
            "snyk",
            "pulumi",
            "infisical",
            "modal",
            "neptune",
            "comet",
            "logfire",
            "swanlab",
        )
    ),
    *(
        _words(
            f"{name}.login",
            rf"{name}\.(?:login|init|auth)\([^\n)]{{0,60}}?[\"'](?P<value>[A-Za-z0-9_-]{{20,256}})",
            "random",
        )
        for name in ("wandb", "swanlab", "neptune", "comet_ml")
    ),
    *(
        _words(f"{name} auth", rf"{name} auth[ ](?:token[ ]|login[ ]|init[ ])?(?:-t[ ]|--token[ =])?{_WORD}", "random")
        for name in ("snyk", "fly", "flyctl", "trivy", "turso", "fossa")
    ),
    _words("authtoken ", rf"authtoken[ ]{_WORD}", "random"),
    _words("set-token ", rf"set-token[ ]{_WORD}", "random"),
    _words("login --token", rf"login --token[ =]{_WORD}", "random"),
    Command("sudo -s", regex(_PIPED, re.IGNORECASE), back=160),
    Command("passwd --stdin", regex(_PIPED, re.IGNORECASE), back=160),
    Command("--password-stdin", regex(_PIPED, re.IGNORECASE), back=240),
    Command("--with-token", regex(_PIPED, re.IGNORECASE), "token", "random", back=240),
    Command("secret set ", regex(_PIPED, re.IGNORECASE), "secret", back=240),
    Command("secret create ", regex(_PIPED, re.IGNORECASE), "secret", back=240),
)
_DECODES = regex(r"\| base64 +(?:-d|-D|--decode)")
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _given(command: Command, view: View) -> Iterator[Span]:
    text = view.text
    for place in view.places(command.literal):
        if text[place - 1 : place].isalnum() and not command.back:
            continue
        if command.test == "encoded" and _DECODES.match(text, place):
            continue
        if command.back:
            match = command.form.search(text, max(0, place - command.back), place)
        else:
            match = command.form.match(text, place)
        if match and _holds(command.test, match["value"]):
            yield view.span(*match.span("value"), command.rule, 1)


def _sign(command: Command) -> str:
    edge = "" if command.back else "(?:^|[^a-z])"
    return f"(?i:{edge}{re.escape(command.literal)}{'(?:$|[^a-z0-9_])' if command.option else ''})"


def _holds(test: str, value: str) -> bool:
    if not is_value(value, "") or value.startswith("-"):
        return False
    if test == "random":
        return looks_random(value) or bool(_UUID.fullmatch(value))
    if test == "encoded":
        return looks_chosen(value) or looks_random(value) or phrased(value)
    if test == "chosen":
        return memorable(value) or looks_chosen(value)
    return memorable(value) or mixed(value) if test == "mixed" else True


KINDS = tuple(
    Kind(f"command {place}", _sign(command), functools.partial(_given, command))
    for place, command in enumerate(_COMMANDS)
)
