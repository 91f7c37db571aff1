"""Personal data: found by form and check digit, named the same wherever it stands, and nothing else touched."""

import json
import random
import stat

import pytest
from hypothesis import given
from hypothesis import strategies as st
from stdnum import iban, luhn

import etl as product
from etl.errors import UsageError
from etl.keys import given_key, kept_key
from etl.redact import Redactor
from tests.lakes import NOW, rows

KEY = b"a key of the tests, 32 bytes long"
PII = Redactor("pii", KEY)


def _kinds(text):
    return set(PII.text(text)[1])


def _card(prefix, length, chance):
    body = prefix + "".join(chance.choice("0123456789") for _ in range(length - len(prefix) - 1))
    return body + luhn.calc_check_digit(body)


def _made(count=250):
    """Values of each kind with their text around them, seeded: (kind, text)."""
    chance = random.Random(7)
    made = []
    for _ in range(count):
        login = chance.choice(["jane.doe", "j_smith", "o'brien", "anna-lena", "müller", "x", "first.last+tag"])
        host = chance.choice(["example.com", "mail.example.org", "uni-köln.example.de", "corp.example.co.uk"])
        made.append(
            (
                "email",
                chance.choice(["Write to {}.", '{{"email": "{}"}}', "<{}>", "mailto:{}", "a={}&b=1"]).format(
                    f"{login}@{host}"
                ),
            )
        )
        number = chance.choice(
            [
                f"+1 {chance.randint(201, 989)}-{chance.randint(200, 999)}-{chance.randint(1000, 9999)}",
                f"({chance.randint(201, 989)}) {chance.randint(200, 999)}-{chance.randint(1000, 9999)}",
                f"+44 20 7{chance.randint(100, 999)} {chance.randint(1000, 9999)}",
                f"+49 30 {chance.randint(100000, 99999999)}",
                f"+33 6 {' '.join(str(chance.randint(10, 99)) for _ in range(4))}",
                f"+91 98{chance.randint(10000000, 99999999)}",
            ]
        )
        made.append(
            ("phone", chance.choice(["Call {} today.", '{{"tel": "{}"}}', "my number is {}", "{}"]).format(number))
        )
        prefix, length = chance.choice([("4", 16), ("52", 16), ("37", 15), ("6011", 16), ("3530", 16)])
        card = _card(prefix, length, chance)
        shown = chance.choice(
            [
                card,
                " ".join(card[i : i + 4] for i in range(0, len(card), 4)),
                "-".join(card[i : i + 4] for i in range(0, len(card), 4)),
            ]
        )
        made.append(("card", chance.choice(["Charge {} please", '{{"card": "{}"}}', "card={}"]).format(shown)))
        country, body = chance.choice(
            [
                ("DE", "".join(chance.choice("0123456789") for _ in range(18))),
                ("NL", "ABNA" + "".join(chance.choice("0123456789") for _ in range(10))),
            ]
        )
        whole = country + iban.calc_check_digits(f"{country}00{body}") + body
        if iban.is_valid(whole):
            shown = chance.choice([whole, " ".join(whole[i : i + 4] for i in range(0, len(whole), 4))])
            made.append(("iban", chance.choice(["IBAN {}.", '{{"iban": "{}"}}', "pay to {} now"]).format(shown)))
    return made


