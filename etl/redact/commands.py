"""Passwords and keys that commands take: as an option, as a word in its place, through a pipe, from the environment.

Which option of which command holds one is what their manuals say. What stands there is no placeholder and no
variable, and, where the option is short, is written like a password.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from etl.redact.command_forms import ARGUMENTS, FED, WORD, Command, option, words
from etl.redact.credentials import is_value, looks_chosen, looks_random, memorable, mixed, phrased
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span

_FTP = r"(?:bin|binary|ascii|ls|cd|lcd|put|get|mput|mget|pwd|passive|prompt|quit|bye|dir|mkdir)"
"""What an FTP client is told once it is logged in."""
_COMMANDS = (
    *(
        option(name, r"-p[ =]")
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
    *(option(name, r"-p[ =]?", "chosen") for name in ("mongo", "mongosh", "mongodump", "mongorestore", "mongoexport")),
    *(
        option(name, r"(?-i:-P)[ ]?", "chosen")
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
    *(option(name, r"-p", "chosen") for name in ("7z", "7za", "7zz", "unrar", "mariadb", "mariadb-dump", "arangosh")),
    *(
        option(name, r"-p[ =]", "chosen")
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
        option(name, r"-w[ =]?", "chosen")
        for name in ("ldapsearch", "ldapadd", "ldapmodify", "ldapwhoami", "ldapdelete", "ldappasswd")
    ),
    option("openssl", r"(?:-k|-passin|-passout|-pass|-password)[ ](?:pass:)?", "chosen"),
    option("ssh-keygen", r"(?-i:-[NP])[ ]", "chosen"),
    option("snmpwalk", r"(?-i:-[AX])[ ]", "chosen"),
    option("snmpget", r"(?-i:-[AX])[ ]", "chosen"),
    option("lftp", r"-u[ ][^\s,]{1,64},"),
    option("dotnet nuget push", r"(?:-k|--api-key)[ =]", "chosen", "api_key"),
    option("gem push", r"--key[ =]", "chosen", "api_key"),
    option("curl", r"--proxy-user[ =][\"']?[^\s:]{1,64}:"),
    words("--proxy-user", rf"--proxy-user[ =][\"']?[^\s:\"']{{1,64}}:{WORD}", "mixed", "password"),
    *(
        words(
            name, rf"{name}\b[^\n|;&]{{0,160}}?[ ]--user(?:name)?[ =][\"']?[\w.@-]{{1,64}}:{WORD}", "mixed", "password"
        )
        for name in ("etcdctl", "nats", "httpie", "wget", "influx")
    ),
    *(
        option(name, r"-(?:p|-password)[ =]", "chosen")
        for name in (
            "smbmap",
            "influx",
            "nxc",
            "netexec",
            "wpscan",
            "medusa",
            "ncrack",
            "vncdo",
            "cypher-shell",
            "iredis",
            "rpcclient",
        )
    ),
    option("nomad", r"-(?:-)?token[ =]", rule="token"),
    option("consul", r"-(?:-)?token[ =]", rule="token"),
    words(
        "openssl passwd",
        rf"openssl passwd[ ](?:-\w+[ ](?:[a-zA-Z0-9]{{1,8}}[ ](?=-))?){{0,4}}{WORD}(?<![)])",
        "mixed",
        "password",
    ),
    words(
        "mkpasswd", rf"mkpasswd[ ](?:(?:-m|--method=?)[ ]?[\w-]{{3,12}}[ ]|-\w+[ ]){{0,4}}{WORD}", "mixed", "password"
    ),
    words("rclone obscure", rf"rclone obscure[ ]{WORD}", "mixed", "password"),
    words(
        "rclone config",
        rf"rclone config (?:create|update)[^\n]{{0,200}}?[ ](?:pass|password|secret_access_key)[ =]{WORD}",
        "mixed",
        "password",
    ),
    words("open -u ", r"open -u [\"']?[\w.@-]{1,64},(?P<value>[^\s\"'`<>|;]{4,128})", "mixed", "password"),
    words(
        "user ",
        r"(?:(?<=\n)|(?<=\A)|(?<=['\"])|(?<=\\n))user (?!-|add|del|mod|name|must|can|with|is|has|input|id)"
        r"[\w.@-]{1,64} "
        rf"(?P<value>[^\s\"'`<>|;\\]{{6,128}})(?=\n{_FTP}\b)",
        "mixed",
        "password",
        rf"[a-z0-9_.@-]+ +[^\s\"'`<>|;]{{6,}} *\n *{_FTP}",
    ),
    words(
        "assword:",
        r"assword:[^\n]{0,24}[;\n]\s{0,12}send(?:_user|line)?[ ](?:--[ ])?[\"'](?P<value>[^\"'\s\\]{4,128})",
        "any",
        "password",
    ),
    option("dotnet nuget", r"(?:-p|--password)[ =]"),
    words("codecov", rf"codecov[^\n|;&]{{0,120}}?[ ](?:-t|--token)[ =]{WORD}", "random"),
    words("codecov.io/bash)", rf"codecov\.io/bash\)[ ]-t[ ]{WORD}", "random"),
    words("community string", rf"community string[ :=]{{1,3}}(?:is )?{WORD}", "chosen", "password"),
    words(
        "encrypt",
        r"encrypt[\"']?[ ]?[:=][ ]?[\"'](?P<value>[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{22}==)[\"']",
        "any",
        "secret_key",
    ),
    words("user_pw ", rf"user_pw {WORD}", "mixed", "password"),
    words("owner_pw ", rf"owner_pw {WORD}", "mixed", "password"),
    words("qpdf", rf"qpdf\b[^\n]{{0,80}}--encrypt {WORD}", "mixed", "password"),
    words("qpdf", rf"qpdf\b[^\n]{{0,80}}--encrypt \S{{4,64}} {WORD}(?= [0-9]{{2,3}} )", "mixed", "password"),
    *(
        words(name, rf"{name} [\"']?\w+/(?P<value>[^\s\"'@/]{{6,128}})(?=[@ \"'\n]|\Z)", "mixed", "password")
        for name in ("impdp", "expdp", "sqlldr", "rman target", "sqlplus -s", "sqlplus -l")
    ),
    words("wifi:", r"wifi:[^\s;]{0,12};?[^\n]{0,80}?;p:(?P<value>[^\s;\"']{6,64})(?=;)", "any", "password"),
    words("setapikey", rf"setapikey[ ]{WORD}", "random", "api_key"),
    words("cargo login", rf"cargo login[ ](?:--\S+[ ])?{WORD}", "random"),
    words("bw login", rf"bw (?:login[ ]\S+@\S+|unlock)[ ]{WORD}", "mixed", "password"),
    words("bw unlock", rf"bw unlock[ ]{WORD}", "mixed", "password"),
    words("mc alias set", rf"mc alias set \S+ \S+ \S+ {WORD}", "mixed", "secret_key"),
    words("mc config host add", rf"mc config host add \S+ \S+ \S+ {WORD}", "mixed", "secret_key"),
    words("bindpw", rf"bindpw[ ]{{1,8}}{WORD}", "mixed", "password"),
    words("rootpw", rf"rootpw[ ]{{1,8}}(?:--plaintext[ ])?{WORD}", "mixed", "password"),
    words("enable secret", rf"enable (?:secret|password) (?:[0-9]{{1,2}} )?{WORD}", "mixed", "password"),
    words("enable password", rf"enable password (?:[0-9]{{1,2}} )?{WORD}", "mixed", "password"),
    words(
        "username ",
        rf"username \S{{1,40}}(?: privilege [0-9]{{1,2}})? (?:secret|password) (?:[0-9]{{1,2}} )?{WORD}",
        "mixed",
        "password",
    ),
    words("snmp-server community", rf"snmp-server community {WORD}", "mixed", "password"),
    words(
        "auth ",
        rf"(?:(?<![\s\S])|(?<=[\n+-])|(?<=> ))(?-i:AUTH) (?:[a-z][\w-]{{1,32}} )?{WORD}(?=[ ]?(?:\n|\Z))",
        "mixed",
        "password",
    ),
    words(
        "put-parameter",
        r"put-parameter(?=[^\n]{0,300}(?:securestring|passw|secret|token|key))[^\n]{0,300}?[ ]--value[= ]" + WORD,
        "mixed",
        "secret",
    ),
    *(
        words(
            command,
            rf"{command}[ ](?:--?\S+[ ]){{0,4}}\S*(?:passw|secret|token|api_?key|pwd)[\"']?[ ](?!-|[\w.-]+=){WORD}",
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
    words("dev wifi connect", rf"dev wifi connect \S{{1,64}} password {WORD}", "mixed", "password"),
    words("psk ", rf"(?<![\w-])psk[ ]{WORD}", "mixed", "password"),
    words("wpa_passphrase ", rf"wpa_passphrase[ ][\"']?[^\"'\n]{{1,64}}?[\"']?[ ]{WORD}", "mixed", "password"),
    words("networksetup -setairportnetwork", rf"-setairportnetwork \S+ \S+ {WORD}", "mixed", "password"),
    words(
        "security add-",
        rf"security add-(?:generic|internet)-password[^\n]{{0,120}}?[ ]-w[ ]{WORD}",
        "mixed",
        "password",
    ),
    words("security unlock-keychain", rf"unlock-keychain[ ]-p[ ]{WORD}", "mixed", "password"),
    words("age-plugin", rf"age-plugin \S+ {WORD}", "random"),
    words("join --token", rf"join --token[ =]{WORD}", "random"),
    words(" --token=", rf" --token={WORD}", "random"),
    words("tailscale up", r"tailscale up[^\n]{0,120}?--auth-?key[= ]" + WORD, "random"),
    words("cloudflared", r"cloudflared[^\n]{0,120}?--token[= ]" + WORD, "random"),
    words("config.sh --url", r"config\.sh --url \S+ --token[= ]" + WORD, "random"),
    words("--registration-token", rf"--registration-token[= ]{WORD}", "random"),
    *(option(name, r"-p[ ]", "chosen") for name in ("rdesktop", "psexec", "psexec.exe", "winexe", "wmic")),
    *(option(name, r"-a[ ][\"']?[^\s:\"']{1,64}:") for name in ("xh", "https", "httpie")),
    words("/rp ", rf"/rp {WORD}", "chosen", "password"),
    words("olcrootpw", rf"olcrootpw:{{1,2}} {WORD}", "mixed", "password"),
    words("isakmp key ", rf"isakmp key (?:[0-9] )?{WORD}", "mixed", "password"),
    *(
        words(f"{name}-server key ", rf"{name}-server key (?:[0-9] )?{WORD}", "mixed", "password")
        for name in ("radius", "tacacs")
    ),
    option("valkey-cli", r"-a[ ]"),
    option("doctl", r"(?:-t|--access-token)[ =]", rule="token"),
    option("netlify", r"--auth[ =]", rule="token"),
    Command(
        "pass:",
        regex(rf"pass:{WORD}", re.IGNORECASE),
        test="chosen",
    ),
    words("/pass:", rf"/pass:{WORD}", "mixed", "password"),
    Command("/p:", regex(rf"/p:{WORD}", re.IGNORECASE), test="chosen"),
    words("net user ", rf"net user [\w.-]+ {WORD}", "chosen", "password"),
    words("htpasswd", r"htpasswd[ ](?:-\w+[ ]){1,4}(?:[^\s]+[ ]){0,1}[\w.@-]+[ ]" + WORD, "mixed", "password"),
    words(
        "rabbitmqctl",
        rf"rabbitmqctl[ ](?:-\w+[ ])*(?:add_user|change_password|authenticate_user)[ ]\S+[ ]{WORD}",
        "mixed",
        "password",
    ),
    words(
        "smbclient",
        rf"smbclient\b{ARGUMENTS}[ ]-U[ ]?[\"']?[\w.\\-]+%(?P<value>[^\s\"']{{4,128}})",
        "mixed",
        "password",
    ),
    words("sqlplus", r"sqlplus\b[^\n]{0,60}?[ ][\"']?\w+/(?P<value>[^\s\"'@/]{6,128})@", "mixed", "password"),
    words("jdbc:oracle:", r"jdbc:oracle:\w+:\w+/(?P<value>[^\s\"'@/]{4,128})@", "any", "password"),
    words("requirepass", rf"requirepass[ ]{WORD}", "mixed", "password"),
    words("masterauth", rf"masterauth[ ]{WORD}", "mixed", "password"),
    words("primaryauth", rf"primaryauth[ ]{WORD}", "mixed", "password"),
    words(" on >", r" on >(?P<value>[^\s\"'<>]{6,128})[ ]", "mixed", "password"),
    words("pragma key", r"pragma key ?= ?[\"'](?P<value>[^\"'\n]{4,128})", "mixed", "password"),
    words("sshpass=", rf"sshpass={WORD}", "mixed", "password"),
    words("rediscli_auth=", rf"rediscli_auth={WORD}", "mixed", "password"),
    words(
        "bundle config",
        r"bundle config (?:set )?(?:--\w+ )?\S+ [\"']?[\w.-]+:(?P<value>[^\s\"']{6,256})",
        "mixed",
        "password",
    ),
    words("http-basic", rf"http-basic\.\S+ \S+ {WORD}", "mixed", "password"),
    words("pypi-token", rf"pypi-token\.\S+ {WORD}", "random"),
    words("http -a ", r"http -a \S+?:(?P<value>[^\s\"':]{4,128})", "mixed", "password"),
    words(
        "--auth ", r"https?(?:ie)?\b[^\n]{0,80} --auth [\"']?[\w.@-]+:(?P<value>[^\s\"':]{4,128})", "mixed", "password"
    ),
    words("--auth=", rf"--auth=[\"']?(?:[\w.@-]+:)?{WORD}", "mixed", "token"),
    words("--auth ", rf"--auth [\"']?{WORD}", "random", "token"),
    words("--http-user", rf"--http-user[ =]\S+ --http-passw(?:or)?d[ =]{WORD}", "mixed", "password"),
    *(
        words(f"{name} login", rf"{name} login[ ](?:--relogin[ ]|--host=?\S+[ ])*(?:--key[ =])?{WORD}", "random")
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
        words(
            f"{name}.login",
            rf"{name}\.(?:login|init|auth)\([^\n)]{{0,60}}?[\"'](?P<value>[A-Za-z0-9_-]{{20,256}})",
            "random",
        )
        for name in ("wandb", "swanlab", "neptune", "comet_ml")
    ),
    *(
        words(f"{name} auth", rf"{name} auth[ ](?:token[ ]|login[ ]|init[ ])?(?:-t[ ]|--token[ =])?{WORD}", "random")
        for name in ("snyk", "fly", "flyctl", "trivy", "turso", "fossa")
    ),
    words("authtoken ", rf"authtoken[ ]{WORD}", "random"),
    words("set-token ", rf"set-token[ ]{WORD}", "random"),
    words("login --token", rf"login --token[ =]{WORD}", "random"),
)
_DECODES = regex(r"\| base64 +(?:-d|-D|--decode)")
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")


def _given(command: Command, view: View) -> Iterator[Span]:
    text = view.text
    for place in view.places(command.literal):
        if command.literal[0].isalnum() and text[place - 1 : place].isalnum() and not command.back:
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
    edge = "" if command.back or not command.literal[0].isalnum() else "(?:^|[^a-z])"
    return f"(?i:{edge}{re.escape(command.literal)}{command.tail})"


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
    for place, command in enumerate((*_COMMANDS, *FED))
)
