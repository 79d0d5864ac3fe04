"""The dashboard: its files and headers, and what a real browser sees while a stream is learnt."""

import asyncio
import os
import re
import shutil
import socket
import subprocess
import sys
import time
from contextlib import contextmanager

import httpx
import pytest

from tests.service.made import rows

PAGES = ("/", "/dashboard/models/shop")
FILES = ("dashboard.css", "asking.js", "charts.js", "index.js", "model.js", "numbers.js", "uPlot.js", "uPlot.css")


def test_pages_need_no_token_and_data_does(serving) -> None:
    async def run() -> None:
        async with serving(token="a token of many letters") as client:
            for path in (*PAGES, *(f"/dashboard/{name}" for name in FILES)):
                answer = await client.get(path)
                assert answer.status_code == 200, path
                policy = answer.headers["content-security-policy"]
                assert "unsafe" not in policy
                assert "script-src 'self'" in policy
                again = await client.get(path, headers={"if-none-match": answer.headers["etag"]})
                assert (again.status_code, again.content) == (304, b"")
                assert answer.headers.get_list("cache-control") == ["no-cache"]
            assert (await client.get("/v1/models")).status_code == 401
            assert (await client.get("/dashboard/../v1/models")).status_code == 401
            assert (await client.get("/dashboard/routes.py")).status_code == 404

    asyncio.run(run())


def test_pages_have_nothing_inline_and_name_no_other_host(serving) -> None:
    async def run() -> None:
        async with serving() as client:
            for path in PAGES:
                text = (await client.get(path)).text
                assert not re.search(r"<style|\sstyle=|\son\w+=|https?://|<script(?![^>]*src=)", text)

    asyncio.run(run())


