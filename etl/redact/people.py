"""Names of people in Latin, Greek and Cyrillic letters: by what stands before them, by lists of names, by a model.

A candidate is a run of capitalised words. Something that says "a name follows" (a title, a greeting, a field such as
`last_name`) makes one of nearly any run; otherwise its words decide: a known given name with a surname that is no word
of the dictionary is a name wherever it stands, in code and tool output too. Only what is left undecided, and stands in
a sentence, is asked of the model: alone it takes `Max Width` and `addr = socket.gethostbyname(host)` for people.
A name that was found once in a text is found wherever the text repeats it.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from etl.redact import recognition
from etl.redact.anchors import around
from etl.redact.escapes import View
from etl.redact.families import Found
from etl.redact.name_cues import (
    AFTER,
    ARTICLE,
    BEGINS,
    ENDS,
    FIELD,
    FIELD_VALUE,
    IN_FIELDS,
    LAST_WORDS,
    LONGEST_SAID,
    NAME_KEY,
    NO_VALUES,
    PRODUCTS,
    SAID,
    TERMS,
    THINGS,
)
from etl.redact.name_forms import CAPITAL, NAME, OF_NAMES, PARTICLES, RUN, WORD
from etl.redact.name_lists import name_lists

VERSION = "people-1"
"""Changes when one of these rules does."""

_UNIT = re.compile(r"[^\n\t\"`<>{}|\\\[\]]+")
"""What a sentence may stand in: a line, a JSON string, a cell."""
_SENTENCE_END = re.compile(r"(?<=[a-z0-9)]{2}[.!?]) +(?=[A-Z])")
_LOWER_WORD = re.compile(r"(?<![\w./-])[a-z]{2,}(?![\w/=(])")
_LEAST_WORDS = 2
"""Words of the model's language that a sentence has beside a name."""
_MOST_ASKED = 64
"""Sentences of one text that the model is asked about; where there are more, the others are taken for names."""
_BEFORE = re.compile(r"([^\W\d_]{1,16})[^\w]{0,6}\Z")
_NEAR = 24
"""Characters before a name that hold the last word before it."""
_USUAL = 3
"""A given name in so many countries is one even where a dictionary knows the word."""


class _Word(NamedTuple):
    text: str
    start: int
    end: int
    is_name_part: bool
    """False for a particle and an initial."""


def found(view: View) -> Iterator[Found]:
    """The names of people in a view."""
    text = view.flat
    spans = {*_in_fields(view), *_after_cues(text), *_by_their_words(text)}
    names = {text[start:end] for start, end in spans if " " in text[start:end]}
    for name in names:
        spans.update(_repeated(text, name))
    for start, end in sorted(spans):
        yield "person", start, end, " ".join(text[start:end].split()).casefold()


def _repeated(text: str, name: str) -> Iterator[tuple[int, int]]:
    place = text.find(name)
    while place >= 0:
        end = place + len(name)
        if not (text[place - 1 : place].isalnum() or text[end : end + 1].isalnum()):
            yield place, end
        place = text.find(name, end)


def _in_fields(view: View) -> Iterator[tuple[int, int]]:
    """`"last_name": "Okonkwo"`, `passenger=…`: fields that hold names, and nothing else."""
    text = view.flat
    for match in around(view, IN_FIELDS, FIELD):
        value = FIELD_VALUE.match(text, match.end())
        if not value:
            continue
        group = "quoted" if value["quoted"] is not None else "single" if value["single"] is not None else "bare"
        said = value[group].rstrip()
        words = said.lower().split()
        if not words or not WORD.fullmatch(said) or any(word in NO_VALUES for word in words):
            continue
        if (not said[0].isupper() and (group == "bare" or all(map(_is_plain, words)))) or all(map(_is_term, words)):
            continue
        yield value.start(group), value.start(group) + len(said)


