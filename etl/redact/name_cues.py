"""What says that a name of a person follows, and what says that it is none after all."""

from __future__ import annotations

import re

_FIELDS = (
    r"(?:first|last|given|family|middle|maiden|full|legal|preferred|sur|fore)[ _-]?names?|surname|forename"
    r"|(?:customer|client|passenger|patient|guest|employee|driver|rider|recipient|sender|contact|cardholder"
    r"|account[ _-]?holder|owner|beneficiary|author|student|teacher|attendee|buyer|seller|tenant|signatory"
    r"|emergency[ _-]?contact)[ _-]?name"
    r"|vorname|nachname|familienname|nombre[ _-]?completo|apellidos?|pr[ée]nom|nom[ _-]de[ _-]famille"
    r"|cognome|nome[ _-]completo|sobrenome|voornaam|achternaam|imi[ęe]|nazwisko|förnamn|efternamn|fornavn|etternavn"
)
IN_FIELDS = ("name", "nombre", "apellido", "nom", "naam", "namn", "navn", "imi", "nazwisko")
"""One of these is in every such field."""
_ROLES = (
    "account holder", "account-holder", "account_holder", "applicant", "assignee", "attendee", "attn", "author",
    "beneficiary", "buyer", "caller", "candidate", "cardholder", "client", "contact", "contact person", "customer",
    "defendant", "driver", "emergency contact", "emergency_contact", "employee", "guest", "instructor", "landlord",
    "next of kin", "passenger", "passengers", "patient", "payee", "payer", "plaintiff", "recipient", "reporter",
    "resident", "reviewer", "rider", "seller", "sender", "signatory", "signed", "signed by", "signed-off-by",
    "speaker", "student", "teacher", "tenant", "traveler", "traveller", "visitor",
)  # fmt: skip
_RELATIVES = (
    "accountant", "assistant", "aunt", "boss", "brother", "colleague", "cousin", "daughter", "doctor", "father",
    "fiance", "fiancé", "fiancée", "friend", "grandfather", "grandmother", "husband", "lawyer", "manager", "mother",
    "neighbor", "neighbour", "nephew", "niece", "partner", "roommate", "sister", "son", "spouse", "uncle", "wife",
)  # fmt: skip
_TITLES = (
    "Capt", "Captain", "Dame", "Dhr", "Dott", "Dottoressa", "Dr", "Frau", "Fru", "Herr", "Judge", "Lt", "Madame",
    "Meneer", "Mevr", "Mevrouw", "Miss", "Mlle", "Mme", "Monsieur", "Mr", "Mrs", "Ms", "Mx", "Officer", "Pan", "Pani",
    "Prof", "Professor", "Rev", "Senator", "Senor", "Senora", "Señor", "Señora", "Sgt", "Sig", "Signor", "Signora",
    "Sir", "Sr", "Sra", "Srta",
)  # fmt: skip
_SPEECH = (
    "my name is", "my name's", "my full name is", "my legal name is", "name's", "name is", "i am called", "call me",
    "i go by", "made out to", "addressed to", "on behalf of", "in the name of", "registered to", "issued to",
    "booked for", "booked by", "speaking to", "speaking with", "mein name ist", "ich heiße", "ich heisse", "me llamo",
    "mi nombre es", "m'appelle", "m’appelle", "mon nom est", "mi chiamo", "il mio nome è", "meu nome é", "me chamo",
    "ik heet", "mijn naam is", "nazywam się", "mam na imię", "jag heter", "mitt namn är", "jeg hedder", "jeg heter",
    "nimeni on", "jmenuji se", "benim adım", "adım", "меня зовут", "моё имя",
)  # fmt: skip
_SIGNED = (
    "regards", "best wishes", "many thanks", "thanks", "best", "sincerely", "sincerely yours", "yours truly",
    "yours sincerely", "yours faithfully", "respectfully", "cheers", "thank you", "grüßen", "gruessen", "grüße",
    "gruesse", "gruß", "cordialement", "bien à vous", "un saludo", "saludos", "saludos cordiales", "atentamente",
    "atenciosamente", "cordiali saluti", "groet", "groeten", "hälsningar", "pozdrawiam",
)  # fmt: skip
_GREETINGS = (
    "hi", "hello", "hey", "dear", "hallo", "liebe", "lieber", "hola", "bonjour", "ciao", "olá", "good morning",
    "good afternoon", "good evening", "thanks", "thank you", "cheers", "regards",
)  # fmt: skip
_PRESENTED = (
    "this is", "i am", "i'm", "i’m", "it's", "it’s", "ich bin", "soy", "je suis", "sono", "sou", "ik ben",
)  # fmt: skip


