"""The browser in a real one: what a newcomer clicks, keys, colours, and hostile logs that stay text.

Needs Chromium with its driver (Debian: chromium, chromium-driver); each server and browser is ended by who started it.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.lakes import REPO
from tests.pages.hostile import hostile_lake

webdriver = pytest.importorskip("selenium.webdriver", reason="needs selenium (pip install selenium)")
waiting = pytest.importorskip("selenium.webdriver.support.ui")
pytest.importorskip("uvicorn", reason='needs: pip install "rollout-etl[serve]"')

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DRIVER = shutil.which("chromedriver")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not (CHROMIUM and DRIVER), reason="needs chromium and chromedriver (Debian: chromium-driver)"),
]
FLAGS = (
    "--headless=new --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-default-apps --window-size=1300,1000"
)

CONTRAST = """
const parse = (text) => { const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number); return {r, g, b, a}; };
const over = (top, under) => ({
  r: top.r * top.a + under.r * (1 - top.a), g: top.g * top.a + under.g * (1 - top.a),
  b: top.b * top.a + under.b * (1 - top.a), a: 1,
});
const light = ({r, g, b}) => {
  const [x, y, z] = [r, g, b].map((c) => c / 255).map((c) => (c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
  return 0.2126 * x + 0.7152 * y + 0.0722 * z;
};
const behind = (element) => {
  const layers = [];
  for (let e = element; e; e = e.parentElement) layers.push(parse(getComputedStyle(e).backgroundColor));
  return layers.reverse().reduce((under, top) => over(top, under), {r: 255, g: 255, b: 255, a: 1});
};
const poor = [];
for (const element of document.querySelectorAll("body *")) {
  if (![...element.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim())) continue;
  if (!element.checkVisibility() || element.closest("option, select, datalist")) continue;
  const style = getComputedStyle(element);
  const ink = parse(element instanceof SVGElement ? style.fill : style.color);
  let opacity = 1;
  for (let e = element; e; e = e.parentElement) opacity *= Number(getComputedStyle(e).opacity);
  if (opacity < 0.05) continue;
  const paper = behind(element);
  const [a, b] = [light(over({...ink, a: ink.a * opacity}, paper)), light(paper)];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(`${ratio.toFixed(2)} ${element.tagName} ${element.textContent.trim().slice(0, 30)}`);
}
return poor;
"""
"""WCAG contrast of every text with what is behind it; those under 4.5:1."""


@contextmanager
def serving(lake: Path) -> Iterator[str]:
    """`etl serve` as a process of its own; gives the address it prints."""
    command = [sys.executable, "-m", "etl", "serve", "--lake", str(lake), "--port", "0", "--json"]
    environment = {**os.environ, "PYTHONPATH": str(REPO)}
    with subprocess.Popen(command, cwd=lake.parent, env=environment, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            yield json.loads(server.stdout.readline())["address"]
        finally:
            server.terminate()
            server.wait(120)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in FLAGS.split():
        options.add_argument(flag)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))
    driver.set_page_load_timeout(60)
    try:
        yield driver
    finally:
        driver.quit()


@pytest.fixture(scope="module")
def lake(sample_lake: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("browser") / "lake"
    shutil.copytree(sample_lake, folder)
    return folder


@pytest.fixture(scope="module")
def address(lake: Path) -> Iterator[str]:
    with serving(lake) as printed:
        yield printed


def find(browser: Any, selector: str) -> Any:
    """The first element of a CSS selector, as soon as it is there."""
    return waiting.WebDriverWait(browser, 60).until(lambda it: it.find_element("css selector", selector))


def every(browser: Any, selector: str) -> list[Any]:
    """All of them."""
    found: list[Any] = browser.find_elements("css selector", selector)
    return found


def home(address: str) -> str:
    """The address without its token."""
    return address.partition("/?")[0]


def test_a_newcomer_finds_what_fails_and_what_nobody_has_covered(browser: Any, address: str) -> None:
    browser.get(address)
    assert "token" not in browser.current_url
    find(browser, "nav.main a[href='/tools']").click()
    worst = find(browser, "tbody tr")
    cells = [cell.text for cell in worst.find_elements("css selector", "th, td")]
    assert cells[0] == "bash"
    assert cells[1] == "agent"
    assert int(cells[3]) > 1
    assert cells[4].endswith(" %")
    assert "–" in cells[5], "the interval"
    worst.find_element("css selector", "td:last-child a").click()
    find(browser, "table.list tbody tr")
    conversations = [link.get_attribute("href") for link in every(browser, "table.list tbody td:nth-child(2) a")]
    assert len(conversations) >= 3
    for conversation in conversations[:3]:
        browser.get(conversation)
        failed = find(browser, ".call.failed")
        called, result = failed.find_elements("css selector", ":scope > div")
        assert called.location["x"] + called.size["width"] <= result.location["x"], "side by side"
        assert abs(called.location["y"] - result.location["y"]) < 5
    find(browser, "nav.main a[href='/coverage']").click()
    assert find(browser, "table.grid td.simulated, table.grid td.missing"), "the demo simulates what traffic lacks"
    assert "nobody has covered" in find(browser, "main").text
    gaps = every(browser, "h3 ~ div tbody tr")
    assert gaps
    assert all(row.text for row in gaps[:3])
    covered = find(browser, "table.grid td.thin a, table.grid td.traffic a")
    covered.click()
    assert find(browser, "table.list tbody tr")


def test_a_row_is_labelled(browser: Any, address: str) -> None:
    browser.get(address)
    find(browser, "table.list tbody td:nth-child(2) a").click()
    find(browser, "input[name=label]").send_keys("good")
    find(browser, "input[name=reason]").send_keys("<b>polite</b>")
    find(browser, "form.label button:not([name])").click()
    assert "quality: good" in find(browser, "#labels .tag").text
    assert "<b>polite</b>" in find(browser, "#labels").text
    find(browser, "#labels button[name=take_back]").click()
    waiting.WebDriverWait(browser, 60).until(lambda it: not every(it, "#labels .tag"))


def test_attempts_stand_beside_each_other(browser: Any, address: str) -> None:
    browser.get(address)
    asked = (
        "SELECT task_id FROM rollouts WHERE source = 'tau_bench' AND task_id IS NOT NULL "
        "GROUP BY task_id HAVING count(*) > 2 ORDER BY task_id LIMIT 1"
    )
    browser.get(f"{home(address)}/sql?q={asked}")
    find(browser, "tbody td a").click()
    find(browser, ".diff > .side")
    left, right = every(browser, ".diff > .side")[:2]
    assert left.location["y"] == right.location["y"]
    assert left.location["x"] < right.location["x"]
    assert every(browser, ".diff .side.changed")
    assert every(browser, ".diff del")


def test_the_box_for_sql_reads_and_does_nothing_else(browser: Any, address: str, lake: Path) -> None:
    browser.get(address)
    browser.get(f"{home(address)}/sql")
    picker = find(browser, "#question")
    picker.send_keys("Which tool fails most, and how often?")
    box = find(browser, "#q")
    assert "tool_rates" in box.get_attribute("value")
    box.send_keys("\ue009\ue007")  # Ctrl-Enter
    assert find(browser, "tbody tr")
    for attack in (
        "SELECT * FROM read_text('/etc/passwd')",
        f"COPY (SELECT 1) TO '{lake / 'out'}'",
        "DROP VIEW rollouts",
    ):
        browser.get(f"{home(address)}/sql?q={attack}")
        assert find(browser, "[role=alert]").text
        assert "root:" not in browser.page_source
    assert not (lake / "out").exists()


def test_keys_walk_through_a_conversation(browser: Any, address: str) -> None:
    browser.get(address)
    browser.get(f"{home(address)}/rollouts?outcome=call+failed&source=pi")
    find(browser, "table.list tbody td:nth-child(2) a").click()
    body = find(browser, "body")
    body.send_keys("f")
    assert "failed" in browser.switch_to.active_element.get_attribute("class")
    browser.execute_script("document.activeElement.blur()")
    body.send_keys("e")
    assert all(fold.get_attribute("open") for fold in every(browser, "details"))
    browser.get(f"{home(address)}/rollouts")
    find(browser, "body").send_keys("\ue004")  # Tab
    assert browser.switch_to.active_element.text == "To the page"


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_text_stands_out(browser: Any, address: str, scheme: str) -> None:
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    try:
        browser.get(address)
        pages = [
            "/rollouts",
            "/tools",
            "/coverage",
            "/rejects",
            "/sql?q=SELECT+1,+NULL",
            "/rollouts?outcome=call+failed",
        ]
        for page in pages:
            browser.get(home(address) + page)
            assert browser.execute_script(CONTRAST) == [], page
        find(browser, "table.list tbody td:nth-child(2) a").click()
        assert browser.execute_script(CONTRAST) == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def test_hostile_logs_stay_text(browser: Any, tmp_path: Path) -> None:
    lake = hostile_lake(tmp_path / "lake")
    with serving(Path(lake.root)) as address:
        browser.get(address)
        browser.get_log("browser")
        for page in ("/rollouts", "/rollouts/r_one", "/rollouts/r_two", "/tasks/t_%3Cone%3E", "/tools", "/coverage",
                     "/rejects", "/rejects/x1", "/sql?q=FROM+messages"):  # fmt: skip
            browser.get(home(address) + page)
            scripts = [script.get_attribute("src") for script in every(browser, "script")]
            assert scripts == [f"{home(address)}/page.js"], page
            assert not every(browser, "img, svg, [onerror], [onload], [onmouseover], a[href^='javascript:']"), page
            assert "alert(1)" in browser.page_source, page
        said = [line for line in browser.get_log("browser") if line["level"] == "SEVERE"]
        assert said == [], "nothing was tried, so nothing had to be blocked"


def test_the_report_needs_nothing_and_prints(browser: Any, lake: Path, tmp_path: Path) -> None:
    pytest.importorskip("vl_convert", reason='needs: pip install "rollout-etl[report]"')
    out = tmp_path / "report.html"
    command = [sys.executable, "-m", "etl", "report", "--lake", str(lake), "--out", str(out)]
    subprocess.run(command, env={**os.environ, "PYTHONPATH": str(REPO)}, check=True, capture_output=True, timeout=600)
    browser.get_log("browser")
    for scheme in ("light", "dark"):
        feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
        browser.get(out.as_uri())
        assert browser.execute_script("return performance.getEntriesByType('resource').length") == 0
        assert browser.execute_script(CONTRAST) == [], scheme
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
    assert len(every(browser, "figure svg[role=img]")) >= 6
    assert browser.execute_script("return document.documentElement.scrollWidth <= innerWidth"), "nothing is cut off"
    printed = base64.b64decode(browser.execute_cdp_cmd("Page.printToPDF", {})["data"])
    assert printed.startswith(b"%PDF")
    assert [line for line in browser.get_log("browser") if line["level"] == "SEVERE"] == []
