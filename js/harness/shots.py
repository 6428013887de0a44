"""Screenshots of the panel without a kernel: `python js/harness/shots.py FOLDER [SCENARIO ...]`, by hand."""

from __future__ import annotations

import functools
import http.server
import shutil
import sys
import threading
from pathlib import Path

from playwright.sync_api import sync_playwright

ROOT = Path(__file__).parents[2]
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
]


class Quiet(http.server.SimpleHTTPRequestHandler):
    """Serves files without a word."""

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def main(folder: Path, scenarios: list[str]) -> None:
    """Take one picture for each scenario, theme and width."""
    folder.mkdir(parents=True, exist_ok=True)
    handler = functools.partial(Quiet, directory=str(ROOT))
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    with sync_playwright() as play:
        browser = play.chromium.launch(executable_path=shutil.which("chromium"), args=FLAGS)
        for scenario in scenarios:
            for theme, width in (("light", 1000), ("dark", 1000), ("light", 360), ("dark", 640)):
                page = browser.new_page(viewport={"width": width, "height": 400})
                page.on("pageerror", lambda error: print("PAGE ERROR", error))
                page.on(
                    "console", lambda line: line.type in {"error", "warning"} and print("CONSOLE", line.text)
                )
                url = f"http://127.0.0.1:{server.server_port}/js/harness/index.html"
                page.goto(f"{url}?scenario={scenario}&theme={theme}")
                page.wait_for_selector("body[data-ready]")
                page.wait_for_timeout(300)
                page.screenshot(path=str(folder / f"{scenario}-{theme}-{width}.png"), full_page=True)
                page.close()
        browser.close()
    server.shutdown()


main(Path(sys.argv[1]), sys.argv[2:] or ["start", "running", "eight-gpus", "day", "question", "nothing"])