def _any_of(phrases: tuple[str, ...]) -> str:
    return "|".join(re.escape(phrase) for phrase in sorted(phrases, key=len, reverse=True))


FIELD = re.compile(rf"(?i)(?<![a-z])(?:{_FIELDS})[\"']?\]?[ ]?(?:=>|[:=])[ ]{{0,3}}")
"""A field that holds a name: `"last_name": `, `surname=`."""
FIELD_VALUE = re.compile(
    r"\"(?P<quoted>[^\"\n]{2,60})\"|'(?P<single>[^'\n]{2,60})'(?!\w)"
    r"|(?P<bare>[^\W\d_][^\n\"'`,;:=|<>(){}\[\]&]{1,40}?)(?=[ ]*(?:[\n,;|&)\]}]|\Z))"
)
SAID = re.compile(
    rf"(?<!\w)(?:(?P<strong>(?:{_any_of(_TITLES)})\.?[ ](?:(?:Dr|Prof|Ing)\.?[ ])?"
    rf"|(?i:{_any_of(_SPEECH)})[ ]?[:,]?[ ]?[\"'(]?"
    rf"|(?i:{_any_of(_ROLES)})[\"']?(?:[ ]name)?[ ]?(?:=>|[:=])[ ]?[\"']?"
    rf"|(?i:my|his|her|our|their|your|the)[ ](?:[a-z]+[ ])?(?:{_any_of(_RELATIVES + _ROLES)})(?:[ ]is|,)?[ ]"
    rf"|(?i:{_any_of(_SIGNED)})[,.!]?(?:\n[ >]*){{1,2}})"
    rf"|(?P<weak>(?i:{_any_of(_GREETINGS)})[ ,]{{1,2}}|(?i:{_any_of(_PRESENTED + _ROLES)})[ ]))\Z"
)
"""Words before a name. After weak ones a single word must be a known given name."""
LONGEST_SAID = 48
"""Characters of them."""
_PHRASES = (*_TITLES, *_SPEECH, *_ROLES, *_RELATIVES, *_SIGNED, *_GREETINGS, *_PRESENTED, "Ing", "name", "is")
LAST_WORDS = frozenset(re.findall(r"[^\W\d_]+", phrase)[-1].lower() for phrase in _PHRASES)
"""Every word that can be the last before a name."""

SIFT = (
    rf"(?i)(?:{_FIELDS})[\"' \]]{{0,12}}(?:=>|[:=])|(?:^|\W)(?:{_any_of(_TITLES)})\W"
    rf"|(?:^|\W)(?:{_any_of((*_SPEECH, *_ROLES, *_RELATIVES, *_SIGNED, *_GREETINGS, *_PRESENTED))})[ ,.!:=\"']"
)
"""What `FIELD` or `SAID` matches in a padded column (RE2)."""

ARTICLE = re.compile(
    r"(?i)(?:\b(?:the|a|an|this|that|these|our|your|its|each|every|any|der|die|das|le|la|les|el|los|las|il)"
    r"|[=@#/$%])[ ]\Z"
)
"""Before what is no name of a person."""
BEGINS = re.compile(r"(?:[\"'`,\t|(]|(?<!_[0-9a-f]{8})>|\A|^|\n|[:=]) ?\Z")
"""Before a cell, a string or the value of a field."""
ENDS = re.compile(r"[.;]? ?(?:[\"'`,\t|)]|</|\n|\Z)")
"""After one."""
NAME_KEY = re.compile(r"(?i)(?<![a-z])names?[\"']?\]? ?(?:=>|[:=]) ?[\"']?\Z")
"""Before what is called a name, of whatever."""
AFTER = re.compile(r"[ ]?(?:\(\)|=[^=]|\(self|::)")
"""After what is code."""

