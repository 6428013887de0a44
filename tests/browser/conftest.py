"""Front ends and kernels go in; a notebook in a page of a real browser comes out, ready for a test.

Starting servers, pages and kernels is what costs time here. So each pair of a front end and a kernel is
opened once, and its tests put their cells into the same notebook; a test that fails leaves a new one to the
next.
"""

from __future__ import annotations

import itertools
import subprocess
from collections.abc import Generator, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, BrowserContext

from support.environments import alone
from support.front_ends import NEWEST, Opener, Pair, Servers
from support.notebook_page import NotebookPage, chromium
from support.training_cell import Truth

ROOT = Path(__file__).parents[2]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with chromium() as started:
        yield started


@pytest.fixture(scope="session")
def context(browser: Browser) -> Iterator[BrowserContext]:
    """One for all pages, so that what a front end consists of is loaded once."""
    shared = browser.new_context(viewport={"width": 1000, "height": 1400})
    yield shared
    shared.close()


@pytest.fixture(scope="session")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Servers]:
    with ExitStack() as stack:
        yield Servers(tmp_path_factory.mktemp, stack)


@pytest.fixture(scope="session", params=[NEWEST], ids=str)
def pair(request: pytest.FixtureRequest) -> Pair:
    """The newest JupyterLab and kernel; `every_pair` has a test run with all others too."""
    chosen: Pair = request.param
    return chosen


@pytest.fixture(scope="session")
def opener(servers: Servers, context: BrowserContext, pair: Pair) -> Iterator[Opener]:
    opened = Opener(context, servers.of(pair), pair)
    yield opened
    opened.drop()


@pytest.fixture
def notebook(opener: Opener, request: pytest.FixtureRequest) -> Iterator[NotebookPage]:
    """A notebook whose kernel is idle, and in whose page nothing goes wrong."""
    kept = opener.kept()
    kept.faults.clear()
    yield kept
    if failed(request.node):
        opener.drop()
        return
    assert kept.faults == []
    kept.calm()


@pytest.fixture
def truth(opener: Opener) -> Truth:
    """What the cells of this test do."""
    return Truth(opener.server.root / f"truth{next(_numbers)}.jsonl")


@pytest.fixture(scope="session")
def axe() -> str:
    """The source of axe-core, which the front end's own packages hold; brought if it is not there yet."""
    source = ROOT / "js" / "node_modules" / "axe-core" / "axe.min.js"
    with alone(ROOT / ".nox" / "axe"):
        if not source.exists():
            npm = ("npm", "ci", "--no-audit", "--no-fund")
            subprocess.run(npm, cwd=ROOT / "js", check=True, capture_output=True)
    return source.read_text("utf-8")


# -- what a failure leaves to look at ------------------------------------------------------------------

_FAILED = pytest.StashKey[bool]()


def failed(item: pytest.Item) -> bool:
    """Whether a test has failed by now."""
    return item.stash.get(_FAILED, False)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.failed:
        item.stash[_FAILED] = True
        for path in _screenshots(item):
            report.sections.append(("the page as it was", str(path)))
    return report


def _screenshots(item: pytest.Item) -> Iterator[Path]:
    """One of each page that is open."""
    values = getattr(item, "funcargs", {})
    # A test whose fixtures failed may have the one without the other.
    browser: Browser | None = values.get("browser") if "place_for_screenshots" in values else None
    pages = [page for context in browser.contexts for page in context.pages] if browser else []
    for at, page in enumerate(pages):
        path: Path = values["place_for_screenshots"] / f"page{at}.png"
        page.screenshot(path=path)
        yield path


@pytest.fixture(autouse=True)
def place_for_screenshots(tmp_path: Path) -> Path:
    return tmp_path
