from __future__ import annotations

import gzip
import socket
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import pytest

from ct_notebook.errors import SourceError
from ct_notebook.intensity import http
from ct_notebook.intensity.http import ask_metadata, live_get
from support.web_server import (
    Handler,
    Page,
    WebServer,
    as_json,
    be_impatient,
    be_patient,
    cut_short,
    drip,
    endless,
    never,
    redirect,
    text,
    web_server,
)

KEY = "aVerySecretKey0123456789"


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Iterator[WebServer]:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
    be_patient(monkeypatch)
    with web_server() as found:
        yield found


def failure(url: str) -> SourceError:
    with pytest.raises(SourceError) as caught:
        live_get(url, headers={"auth-token": KEY})
    return caught.value


def test_an_answer_comes_with_its_status_whatever_it_is(server: WebServer) -> None:
    server.pages = {"/good": as_json({"a": "é"}), "/bad": text("no", 500)}
    answer = live_get(server.url + "/good", params={"zone": "DE"}, headers={"auth-token": KEY})
    assert (answer.status, answer.text) == (200, '{"a": "\\u00e9"}')
    assert live_get(server.url + "/bad").status == 500
    _, _, params, headers = server.requests[0]
    assert params == {"zone": "DE"}
    assert headers["auth-token"] == KEY


def packed(data: bytes, packing: str) -> Page:
    def page(handler: Handler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Encoding", packing)
        handler.send_header("Content-Length", str(len(data)))
        handler.end_headers()
        handler.wfile.write(data)

    return page


def test_a_compressed_answer_is_read(server: WebServer) -> None:
    server.pages["/"] = packed(gzip.compress(b"word " * 10_000), "gzip")
    assert live_get(server.url + "/").text == "word " * 10_000
    assert server.requests[0][3]["Accept-Encoding"] == "gzip"


def test_an_answer_that_unpacks_to_gigabytes_is_refused_before_it_does(server: WebServer) -> None:
    once = gzip.compress(bytes(200_000_000), 1)
    server.pages["/once"] = packed(once, "gzip")
    server.pages["/twice"] = packed(gzip.compress(once), "gzip, gzip")
    server.pages["/otherwise"] = packed(b"x", "br")
    server.pages["/broken"] = packed(b"no gzip at all", "gzip")
    server.pages["/cut"] = packed(gzip.compress(b"word " * 10_000)[:-20], "gzip")
    tracemalloc.start()
    try:
        for page, told in (
            ("/once", "longer than 1 MB"),
            ("/twice", "packed in a way"),
            ("/otherwise", "packed in a way"),
            ("/broken", "cannot be unpacked"),
            ("/cut", "broke off"),
        ):
            assert told in str(failure(server.url + page))
        assert tracemalloc.get_traced_memory()[1] < 10_000_000
    finally:
        tracemalloc.stop()


def test_a_redirect_is_followed_within_a_host_only(server: WebServer) -> None:
    with web_server() as other:
        server.pages = {"/a": redirect("/b"), "/b": text("here"), "/away": redirect(other.url + "/b")}
        server.pages["/round"] = redirect("/round")
        assert live_get(server.url + "/a").text == "here"
        assert "another host" in str(failure(server.url + "/away"))
        assert "from page to page" in str(failure(server.url + "/round"))
        assert other.requests == [], "the key would have gone there"


@pytest.mark.parametrize(
    ("page", "word"),
    [
        (never, "too long"),
        (drip, "too slowly"),
        (cut_short, "broke off"),
        (endless, "longer than 1 MB"),
    ],
)
def test_a_hostile_server_is_told_by_kind(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, page: object, word: str
) -> None:
    if page in {never, drip}:
        be_impatient(monkeypatch)
    server.pages["*"] = page  # type: ignore[assignment]
    error = failure(server.url + "/x")
    assert word in str(error)


def test_a_server_that_drips_is_given_up_with_urllib3_1_too(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    from urllib3.response import HTTPResponse

    for kind in HTTPResponse.__mro__:
        if kind.__module__.startswith("urllib3") and "read1" in vars(kind):
            monkeypatch.delattr(kind, "read1")
    monkeypatch.setattr(http, "SMALL_PIECE_BYTES", 4)
    server.pages = {"/x": drip, "/y": text("all of it")}
    assert live_get(server.url + "/y").text == "all of it"
    be_impatient(monkeypatch)
    assert "too slowly" in str(failure(server.url + "/x"))


def test_a_dead_host_is_told_by_kind(server: WebServer) -> None:
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert "cannot be reached" in str(failure(f"http://127.0.0.1:{port}/"))
    assert "certificate" in str(failure(server.url.replace("http:", "https:")))


def test_the_proxy_of_the_environment_is_used_but_not_for_metadata(
    server: WebServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.pages["*"] = text("by proxy")
    monkeypatch.setenv("HTTP_PROXY", server.url)
    monkeypatch.setenv("http_proxy", server.url)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.delenv("no_proxy", raising=False)
    assert live_get("http://grid.invalid/now").text == "by proxy"
    with pytest.raises(SourceError, match="cannot be reached"):
        ask_metadata("GET", "http://grid.invalid/now", {})


def test_passwords_of_netrc_are_not_sent(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login someone password something\n")
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    live_get(server.url + "/")
    assert "Authorization" not in server.requests[0][3]


@pytest.mark.parametrize("key", [KEY, f"{KEY}\n", f"{KEY}\r\nHost: other", f"{KEY}€"])
def test_no_failure_holds_the_key_or_the_url(
    server: WebServer, monkeypatch: pytest.MonkeyPatch, key: str
) -> None:
    be_impatient(monkeypatch)
    server.pages["*"] = never
    with pytest.raises(SourceError) as caught:
        live_get(server.url + "/page", params={"zone": "DE"}, headers={"auth-token": key})
    error: BaseException | None = caught.value
    assert error is not None
    assert error.__context__ is None, "an error of requests holds the request, and that the key"
    assert error.__cause__ is None
    said = f"{error!s} {error!r} {error.args!r}"
    assert KEY not in said
    assert "/page" not in said
    assert "\n" not in said


def test_without_requests_one_line_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    import sys

    monkeypatch.setitem(sys.modules, "requests", None)
    with pytest.raises(SourceError, match="requests is not installed"):
        live_get("http://127.0.0.1:1/")
