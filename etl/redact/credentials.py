"""Is this a name that credentials have, and could this be the value of one?

The kept rule set knows tokens by their own shape. What has none (a password, a home-made token) can only be known by
the name it goes by, and names lie: `max_tokens`, `token: 512`, `password = get_password()`, `"password": {"type":
"string"}`. So a name gives a strength, and the weaker it is and the less its value is marked as one, the more the
value has to look like a secret.
"""

from __future__ import annotations

import functools
import re
from typing import Literal, NamedTuple

from etl.redact.regex import regex

Place = Literal["quoted", "environment", "bare", "flag"]
"""How a value stands: in quotes; after `NAME=` in capitals or in a connection string; free; after `--name`."""


class Credential(NamedTuple):
    """What a name promises: the rule that masks it, and whether it names nothing but credentials."""

    rule: str
    strong: bool


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_WORDS = regex(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_ENVIRONMENTS = _words("prod production dev test staging live local default value string base ")
_PASSWORDS = ("password", "passwd", "passphrase", "passcode")
_KEYS = _words(
    "api access secret private account auth encryption signing master subscription storage service deploy "
    "admin shared app application client server session jwt hmac license licence ingest write consumer webhook "
    "openai azure aws gcp google anthropic stripe heroku cloudflare datadog mistral cohere gemini groq deepseek twilio "
    "mailgun sendgrid github gitlab slack discord telegram openrouter "
    "together fireworks replicate huggingface functions "
    "fernet cookie preshared management developer integration provisioning enrollment registration agent "
    "unseal recovery root wrapping crypto cipher aes push fcm vapid maps rest subscriber merchant partner tenant "
    "algolia amplitude mixpanel segment sentry grafana pagerduty opsgenie honeycomb "
    "splunk pinecone weaviate qdrant supabase "
    "airtable notion linear mapbox resend brevo postmark mailchimp mandrill deepl "
    "deepgram elevenlabs tavily serper serpapi "
    "langfuse langsmith langchain wandb launchdarkly rollbar bugsnag codecov snyk cloudinary contentful infura alchemy "
    "instrumentation gossip etherscan binance coinbase razorpay paypal square adyen plaid shopify zhipu "
    "dashscope moonshot nvidia cerebras voyage "
)
_NAMED_SECRETS = _words("existing external pull tls image from use create")
"""Before "secret", they say that the value is the name of one."""
_PASS_OWNERS = _words(
    "db smtp mail user admin root ftp ssh sudo become vault ldap redis mysql pg wifi login key store proxy"
)
_OTHER_KEYS = _words(
    "public site sitekey primary foreign partition sort cache idempotency object s3 row group "
    "hash index lookup dedup dedupe routing "
    "unique publishable pub host known kms topic message event map registry config "
    "feature product order sorting blob file "
    "path image id issue project space component state query column data record redis conversation natural composite "
    "translation i18n shortcut hot arrow enter job task run document doc item "
    "user table translation label field metric "
    "section category option setting property attribute param parameter resource bucket upload thumbnail media asset "
)
"""Owners of keys that open nothing."""
_TOKEN_OWNERS = _words(
    "api app auth access refresh bearer session security secret bot private personal deploy service jwt oauth "
    "user client csrf xsrf id authentication authorization login account admin github gh gitlab slack npm pypi "
    "hf huggingface discord telegram vault consul openai anthropic azure aws gcp google cloudflare sentry my "
    "identity registry bootstrap root join cluster enrollment registration runner publish upload webhook "
)
_OTHER_TOKENS = _words(
    "next previous prev page pages paging pagination continuation continue cursor sync resume watch pad eos "
    "bos unk cls sep mask stop start end special max min num first last image prompt completion input output "
    "total cancellation per count lookup idempotency audio video mention cancel "
)
_VALUE_WORDS = _words(
    "none null nil true false undefined string str text password passwd pass secret token key bearer basic "
    "changeme required optional redacted masked hidden removed placeholder example dummy default empty unset "
    "missing invalid valid value number integer boolean object array any bytes type test xxx todo unknown "
    "unauthorized expired change me no not need needed used unused use using fake "
    "foo bar baz nothing anything whatever ignore "
    "ignored existing none given provided blank nil na tbd fixme abc123 123 1234 "
    "12345 123456 lm studio ollama vllm local sk "
    "localhost here wrong bad correct right old new current same confirm repeat another other mine yours their his her "
)
_PLACEHOLDER_START = regex(
    r"[$<{\[(`].|[%@&!~](?:[a-z_-]*[%$]?\Z|[({/])|\.{0,2}/|\.[*+]|"
    r"https?:|file:|op:|ref\+|vault:|enc[\[(]|arn:|projects/"
    r"|(?:data|var|local|module|random_[a-z]+|[a-z]+_[a-z]+_[a-z_]+)\.[a-z_]\w*(?:\.|\Z)"
    r"|(?:your|my|the|some|insert|enter|replace|example|dummy|placeholder|put|add)[-_ ]"
    r"|pk_(?:live|test)_|(?:process\.env|os\.environ|os\.getenv|env|secrets|config|"
    r"settings|vault|self|this|args|options|params|ctx|req)[.:\[]"
)
_PLACEHOLDER_PART = regex(
    r"\.\.\.|\*{3}|\A\*\*|\*\*\Z|A-Za-z|a-z0-9|0-9_|xxxx|____|----|"
    r"redacted|\$\{|\{\{|\A%[a-z_]+%\Z|_placeholder|[-_ ]here\Z|\A(.)\1*\Z|[-_.]your[-_]"
    r"|\A[0-9]{1,3}\+?(?:-[0-9]{1,3})?[-_]?(?:char|digit|letter|byte|bit\b|word|step\b|factor|minute|hour|day|month)"
)
_PLACEHOLDER_WORDS = _VALUE_WORDS | _words(
    "my your our the a this some sample insecure django flask app api access auth demo for testing super very not so"
)
_CHECKS = regex(
    r"(?:required|nullable|sometimes|present|filled|string|confirmed|bail|(?:min|max|size|between):[0-9,]+)(?:\|.*|)"
)
"""What forms are checked against, as frameworks write it."""
_FILE = regex(r".*\.(?:pem|key|crt|json|ya?ml|txt|env|toml|ini|py|js|ts|md|html?)", re.IGNORECASE)
_NAMES_A_CREDENTIAL = regex(r"(?i)passw|passphrase|secret|token|credential|api_?key|(?:^|_)(?:key|pwd|auth)(?:$|_)")
_BASE64 = regex(
    r"/[A-Za-z0-9+/]+={1,2}|/[A-Za-z0-9+/]{40,}"
    r"|/(?=[A-Za-z0-9+/]*(?:[a-z][A-Z0-9]+){2}[a-z])(?=[a-zA-Z0-9/]*\+|[A-Za-z0-9+/]*[A-Za-z0-9+]{12})[A-Za-z0-9+/]{23,}"
)
"""What is base64 though it begins as a path does."""
_NAME = regex(r"[A-Za-z_]+(?:[.:/][A-Za-z_]+)*|[A-Za-z_-]+[0-9]{1,2}|[a-z_-]+-v?(?:[0-9]{1,2}|20[0-9]{2})")
"""What is a name and nothing else."""
_IDENTIFIER = regex(r"[A-Za-z_$][A-Za-z0-9_$]*(?:(?:\.|::|->|\?\.)[A-Za-z_$][A-Za-z0-9_$]*)*")
_TOKEN_SHAPE = regex(r"[A-Za-z0-9._~+/=:%-]{16,}")
_UUID = regex(r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_HEX = regex(r"[0-9a-f]{32,}")
_ID = regex(r"[a-z]{2,16}[_-](?:[0-9]{2}_?)?[A-Za-z0-9]{10,}\Z")
_PATH = regex(r"\.{0,2}/?(?:[a-z][a-z_.-]+/){2}|.*\.[a-z]{1,5}(?::[0-9]+)+\Z")
_NO_PASSWORD = regex(
    r"(?i)://|\\|\A[./~-]|\A@|@[\w-]+\.[a-z]|\.[a-z]{2,5}\Z|"
    r"\A[\w.+-]+@[\w-]+\.[a-z]|\(|[0-9a-f]{8}-[0-9a-f]{4}-|\A[0-9a-f]{24,}\Z"
    r"|\A[a-z]{2,16}[_-](?:[0-9]{2}_?)?[a-z0-9]{16,}\Z|\A(?:[a-z]+|[0-9]+|"
    r"[a-z]?[0-9]{1,2}[a-z]?)(?:[-_.:/](?:[a-z]+|[0-9.]+|[a-z]?[0-9.]{1,4}[a-z]?))+\Z"
)
_TYPE = regex(r"(?:Big)?[Uu]?(?:[Ii]nt|[Ff]loat|[Cc]har|[Bb]ytes?)[0-9]{1,3}(?:Array|_t|Ptr|Clamped)*\w{0,12}")
_NO_MEMORY = regex(r"(?i)://|\A[./~-]|\A[\w.-]+\.[a-z]{2,10}\Z|\A[\w.+-]+@[\w-]+\.[a-z]|[(){}<>\s]|\A[+%]")
_PHRASE = regex(r"[a-z]{3,}(?:-[a-z]{3,}){3,}|[a-z]{3,}(?:[-_.][a-z]{3,})+[-_.]?[0-9]+")
_PHRASED = regex(r"[A-Z]?[a-z]{2,}(?:[-_.#]?[A-Z]?[a-z]{2,}){0,3}[-_.#]?[0-9]{2,4}[!?]?")
_ACRONYMS = regex(r"HTTPS?|HTML|XML|JSON|SQL|URLs?|TCP|SSH|SSL|TLS|JWT|AWS|DNS|LDAP|SMTP|FTP|API|CSRF|DB|PWD")
_PARTS = regex(r"(?i)(?:[a-z]+|[0-9]+)(?:[-_.:/](?:[a-z]+|[0-9.]+))+")
_ALGORITHM = regex(
    r"(?i)(?:sha|hmac|pbkdf|argon|bcrypt|ecdsa|oauth|(?<![a-z])(?:md|"
    r"aes|rsa|ed|base|utf|ascii|latin|iso|x|http|u?int|float))"
    r"[-_]?[0-9]{1,5}(?![0-9a-z])|b64(?:enc|dec)?(?![0-9a-z])|pbkdf2|oauth2|x509|base64|sha256|sha512|ed25519"
)
_UNSAYABLE = regex(r"[bcdfghjklmnpqrstvwxz]{6}|[BCDFGHJKLMNPQRSTVWXZ]{6}")
_VOWEL = regex(r"(?i)[aeiouy]")
_CLUSTER = regex(r"(?i)[bcdfghjklmnpqrstvwxz]{5}")
_TURN = regex(r"[0-9](?=[A-Za-z])|[A-Za-z](?=[0-9])")
_SPECIAL = regex(r"[!#$^~@%*&?+=]")
_LOOKED_AT = 256
"""How many characters of a value are judged; all of it is masked."""
_DIGIT, _LETTER, _MARK = regex(r"[0-9]"), regex(r"[A-Za-z]"), regex(r"[!@#^*+~]")
_DATE = regex(r"\d{4}-\d\d-\d\d[\dT:.Z+_-]*|\d{1,2}[:/]\d\d[\d:/.]*|v?\d+(?:\.\d+)+\S*|\d+(?:[a-z]{1,2}|%)?")


@functools.lru_cache(maxsize=4096)
def credential(name: str) -> Credential | None:
    """What a name promises, or None when it is no name of a credential.

    >>> credential("API_TOKEN"), credential("dbPassword"), credential("token").strong, credential("max_tokens")
    (Credential(rule='token', strong=True), Credential(rule='password', strong=True), False, None)
    """
    words = [word.lower() for word in _WORDS.findall(name)]
    while len(words) > 1 and (words[-1] in _ENVIRONMENTS or (words[-1].isdigit() and len(words[-1]) <= 2)):
        words.pop()
    if not words or words[0] in ("export", "list", "recv"):
        return None
    last, before = words[-1], words[:-1]
    if (
        last.endswith(_PASSWORDS)
        or (last == "pass" and (before or name.startswith("--")))
        or last == "pw"
        or last.endswith("pwd")
    ):
        return Credential("password", True)
    if (
        last == "psk"
        or (last.endswith("pass") and last.removesuffix("pass") in _PASS_OWNERS)
        or (last in ("word", "phrase", "code") and before and before[-1] == "pass")
    ):
        return Credential("password", True)
    if last.endswith("secret"):
        if before and before[-1] in _NAMED_SECRETS:
            return None
        return Credential("secret", True)
    if last.endswith("key"):
        owner = last.removesuffix("key") or (before[-1] if before else "")
        if owner in _KEYS or "".join(before[-2:]) in _KEYS:
            return Credential("api_key" if owner == "api" else "secret_key", True)
        is_setting = bool(before) and name.isupper() and owner not in _OTHER_KEYS
        return Credential("secret_key", False) if is_setting else None
    if last.endswith("token"):
        owners = {last.removesuffix("token"), *before}
        if owners & _OTHER_TOKENS:
            return None
        return Credential("token", bool(owners & _TOKEN_OWNERS))
    return Credential("credential", False) if last in ("credential", "credentials") else None


def is_of_text(word: str) -> bool:
    """Whether a word before "token" says that it is no credential: a page's, a piece of text."""
    return word.lower() in _OTHER_TOKENS


def is_owner(word: str) -> bool:
    """Whether a word before "key" or "token" says that the two together name a credential."""
    return word.lower() in _KEYS | _TOKEN_OWNERS


def plausible(value: str, name: str, promise: Credential, place: Place) -> bool:
    """Whether a value that goes by such a name is to be masked.

    >>> plausible("hunter2fake", "password", Credential("password", True), "bare")
    True
    >>> plausible("get_password", "password", Credential("password", True), "bare")
    False
    """
    value = value[:_LOOKED_AT]
    if not is_value(value, name):
        return False
    if place != "quoted" and _DATE.fullmatch(value) and promise.rule != "password":
        return False
    if "?" in value and promise.rule != "password" and not _DIGIT.search(value):
        return False
    if not promise.strong:
        return looks_random(value) and (place in ("environment", "bare") or not _UUID.fullmatch(value))
    if len(value) < (4 if promise.rule == "password" else 8):
        return False
    if place in ("environment", "flag"):
        return "." not in value or not _IDENTIFIER.fullmatch(value)
    if place == "quoted":
        return True
    return mixed(value) and not _is_code(value)


def is_value(value: str, name: str) -> bool:
    """False for what documents, schemas, forms and programs put where a secret would stand."""
    if len(value) < 4 or not value.isprintable() or " " in value or value.count("?") * 2 > len(value):
        return False
    lower = value.lower().strip("'\"`.,:;!")
    if all(word in _PLACEHOLDER_WORDS for word in re.split(r"[-_ ]+", lower)):
        return False
    if lower == name.lower() or _FILE.fullmatch(value) or ("|" in lower and _CHECKS.fullmatch(lower)):
        return False
    if value[0] == "/" and len(value) >= 24 and _BASE64.fullmatch(value) and looks_random(value):
        return not any(part.islower() and part.isalpha() and len(part) > 2 for part in value.split("/"))
    if _PLACEHOLDER_START.match(value.lower()) or _PLACEHOLDER_START.match(lower) or _PLACEHOLDER_PART.search(lower):
        return False
    return not (_NAMES_A_CREDENTIAL.search(value) and _NAME.fullmatch(value))


def looks_random(value: str, *, strict: bool = False) -> bool:
    """A long run of token characters with digits and letters in it, that is no dotted path of names.

    `strict` takes out ids too: UUIDs, and those that begin with what they are of (`call_…`).

    >>> looks_random("9fceb02d0ae598e95dc970b7"), looks_random("reservation_number_1"), looks_random("512")
    (True, False, False)
    """
    value = value[:_LOOKED_AT]
    if not _TOKEN_SHAPE.fullmatch(value) or _DATE.fullmatch(value):
        return False
    if strict and (
        (_ALGORITHM.search(value) and not _HEX.fullmatch(value))
        or _PARTS.fullmatch(value)
        or _UUID.search(value)
        or _ID.match(value)
        or "//" in value
        or _PATH.match(value)
    ):
        return False
    digits, letters = len(_DIGIT.findall(value)), len(_LETTER.findall(value))
    words = re.split(r"[^A-Za-z]+", value)
    wordy = sum(len(word) for word in words if len(word) > 4 and (word.islower() or word.istitle() or word.isupper()))
    if digits >= 3 and letters >= 3 and wordy * 2 < len(value):
        return True
    if len(value) < 20 or not digits or letters < 10:
        return False
    return _is_garbled(value)


def _is_garbled(value: str) -> bool:
    """Pieces too short for words of any language, or letters in an order that nobody can say."""
    return len(value) < 2.6 * len(_WORDS.findall(value)) or bool(_UNSAYABLE.search(value))


def scrambled(value: str) -> bool:
    """Letters alone in an order that no word and no name of a program has: what makes passwords without digits.

    >>> scrambled("tmcYgxPJDUZBTWCXXK"), scrambled("EEUeiZFbEC"), scrambled("getHTTPSClient"), scrambled("swordfish")
    (True, True, False, False)
    """
    if not (value.isalpha() and value.isascii() and 8 <= len(value) <= 72):
        return False
    if value.islower() or value.isupper():
        return value.islower() and len(value) >= 10 and bool(_UNSAYABLE.search(value))
    value = _ACRONYMS.sub("", value)
    pieces = len(_WORDS.findall(value))
    if pieces > 2 and len(value) >= 10 and 6 * len(_VOWEL.findall(value)) <= len(value):
        return True
    if pieces < 4:
        return False
    return len(value) <= 3 * pieces or (len(value) <= 4.5 * pieces and bool(_CLUSTER.search(value)))


def looks_chosen(value: str) -> bool:
    """What people choose for a password, or are given for one: letters and digits with more than one way of mixing.

    >>> looks_chosen("Juniper_Drift0382"), looks_chosen("k3qz81vnt0xw"), looks_chosen("TokenService2")
    (True, True, False)
    """
    if not 8 <= len(value) <= 72 or _NO_PASSWORD.search(value) or _ALGORITHM.search(value) or _DATE.fullmatch(value):
        return False
    digits = len(_DIGIT.findall(value))
    if not _LETTER.search(value) or _NAMES_A_CREDENTIAL.search(value):
        return False
    if not digits:
        marks = len(_SPECIAL.findall(value))
        return scrambled(value) or (marks > 1 and len(value) >= 10 and scrambled(_SPECIAL.sub("", value)))
    turns = len(_TURN.findall(value))
    special = bool(_SPECIAL.search(value))
    if not special and turns < 3 and digits < 3 and not re.search("[_!-]", value):
        return False
    points = (
        any(map(str.isupper, value)),
        any(map(str.islower, value)),
        digits >= 1,
        digits >= 2,
        special,
        turns >= 3,
    )
    return sum(points) >= 4


def phrased(value: str) -> bool:
    """Words with a number after them, as many passwords are.

    >>> phrased("RiverHarbor33"), phrased("Maple.907"), phrased("step-2")
    (True, True, False)
    """
    return len(value) >= 8 and bool(_PHRASED.fullmatch(value))


def memorable(value: str) -> bool:
    """What may be a password where nothing else is expected: words and numbers put together too.

    >>> memorable("falcon-lantern-73"), memorable("ember1234"), memorable("db-1.internal"), memorable("user@host.io")
    (True, True, False, False)
    """
    if not 6 <= len(value) <= 128 or _NO_MEMORY.search(value) or _DATE.fullmatch(value):
        return False
    if _ALGORITHM.search(value) and (_NAME.fullmatch(value) or len(_ALGORITHM.sub("", value)) < 4):
        return False
    return mixed(value) or bool(_PHRASE.fullmatch(value))


def mixed(value: str) -> bool:
    """Letters with digits or marks among them, letters that make no word, or a number of eight digits at least.

    >>> mixed("hunter2fake"), mixed("get-password"), mixed("12345678")
    (True, False, True)
    """
    digits = _DIGIT.search(value)
    if not _LETTER.search(value):
        return bool(digits) and len(value) >= 8
    return len(value) >= 6 and bool(digits or _MARK.search(value) or scrambled(value))


def pieced(value: str) -> bool:
    """Short pieces of which the first is a word, as names of things are.

    >>> pieced("user_settings_v2_20240101"), pieced("k3qz-81vnt0xw"), pieced("team_9fceb02d0ae598e95dc970b7")
    (True, False, False)
    """
    first, *others = re.split(r"[-_./]", value)
    return bool(others) and first.isalpha() and first.islower() and all(len(each) < 16 for each in others)


def _is_code(value: str) -> bool:
    """An attribute path, a type, or a name that is itself the name of a credential (`password_2`)."""
    if not _IDENTIFIER.fullmatch(value):
        return False
    if _TYPE.fullmatch(value) or (_ALGORITHM.search(value) and not _DIGIT.search(_ALGORITHM.sub("", value))):
        return True
    if re.search(r"[0-9]{3}", value):
        return False
    return "." in value or "::" in value or bool(_NAMES_A_CREDENTIAL.search(value))
