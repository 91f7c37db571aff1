"""Every page of the browser, without one: who is answered, what is shown, what a label does."""

from __future__ import annotations

import html
import re
import shutil
from pathlib import Path

import pytest

from etl.lake import Lake
from etl.query import connect
from tests.lake.rows import put, rollout
from tests.pages.hostile import check_page, hostile_lake
from tests.query.support import add_files, attempts, make_lake, refund

pytest.importorskip("starlette", reason='the browser needs: pip install "rollout-etl[serve]"')
pytest.importorskip("httpx")

from starlette.testclient import TestClient

from etl.serve.app import application
from etl.serve.guard import Secret

PORT = 8642
HOME = f"http://127.0.0.1:{PORT}"


def client_of(lake: str | Path) -> tuple[TestClient, Secret]:
    """A browser that opened the printed address."""
    secret = Secret(PORT)
    client = TestClient(application(str(lake), secret), base_url=HOME, follow_redirects=True)
    assert client.get(f"/?token={secret.token}").status_code == 200
    return client, secret


def some_lake(folder: Path) -> Lake:
    """A conversation with failed calls, three attempts at a task, a reject."""
    made = make_lake(folder, [refund(), *attempts([1.0, 0.0, None], task="t_2", group="g_2", model="demo")])
    add_files(made, "/logs/a.jsonl")
    return made


