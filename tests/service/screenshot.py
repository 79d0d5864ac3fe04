"""``python -m tests.service.screenshot docs/images/dashboard.png``: the dashboard after a stream was learnt.

Beside it, the same at the width of a phone: ``dashboard-phone.png``.
"""

import sys
import tempfile
from pathlib import Path

from tests.service.made import inputs, rows
from tests.service.test_dashboard import chromium, learn, server


def main(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, server(Path(folder)) as client, chromium() as browser:
        learn(client, 2000)
        client.post("/v1/models/shop:predict", json={"instances": inputs(rows(12, 9))}).raise_for_status()
        for width, place in ((1000, path), (390, path.with_stem(f"{path.stem}-phone"))):
            page = browser.new_page(viewport={"width": width, "height": 900})
            page.goto(f"{client.base_url}/dashboard/models/shop")
            page.locator("#weights canvas").wait_for()
            page.fill("input[name=price]", "0.4")
            page.fill("input[name=city]", "Paris")
            page.click("#what-if button")
            page.locator("#answer strong").wait_for()
            page.screenshot(path=place, full_page=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
