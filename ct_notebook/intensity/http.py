"""A URL comes in, what its server answered goes out; the only place that touches the network.

Nothing that `requests` raises leaves it: its errors hold the request, and with it the key.
"""

from __future__ import annotations

import time
import zlib
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any
from urllib.parse import urljoin, urlsplit

from ct_notebook.errors import SourceError

from .base import Answer

TIMEOUT_S = (3.05, 5.0)
"""To connect, a little more than the 3 s after which a lost packet is sent again; and between two bytes."""

TOTAL_S = 9.0
"""For the whole body, however it drips."""

MOST_BYTES = 1_000_000
PIECE_BYTES = 16_384

SMALL_PIECE_BYTES = 256
"""Where a piece is awaited whole, so that one that drips is noticed after few bytes."""

PACKINGS = {"": 0, "identity": 0, "gzip": 31, "x-gzip": 31}
"""How a body may be packed, and by which `wbits` zlib unpacks it. Any other is refused, and so are several on
top of each other: of those, five kilobytes may hold gigabytes."""

MOST_REDIRECTS = 3

METADATA_TIMEOUT_S = (0.3, 0.7)
"""A metadata server is on the machine itself and answers in milliseconds, or there is none."""

NOTHING: Mapping[str, str] = MappingProxyType({})


def live_get(
    url: str, *, params: Mapping[str, str] = NOTHING, headers: Mapping[str, str] = NOTHING
) -> Answer:
    """Ask by HTTP GET. Proxies are those of the environment; redirects are followed within one host only.

    Raises
    ------
    SourceError
        No answer. The text says the host and the kind of failure, and nothing else.
    """
    return _ask("GET", url, params=params, headers=headers, timeout_s=TIMEOUT_S, is_local=False)


def ask_metadata(method: str, url: str, headers: Mapping[str, str]) -> Answer:
    """Ask a cloud's metadata server, past every proxy, for one second at most.

    Raises
    ------
    SourceError
        No answer.
    """
    return _ask(method, url, params=NOTHING, headers=headers, timeout_s=METADATA_TIMEOUT_S, is_local=True)


def _ask(
    method: str,
    url: str,
    *,
    params: Mapping[str, str],
    headers: Mapping[str, str],
    timeout_s: tuple[float, float],
    is_local: bool,
) -> Answer:
    answer: Answer | None = None
    why = ""
    try:
        import requests  # noqa: PLC0415 - heavy, and not needed where nothing is asked
    except ImportError:
        why = "the package requests is not installed; install it, or give the figure with carbon_intensity"
    else:
        try:
            with requests.Session() as session:
                session.trust_env = not is_local
                session.auth = _no_password
                session.headers["Accept-Encoding"] = "gzip"
                answer = _follow(session, method, url, dict(params), dict(headers), timeout_s)
        except _UnfitError as error:
            why = str(error)
        except Exception as error:
            why = _kind(error)
    # Outside the handlers, so that our error does not hold on to one that holds the key.
    if answer is None:
        msg = f"{urlsplit(url).hostname}: {why}."
        raise SourceError(msg)
    return answer


class _UnfitError(Exception):
    """An answer that is not to be read further. The text is ours."""


def _no_password(request: Any) -> Any:
    """Leave a request as it is: without this, requests reads passwords from ~/.netrc."""
    return request


def _follow(
    session: Any,
    method: str,
    url: str,
    params: dict[str, str],
    headers: dict[str, str],
    timeout_s: tuple[float, float],
) -> Answer:
    deadline_s = time.monotonic() + TOTAL_S
    for _ in range(MOST_REDIRECTS + 1):
        with session.request(
            method,
            url,
            params=params,
            headers=headers,
            timeout=timeout_s,
            allow_redirects=False,
            stream=True,
        ) as response:
            if not response.is_redirect:
                return Answer(response.status_code, _body(response, deadline_s))
            target = urljoin(response.url, response.headers["location"])
            if urlsplit(target)[:2] != urlsplit(url)[:2]:
                msg = "it sends to another host, which is not followed; it is asked again later"
                raise _UnfitError(msg)
            url, params = target, {}
    msg = "it sends from page to page; it is asked again later"
    raise _UnfitError(msg)


def _body(response: Any, deadline_s: float) -> str:
    """The body as text; not more than `MOST_BYTES`, and not later than the deadline."""
    packing = PACKINGS.get(response.headers.get("content-encoding", "").strip().lower())
    if packing is None:
        msg = "the answer is packed in a way that was not asked for; it is asked again later"
        raise _UnfitError(msg)
    # Unpacked here: urllib3 unpacks all of a piece at once, however large that becomes.
    unpacker = zlib.decompressobj(packing) if packing else None
    pieces = []
    size = 0
    for packed in _as_it_comes(response.raw):
        piece = packed
        if unpacker is not None:
            try:
                piece = unpacker.decompress(packed, MOST_BYTES + 1 - size)
            except zlib.error:
                msg = "the answer cannot be unpacked; it is asked again later"
                raise _UnfitError(msg) from None
        size += len(piece)
        pieces.append(piece)
        if size > MOST_BYTES:
            msg = "the answer is longer than 1 MB; it is asked again later"
            raise _UnfitError(msg)
        if time.monotonic() > deadline_s:
            msg = "the answer comes too slowly; it is asked again later"
            raise _UnfitError(msg)
    if unpacker is not None and not unpacker.eof:
        msg = "the answer broke off; it is asked again later"
        raise _UnfitError(msg)
    return b"".join(pieces).decode("utf-8", "replace")


def _as_it_comes(raw: Any) -> Iterator[bytes]:
    # read1 gives what has come, so that one who sends a byte a second is noticed; urllib3 1 lacks it.
    read, most = getattr(raw, "read1", None), PIECE_BYTES
    if read is None:
        read, most = raw.read, SMALL_PIECE_BYTES
    while piece := read(most, decode_content=False):
        yield piece


def _kind(error: Exception) -> str:
    """What kind of failure it is, in words, from the types of the error alone."""
    names = {name.__name__ for name in type(error).__mro__}
    if "ProxyError" in names:
        return "the proxy does not let it through; check HTTPS_PROXY"
    if "SSLError" in names:
        return "its certificate was not accepted; check this machine's clock and its certificates"
    if names & {"Timeout", "TimeoutError", "ReadTimeoutError"}:
        return "it took too long; it is asked again later"
    if "ConnectionError" in names:
        return "it cannot be reached; it is asked again later"
    if names & {"ChunkedEncodingError", "ContentDecodingError", "ProtocolError", "DecodeError"}:
        return "the answer broke off; it is asked again later"
    return f"it cannot be asked ({type(error).__name__}); it is asked again later"