NOT_PERSONAL = [
    "icon@2x.png",
    "git@github.com:owner/name.git",
    "@app.route('/x') and @pytest.fixture",
    "lodash@4.17.21 and @types/node@20.1.0",
    "version 1.2.3.4 of build 10.20.30.40",
    "for example 203.0.113.7 or 2001:db8::1, section 3.2.1.4",
    "ssh app@node-1.example.org uptime; app@node-1:~$ scp a me@host.internal:/tmp",
    "127.0.0.1:8080, 10.1.2.3, 192.168.0.1, 0.0.0.0, 255.255.255.0",
    "at 12:34:56 or 2026-11-30T02:24:10.123Z, took 00:01:02",
    "550e8400-e29b-41d4-a716-446655440000",
    "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
    "call_8Zk2mQw1xY4vB7nC9dE0fG3h, toolu_01ABCDEFGHJKMNPQRSTVWXYZ",
    "order 1234567890123456, invoice 2026-000123, #W6619432",
    '{"created": 1772400000, "id": 99887766554433}',
    "1772400000123456789 ns, 3.14159265358979, 1e400",
    "pages 100-200-3000, range 10-20, 5 000 000 rows",
    "sku 978-3-16-148410-0, 12 345 678 visits",
    "AB12 CD34, GATE B22, flight HAT136 on seat 21F",
    "0x1234567890abcdef, 1234567890abcdef1234567890abcdef12345678",
    "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4",
    "SELECT * FROM t WHERE a = 4111 AND b BETWEEN 1111 AND 1111",
    "fe80::1, ::1, std::vector<int>, a::b::c, 1:2, Genesis 1:2-3",
    "total: 4155552671 rows",
    "systemctl restart getty@tty1.service, sshd@2.socket",
    '{"AssemblyVersion": "4.2.9.55"}, Chrome/120.0.0.0 Safari/537.36, pkg==1.2.3.4',
    "see section 4.3.2.1, driver version 10.20.30.41, net 37.7.200.0/24",
    "face::cafe and dead::beef of a language",
    '{"from": 1700000000, "to": 1700003600}, {"from": "2024-01-15", "to": "2024-02-15"}',
    "serial number 5729 9718 4258 1575, order number is 4528-1193-20",
    "sin(123456782) = 0.5; run 123456785 took 5 s; phone_id=123456789012",
    "pH = 14 - 1.38 = 12.62",
    "call 40: 08 00 27 e6 40 00 40 06 84 57 c0 a8 dd a4",
]


def test_what_has_the_form_is_found(thorough):
    made = _made() if thorough else _made()[::3]
    missed = [(kind, text) for kind, text in made if kind not in _kinds(text)]
    assert len(missed) / len(made) < 0.01, missed[:20]


@pytest.mark.parametrize("text", NOT_PERSONAL)
def test_what_only_looks_like_it_stays(text):
    assert PII.text(text) == (text, {})


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("81.2.69.142 asked", "ip"),
        ("My home IP is 2405:201:2564:aa2c:f20b:b914:687e:7001.", "ip"),
        ("EMAIL;TYPE=work:jane.roe@mail.example.io", "email"),
        ("ATTENDEE;RSVP=TRUE:mailto:jane.roe@mail.example.io", "email"),
        ("asked to be called back at 06 2766 0096 about ticket 18271", "phone"),
        ('{"To": "07496 169179", "Body": "Your table is ready"}', "phone"),
        ("電話 03-6502-0816", "phone"),
        ("id,bsn\n7247,178204675", "national_id"),
        ("name;pesel;city\nOla;62062221720;Gdansk", "national_id"),
        ("Agent: your SIN?\nCustomer: 280-067-885", "national_id"),
        ("The form asks for the TFN; I entered 179 007 053.", "national_id"),
        ('<label>PAN</label><input value="GXAPC5600A">', "national_id"),
        ("from 2a02:810d::8a2e:370:7334", "ip"),
        ("X-Forwarded-For: 89.160.20.112", "ip"),
        ("ssn 123-45-6789", "national_id"),
        ("CPF 529.982.247-25", "national_id"),
        ("DNI 54362315K", "national_id"),
        ("RCCMNL83S18D969H", "national_id"),
        ("Tel.: 030 901820", "phone"),
        ("mobile: 06 12 34 56 78", "phone"),
        ("https://x.example/?email=jane%40example.com", "email"),
    ],
)
def test_other_forms(text, kind):
    assert _kinds(text) == {kind}


def test_a_value_has_one_name_however_it_is_written():
    names = {PII.text(text)[0].strip() for text in ("+49 30 901820", "0049-30-901820", "+4930901820")}
    assert len(names) == 1
    assert PII.text("Jane@Example.com")[0] == PII.text("jane@example.com")[0]
    assert PII.text("jane@example.com")[0] != Redactor("pii", KEY * 2).text("jane@example.com")[0]


