"""Passwords and keys that are told in other languages than English, in letters that are no Latin ones too.

A word, what may stand between it and the word that says what it is, and a value that stands out by its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from etl.redact.credentials import is_value, looks_random, memorable, pieced
from etl.redact.escapes import View
from etl.redact.families import Kind
from etl.redact.regex import regex
from etl.redact.spans import Span

ASIDE = (
    *("пароль", "пароля", "паролем", "паролю", "парола", "паролата", "лозинка", "κωδικός", "κωδικό", "συνθηματικό"),
    *(
        "密码",
        "密碼",
        "口令",
        "通行碼",
        "パスワード",
        "パスフレーズ",
        "暗証番号",
        "비밀번호",
        "비번",
        "암호",
        "패스워드",
    ),
    *("סיסמה", "סיסמא", "הסיסמה", "كلمة المرور", "كلمة السر", "كلمه السر", "رمز عبور", "گذرواژه", "پاس ورڈ"),
    *("पासवर्ड", "পাসওয়ার্ড", "கடவுச்சொல்", "รหัสผ่าน", "գաղտնաբառ", "პაროლი"),
)
"""Passwords in languages whose letters are no Latin ones."""
_KEYS_SPOKEN = (
    *("schlüssel", "zugangstoken", "zugriffstoken", "zugangsschlüssel", "geheimnis", "jeton", "clé", "clef", "clave"),
    *("llave", "chave", "chiave", "gettone", "segreto", "sleutel", "nyckel", "nyckeln", "nøgle", "nøglen", "nøkkel"),
    *("nøkkelen", "avain", "avaimen", "klucz", "klíč", "kľúč", "kulcs", "cheie", "cheia", "ključ", "anahtar"),
    *("anahtarı", "anahtarınız", "kunci", "khóa", "khoá", "võti", "raktas", "atslēga", "lykill", "lykillinn"),
    *("ключ", "ключа", "ключом", "токен", "токена", "токеном", "секрет", "жетон", "κλειδί", "διακριτικό", "מפתח"),
    *(
        "טוקן",
        "مفتاح",
        "رمز",
        "کلید",
        "توکن",
        "कुंजी",
        "टोकन",
        "คีย์",
        "โทเค็น",
        "密钥",
        "密鑰",
        "秘钥",
        "金鑰",
        "令牌",
        "权杖",
    ),
    *("キー", "トークン", "シークレット", "秘密鍵", "鍵", "키", "토큰", "시크릿", "비밀키"),
)
"""Keys and tokens in other languages than English."""
_KEY_APART = regex(
    r"(?P<between>[^\n.!?;{}<>=\"|]{0,48}?(?:\s[=:]{1,2}\s|[:：=—–-]|\b(?:ist|lautet|est|es|é|è|e|to|jest|is|är|er|on|je|adalah|là)"
    r"\b|[^\x00-\x7f])[ ]{0,2}[\"'`「『]?)(?P<value>[A-Za-z0-9][A-Za-z0-9_.~+/-]{15,511}={0,2})(?![A-Za-z0-9(\[])"
)
_NO_KEY = regex(
    r"(?i)\b(?:ids?|hash|sha\d*|md5|commit|primär|primary|öffentlich|publi|públic|pubbli|publique|primari|fingerprint"
    r"|nombre|name|url|trace|uuid)|публичн|открыт|первичн|公開|公钥|公鑰|主键|主キー|공개|기본 키"
)
_APART = regex(
    r"""[^!-~\n]{0,24}(?:[:="'`(\[][^!-~\n]{0,4}){0,2}(?P<value>[!-~]{6,64}?)(?=[^!-~]|["'`)}\],.]*(?:[^!-~]|\Z))"""
)
"""A value in plain letters soon after words that have none."""
_MARKED = regex(r"(?=[^A-Z]*[A-Z])(?=[^a-z]*[a-z])[A-Za-z]+[!#$%^*+@][A-Za-z]+[!]?")
_DIGITS, _LETTERS = regex(r"[0-9]"), regex(r"[A-Za-z]")


def _aside(view: View) -> Iterator[Span]:
    """Passwords that are told in other letters, where the value stands out by its own."""
    for word in ASIDE:
        for match in re.finditer(word, view.flat, re.IGNORECASE):
            found = _APART.match(view.flat, match.end())
            value = found["value"] if found else ""
            if found and is_value(value, "") and _stands_out(value):
                yield view.span(*found.span("value"), "password", 0)


def _keys_apart(view: View) -> Iterator[Span]:
    """Keys that are told in other languages than English."""
    lower = view.flat.lower() if len(view.flat.lower()) == len(view.flat) else view.flat
    for word in _KEYS_SPOKEN:
        place = lower.find(word)
        while place >= 0:
            found = _KEY_APART.match(view.flat, place + len(word))
            place = lower.find(word, place + 1)
            if not found or not looks_random(found["value"].rstrip("."), strict=True) or pieced(found["value"]):
                continue
            said = view.flat[max(0, found.start() - 40) : found.start("value")].rpartition("\n")[2]
            if is_value(found["value"], "") and not _NO_KEY.search(said):
                start = found.start("value")
                yield view.span(start, start + len(found["value"].rstrip(".-")), "token", 0)


def _stands_out(value: str) -> bool:
    """Letters with digits, or letters of both cases around a mark."""
    both = _DIGITS.search(value) and _LETTERS.search(value)
    return memorable(value) and bool(both or _MARKED.fullmatch(value))


def _sift(words: tuple[str, ...]) -> str:
    """Words as they stand, and as JSON escapes what is not ASCII in them."""
    coded = (
        "".join(
            letter if letter.isascii() else f" +u{ord(letter):04x}"
            for letter in (word if word[0].isascii() else word[1:].replace(" ", ""))
        ).removeprefix(" +")
        for word in words
        if not word.isascii()
    )
    return f"(?i:{'|'.join(filter(None, (*words, *coded)))})"


ASIDE_SIGN = _sift(ASIDE)
KINDS = (
    Kind("beside a word in other letters", ASIDE_SIGN, _aside),
    Kind("apart from a spoken key", _sift(_KEYS_SPOKEN) + r"[^\n]*[A-Za-z0-9_.~+/-]{16}", _keys_apart),
)
