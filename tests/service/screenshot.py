"""``python -m tests.service.screenshot docs/images/dashboard.png``: the dashboard after a stream was learnt."""

import sys
import tempfile
from pathlib import Path

from tests.service.test_dashboard import chromium, learn, server


def main(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as client, chromium() as browser:
        learn(client, 2000)
        page = browser.new_page(viewport={"width": 1000, "height": 900})
        page.goto(f"{client.base_url}/dashboard/models/shop")
        page.locator("#weights canvas").wait_for()
        page.fill("input[name=price]", "0.4")
        page.fill("input[name=city]", "Paris")
        page.click("#what-if button")
        page.locator("#answer strong").wait_for()
        page.screenshot(path=path, full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