def _after_cues(text: str) -> Iterator[tuple[int, int]]:
    """`Mr. …`, `my name is …`, `Dear …`: what follows is a name unless all of it is plain words."""
    for begin in CAPITAL.finditer(text):
        start = begin.start()
        before = _BEFORE.search(text, max(0, start - _NEAR), start)
        if not before or before[1].lower() not in LAST_WORDS:
            continue
        match = SAID.search(text, max(0, start - LONGEST_SAID), start)
        name = NAME.match(text, start) if match else None
        if not match or not name:
            continue
        words = _words(text, *name.span())
        while len(words) > 2 and _is_plain(words[-1].text):
            words.pop()
        if not words or _is_product(words):
            continue
        heads = [word for word in words if word.is_name_part]
        alone = match.lastgroup == "weak" and len(heads) == 1
        if all(_is_plain(word.text) for word in heads) or (alone and not name_lists().given[heads[0].text.lower()]):
            continue
        if len(heads) > 1 and _is_term(heads[-1].text) and _is_plain(heads[0].text):
            continue
        yield words[0].start, words[-1].end


def _by_their_words(text: str) -> Iterator[tuple[int, int]]:
    asks = iter(range(_MOST_ASKED))
    for match in RUN.finditer(text):
        if AFTER.match(text, match.end()):
            continue
        words = _words(text, *match.span())
        first = 0
        while first < len(words) - 1:
            last = None if _leads_in(words, first) else _last_of_name(words, first)
            if last and not _is_thing(words, last) and _is_name(text, words[first : last + 1], asks):
                yield words[first].start, words[last].end
                first = last
            first += 1


def _words(text: str, start: int, end: int) -> list[_Word]:
    """The words of a run; initials and particles at its end are none of a name."""
    words = [
        _Word(part.group(), start + part.start(), start + part.end(), _is_name_part(part.group()))
        for part in re.finditer(r"\S+", text[start:end])
    ]
    while words and not words[-1].is_name_part:
        words.pop()
    return words


def _is_name_part(word: str) -> bool:
    return len(word.rstrip(".")) > 1 and word not in PARTICLES


def _last_of_name(words: Sequence[_Word], first: int) -> int | None:
    """Where the name ends that may begin at a word: initials, particles and further names follow it."""
    if not words[first].is_name_part:
        return None
    last = None
    for at in range(first + 1, min(first + 7, len(words))):
        if not words[at].is_name_part:
            continue
        if last is not None and _surname(words[at].text) < 2 and words[at - 1].is_name_part:
            break
        last = at
        if _surname(words[at].text) == 0:
            break
    return last


def _leads_in(words: Sequence[_Word], first: int) -> bool:
    """`Ask Anneke Castellano`: a word of the dictionary before a given name that has a surname."""
    return (
        first + 2 < len(words)
        and _given(words[first].text) < 2
        and words[first + 1].is_name_part
        and _given(words[first + 1].text) == 2
    )


def _is_thing(words: Sequence[_Word], last: int) -> bool:
    """Of a street, a company, a theorem: the word after the name says so."""
    return last + 1 < len(words) and words[last + 1].text.lower().rstrip(".") in THINGS


def _is_name(text: str, words: Sequence[_Word], asks: Iterator[int]) -> bool:
    heads = [word.text for word in words if word.is_name_part]
    whole = " ".join(word.text for word in words).lower()
    places = name_lists().places
    if (
        whole in places
        or {heads[0].lower(), heads[-1].lower()} <= places
        or _is_product(words)
        or heads[-1].lower() in THINGS
    ):
        return False
    given, surname = _given(heads[0]), max(_surname(head) for head in heads[1:])
    usual = name_lists().given[heads[0].lower()]
    has_particle = any(word.text in OF_NAMES for word in words)
    if given and (surname == 3 or has_particle or (surname == 1 and usual >= _USUAL)):
        return True
    if given == 2 and surname == 2 and usual >= _USUAL:
        return True
    start, end = words[0].start, words[-1].end
    is_new = given == 0 and (surname >= 2 or has_particle) and not _is_plain(heads[0])
    if _stands_alone(text, start, end):
        is_called_so = has_particle or bool(NAME_KEY.search(text, max(0, start - 24), start))
        no_verb = heads[0].lower() not in recognition.words().others
        return given == 2 or (is_new and is_called_so) or bool(given and surname and no_verb)
    if ARTICLE.search(text, max(0, start - 12), start):
        return False
    undecided = is_new or given == 2 or surname == 3 or (given == 1 and surname == 2 and usual >= _USUAL)
    sentence = _sentence_around(text, start, end) if undecided else None
    if sentence is None or not _is_prose(sentence, start, end):
        return False
    if (given == 2 and surname == 2) or next(asks, None) is None:
        return True
    return _model_says_so(sentence, start, end)


