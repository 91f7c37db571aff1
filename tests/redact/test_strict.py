"""Names of people and postal addresses: what is taken for one, what is not, and what holds whatever the text."""

from __future__ import annotations

import importlib.util
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import etl
from etl.errors import MissingExtraError
from etl.redact import Redactor, recognition
from etl.redact.search import Window, _spans, masked_texts
from tests.redact.fragments import shape

KEY = b"0123456789abcdef0123456789abcdef"
T = TypeVar("T", bound=Callable[..., None])
_LABEL = re.compile(r"<(PERSON|ADDRESS)_[0-9a-f]{8}>")

_HAS_EXTRA = importlib.util.find_spec("spacy") is not None and importlib.util.find_spec("faker") is not None


def with_the_extra(test: T) -> T:
    """Loading model and lists takes seconds."""
    marked: T = pytest.mark.slow(pytest.mark.skipif(not _HAS_EXTRA, reason="needs the extra `ner`")(test))
    return marked


PERSONS = [
    "My name is [Brunhilde Ackerknecht], and I lost my card.",
    "Hi, this is [Oluwaseun Adeyemi].",
    "Mr. [O'Malley-Prendergast] asked for a window seat.",
    "Ich heiße [Jürgen Weißenberger].",
    "Je m'appelle [Aurélie Charpentier].",
    '{"first_name": "[Xiomara]", "last_name": "[Quispe Mamani]"}',
    '{"first_name": "[xiomara]", "plan": "gold"}',
    'book_flight(passenger="[Wilhelmina van der Zandt]", seat="4C")',
    "id,full_name,plan\n17,[Rosamund Hetherington],pro\n18,[Edgar Nakagawa],free",
    "author:\n  name: [Solveig Bjornstad]",
    "Thank you for your help.\n\nKind regards,\n[Ignatius Fotheringay]",
    "[Priyanka Subramaniam] lives with [Tobias Winterbottom] since May.",
    "Ask [Ottoline Kowalska] from accounting to sign it.",
    "Пишу вам, меня зовут [Светлана Кузнецова].",
    "SELECT id FROM patients WHERE name = '[Zoltan Horvath]';",
]
NO_PERSONS = [
    "Set Max Width to 610 and Line Height to 1.5.",
    "Visual Studio Code, Rust Analyzer and Docker Compose are installed.",
    "Claude Opus answered faster than Gemini Flash; Claude agreed.",
    "The Gauss Seidel method and the Wilson interval converge.",
    "import pandas as pd\nclass MaryJaneParser(Parser): pass",
    '{"name": "code-reviewer", "model": "claude-sonnet", "title": "Getting Started"}',
    '{"type": "object", "properties": {"last_name": {"type": "string"}}, "required": ["first_name"]}',
    "SELECT first_name, last_name FROM users ORDER BY last_name;",
    "first_name: string\nlast_name: string",
    "Hello World! Dear Customer, Sign In or Create Account.",
    "We flew from San Jose to Buenos Aires and New York City.",
    "Bitte Rechnung an die Buchhaltung. Meine Anschrift hat sich geändert.",
    "at com.park.lane.Road.drive(Road.java:910)",
    "What is your full name and home address?",
]
ADDRESSES = [
    "Ship it to [1412 Sycamore Ave, Apt 3, Boise, ID 83715], please.",
    "I live at [Flat 2, 90 Beechcroft Avenue, Norwich NR16 2XS].",
    "Deliver to: [350 Broadway, New York, NY 10013]",
    "[5933 Granville Street, Toronto ON M5G 2M3]",
    "Meine Anschrift: [Lindenstraße 14b, 10969 Berlin].",
    "Wohnt in [Am Alten Markt 5, 50667 Köln].",
    "[12 bis, rue de la Paix, 75002 Paris]",
    "Vivo en [Calle del Olmo 94, 2º izq., 28012 Madrid]",
    "[Via Garibaldi 99, 50123 Firenze]",
    "[Rua Augusta, 385 - bloco B, São Paulo - SP, 01305-000]",
    "[Kerkstraat 155, 3581 CL Utrecht]",
    "[5-28-12 Kichijoji Honcho, Musashino-shi, Tokyo 180-0004]",
    "[61/5, 12th Main, Jayanagar, Bengaluru 560011]",
    "送り先は[東京都渋谷区神南1丁目19番11号]です",
    '{"shipping_address": "[Hof 7 am See]", "gift": true}',
    "[P.O. Box 4471, Springfield, IL 62704]",
]
NO_ADDRESSES = [
    "Room 506, floor 7, building B; Chapter 61 Page 440; Boeing 737 in row 66.",
    '{"address": {"type": "string", "description": "street and number"}}',
    '{"address": "0x52908400098527886E0F7030069857D2E4169EE7", "ip_address": "10.0.0.1"}',
    "addr = socket.gethostbyname(host)\naddress: 127.0.0.1:8080",
    "Write the file to src/Street/Avenue.java line 737.",
    "Version 3, 10000 rows; Section 4, 12345 tokens; 3 Easy Ways to 2 Bold Goals",
    "2024-01-15 12345 INFO Started 3 workers",
    "ring 5, markt 3, string 7, spring 10",
]