NO_VALUES = frozenset(
    {
        "admin", "anonymous", "example", "false", "first", "last", "name", "names", "nil", "none", "null", "optional",
        "redacted", "required", "root", "str", "string", "test", "text", "true", "undefined", "unknown", "user",
        "varchar",
    }
)  # fmt: skip
"""What fields for names hold where it is no name."""
PRODUCTS = frozenset(
    {
        "ada", "adam", "alexa", "altair", "athena", "aurora", "bard", "bert", "cassandra", "celery", "claude",
        "crystal", "dall", "devin", "django", "elixir", "ernie", "felix", "florence", "gemini", "gemma", "goose",
        "haskell", "hermes", "hugo", "iris", "jade", "jenkins", "julia", "jupyter", "kafka", "luna", "maven", "maya",
        "merlin", "milo", "mistral", "nova", "orion", "otto", "pascal", "perl", "phoenix", "qwen", "ruby", "selenium",
        "siri", "stella", "swagger", "titan", "vega", "vite", "watson",
    }
)  # fmt: skip
"""Models, languages and programs that are called like people."""
TERMS = frozenset(
    {
        "account", "api", "app", "appendix", "apps", "april", "august", "auth", "backend", "blog", "boolean", "bot",
        "branch", "bucket", "bug", "build", "button", "cache", "cell", "chapter", "checkbox", "chrome", "cli",
        "codebase", "color", "column", "commit", "config", "cron", "css", "csv", "dashboard", "dataset", "datasets",
        "dev", "docker", "dropdown", "edge", "email", "endpoint", "enum", "env", "error", "february", "field", "figure",
        "file", "firefox", "folder", "font", "form", "friday", "frontend", "github", "google", "height", "homepage",
        "html", "http", "https", "icon", "image", "inbox", "index", "info", "init", "input", "int", "issue", "item",
        "january", "java", "json", "july", "june", "key", "kubernetes", "label", "laptop", "line", "link", "lint",
        "linux", "list", "login", "logout", "mac", "march", "markdown", "max", "may", "menu", "merge", "metadata",
        "middleware", "min", "mode", "monday", "namespace", "note", "november", "null", "numpy", "october", "offline",
        "okay", "online", "optimizer", "output", "page", "pandas", "param", "params", "part", "password", "path",
        "payload", "pip", "pipeline", "plugin", "plugins", "popup", "postgres", "pytest", "python", "pytorch", "readme",
        "redis", "release", "repo", "rest", "row", "runtime", "safari", "saturday", "schema", "screenshot", "sdk",
        "section", "september", "setup", "sidebar", "signup", "size", "sql", "sqlite", "stderr", "stdin", "stdout",
        "step", "string", "sunday", "svg", "tab", "table", "task", "tensorflow", "test", "thursday", "timestamp",
        "title", "todo", "token", "tokens", "toolbar", "tuesday", "ubuntu", "unix", "uri", "url", "user", "username",
        "utc", "uuid", "value", "version", "video", "view", "webhook", "website", "wednesday", "widget", "width",
        "wiki", "wikipedia", "windows", "workflow", "workspace", "xml", "yaml",
    }
)  # fmt: skip
"""Words of screens, code and calendars that are no part of a name, whether or not a dictionary has them."""
THINGS = frozenset(
    {
        "academy", "airlines", "airport", "airways", "algorithm", "arena", "ave", "avenue", "award", "bank", "bay",
        "beach", "boulevard", "bridge", "building", "castle", "cathedral", "center", "centre", "church", "city", "co",
        "college", "company", "corp", "corporation", "county", "court", "distribution", "district", "drive", "effect",
        "equation", "estimator", "festival", "foundation", "function", "fund", "gallery", "gardens", "gmbh", "group",
        "hall", "high", "hospital", "hotel", "house", "inc", "inn", "institute", "international", "island", "islands",
        "lab", "labs", "lake", "lane", "law", "library", "limited", "llc", "ltd", "mall", "market", "matrix", "method",
        "model", "mountain", "museum", "national", "palace", "park", "parkway", "place", "plaza", "press", "prize",
        "process", "province", "railway", "resort", "restaurant", "river", "road", "rule", "school", "sequence",
        "square", "stadium", "state", "states", "station", "street", "studios", "temple", "terminal", "test", "theatre",
        "theorem", "tower", "transform", "trust", "university", "valley", "village", "zoo",
    }
)  # fmt: skip
"""After a name, what makes a place, a company or a piece of mathematics of it."""
