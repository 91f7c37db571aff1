"""National ids: numbers that one country gives to one person, told by their form and what of it can be checked.

What is checked is checked by python-stdnum. A number that is written like any other (nine or eleven digits in a row)
counts only where a word before it says what it is.
"""

from __future__ import annotations

import functools
import importlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from etl.redact.escapes import View
from etl.redact.families import Family, Found

_BEFORE, _AFTER = r"(?<![\w.+-])", r"(?![\w-])"
_NOT_BEFORE, _NOT_AFTER = r"(?:^|[^\w.+-])", r"(?:[^\w-]|$)"
"""The same for the sifting of whole columns, which looks neither back nor ahead."""


class National(NamedTuple):
    """Ids of one country: how they are written (in RE2 and Python alike), and what checks them."""

    form: str
    check: str
    """The module of python-stdnum, or `british`."""


class Named(NamedTuple):
    """Ids of one country that are told only by the word before them."""

    word: str
    form: str
    check: str


@functools.cache
def _checker(name: str) -> Callable[[str], bool]:
    """Loaded when a number of that form is met: most logs hold few kinds."""
    own = _OWN.get(name)
    if own:
        return own
    is_valid: Callable[[str], bool] = importlib.import_module(f"stdnum.{name}").is_valid

    def check(value: str) -> bool:
        try:
            return is_valid(value)
        except LookupError:  # of a place that the tables of the library do not know (python-stdnum 2.2, China)
            return False

    return check


def _is_british(value: str) -> bool:
    """True but for the prefixes that are never given (HMRC's NIM39110); there is no check digit."""
    return value[:2].upper() not in ("BG", "GB", "NK", "KN", "TN", "NT", "ZZ")


def _is_chinese(value: str) -> bool:
    """By its check character (ISO 7064): of the places of births, tables that age know only a part."""
    from stdnum.iso7064 import mod_11_2

    return bool(mod_11_2.is_valid(value.upper()))


def _is_japanese(value: str) -> bool:
    """My Number: eleven digits and one that follows from them."""
    digits = _digits(value)
    left = sum(digit * (n + 2 if n < 6 else n - 4) for n, digit in enumerate(reversed(digits[:11]))) % 11
    return len(digits) == 12 and digits[11] == (0 if left <= 1 else 11 - left)


def _is_singaporean(value: str) -> bool:
    first, letter = value[0].upper(), value[-1].upper()
    total = sum(n * digit for n, digit in zip((2, 7, 6, 5, 4, 3, 2), _digits(value), strict=True))
    letters = {"S": "JZIHGFEDCBA", "T": "JZIHGFEDCBA", "M": "KLJNPQRTUWX"}.get(first, "XWUTRQPNMLK")
    return letters[(total + {"T": 4, "G": 4, "M": 3}.get(first, 0)) % 11] == letter