@pytest.fixture(scope="module")
def read_only(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One that tests only read."""
    return Path(some_lake(tmp_path_factory.mktemp("read") / "lake").root)


@pytest.fixture
def lake(read_only: Path, tmp_path: Path) -> Lake:
    """One that a test may write to."""
    return Lake.open(shutil.copytree(read_only, tmp_path / "lake"))


@pytest.fixture(scope="module")
def client(read_only: Path) -> TestClient:
    """A browser of a lake that tests only read."""
    return client_of(read_only)[0]


PAGES = [
    "/rollouts",
    "/rollouts?page=7",
    f"/rollouts?page={'9' * 5000}",
    f"/rejects?page={'9' * 5000}",
    "/rollouts?text=refund&source=support&outcome=failed&day_from=2026-01-01&tool=refund&condition=permission_denied",
    "/rollouts?outcome=call+failed",
    "/rollouts/r_refund",
    "/rollouts/r_refund?from=2",
    "/rollouts/r_refund?from=-9",
    "/tasks/t_2",
    "/tasks/t_2?left=r_t_2_1&right=r_t_2_0",
    "/tasks/t_1",
    "/tools",
    "/coverage",
    "/rejects",
    "/rejects?reason=bad_json&source=support",
    "/rejects/x1",
    "/sql",
    "/sql?q=SELECT+rollout_id+FROM+rollouts",
    "/sql?q=DROP+VIEW+rollouts",
]


@pytest.mark.parametrize("address", PAGES)
def test_every_page_is_there(client: TestClient, address: str) -> None:
    answered = client.get(address)
    assert answered.status_code == 200
    check_page(answered.text)
    assert answered.headers["content-security-policy"].startswith("default-src 'none'")
    assert answered.headers["x-content-type-options"] == "nosniff"


@pytest.mark.parametrize(
    "address", ["/nothing", "/rollouts/nobody", "/tasks/nobody", "/rejects/nobody", "/rollouts/r_refund/messages/99"]
)
def test_what_is_not_there_is_said(client: TestClient, address: str) -> None:
    answered = client.get(address)
    assert answered.status_code == 404
    check_page(answered.text)


def test_nobody_is_answered_without_the_token(lake: Lake) -> None:
    secret = Secret(PORT)
    stranger = TestClient(application(lake.root, secret), base_url=HOME, follow_redirects=False)
    for address in ("/", "/rollouts", "/style.css", "/sql?q=SELECT+1", "/nothing"):
        assert stranger.get(address).status_code == 403
    assert stranger.get("/?token=guess").status_code == 403
    stranger.cookies.set(secret.cookie, "guess")
    assert stranger.get("/rollouts").status_code == 403


def test_the_token_becomes_a_cookie_that_no_other_site_can_use(lake: Lake) -> None:
    secret = Secret(PORT)
    browser = TestClient(application(lake.root, secret), base_url=HOME, follow_redirects=False)
    answered = browser.get(f"//evil.example/x?token={secret.token}&a=1".replace("//evil", "/evil"))
    assert answered.headers["location"] == "/evil.example/x?a=1"
    cookie = answered.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie


HOSTS = ["evil.example", "evil.example:8642", "127.0.0.1", "127.0.0.1:80", "", "localhost.evil:8642"]


@pytest.mark.parametrize("host", HOSTS)
def test_another_name_is_not_answered(client: TestClient, host: str) -> None:
    """A name of somebody else's that points here (DNS rebinding)."""
    assert client.get("/rollouts", headers={"host": host}).status_code == 421


def test_the_list_is_filtered(client: TestClient) -> None:
    def found(query: str) -> list[str]:
        return sorted(set(re.findall(r'href="/rollouts/(r_[^"?/]+)', client.get(f"/rollouts?{query}").text)))

    assert found("") == ["r_refund", "r_t_2_0", "r_t_2_1", "r_t_2_2"]
    assert found("tool=refund&condition=permission_denied") == ["r_refund"]
    assert found("tool=get_order&condition=permission_denied") == []
    assert found("text=REFUND+MY+ORDER") == ["r_refund"]
    assert found("outcome=call+failed") == ["r_refund"]
    assert found("flag=missing_result") == ["r_refund"]
    assert found("day_to=2025-01-01") == []
    assert found("source=it's+not+there") == []


@pytest.mark.parametrize(
    ("query", "said"),
    [
        ("sauce=traffic", "there is no filter 'sauce'"),
        ("outcome=splendid", "the filter outcome has no 'splendid'"),
        ("condition=rainy", "the filter condition has no 'rainy'"),
        ("day_from=yesterday", "'yesterday' is no day"),
        ("day_to=20260401", "'20260401' is no day"),
        ("page=two", "'two' is no number of a page"),
    ],
)
def test_a_filter_that_filters_nothing_is_told(client: TestClient, query: str, said: str) -> None:
    answer = client.get(f"/rollouts?{query}")
    assert answer.status_code == 400
    assert said in html.unescape(answer.text)


def test_pages_of_the_list_hold_every_row_once(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", [rollout(f"r_{number:03}") for number in range(120)])
    client, _ = client_of(lake.root)
    seen: list[str] = []
    for number in (1, 2, 3):
        text = client.get(f"/rollouts?page={number}").text
        seen += re.findall(r'href="/rollouts/(r_\d+)"', text)
        assert ("older</a>" in text) == (number < 3)
    assert seen == [f"r_{number:03}" for number in range(120)]


def test_attempts_are_compared_word_by_word(client: TestClient) -> None:
    text = client.get("/tasks/t_2").text
    assert "ask <del>r_t_2_0</del>" in text
    assert "ask <ins>r_t_2_2</ins>" in text
    assert text.count('type="radio"') == 6


def test_whole_texts_are_plain(client: TestClient) -> None:
    answered = client.get("/rollouts/r_refund/messages/3")
    assert answered.headers["content-type"].startswith("text/plain")
    assert answered.text == '{"status":"delivered"}'
    assert client.get("/rollouts/r_refund/steps/c1").text == '{"id":"W1"}'


def test_a_row_is_labelled_and_the_label_taken_back(lake: Lake) -> None:
    client, secret = client_of(lake.root)
    form = {"form_token": secret.form, "name": "quality", "label": "good", "value": "0.5", "reason": "polite"}
    answered = client.post("/rollouts/r_refund/label", data=form)
    assert answered.status_code == 200
    assert "quality: good" in check_page(answered.text)
    assert "quality: good" in client.get("/rollouts?outcome=labelled").text
    found = "SELECT j.* FROM rollouts, unnest(judgments) AS of_row(j)"
    (row,) = connect(lake.root).execute(found).fetchall()
    assert row == ("quality", "human", 0.5, "good", "labelled", "polite")
    put(lake, [refund(n_records=3, row_hash="grown")])
    assert "quality: good" in client.get("/rollouts/r_refund").text
    client.post("/rollouts/r_refund/label", data={"form_token": secret.form, "take_back": "quality"})
    assert connect(lake.root).execute(found).fetchall() == []


def test_a_label_needs_a_form_of_ours(lake: Lake) -> None:
    client, secret = client_of(lake.root)
    form = {"name": "quality", "label": "good"}
    assert client.post("/rollouts/r_refund/label", data=form).status_code == 403
    assert client.post("/rollouts/r_refund/label", data={**form, "form_token": "x"}).status_code == 403
    ours = {**form, "form_token": secret.form}
    elsewhere = {"origin": "http://evil.example"}
    assert client.post("/rollouts/r_refund/label", data=ours, headers=elsewhere).status_code == 403
    assert client.post("/rollouts/r_refund/label", data={**ours, "label": "", "value": ""}).status_code == 400
    assert client.post("/rollouts/r_refund/label", data={**ours, "value": "much"}).status_code == 400
    assert client.post("/rollouts/nobody/label", data=ours).status_code == 400
    assert client.post("/rollouts/r_refund/label", content=b"x" * 100_000).status_code == 413
    assert client.get("/rollouts/r_refund/label").status_code in (404, 405)
    assert connect(lake.root).execute("SELECT count(*) FROM rollouts WHERE len(judgments) > 0").fetchall() == [(0,)]


def test_what_is_ingested_meanwhile_is_seen(lake: Lake) -> None:
    client, _ = client_of(lake.root)
    assert client.get("/rollouts/r_new").status_code == 404
    put(lake, [rollout("r_new")])
    assert client.get("/rollouts/r_new").status_code == 200
    assert "5 conversations" in client.get("/rollouts").text


HOSTILE = [
    "/rollouts",
    "/rollouts/r_one",
    "/rollouts/r_two",
    "/tasks/t_%3Cone%3E",
    "/tools",
    "/coverage",
    "/rejects",
    "/rejects/x1",
    "/sql?q=FROM+messages",
    "/sql?q=SELECT+*+FROM+%22%3Cscript%3E",
    "/rollouts?source=%3Cb%3E%26%22'",
    "/rollouts?text=%3Cscript%3Ealert(1)",
    "/rollouts/%3Cscript%3E",
]


def test_a_hostile_lake_is_harmless_on_every_page(tmp_path: Path) -> None:
    lake = hostile_lake(tmp_path / "lake")
    client, _ = client_of(lake.root)
    for address in HOSTILE:
        answered = client.get(address)
        assert answered.status_code in (200, 404), address
        check_page(answered.text)
    assert "<script>alert(1)</script>" in check_page(client.get("/rollouts/r_one").text)
