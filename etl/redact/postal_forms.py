"""How postal addresses are written, country by country."""

from __future__ import annotations

import re
from typing import NamedTuple

from etl.redact.name_forms import LETTER, UPPER

_CAP = rf"(?:[{UPPER}](?:[{LETTER}'’.-]{{0,24}}[{LETTER}])?(?:\.(?= [{UPPER}]))?)"
_FIRST = r"(?!(?:Is|Are|At|To|From|For|My|Our|The|Please|Send|Ship|Deliver|Address|Move|Moved|Near|Visit)\b)"
_LINK = r"(?:de|del|della|di|da|do|dos|das|du|des|la|le|las|los|el|y|e|und|an|am|der|den|van|of|the|upon|on|en|sur)"
_WORDS = rf"{_FIRST}{_CAP}(?: (?:{_LINK} ){{0,3}}{_CAP}){{0,4}}"
_CITY = rf"(?:{_CAP}(?:[ -](?:{_LINK} ){{0,2}}{_CAP}){{0,3}})"
_COMMA = r"(?:, ?|,?\n[ >]*| [-–] )"
_SPACE = rf"(?:{_COMMA}| )"
_BEFORE = r"(?<![\w./#$@-])(?<!\d:)"
_AFTER = r"(?![\w@]|\.\d|[-/]\w)"

_UNIT = (
    r"(?:(?i:apt|apartment|suite|ste|unit|flat|floor|fl|room|rm|bldg|building|lot|pmb|level)\.? ?#? ?[A-Z0-9][\w-]{0,5}"
    r"|# ?\d[\w-]{0,5})"
)
_STATE = (
    r"(?:A[LKZR]|C[AOT]|D[CE]|FL|G[AU]|HI|I[DLNA]|K[SY]|LA|M[EDAINSOT]|N[EVHJMYCD]|O[HKR]|P[AR]|RI|S[CD]|T[NX]|UT|V[TAI]"
    r"|W[AVIY]|AB|BC|MB|N[BLSTU]|ON|PE|QC|SK|YT|NSW|VIC|QLD|TAS|ACT)"
)
_CODE = r"(?:\d{5}(?:-\d{4})?|[A-Z]\d[A-Z] ?\d[A-Z]\d|[A-Z]{1,2}\d[A-Z\d]? ?\d[A-Z]{2}|\d{4})"
_LAND = (
    r"(?:, (?:USA|U\.S\.A\.|United States|UK|United Kingdom|England|Scotland|Wales|Canada|Australia|Ireland|New Zealand"
    r"|India))?"
)
_TAIL = (
    rf"(?:{_SPACE}{_CITY}(?:,? {_STATE})?,? {_CODE}|{_COMMA}{_CITY}, (?:{_STATE}|{_CAP}){_SPACE}{_CODE}"
    rf"|{_COMMA}{_CITY}, {_STATE}){_LAND}"
)
_NUMBER = r"\d{1,5}[A-Za-z]?(?:[-/]\d{1,4}[A-Za-z]?)?"
_SIDE = r"(?:(?:[NSEW]|[NS][EW]|North|South|East|West)\.? )?"
_WAY = (
    r"(?:Street|St|Avenue|Ave|Av|Road|Rd|Boulevard|Blvd|Lane|Ln|Drive|Dr|Court|Ct|Place|Pl|Square|Sq|Terrace|Ter|Way"
    r"|Parkway|Pkwy|Highway|Hwy|Circle|Cir|Trail|Trl|Close|Crescent|Cres|Gardens|Gdns|Grove|Mews|Row|Walk|Hill|Rise|View"
    r"|Quay|Wharf|Loop|Pike|Turnpike|Alley|Plaza|Esplanade|Parade|Green|Crossing|Run|Path|Bend|Ridge|Point)"
)
_SURE_WAY = (
    r"(?:Street|St|Avenue|Ave|Road|Rd|Boulevard|Blvd|Lane|Ln|Parkway|Pkwy|Highway|Hwy|Crescent|Terrace|Gardens|Mews)"
)
_NAMED = rf"{_SIDE}(?:(?:{_CAP}|\d{{1,3}}(?:st|nd|rd|th)) ){{1,4}}?"
_TURN = r"(?:\.|(?!\w))(?: (?:N|S|E|W|NE|NW|SE|SW)\b)?"