def _is_taiwanese(value: str) -> bool:
    code = "ABCDEFGHJKLMNPQRSTUVXYWZIO".index(value[0].upper()) + 10
    numbers = (code // 10, code % 10, *_digits(value))
    return sum(n * digit for n, digit in zip((1, 9, 8, 7, 6, 5, 4, 3, 2, 1, 1), numbers, strict=True)) % 10 == 0


def _is_of_hong_kong(value: str) -> bool:
    bare = re.sub(r"[()]", "", value.upper())
    codes = [ord(sign) - 55 if sign.isalpha() else int(sign) for sign in bare]
    return sum(n * code for n, code in enumerate(reversed(codes), 1)) % 11 == (0 if len(bare) == 9 else 2)


def _is_australian(value: str) -> bool:
    """A card of Medicare."""
    digits = _digits(value)
    return sum(n * digit for n, digit in zip((1, 3, 7, 9, 1, 3, 7, 9), digits[:8], strict=True)) % 10 == digits[8]


def _is_russian(value: str) -> bool:
    """SNILS."""
    digits = _digits(value)
    left = sum(n * digit for n, digit in zip(range(9, 0, -1), digits[:9], strict=True)) % 101
    return left % 100 == digits[9] * 10 + digits[10]


def _digits(value: str) -> list[int]:
    return [int(sign) for sign in value if sign.isdigit()]


_OWN: dict[str, Callable[[str], bool]] = {
    "british": _is_british,
    "chinese": _is_chinese,
    "japanese": _is_japanese,
    "singaporean": _is_singaporean,
    "taiwanese": _is_taiwanese,
    "of_hong_kong": _is_of_hong_kong,
    "australian": _is_australian,
    "russian": _is_russian,
    "": bool,
}
"""What python-stdnum has no check for, or one that knows too little; where there is nothing to check, the word does."""
_FORMS = (
    National(r"\d{3}-\d{2}-\d{4}", "us.ssn"),
    National(r"\d{3}\.\d{3}\.\d{3}-\d{2}", "br.cpf"),
    National(r"756\.\d{4}\.\d{4}\.\d{2}", "ch.ssn"),
    National(r"(?:19|20)?\d{6}[-+]\d{4}", "se.personnummer"),
    National(r"\d{8}-?[A-Z]", "es.dni"),
    National(r"[XYZ]-?\d{7}-?[A-Z]", "es.nie"),
    National(r"[A-Z]{6}\d{2}[A-EHLMPRST]\d{2}[A-Z]\d{3}[A-Z]", "it.codicefiscale"),
    National(r"[12] \d\d (?:0[1-9]|1[0-2]) \d[\dAB] \d{3} \d{3} \d\d", "fr.nir"),
    National(r"[A-CEGHJ-PR-TW-Z][A-CEGHJ-NPR-TW-Z] ?\d\d ?\d\d ?\d\d ?[A-D]", "british"),
    National(r"\d\d\.\d\d\.\d\d-\d{3}\.\d\d", "be.nn"),
    National(r"\d{6}[-+A]\d{3}[0-9A-Y]", "fi.hetu"),
    National(r"\d{1,2}\.\d{3}\.\d{3}-[\dKk]", "cl.rut"),
    National(r"\d{6}-[1-4]\d{6}", "kr.rrn"),
    National(r"[A-Z]{4}\d{6}[HM][A-Z]{5}[0-9A-Z]\d", "mx.curp"),
    National(r"[1-9]\d{5}(?:19|20)\d{2}(?:0[1-9]|1[0-2])[0-3]\d{4}[\dX]", "chinese"),
    National(r"[2-9]\d{3} \d{4} \d{4}", "in_.aadhaar"),
    National(r"\d{6}/\d{3,4}", "cz.rc"),
)
_WORDS = (
    Named(r"ssn|social.?security(?:.?(?:number|no))?", r"\d{9}|\d{3} \d{2} \d{4}", "us.ssn"),
    Named(r"social.?insurance(?:.?(?:number|no))?|\bsin", r"\d{3}[ -]?\d{3}[ -]?\d{3}", "ca.sin"),
    Named(r"nhs(?:.?(?:number|no))?", r"\d{3}[ -]?\d{3}[ -]?\d{4}", "gb.nhs"),
    Named(r"tfn|tax.?file(?:.?(?:number|no))?", r"\d{3} ?\d{3} ?\d{2,3}", "au.tfn"),
    Named(r"cpf", r"\d{11}", "br.cpf"),
    Named(r"rut|(?-i:\bRUN)", r"\d{7,8}-?[\dKk]", "cl.rut"),
    Named(r"aadhaar|aadhar", r"\d{12}|\d{4}-\d{4}-\d{4}", "in_.aadhaar"),
    Named(r"pesel", r"\d{11}", "pl.pesel"),
    Named(r"bsn|burgerservicenummer", r"\d{9}", "nl.bsn"),
    Named(
        r"steuer(?:liche )?.?(?:id(?:entifikationsnummer)?|nummer)|identifikationsnummer|idnr|tax.?id",
        r"\d{2} ?\d{3} ?\d{3} ?\d{3}",
        "de.idnr",
    ),
    Named(r"nir|s[?e]curit[?e].sociale|num[?e]ro.de.s[?e]cu", r"[12]\d{12}(?:\d{2})?", "fr.nir"),
    Named(r"personnummer|personal.?(?:identity.?)?number", r"\d{10}|\d{12}", "se.personnummer"),
    Named(r"national.?insurance|\bnino", r"[A-Za-z]{2} ?\d\d ?\d\d ?\d\d ?[A-Da-d]", "british"),
    Named(r"(?:sa|south.african).?id|id.?number|identity.?number", r"\d{13}|\d{6} \d{4} \d{3}", "za.idnr"),
    Named(r"pan(?:.?(?:card|number|no))?|permanent.account.number", r"[A-Za-z]{5}[0-9]{4}[A-Za-z]", "in_.pan"),
    Named(r"rijksregister|national.?register", r"\d{11}", "be.nn"),
    Named(r"pps(?:n|.?(?:number|no))?", r"\d{7}[A-Za-z]{1,2}", "ie.pps"),
    Named(r"nric|fin.?(?:number|no)|singapore.?id", r"[STFGM]\d{7}[A-Z]", "singaporean"),
    Named(r"t\.?c\.?.?kimlik(?:.?n[a-z?.]*)?|tckn|tckimlik|kimlik.?n[a-z?.]*", r"\d{11}", "tr.tckimlik"),
    Named(r"cpr(?:.?(?:nummer|nr|number|no))?", r"\d{6}-?\d{4}", "dk.cpr"),
    Named(r"f[?o]dselsnummer|f[?o]dselsnr|fnr|personnummer", r"\d{6} ?\d{5}", "no.fodselsnummer"),
    Named(r"nif|contribuinte", r"\d{3} ?\d{3} ?\d{3}", "pt.nif"),
    Named(r"cnp|cod.numeric.personal", r"\d{13}", "ro.cnp"),
    Named(r"oib", r"\d{11}", "hr.oib"),
    Named(r"rodn[?e].?[?c][?i]slo|birth.number", r"\d{6}/?\d{3,4}", "cz.rc"),
    Named(r"asmens.?kod[a-z?]{1,3}", r"\d{11}", "lt.asmens"),
    Named(r"isikukood", r"\d{11}", "ee.ik"),
    Named(r"personas.?kods", r"\d{6}-?\d{5}", "lv.pvn"),
    Named(r"em[?s]o|jmbg|umcn", r"\d{13}", "si.emso"),
    Named(r"amka", r"\d{11}", "gr.amka"),
    Named(r"afm", r"\d{9}", "gr.vat"),
    Named(r"teudat.?zehut|israeli?.?id", r"\d{8,9}", "il.idnr"),
    Named(r"ird.?(?:number|no)?", r"\d{2,3}-\d{3}-\d{3}|\d{8,9}", "nz.ird"),
    Named(r"medicare(?:.?(?:card|number|no))*", r"[2-6]\d{3} ?\d{5} ?\d(?: ?\d)?", "australian"),
    Named(
        r"medicare.?(?:beneficiary.?)?(?:id|identifier|number|no)|mbi",
        r"[1-9][AC-HJKMNP-RT-Y]"
        r"[0-9AC-HJKMNP-RT-Y]\d-?"
        r"[AC-HJKMNP-RT-Y][0-9AC-HJKMNP-RT-Y]\d-?[AC-HJKMNP-RT-Y]{2}\d\d",
        "",
    ),
    Named(r"rfc", r"[A-Z&?]{4}\d{6}[A-Z0-9]{3}", "mx.rfc"),
    Named(r"cui[tl]", r"\d{2}-?\d{8}-?\d", "ar.cuit"),
    Named(r"dni", r"\d{2}\.\d{3}\.\d{3}|\d{8}", "ar.dni"),
    Named(r"c[?e]dula", r"\d{9}-?\d", "ec.ci"),
    Named(r"c[?e]dula", r"\d{3}-?\d{7}-?\d", "do.cedula"),
    Named(r"nric|my.?kad|(?:malaysian )?ic.?(?:no|number)", r"\d{6}-?\d{2}-?\d{4}", "my.nric"),
    Named(r"nik|nomor.induk", r"\d{16}", "id.nik"),
    Named(r"npwp", r"\d{2}\.?\d{3}\.?\d{3}\.?\d-?\d{3}\.?\d{3}", "id.npwp"),
    Named(r"cnic", r"\d{5}-?\d{7}-?\d", "pk.cnic"),
    Named(r"(?:thai|citizen).?(?:national.?)?id(?:.?(?:card|number|no))?", r"\d-?\d{4}-?\d{5}-?\d{2}-?\d", "th.pin"),
    Named(r"kennitala|kt\.?", r"\d{6}-?\d{4}", "is_.kennitala"),
    Named(r"itin", r"9\d{2}-?\d{2}-?\d{4}", "us.itin"),
    Named(r"svnr|sv.?nummer|sozialversicherungs.?n[a-z]*", r"\d{4} ?\d{6}", "at.vnr"),
    Named(r"sv.?nummer|(?:sozial|renten)versicherungs.?n[a-z]*", r"\d{2} ?\d{6} ?[A-Z] ?\d{3}", ""),
    Named(r"steuer.?n(?:umme)?r\.?", r"\d{2,3}/\d{3}/\d{4,5}", "de.stnr"),
    Named(r"ahv(?:.?n[a-z]*)?|avs", r"756\d{10}", "ch.ssn"),
    Named(r"snils", r"\d{3}-\d{3}-\d{3}[ -]\d{2}|\d{11}", "russian"),
    Named(r"egn", r"\d{10}", "bg.egn"),
    Named(r"hkid|hong.kong.id", r"[A-Z]{1,2}\d{6}\(?[\dA]\)?", "of_hong_kong"),
    Named(r"(?:taiwan|tw|national).?id", r"[A-Z][12]\d{8}", "taiwanese"),
    Named(r"utr|unique.taxpayer.reference", r"\d{5} ?\d{5}", "gb.utr"),
    Named(r"voter.?id|epic.?(?:number|no)", r"[A-Z]{3}\d{7}", "in_.epic"),
    Named(r"my.?number", r"\d{4}[ -]?\d{4}[ -]?\d{4}", "japanese"),
    Named(r"resident.registration|rrn", r"\d{6}-?[1-8]\d{6}", "kr.rrn"),
)
_ASIDE = (
    Named("マイナンバー|個人番号", r"\d{4}[ -]?\d{4}[ -]?\d{4}", "japanese"),
    Named("身分證|身分证|身份證字號", r"[A-Z][12]\d{8}", "taiwanese"),
    Named("身份證|身份证", r"[A-Z]{1,2}\d{6}\(?[\dA]\)?", "of_hong_kong"),
    Named("주민등록번호|주민번호", r"\d{6}-?[1-8]\d{6}", "kr.rrn"),
    Named("ЕГН", r"\d{10}", "bg.egn"),
    Named("ИНН", r"\d{12}", "ru.inn"),
    Named("СНИЛС", r"\d{3}-\d{3}-\d{3}[ -]\d{2}|\d{11}", "russian"),
    Named("РНОКПП|ІПН|ИПН", r"\d{10}", "ua.rntrc"),
    Named("ЈМБГ|ЕМБГ|ЄДРПОУ", r"\d{13}", "si.emso"),
    Named("ΑΜΚΑ", r"\d{11}", "gr.amka"),
    Named("ΑΦΜ", r"\d{9}", "gr.vat"),
    Named("תעודת זהות|ת\\.?ז\\.?", r"\d{8,9}", "il.idnr"),
    Named("आधार", r"\d{4}[ -]?\d{4}[ -]?\d{4}", "in_.aadhaar"),
    Named("ประจำตัวประชาชน|บัตรประชาชน", r"\d-?\d{4}-?\d{5}-?\d{2}-?\d", "th.pin"),
)
"""Those whose word is written in letters that are no Latin ones."""
_APART = 72
"""Characters between a word and a number that stands further on, with no other number between them."""
_GAP = r"[^\w\n]{0,6}(?:(?:is|of|no|number|num|nr|n|value|text|:|=|#)[^\w\n]{0,6}){0,2}"
"""What may stand between the word and the number."""


@functools.cache
def _pattern(form: str) -> re.Pattern[str]:
    """Compiled when a text may hold such a number: most logs hold few kinds."""
    return re.compile(form)


def _of_form(national: National, view: View) -> Iterator[Found]:
    for match in _pattern(rf"{_BEFORE}(?<!\d )(?P<value>{national.form}){_AFTER}(?! \d)").finditer(view.text):
        if _checker(national.check)(match["value"]):
            yield "national_id", *match.span("value"), _bare(match["value"])


def _of_word(named: Named, view: View) -> Iterator[Found]:
    """A number after its word, further on in the line or the next one, or in a column below it."""
    text = view.text
    near = rf"(?i)(?<![A-Za-z])(?:{named.word})(?!\(){_GAP}(?P<value>{named.form}){_AFTER}"
    apart = (
        rf"(?<![A-Za-z])(?P<word>(?i:{named.word}))(?![A-Za-z(])[^\d]{{1,{_APART}}}?"
        rf"(?:(?<=\s)\d{{1,5}}[?\t|:][^\d]{{0,{_APART}}}?)?{_BEFORE}(?P<value>(?i:{named.form})){_AFTER}"
    )
    found = [*_pattern(near).finditer(text), *filter(_says_enough, _pattern(apart).finditer(text))]
    for match in found:
        if _checker(named.check)(match["value"]):
            yield "national_id", *match.span("value"), _bare(match["value"])
    yield from _in_columns(text, named)


def _of_letters(named: Named, view: View) -> Iterator[Found]:
    """A number soon after a word whose letters only the text itself has."""
    form = rf"(?:{named.word})[^\d\nA-Z]{{0,24}}(?P<value>{named.form})(?![A-Za-z0-9_-])"
    for match in _pattern(form).finditer(view.flat):
        if _checker(named.check)(match["value"]):
            yield "national_id", *match.span("value"), _bare(match["value"])


def _says_enough(match: re.Match[str]) -> bool:
    """A word that is short counts at a distance where it is written as an abbreviation; two lines are the most."""
    word = match["word"]
    return (word.isupper() or len(word) > 6) and match.group().count("\n") <= 1


def _in_columns(text: str, named: Named) -> Iterator[Found]:
    """What stands in a column of a table (CSV and its like) whose head is a word for an id."""
    heads = rf"(?im)^(?P<before>[^\n]*[,;\t|?> ]|)[\"']?(?:{named.word})[\"']?[ ]*(?=[,;\t|\n])"
    for head in _pattern(heads).finditer(text):
        before = _LINE_NUMBER.sub("", _OF_JSON.sub("", head["before"]))
        mark = next((mark for mark in ",;\t|" if mark in before or text.startswith(mark, head.end())), None)
        if mark is not None:
            yield from _column(text, text.find("\n", head.end()), mark, before.count(mark), named)


def _column(text: str, place: int, mark: str, index: int, named: Named) -> Iterator[Found]:
    while 0 <= place < len(text) - 1:
        end = text.find("\n", place + 1)
        line = text[place + 1 : end if end >= 0 else len(text)]
        shown = _LINE_NUMBER.sub(lambda match: " " * len(match.group()), line)
        cells = shown.split(mark)
        if len(cells) <= index:
            return
        cell = cells[index]
        value = cell.strip(" \"'\r}])")
        if re.fullmatch(named.form, value, re.IGNORECASE) and _checker(named.check)(value):
            start = place + 1 + len(mark.join(cells[:index])) + (index > 0) + cell.index(value)
            yield "national_id", start, start + len(value), _bare(value)
        place = end


def _bare(value: str) -> str:
    return re.sub(r"\W", "", value).upper()


_ACCENTED = re.compile(r"\[\?[a-z]?\]")
"""A letter with or without an accent; among the characters of a view, one with an accent is a question mark."""
_OF_JSON = re.compile(r".*[:\[,] ?\"(?=[\w ])")
"""What stands before a text that is a value of JSON."""
_LINE_NUMBER = re.compile(r"^[ >+-]*(?:\d{1,5}[ ]?[?\t|:][ ]?)?")
"""What views of files and patches put before a line."""

FAMILIES = (
    *(
        Family(
            f"national_id {place}",
            f"{_NOT_BEFORE}(?:{national.form}){_NOT_AFTER}",
            functools.partial(_of_form, national),
        )
        for place, national in enumerate(_FORMS)
    ),
    *(
        Family(
            f"national_id {named.check} {place}",
            rf"(?i:(?:^|[^A-Za-z])(?:{_ACCENTED.sub('.', named.word)})(?:[^A-Za-z]|is|of|n|value|text)"
            rf"[^\n]*(?:\n[^\n]*)?(?:\d[\d ./-]{{6}}|[A-Z]{{1,2}} *\d|[A-Z?]{{4}}\d))",
            functools.partial(_of_word, named),
        )
        for place, named in enumerate(_WORDS)
    ),
    *(
        Family(
            f"national_id of other letters {place}", rf"(?:{named.word})[^\n]*\d", functools.partial(_of_letters, named)
        )
        for place, named in enumerate(_ASIDE)
    ),
)
"""Each kind of id is looked for where its own form or word is."""
