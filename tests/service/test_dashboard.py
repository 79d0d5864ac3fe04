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
FILES = ("dashboard.css", "asking.js", "charts.js", "index.js", "model.js", "uPlot.js", "uPlot.css")


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
def server(folder):
    """A server of its own on loopback, with a model."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "bayou.cli", "serve", "--store", str(folder / "store.db"), "--port", str(port)]
    process = subprocess.Popen(command, env=os.environ, stderr=subprocess.DEVNULL)
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=240.0) as client:
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
            assert said == []
            assert all(url.startswith((str(client.base_url).rstrip("/") + "/", "data:")) for url in asked)
            page.close()
