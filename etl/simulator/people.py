"""Customers: names, places, numbers and dates as they are written in a dozen countries.

The pools come from mimesis, once a process and always the same; a person is drawn from them by the situation's own
random numbers.
"""

from __future__ import annotations

import functools
import unicodedata
from datetime import date, timedelta
from random import Random  # noqa: TID251  (the simulator is random, from its seed alone)
from typing import NamedTuple

POOL = 160
"""Names, streets and towns kept for each country."""
_MAIL = ("example.com", "example.org", "example.net", "mail.example", "post.example", "inbox.example")
_EPOCH = date(2026, 1, 5)


class Country(NamedTuple):
    """How one country writes."""

    locale: str
    date_format: str
    currency: str
    decimal: str
    hello: tuple[str, ...]
    bye: tuple[str, ...]
    phone: str
    """`#` is a digit."""


COUNTRIES = (
    Country("en", "%m/%d/%Y", "USD", ".", ("Hi", "Hello", "Hey there"), ("Thanks!", "Thank you"), "(###) ###-####"),
    Country("en-gb", "%d/%m/%Y", "GBP", ".", ("Hello", "Hi there", "Good morning"), ("Cheers", "Ta"), "07### ######"),
    Country("de", "%d.%m.%Y", "EUR", ",", ("Hallo", "Guten Tag"), ("Danke!", "Vielen Dank"), "+49 1## #######"),
    Country("fr", "%d/%m/%Y", "EUR", ",", ("Bonjour", "Salut"), ("Merci !", "Merci d'avance"), "+33 6 ## ## ## ##"),
    Country("es", "%d/%m/%Y", "EUR", ",", ("Hola", "Buenos días"), ("Gracias", "¡Muchas gracias!"), "+34 6## ### ###"),
    Country("it", "%d/%m/%Y", "EUR", ",", ("Ciao", "Buongiorno"), ("Grazie", "Grazie mille"), "+39 3## #######"),
    Country("nl", "%d-%m-%Y", "EUR", ",", ("Hoi", "Goedemiddag"), ("Bedankt", "Alvast bedankt"), "+31 6 ########"),
    Country("pl", "%d.%m.%Y", "PLN", ",", ("Cześć", "Dzień dobry"), ("Dzięki", "Pozdrawiam"), "+48 ### ### ###"),
    Country("pt-br", "%d/%m/%Y", "BRL", ",", ("Oi", "Olá", "Bom dia"), ("Obrigado", "Valeu!"), "(##) 9####-####"),
    Country("sv", "%Y-%m-%d", "SEK", ",", ("Hej", "God dag"), ("Tack!", "Tack på förhand"), "07#-### ## ##"),
    Country("tr", "%d.%m.%Y", "TRY", ",", ("Merhaba", "Selam"), ("Teşekkürler", "Sağ olun"), "+90 5## ### ## ##"),
    Country("ja", "%Y/%m/%d", "JPY", ".", ("こんにちは", "Hello"), ("ありがとう", "Thank you"), "090-####-####"),
)


class Person(NamedTuple):
    """Somebody who asks."""

    country: Country
    given: str
    family: str
    email: str
    phone: str
    city: str
    street: str
    today: date
    """The day of the conversation in the fake world."""

    @property
    def name(self) -> str:
        """The full name, in the order of the country."""
        return f"{self.family} {self.given}" if self.country.locale == "ja" else f"{self.given} {self.family}"

    def date(self, day: date) -> str:
        """A day as this person writes it."""
        return day.strftime(self.country.date_format)

    def money(self, amount: float) -> str:
        """An amount with the currency of the country."""
        return f"{amount:.2f}".replace(".", self.country.decimal) + f" {self.country.currency}"


class _Pool(NamedTuple):
    given: tuple[str, ...]
    family: tuple[str, ...]
    city: tuple[str, ...]
    street: tuple[str, ...]
    latin: tuple[tuple[str, ...], tuple[str, ...]]


@functools.cache
def _pool(locale: str) -> _Pool:
    from mimesis import Address, Person as People  # isort: skip
    from mimesis.locales import Locale

    people, places = People(Locale(locale), seed=7), Address(Locale(locale), seed=7)
    given = tuple(people.first_name() for _ in range(POOL))
    family = tuple(people.last_name() for _ in range(POOL))
    latin = (tuple(map(_latin, given)), tuple(map(_latin, family)))
    return _Pool(
        given,
        family,
        tuple(places.city() for _ in range(POOL)),
        tuple(places.street_name() for _ in range(POOL)),
        latin,
    )


def latin(who: Person) -> tuple[str, str]:
    """Given name and family name in plain letters, as they stand in user names."""
    return _latin(who.given) or "guest", _latin(who.family) or "user"


def new_street(locale: str, rng: Random) -> str:
    """Some street and number of a country."""
    return f"{_pool(locale).street[int(rng.random() * POOL)]} {int(rng.random() * 180) + 1}"


def person(rng: Random) -> Person:
    """A person."""
    country = COUNTRIES[int(rng.random() * len(COUNTRIES))]
    pool = _pool(country.locale)
    first, last = int(rng.random() * POOL), int(rng.random() * POOL)
    handle = ".".join(part for part in (pool.latin[0][first], pool.latin[1][last]) if part) or "guest"
    email = f"{handle}{int(rng.random() * 90) + 10}@{_MAIL[int(rng.random() * len(_MAIL))]}"
    digits = f"{int(rng.random() * 10**12):012d}"
    place = iter(digits)
    phone = "".join(next(place) if char == "#" else char for char in country.phone)
    today = _EPOCH + timedelta(days=int(rng.random() * 300))
    city = pool.city[int(rng.random() * POOL)]
    return Person(
        country, pool.given[first], pool.family[last], email, phone, city, new_street(country.locale, rng), today
    )


def _latin(name: str) -> str:
    plain = unicodedata.normalize("NFKD", name.translate(str.maketrans("łŁıøØß", "lLioOs")))
    return "".join(char for char in plain.lower() if char.isascii() and char.isalnum())