def _stands_alone(text: str, start: int, end: int) -> bool:
    """Whether a cell, a string or the value of a field is the name and no more."""
    return bool(BEGINS.search(text, max(0, start - 4), start) and ENDS.match(text, end))


@functools.lru_cache(1 << 16)
def _given(word: str) -> int:
    """How sure it is that a word is a given name: 2, 1 where it is a word of the dictionary too, 0."""
    name = word.lower()
    usual = name_lists().given[name]
    if not usual and "-" in name:
        return max(_given(part) for part in name.split("-") if part)
    known = recognition.words()
    if not usual or name in TERMS or name in known.empty:
        return 0
    if name in known.others or (name in known.nouns and usual < _USUAL):
        return 1
    return 1 if name in PRODUCTS else 2


@functools.lru_cache(1 << 16)
def _surname(word: str) -> int:
    """How sure it is that a word is a surname: 3 for a known one, 2 for no word at all, 1 for both, 0 for a word."""
    known = any(part in name_lists().surnames for part in {word.lower(), *word.lower().split("-")})
    if _is_term(word):
        return 0
    if _is_plain(word):
        return 1 if known else 0
    return 3 if known else 2


@functools.lru_cache(1 << 16)
def _is_plain(word: str) -> bool:
    """A word of the dictionary, or several of them with hyphens between."""
    parts = [part for part in re.split(r"[-'’.]", word) if part]
    return all(_is_term(part) or recognition.is_word(part.lower()) for part in parts)


def _is_term(word: str) -> bool:
    return word.lower() in TERMS


def _is_product(words: Sequence[_Word]) -> bool:
    """`Claude Sonnet`, `Gemini`: models and machines with names of people, alone or before plain words."""
    rest = [word.text for word in words[1:] if word.is_name_part]
    return words[0].text.lower() in PRODUCTS and all(map(_is_plain, rest))


class _Sentence(NamedTuple):
    text: str
    start: int


def _sentence_around(text: str, start: int, end: int) -> _Sentence | None:
    """The sentence in which a name stands; None where there is none, or it is a table or a log."""
    low, high = max(0, start - recognition.LONGEST), min(len(text), end + recognition.LONGEST)
    for unit in _UNIT.finditer(text, low, high):
        if unit.start() <= start and end <= unit.end():
            cuts = [unit.start(), *(m.end() for m in _SENTENCE_END.finditer(text, *unit.span())), unit.end()]
            first = max(cut for cut in cuts if cut <= start)
            last = min(cut for cut in cuts if cut >= end)
            return _Sentence(text[first:last], first) if last - first <= recognition.LONGEST else None
    return None


def _is_prose(sentence: _Sentence, start: int, end: int) -> bool:
    """Whether there is a sentence in the model's language around a name."""
    besides = sentence.text[: start - sentence.start] + " | " + sentence.text[end - sentence.start :]
    words = _LOWER_WORD.findall(besides)
    known = sum(map(recognition.is_english, words))
    return known >= _LEAST_WORDS and known * 4 >= len(words) * 3


def _model_says_so(sentence: _Sentence, start: int, end: int) -> bool:
    """Whether the model finds a person there."""
    first, last = start - sentence.start, end - sentence.start
    return any(
        min(last, stop) - max(first, begin) > (last - first) // 2 for begin, stop in recognition.persons(sentence.text)
    )