_SUFFIX = (
    r"(?:[Ss]tra(?:ß|ss)e|[Ss]tr\.|[Gg]asse|[Ww]eg|[Pp]latz|[Aa]llee|ufer|damm|[Rr]ing|steig|chaussee|hof|markt|berg|graben"
    r"|straat|laan|plein|gracht|kade|dijk|singel|gatan|vägen|väg|gata|gränd|vej|gade|veien|veg|katu|tie)"
)
_SUFFIXED = (
    rf"(?:{_WORDS} )?(?:[{UPPER}][{LETTER}.-]{{0,30}}{_SUFFIX}|(?:Straße|Strasse|Str\.|Gasse|Weg|Platz|Allee|Ring))"
)
_PREFIXED = (
    r"(?:Via|Viale|Piazza|Piazzale|Corso|Vicolo|Rua|Avenida|Av\.|Avda\.?|Travessa|Praça|Alameda|Estrada|Calle|C/|Carrer"
    r"|Paseo|Plaza|Camino|Ronda|Carrera|Cra\.?|ul\.|Ulica|al\.|Aleje|Aleja|pl\.|os\.|ulice|улица|ул\.|проспект|пр\.)"
)
_HOUSE = r"(?:,? (?:n[º°o.]{1,2} ?|nr\.? ?|núm\.? ?|д\. ?)?#?\d{1,5}(?: ?[a-zA-Z]\b)?(?:[-/]\d{1,4}[a-zA-Z]?)?)"
_BESIDE = r"(?:(?:,| -| –) ?[^,;:\n\"'`<>{}|\\]{1,28}){0,2}?"
_PIECE = rf"(?:[{UPPER}\d(#][\w'’./()#-]{{0,30}}|of|the|and|near|no\.?|main|cross|floor|phase)"
_AREA = rf"(?:(?:near|opp|opposite|behind|off) )?{_PIECE}(?: {_PIECE}){{0,5}}"
_TOWN = (
    rf"(?:(?:(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: [A-Z]{{2}})?|\d{{2}}-\d{{3}}|\d{{4}}-\d{{3}}|\d{{3}} \d{{2}}) {_CITY}"
    rf"|{_CITY}(?: ?[-/–,] ?[A-Z]{{2}}),? (?:CEP:? ?)?\d{{5}}-?\d{{3}}|{_CITY},? \d{{4,6}})"
)
_RUE = (
    r"(?i:rue|avenue|av\.|boulevard|bd|place|chemin|impasse|allée|quai|cours|route|square|passage|faubourg|ruelle"
    r"|sentier)"
)


class Form(NamedTuple):
    """One way of writing an address."""

    anchor: re.Pattern[str]
    """What every address of this form has in it, quick to find."""
    before: int
    """Characters of an address that may stand before the anchor."""
    after: int
    pattern: re.Pattern[str]
    """With the address as the group `value`."""


def _form(anchor: str, before: int, after: int, *pieces: str, spaced: bool = True) -> Form:
    value = f"(?P<value>{''.join(pieces)})"
    return Form(re.compile(anchor), before, after, re.compile(f"{_BEFORE}{value}{_AFTER}" if spaced else value))