@pytest.fixture(scope="module")
def redactor() -> Redactor:
    return Redactor("strict", KEY)


def _marked(text: str) -> str:
    """The text with its stretches in brackets replaced by what a label becomes here."""
    return re.sub(r"\[[^\]]+\]", "<>", text)


def _bare(text: str) -> str:
    return re.sub(r"\[([^\]]+)\]", r"\1", text)


@with_the_extra
@pytest.mark.parametrize(
    ("text", "kind"), [*((text, "PERSON") for text in PERSONS), *((text, "ADDRESS") for text in ADDRESSES)]
)
def test_names_and_addresses_go_and_nothing_else(redactor: Redactor, text: str, kind: str) -> None:
    masked, counts = redactor.text(_bare(text))
    assert _LABEL.sub("<>", masked) == _marked(text)
    assert {match[1] for match in _LABEL.finditer(masked)} == {kind}
    assert counts == {kind.lower(): text.count("[")}
    assert redactor.text(masked) == (masked, {})


@with_the_extra
@pytest.mark.parametrize("text", [*NO_PERSONS, *NO_ADDRESSES])
def test_code_places_products_and_fields_stay(redactor: Redactor, text: str) -> None:
    assert redactor.text(text) == (text, {})


@with_the_extra
def test_a_name_has_one_label_wherever_it_stands(redactor: Redactor) -> None:
    (label,) = {match[0] for match in _LABEL.finditer(redactor.text("My name is Rosamund Hetherington.")[0])}
    call, _ = redactor.text(json.dumps({"passenger": "Rosamund  Hetherington", "note": "for ROSAMUND"}))
    again, _ = redactor.text("Mr. Smythe met Rosamund Hetherington; (rosamund.h) wrote: Rosamund Hetherington.")
    assert label not in call  # two spaces make another text of it: nothing says that it is a name
    assert again.count(label) == 2
    assert Redactor("strict", KEY[::-1]).text("My name is Rosamund Hetherington.")[0].count(label) == 0


@with_the_extra
def test_personal_data_and_secrets_go_as_under_pii(redactor: Redactor) -> None:
    text = "Mail brunhilde@ackerknecht.example, card 4111 1111 1111 1111, postgres://app:hunter2fake@db.example/x"
    assert redactor.text(text) == Redactor("pii", KEY).text(text)
    assert redactor.version.startswith(Redactor("pii", KEY).version + "+people-")