@contextmanager
def server(folder, token=None):
    """A server of its own on loopback, with a model; what it says goes to a file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bayou.cli", "serve", "--store", str(folder / "store.db"), "--port", str(port)]
    environment = os.environ | ({"BAYOU_TOKEN": token} if token else {})
    headers = {"authorization": f"Bearer {token}"} if token else {}
    said = (folder / "said").open("wb")
    process = subprocess.Popen(command, env=environment, stderr=said)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=240.0, headers=headers) as client:
            client.process = process
            for _ in range(600):
                try:
                    client.get("/v2/health/ready").raise_for_status()
                    break
                except httpx.HTTPError:
                    time.sleep(0.1)
            made = {"name": "shop", "settings": {"target": "bought"}}
            client.post("/v1/models", json=made).raise_for_status()
            yield client
    finally:
        process.terminate()
        process.wait(20)
        said.close()


def learn(client, count, seed=0) -> None:
    """In parts, as a stream comes."""
    made = rows(count, seed)
    for start in range(0, count, 50):
        client.post("/v1/models/shop:learn", json={"instances": made[start : start + 50]}).raise_for_status()


@contextmanager
def chromium():
    """The one that is installed."""
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        pytest.skip("there is no Chromium: the dashboard was not looked at in a browser")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


@pytest.mark.slow
def test_a_browser_sees_the_curve_move_and_predicts(tmp_path) -> None:
    with server(tmp_path) as client, chromium() as browser:
        learn(client, 600)
        for width, seed in ((1280, 1), (390, 2)):
            page = browser.new_page(viewport={"width": width, "height": 900})
            asked, said = [], []
            page.on("request", lambda request: asked.append(request.url))
            page.on("console", lambda message: said.append(message.text))
            page.on("pageerror", lambda error: said.append(str(error)))
            page.goto(f"{client.base_url}/dashboard/models/shop")
            chart = page.locator("#curve .chart").first
            count = page.locator("[data-fact='rows learnt'] dd")
            chart.locator("canvas").wait_for()
            before = count.inner_text(), float(chart.get_attribute("data-row")), chart.screenshot()
            assert int(chart.get_attribute("data-theory")) > 0
            learn(client, 600, seed)
            page.wait_for_function(
                "before => document.querySelector(\"[data-fact='rows learnt'] dd\").textContent !== before",
                arg=before[0],
            )
            page.wait_for_timeout(1500)
            assert float(chart.get_attribute("data-row")) > before[1]
            assert chart.screenshot() != before[2]
            page.fill("input[name=price]", "-2")
            page.fill("input[name=city]", "Paris")
            page.click("#what-if button")
            page.locator("#answer strong").wait_for()
            assert re.search(r"True: probability 0\.9\d{2,5}|True: probability 1\.0+", page.inner_text("#answer"), re.I)
            assert re.search(r"between [01]\.\d{3,6} and [01]\.\d{3,6} with 90 %", page.inner_text("#answer"))
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            shown = page.locator("[data-fact='rows/s'] dd").inner_text()
            page.wait_for_function(  # it falls when nothing comes any more
                "shown => document.querySelector(\"[data-fact='rows/s'] dd\").textContent !== shown", arg=shown
            )
            assert said == []
            assert all(url.startswith((str(client.base_url).rstrip("/") + "/", "data:")) for url in asked)
            page.close()


NUMBERS = """async () => {
  const { between, number, roundShare, share, short, withError } = await import("/dashboard/numbers.js");
  return [
    number(1234567), number(380.94), number(0.00000012), number(null), number(20065.7897),
    withError(0.9, 0.0067), withError(20065.7897, 341.2584), withError(0.0000012, 0.0000003), withError(0.42, 1117),
    withError(2, null), between(338123, 378456, 19744.6), share(0.984), share(0.9999361), share(1e-9),
    roundShare(0.999), short(150000), short(0.0000002), short(0.1 + 0.2),
  ];
}"""


@pytest.mark.slow
def test_numbers_have_the_digits_that_their_errors_allow(tmp_path) -> None:
    with server(tmp_path) as client, chromium() as browser:
        page = browser.new_page()
        page.goto(f"{client.base_url}/")
        assert page.evaluate(NUMBERS) == [
            *("1,234,567", "380.9", "1.2e-7", "–", "20,066"),
            *("0.9000 ± 0.0067", "20,070 ± 340", "(1.20 ± 0.30)e-6", "0 ± 1,100"),
            *("2", "338,000 and 378,000", "0.984", "0.999936", "< 0.000001"),
            *("> 0.99", "150k", "2e-7", "0.3"),
        ]


def fact(page, title, text) -> None:
    page.locator(f"[data-fact='{title}'] dd", has_text=re.compile(rf"^{text}$")).wait_for(timeout=20_000)


@pytest.mark.slow
def test_a_page_that_is_hidden_replaced_and_left(tmp_path) -> None:
    with server(tmp_path) as client, chromium() as browser:
        page, said = browser.new_page(), []
        page.on("pageerror", lambda error: said.append(str(error)))
        page.goto(f"{client.base_url}/dashboard/models/shop")
        page.get_by_text("No scores yet: they come once rows are learnt.").wait_for()
        learn(client, 100)
        fact(page, "rows learnt", "100")
        assert not page.get_by_text("No scores yet: they come once rows are learnt.").is_visible()

        hide = "is => { Object.defineProperty(document, 'hidden', { value: is, configurable: true }); "
        hide += "document.dispatchEvent(new Event('visibilitychange')); }"
        page.evaluate(hide, True)
        learn(client, 100, 1)
        page.wait_for_timeout(1500)
        assert page.locator("[data-fact='rows learnt'] dd").inner_text() == "100"
        page.evaluate(hide, False)
        fact(page, "rows learnt", "200")

        for text, told in (("1,5", "must hold numbers; got '1,5'"), ("nonsense", "got 'nonsense'")):
            page.fill("input[name=price]", text)
            page.click("#what-if button")
            page.locator("#answer", has_text=told).wait_for()

        client.delete("/v1/models/shop").raise_for_status()
        page.locator("#live", has_text="deleted").wait_for()
        settings = {"target": "y", "task": "regression", "columns": {"other": "number"}}
        client.post("/v1/models", json={"name": "shop", "settings": settings}).raise_for_status()
        page.locator("input[name=other]").wait_for()
        assert page.locator("input[name=price]").count() == 0
        fact(page, "rows learnt", "0")
        assert page.locator("canvas").count() == 0

        started = time.monotonic()  # who watches does not keep a server from ending
        client.process.terminate()
        assert client.process.wait(20) in (0, -15)
        assert time.monotonic() - started < 4.0
        assert "Traceback" not in (tmp_path / "said").read_text()
        page.locator("#live", has_text="connection lost").wait_for()
        page.locator("#problem", has_text="does not answer").wait_for()
        assert said == []


@pytest.mark.slow
def test_a_token_is_asked_for_once(tmp_path) -> None:
    token = "a token of many letters"
    with server(tmp_path, token) as client, chromium() as browser:
        learn(client, 100)
        page = browser.new_page()
        page.goto(f"{client.base_url}/dashboard/models/shop")
        for wrong, told in (("ü€", "Latin letters"), ("another token", "The token is wrong.")):
            page.fill("#token input", wrong)
            page.click("#token button")
            page.locator("#problem", has_text=told).wait_for()
        page.fill("#token input", token)
        page.click("#token button")
        fact(page, "rows learnt", "100")
        assert page.locator("#problem").is_hidden()
        page.goto(f"{client.base_url}/")
        page.get_by_role("link", name="shop").focus()
        learn(client, 50, 1)
        page.get_by_text("150 rows learnt").wait_for()
        assert page.evaluate("document.activeElement.textContent") == "shop"
