"""A real web server on loopback that answers as it is told: well, badly, slowly or never."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from ct_notebook.intensity import http

Page = Callable[["Handler"], None]


def be_patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait as long as a busy machine takes for a server that does answer."""
    monkeypatch.setattr(http, "TIMEOUT_S", (20.0, 20.0))
    monkeypatch.setattr(http, "METADATA_TIMEOUT_S", (20.0, 20.0))
    monkeypatch.setattr(http, "TOTAL_S", 60.0)


def be_impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give up soon, for a server that does not answer or drips."""
    monkeypatch.setattr(http, "TIMEOUT_S", (20.0, 1.0))
    monkeypatch.setattr(http, "METADATA_TIMEOUT_S", (20.0, 1.0))
    monkeypatch.setattr(http, "TOTAL_S", 1.0)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    server: WebServer

    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def do_GET(self) -> None:
        self._answer()

    def do_PUT(self) -> None:
        self._answer()

    def _answer(self) -> None:
        parts = urlsplit(self.path)
        self.server.requests.append(
            (self.command, parts.path, dict(parse_qsl(parts.query)), dict(self.headers))
        )
        page = self.server.pages.get(parts.path, self.server.pages.get("*", text("", 404)))
        with contextlib.suppress(OSError):  # the other side may have hung up
            page(self)


class WebServer(ThreadingHTTPServer):
    """Pages by path, "*" for all others; whatever was asked is kept."""

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.pages: dict[str, Page] = {}
        self.requests: list[tuple[str, str, dict[str, str], dict[str, str]]] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextlib.contextmanager
def web_server() -> Iterator[WebServer]:
    """Serve until the block ends; whoever is still kept waiting then is let go."""
    server = WebServer()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        server.server_close()
        thread.join()


def text(body: str, status: int = 200, **headers: str) -> Page:
    def page(handler: Handler) -> None:
        data = body.encode()
        handler.send_response(status)
        handler.send_header("Content-Length", str(len(data)))
        for name, value in headers.items():
            handler.send_header(name, value)
        handler.end_headers()
        handler.wfile.write(data)

    return page


def as_json(found: Any, status: int = 200) -> Page:
    return text(json.dumps(found), status)


def redirect(to: str) -> Page:
    return text("", 302, Location=to)


def never(handler: Handler) -> None:
    """Take the request and answer nothing."""
    handler.server.released.wait()


def drip(handler: Handler) -> None:
    """Send a byte at a time, for ever."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.released.wait(0.02):
        handler.wfile.write(b" ")


def cut_short(handler: Handler) -> None:
    """Promise more than comes."""
    handler.send_response(200)
    handler.send_header("Content-Length", "100")
    handler.end_headers()
    handler.wfile.write(b'{"zone": "DE", "carb')


def endless(handler: Handler) -> None:
    """Send megabytes."""
    handler.send_response(200)
    handler.end_headers()
    while not handler.server.released.is_set():
        handler.wfile.write(b" " * 65536)