def test_json_stays_json_of_the_same_types():
    record = {"phone": 4155552671, "more": {"email": "a@b.example", "ids": [1, 22, 4111111111111111]}, "note": "ok"}
    masked = json.loads(PII.text(json.dumps(record))[0])
    assert masked["note"] == "ok"
    assert masked["more"]["email"].startswith("<EMAIL_")
    assert type(masked["phone"]) is int
    assert masked["phone"] != 4155552671
    nested = json.dumps({"arguments": json.dumps(record)})
    assert json.loads(json.loads(PII.text(nested)[0])["arguments"])["more"]["email"] == masked["more"]["email"]


PIECES = st.sampled_from(
    ["jane@example.com", "+1 415-555-2671", "4111 1111 1111 1111", "DE89370400440532013000", "81.2.69.142",
     "123-45-6789", " ", ",", '"', "\\n", "x", ":", "{", "}", "7", "é"]
)  # fmt: skip


@given(st.lists(PIECES, max_size=12).map("".join))
def test_masking_twice_is_masking_once(text):
    masked, _counts = PII.text(text)
    assert PII.text(masked) == (masked, {})


def test_a_lake_holds_none_of_it_and_joins_still_work(tmp_path, monkeypatch):
    monkeypatch.setattr("etl.keys.KEYS", tmp_path / "keys")
    values = ["jane.doe@example.com", "+1 415 555 2671", "4111 1111 1111 1111", "DE89370400440532013000"]
    call = {"id": "c1", "type": "function", "function": {"name": "find", "arguments": json.dumps({"email": values[0]})}}
    messages = [
        {"role": "user", "content": f"I am {' and '.join(values)}"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": json.dumps({"email": values[0].upper()})},
    ]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": messages}) + f'\n{{"torn": "{values[0]}\n')
    lake = tmp_path / "lake"
    for night in range(2):
        report = product.ingest([tmp_path / "log.jsonl"], lake=lake, now=NOW, redact="pii")
        assert bool(report.rows.added) == (night == 0)
    (row,) = rows(lake)
    mail = json.loads(row["steps"][0]["arguments"])["email"]
    assert mail in row["prompt"]
    assert json.loads(row["messages"][2]["content"])["email"] == mail
    assert json.loads(row["redactions"]) == {"card": 1, "email": 3, "iban": 1, "phone": 1}
    for path in lake.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            assert not any(value.encode() in data for value in values), path
    (key,) = (tmp_path / "keys").iterdir()
    assert stat.S_IMODE(key.stat().st_mode) == 0o600


def test_keys_are_kept_given_or_refused(tmp_path):
    assert kept_key("lake", tmp_path) == kept_key("lake", tmp_path) != kept_key("other", tmp_path)
    for wrong in ("", "short"):
        with pytest.raises(UsageError, match="at least 16"):
            given_key(wrong)
    with pytest.raises(UsageError, match="needs a key"):
        Redactor("pii")
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be kept there"):
        kept_key("lake", tmp_path / "file")


def test_what_is_written_nowhere_leaves_no_key(tmp_path, monkeypatch):
    """A dry run, with and without a lake, and a simulation in memory."""
    monkeypatch.setattr("etl.keys.KEYS", tmp_path / "keys")
    said = [{"role": "user", "content": "I am jane.doe@example.com"}, {"role": "assistant", "content": "Hi."}]
    (tmp_path / "log.jsonl").write_text(json.dumps({"messages": said}))
    for lake in (tmp_path / "none", tmp_path / "lake"):
        if lake.name == "lake":
            product.ingest([tmp_path / "log.jsonl"], lake=lake, now=NOW, redact="none")
        report = product.ingest([tmp_path / "log.jsonl"], lake=lake, now=NOW, redact="pii", dry_run=True, reparse=True)
        assert report.to_json()["records_in"] == 1

    @product.tool
    def get_order(order_id: str) -> dict:
        """Look up an order."""
        return {"order_id": order_id}

    made = product.simulate(
        product.seeded_agent([get_order]), system_prompt="Help.", tools=[get_order], mode="rl", repeats=1, budget=4,
        redact="pii",
    )  # fmt: skip
    assert len(made) == 4
    assert not (tmp_path / "keys").exists()