_WORDS = st.sampled_from(
    [
        *("Rosamund", "Hetherington", "Max", "Width", "Will", "Mr.", "my name is", "van der", "O'Malley", "Berlin"),
        *("1412", "Sycamore Ave", "Boise, ID 83715", "Lindenstraße 14", ", 10969", "rue de la Paix", "Calle", "Box 7"),
        *('"last_name": "', '"address": "', '", ', "\n", "\\n", '\\"', "the", "lives with", "<PERSON_0a1b2c3d>", "é"),
        *("{", "}", "Jürgen", "J\\u00fcrgen", "and", "123 ", "-", "Kind regards,\n", "Dear ", "東京都渋谷区1-2", "O."),
    ]
)
_texts = st.lists(st.one_of(_WORDS, st.text(max_size=4)), max_size=12).map(" ".join)


@with_the_extra
@settings(max_examples=60, deadline=None)
@given(_texts)
def test_masking_twice_is_masking_once(text: str) -> None:
    redactor = Redactor("strict", KEY)
    once, counts = redactor.text(text)
    assert redactor.text(once) == (once, {})
    assert bool(counts) == (once != text)


@with_the_extra
@settings(max_examples=40, deadline=None)
@given(st.dictionaries(st.sampled_from(["name", "last_name", "address", "note"]), _texts, max_size=3), st.booleans())
def test_json_keeps_its_shape(document: dict[str, str], ascii_only: bool) -> None:
    text = json.dumps(document, ensure_ascii=ascii_only)
    masked, _ = Redactor("strict", KEY).text(text)
    assert shape(json.loads(masked)) == shape(document)


@with_the_extra
@settings(max_examples=40, deadline=None)
@given(st.lists(_texts, max_size=8))
def test_sifting_a_column_finds_what_looking_at_every_text_finds(column: list[str]) -> None:
    personal = Redactor("strict", KEY)._personal
    found = masked_texts(pa.chunked_array([pa.array(column, pa.string())]), personal)
    for text in column:
        assert bool(list(_spans(Window(text, 0, text), personal))) == (text in found)


@with_the_extra
def test_an_ingest_applies_it_to_all_that_lands(tmp_path: Path) -> None:
    log = tmp_path / "log.jsonl"
    arguments = json.dumps({"passenger": "Edgar Nakagawa", "to": "1412 Sycamore Ave, Boise, ID 83715"})
    call = {"id": "c1", "type": "function", "function": {"name": "book", "arguments": arguments}}
    messages = [
        {"role": "user", "content": "My name is Edgar Nakagawa, book me a flight."},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "Booked for Edgar Nakagawa."},
    ]
    log.write_text(json.dumps({"id": "x", "messages": messages, "note": {"owner name": "Edgar Nakagawa"}}) + "\n{torn")
    etl.ingest([log], lake=tmp_path / "lake", redact="strict", pseudonym_key=KEY)
    (row,) = etl.scan(tmp_path / "lake").collect().to_dicts()
    labels = {match[0] for text in _strings(row) for match in _LABEL.finditer(text) if match[1] == "PERSON"}
    assert len(labels) == 1
    assert "Nakagawa" not in repr(row)
    assert json.loads(row["redactions"]) == {"address": 1, "person": 4}
    assert row["messages"][1]["tool_calls"][0]["function"]["name"] == "book"


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from _strings(item)


@with_the_extra
def test_who_asks_for_too_much_is_answered_in_time(redactor: Redactor) -> None:
    """The model is asked so often and no more, however many names a text may hold."""
    text = " ".join(f"She met Ghrtem{letter}a Vlonk{letter}u there." for letter in "abcdefghijklmnopqrstuvwxyz" * 12)
    recognition.persons.cache_clear()
    masked, _ = redactor.text(text)
    assert recognition.persons.cache_info().misses <= 64 * 8
    assert redactor.text(masked)[0] == masked


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    recognition._model_name.cache_clear()
    with pytest.raises(MissingExtraError, match=r'pip install "rollout-etl\[ner\]"$') as raised:
        etl.ingest([tmp_path], lake=tmp_path / "lake", redact="strict", pseudonym_key=KEY)
    assert "\n" not in str(raised.value)
    recognition._model_name.cache_clear()