_OF_THE = (
    r"(?:(?:de la|de l['’]|dell['’]|de|del|della|dei|di|da|do|dos|das|du|des|la|las|los|el|le|les|d['’]|l['’]) ?){0,2}"
)
_HANZI = "[一-龥]"
FORMS = (
    # 1412 Sycamore Ave, Apt 3, Boise, ID 83715; Flat 2, 90 Beechcroft Avenue, Norwich NR16 2XS
    _form(
        rf"{_WAY}(?!\w)", 110, 120, rf"(?:{_UNIT}, )?{_NUMBER} {_NAMED}{_WAY}{_TURN}(?:{_SPACE}{_UNIT})?{_TAIL}"
    ),
    _form(rf"{_SURE_WAY}(?!\w)", 110, 30, rf"(?:{_UNIT}, )?{_NUMBER} {_NAMED}{_SURE_WAY}{_TURN}(?:{_SPACE}{_UNIT})?"),
    # 350 Broadway, New York, NY 10013
    _form(
        rf"{_STATE},? {_CODE}", 160, 40,
        rf"{_NUMBER} {_SIDE}{_WORDS}(?:{_SPACE}{_UNIT})?{_COMMA}{_CITY},? {_STATE},? {_CODE}{_LAND}",
    ),
    _form(r"Box \d", 12, 120, r"P\.? ?O\.? ?Box \d{1,6}", rf"(?:{_TAIL})?"),
    # Schillerplatz 152b, 35275 Augsburg
    _form(rf"{_SUFFIX}{_HOUSE}", 80, 160, rf"{_SUFFIXED}{_HOUSE}(?:{_BESIDE}{_COMMA}{_TOWN})?"),
    # Via Garibaldi 99, 50123 Firenze; Rua Augusta, 385 - bloco B, São Paulo - SP, 01451-852
    _form(rf"{_PREFIXED} ", 10, 240, rf"{_PREFIXED} {_OF_THE}{_WORDS}{_HOUSE}(?:{_BESIDE}{_COMMA}{_TOWN})?"),
    # Unter den Linden 5, 10117 Berlin
    _form(
        rf"\d{{4,5}}(?: [A-Z]{{2}})? [{UPPER}]", 130, 60,
        rf"{_WORDS} \d{{1,4}}(?: ?[a-z]\b)?(?:[-/]\d{{1,3}})?{_COMMA}",
        rf"(?:[A-Z]{{1,2}}-)?\d{{4,5}}(?: [A-Z]{{2}})? {_CITY}",
    ),
    # 12 bis, rue de la Paix, 75002 Paris
    _form(
        rf"\d(?: ?(?:bis|ter|quater))?,? {_RUE} ", 6, 240,
        rf"\d{{1,4}}(?: ?(?:bis|ter|quater))?,? {_RUE} {_OF_THE}{_WORDS}",
        rf"(?:{_SPACE}\d{{5}} {_CITY}(?: (?i:cedex)(?: \d{{1,2}})?)?|{_TAIL})?",
    ),
    # 12/4, 5th Main Road, Jayanagar, Bengaluru 560011
    _form(
        r"[1-9]\d\d ?\d{3}(?!\d)", 240, 2,
        rf"(?:(?i:flat|no|plot|door|house)\.? ?(?:no\.? ?)?)?#?{_NUMBER},? {_AREA}(?:, {_AREA}){{0,4}}",
        rf"(?:,| -| –)? ?{_CITY} ?[-–]? ?[1-9]\d{{2}} ?\d{{3}}",
    ),
    # 5-28-12 Kichijoji Honcho, Musashino-shi, Tokyo 180-0031
    _form(
        r"\d{3}-\d{4}", 180, 2,
        rf"\d{{1,3}}-\d{{1,2}}(?:-\d{{1,3}})? {_WORDS}(?:, ?{_WORDS}){{0,3}},? (?:〒)?\d{{3}}-\d{{4}}",
    ),
    _form(
        "-(?:shi|ku|cho|machi|gun)(?!\\w)", 120, 90,
        rf"\d{{1,3}}-\d{{1,2}}(?:-\d{{1,3}})? {_WORDS}, ?{_CAP}-(?:shi|ku|cho|machi|gun)(?:, ?{_WORDS})?",
    ),
    _form(
        "[都道府県]", 14, 60,
        rf"(?:〒? ?\d{{3}}-\d{{4}} ?)?(?:東京都|北海道|京都府|大阪府|{_HANZI}{{2,3}}県)[一-龥ぁ-んァ-ヶー々]{{1,20}}",
        r"[0-9０-９一二三四五六七八九十]{1,4}(?:[-−ー－丁目番地号の]{1,3}[0-9０-９]{1,4}){0,4}(?:号|番地)?",
        spaced=False,
    ),
    _form(
        "[路街道巷弄][0-9]", 50, 20,
        rf"(?:{_HANZI}{{2,8}}(?:省|自治区))?{_HANZI}{{2,8}}(?:市|州){_HANZI}{{1,8}}(?:区|县|镇)[一-龥0-9]{{1,20}}",
        r"(?:路|街|道|巷|弄)[0-9]{1,5}号(?:[0-9一-龥]{1,12}(?:室|楼|栋))?",
        spaced=False,
    ),
    _form(
        r"(?:로|길) ?\d", 40, 10,
        r"[가-힣]{2,8}(?:시|도) (?:[가-힣]{1,6}(?:시|군) )?[가-힣]{1,6}(?:구|군|읍|면) [가-힣0-9]{1,12}",
        r"(?:로|길) ?\d{1,4}(?:-\d{1,3})?",
        spaced=False,
    ),
)  # fmt: skip

_KINDS = (
    r"(?:street|shipping|billing|home|mailing|postal|delivery|residential|permanent|current|new|old|return|work|office"
    r"|pickup|dropoff|destination|customer|user|property|site)"
)
FIELD = re.compile(
    rf"(?i)(?<![\w-])(?:(?:{_KINDS}[ _-]?)?address(?:[ _-]?lines?)?[ _-]?[123]?|street|line[ _-]?[123]|addr[ _-]?[123]"
    r"|anschrift|adresse|direcci[oó]n|indirizzo|endere[çc]o|adres|domicilio)[\"']?\]?\*{0,2} ?(?:=>|[:=])\*{0,2} {0,3}"
)
"""A field that holds an address."""
IN_FIELDS = ("addr", "adres", "street", "line", "anschrift", "direcci", "indirizzo", "endere", "domicilio")
"""One of these is in every such field."""
FIELD_VALUE = re.compile(
    r"\"(?P<quoted>[^\"\n]{3,160})\"|'(?P<single>[^'\n]{3,160})'(?!\w)"
    r"|(?P<bare>[^\s\"'`<{\[(][^\n\"`<>{}|]{3,120})(?=\n|\Z)"
)
PLACED = re.compile(rf"\d[A-Za-z]?,? [{LETTER}]|[{LETTER}][.,]? #?\d")
"""What such a field holds: a number beside a word."""

SIFT = r"[^\s\d],? ?(?:[^\s\d]{1,4} ?)?#?\d|\d[A-Za-z]?(?: (?:bis|ter|quater))?,? \S|[一-龥가-힣]"
"""What an address matches in a padded column (RE2)."""
