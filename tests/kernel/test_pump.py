"""The pump in a real kernel, without a panel: the test plays the front end and sends messages of any kind."""

from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from queue import Empty
from types import SimpleNamespace
from typing import Any

import pytest

from ct_notebook.ask.pump import Pump
from support.kernel import PATIENCE_S, Kernel, old_clients_are_quiet, started
from support.overlooked import LOOK_AGAIN

pytestmark = old_clients_are_quiet

SETUP = """
import asyncio, threading, time
from ct_notebook.ask.pump import Pump
kernel = get_ipython().kernel
heard, comms, order = [], {}, []
inside = False
def hear(message):
    said = message["content"]["data"].get("say")
    heard.append((said, inside, threading.current_thread() is threading.main_thread()))
    if said == "print": print("from the handler", flush=True)
    if said == "fail": raise ValueError("meant to")
    if said == "interrupt": raise KeyboardInterrupt
    if said == "again": order.append(pump.deliver())
def accept(comm, message):
    comms[comm.comm_id] = comm
    comm.on_msg(hear)
    comm.on_close(lambda message: heard.append(("closed", inside, True)))
kernel.comm_manager.register_target("of-the-test", accept)
pump = Pump.of(kernel, lambda comm_id: comm_id.startswith("ours"))
def said(*what):
    return set(what) <= {each[0] for each in heard}
def pumping(until):
    for _ in range(3000):
        pump.deliver()
        if until(): return
        time.sleep(0.01)
    raise TimeoutError(str(heard))
def stream():
    # Where ipykernel 6 or 7 takes its messages from.
    manager = getattr(getattr(kernel, "shell_channel_thread", None), "manager", None)
    pair = getattr(manager, "_shell_channel_to_main", None)
    return kernel.shell_stream if pair is None else pair.to_stream
"""

WAITING = """
inside = True
pump.open()
print("running", flush=True)
pumping(lambda: {until})
pump.close()
inside = False
order.append("cell")
"""

AWAITING = """
inside = True
pump.open()
print("running", flush=True)
for _ in range(3000):
    await asyncio.sleep(0.01)
    # ipykernel 7 reads while a cell awaits, and the filter is asked; ipykernel 6 keeps it for later.
    if not hasattr(kernel, "shell_channel_thread"): pump.deliver()
    if {until}: break
pump.close()
inside = False
order.append("cell")
"""

BOTH = pytest.mark.parametrize("cell", [WAITING, AWAITING], ids=["a cell", "a cell that awaits"])


class Page:
    """Sends messages of any kind and keeps what the kernel says to everybody, in its order."""

    def __init__(self, kernel: Kernel) -> None:
        self._client = kernel.client
        self.said: list[dict[str, Any]] = []
        self.replies: list[dict[str, Any]] = []

    def send(self, kind: str, content: Any, metadata: dict[str, Any] | None = None) -> str:
        message = self._client.session.msg(kind, content, metadata=metadata)
        self._client.shell_channel.send(message)
        return str(message["header"]["msg_id"])

    def tell(self, comm_id: str, say: str) -> str:
        return self.send("comm_msg", {"comm_id": comm_id, "data": {"say": say}})

    def frames(self, kind: str, content: Any) -> list[bytes]:
        """A message as it goes over the wire."""
        session = self._client.session
        return list(session.serialize(session.msg(kind, content)))

    def send_frames(self, frames: Sequence[bytes]) -> None:
        self._client.shell_channel.socket.send_multipart(list(frames))

    def listen(self, until: Callable[[], object], what: str) -> None:
        """Take in what the kernel says until something is so."""
        give_up_s = time.monotonic() + PATIENCE_S
        while not until():
            with contextlib.suppress(Empty):
                self.said.append(self._client.get_iopub_msg(timeout=0.05))
            with contextlib.suppress(Empty):
                while True:
                    self.replies.append(self._client.get_shell_msg(timeout=0))
            if time.monotonic() > give_up_s:
                seen = [(each["msg_type"], each["content"]) for each in self.said[-10:]]
                failure = f"{what} did not come about: {seen}"
                raise AssertionError(failure)

    def reply(self, sent: str) -> dict[str, Any]:
        """Wait for the reply to a message."""
        self.listen(lambda: sent in self.replied, f"a reply to {sent}")
        content: dict[str, Any] = self.replies[self.replied.index(sent)]["content"]
        return content

    @property
    def replied(self) -> list[str]:
        """What was replied to, in order."""
        return [reply["parent_header"].get("msg_id", "") for reply in self.replies]

    def states(self, *about: str) -> list[tuple[str, str]]:
        """Busy and idle, in order, of some messages."""
        return [
            (each["parent_header"].get("msg_id", ""), each["content"]["execution_state"])
            for each in self.said
            if each["msg_type"] == "status" and each["parent_header"].get("msg_id") in about
        ]

    def wait_for_idle(self, *sent: str) -> None:
        self.listen(lambda: all((each, "idle") in self.states(each) for each in sent), "idle")

    def text(self, parent: str) -> str:
        """What was printed for one message."""
        return "".join(
            each["content"]["text"]
            for each in self.said
            if each["msg_type"] == "stream" and each["parent_header"].get("msg_id") == parent
        )


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    with started(tmp_path_factory.mktemp("pump"), load=False) as kernel:
        assert kernel.run(LOOK_AGAIN).status == "ok"
        yield kernel


@pytest.fixture
def kernel(shared: Kernel) -> Kernel:
    shared.reset()
    assert shared.run(SETUP).status == "ok"
    return shared


@pytest.fixture
def page(kernel: Kernel) -> Page:
    page = Page(kernel)
    page.wait_for_idle(*(page.send("comm_open", content(comm_id)) for comm_id in ("ours", "other")))
    assert kernel.value("sorted(comms)") == ["other", "ours"]
    return page


def content(comm_id: str, target: str = "of-the-test") -> dict[str, Any]:
    return {"comm_id": comm_id, "target_name": target, "data": {}}


def run(kernel: Kernel, page: Page, until: str, cell: str = WAITING) -> str:
    """Start a cell that pumps until something is so, and wait until it does."""
    sent = kernel.send(cell.replace("{until}", until))
    page.listen(lambda: "running" in page.text(sent), "the cell")
    return sent


@BOTH
def test_a_message_is_handled_in_the_cell_and_queued_cells_keep_their_order(
    kernel: Kernel, page: Page, cell: str
) -> None:
    sent = run(kernel, page, "said('late')", cell)
    queued = [kernel.send(f"order.append({name!r})") for name in ("first", "second")]
    clicks = [page.tell("ours", "early")]
    queued.append(kernel.send("order.append('third')"))
    clicks.append(page.tell("ours", "late"))
    page.wait_for_idle(sent, *queued, *clicks)
    page.reply(queued[-1])
    assert [each for each in page.replied if each in {sent, *queued}] == [sent, *queued]
    assert kernel.value("heard") == [("early", True, True), ("late", True, True)]
    assert kernel.value("order") == ["cell", "first", "second", "third"]


@BOTH
def test_a_page_hears_that_the_kernel_goes_on_with_the_cell(kernel: Kernel, page: Page, cell: str) -> None:
    sent = run(kernel, page, "said('click')", cell)
    click = page.tell("ours", "click")
    page.wait_for_idle(sent, click)
    assert page.states(sent, click) == [
        (sent, "busy"),
        (click, "busy"),
        (click, "idle"),
        (sent, "busy"),
        (sent, "idle"),
    ]


@BOTH
def test_what_is_printed_after_a_message_belongs_to_the_cell(kernel: Kernel, page: Page, cell: str) -> None:
    after = (
        "print('after', flush=True)\n"
        "thread = threading.Thread(target=print, args=('from a thread',), kwargs={'flush': True})\n"
        "thread.start(); thread.join()\n"
        "from IPython.display import display\ndisplay('shown')\n"
    )
    sent = run(kernel, page, "said('print')", cell + after)
    click = page.tell("ours", "print")
    page.wait_for_idle(sent, click)
    assert page.text(sent).split("\n") == ["running", "after", "from a thread", ""]
    assert page.text(click) == "from the handler\n"
    shown = [each["parent_header"]["msg_id"] for each in page.said if each["msg_type"] == "display_data"]
    assert shown == [sent]


def test_messages_of_another_widget_wait_and_keep_their_order(kernel: Kernel, page: Page) -> None:
    sent = run(kernel, page, "said('stop')")
    for comm_id, say in (("other", "1"), ("ours", "go"), ("other", "2"), ("other", "3"), ("ours", "stop")):
        page.tell(comm_id, say)
    last = page.send("comm_close", {"comm_id": "other", "data": {}})
    page.wait_for_idle(sent, last)
    assert kernel.value("[(said, inside) for said, inside, _ in heard]") == [
        ("go", True),
        ("stop", True),
        ("1", False),
        ("2", False),
        ("3", False),
        ("closed", False),
    ]


def test_our_comm_can_be_closed_by_a_page(kernel: Kernel, page: Page) -> None:
    sent = run(kernel, page, "said('closed')")
    page.send("comm_close", {"comm_id": "ours", "data": {}})
    page.wait_for_idle(sent)
    assert kernel.value("heard") == [("closed", True, True)]


@BOTH
def test_which_comms_there_are_is_told_in_the_cell(kernel: Kernel, page: Page, cell: str) -> None:
    sent = run(kernel, page, "said('stop')", cell)
    asked = page.send("comm_info_request", {"target_name": "of-the-test"})
    unknown = page.send("comm_info_request", {"target_name": "nothing"})
    everything = page.send("comm_info_request", {})
    replies = [page.reply(each) for each in (asked, unknown, everything)]
    assert (sent, "idle") not in page.states(sent)
    page.tell("ours", "stop")
    page.wait_for_idle(sent)
    targets = {"target_name": "of-the-test"}
    assert replies[0]["comms"] == {"ours": targets, "other": targets}
    assert replies[1]["comms"] == {}
    assert set(replies[2]["comms"]) >= {"ours", "other"}
    assert {reply["status"] for reply in replies} == {"ok"}


def test_a_reloaded_page_gets_the_state_of_every_widget_in_the_cell(kernel: Kernel, page: Page) -> None:
    assert kernel.run("import ipywidgets\nslider = ipywidgets.IntSlider(value=7)").status == "ok"
    slider = kernel.value("slider.comm.comm_id")
    sent = run(kernel, page, "said('stop')")
    # As ipywidgets' page does: all at once, and one by one where that is not answered in time.
    page.send("comm_open", content("asking", "jupyter.widget.control"), {"version": "1.0.0"})
    page.send("comm_msg", {"comm_id": "asking", "data": {"method": "request_states"}})
    page.listen(lambda: states_of(page, "asking"), "the states of all widgets")
    assert states_of(page, "asking")[0]["states"][slider]["state"]["value"] == 7
    page.send("comm_msg", {"comm_id": slider, "data": {"method": "request_state"}})
    page.listen(lambda: states_of(page, slider), "the state of one widget")
    assert states_of(page, slider)[0]["state"]["value"] == 7
    page.send("comm_close", {"comm_id": "asking", "data": {}})
    assert (sent, "idle") not in page.states(sent)
    page.tell("ours", "stop")
    page.wait_for_idle(sent)


def states_of(page: Page, comm_id: str) -> list[dict[str, Any]]:
    return [
        each["content"]["data"]
        for each in page.said
        if each["msg_type"] == "comm_msg" and each["content"]["comm_id"] == comm_id
    ]


def test_a_handler_that_fails_or_pumps_again_harms_nothing(kernel: Kernel, page: Page) -> None:
    sent = run(kernel, page, "said('stop')")
    clicks = [page.tell("ours", say) for say in ("fail", "again", "stop")]
    page.wait_for_idle(sent, *clicks)
    assert kernel.value("heard") == [(say, True, True) for say in ("fail", "again", "stop")]
    assert kernel.value("order") == [0, "cell"]


def test_another_thread_delivers_nothing(kernel: Kernel, page: Page) -> None:
    cell = (
        "print('running', flush=True)\ninside = True\nanswers = []\n"
        "def elsewhere():\n"
        "    for _ in range(30):\n        answers.append(pump.deliver())\n        time.sleep(0.01)\n"
        "thread = threading.Thread(target=elsewhere)\nthread.start()\nthread.join()\ninside = False\n{until}"
    )
    sent = run(kernel, page, "", cell)
    click = page.tell("ours", "click")
    page.wait_for_idle(sent, click)
    assert set(kernel.value("answers")) == {0}
    assert kernel.value("heard") == [("click", False, True)]


def test_an_interrupt_leaves_a_kernel_that_answers(kernel: Kernel, page: Page) -> None:
    sent = run(kernel, page, "False")
    kernel.interrupt()
    assert page.reply(sent)["ename"] == "KeyboardInterrupt"
    assert kernel.run("pump.close()").status == "ok"
    assert kernel.value("1 + 1") == 2
    click = page.tell("ours", "click")
    page.wait_for_idle(click)
    assert kernel.value("[say for say, *_ in heard]") == ["click"]


def test_an_interrupt_in_a_handler_strands_nothing_that_came_with_it(
    kernel: Kernel, page: Page, tmp_path: Path
) -> None:
    cell = (
        "inside = True\npump.open()\nprint('running', flush=True)\n"
        "while not {until}.exists(): time.sleep(0.01)\n"
        "try: pumping(lambda: False)\nexcept KeyboardInterrupt: order.append('interrupted')\n"
        "pump.close()\ninside = False"
    )
    assert kernel.run("from pathlib import Path").status == "ok"
    sent = run(kernel, page, f"Path({str(tmp_path / 'sent')!r})", cell)
    # Raised by the handler: the moment of a true interrupt cannot be chosen.
    page.tell("ours", "interrupt")
    queued = [kernel.send("order.append('first')"), kernel.send("order.append('second')")]
    click = page.tell("ours", "click")
    (tmp_path / "sent").touch()
    # Nothing more is sent, since any message would wake a kernel that has overlooked some.
    page.wait_for_idle(sent, *queued, click)
    assert kernel.value("order") == ["interrupted", "first", "second"]
    assert kernel.value("[say for say, *_ in heard]") == ["interrupt", "click"]


def test_a_message_that_the_kernel_overlooked_is_found(kernel: Kernel, page: Page) -> None:
    # As in ipykernel 7 to 7.3: what tells of the message is used up by someone who does not read it. There
    # it takes an unlucky moment; here somebody waits for it.
    stranding = (
        "arrived = threading.Event()\n"
        "def strand():\n"
        "    kernel.shell_stream.socket.poll(30_000)\n"
        "    arrived.set()\n"
        "if hasattr(kernel, 'shell_channel_thread'): kernel.shell_stream.io_loop.add_callback(strand)\n"
    )
    sent = run(kernel, page, "said('click')", stranding + WAITING)
    page.wait_for_idle(page.tell("ours", "click"), sent)
    assert kernel.value("heard") == [("click", True, True)]
    assert kernel.value("arrived.is_set() == hasattr(kernel, 'shell_channel_thread')")


@BOTH
def test_messages_that_cannot_be_meant_are_left_to_the_kernel(kernel: Kernel, page: Page, cell: str) -> None:
    sent = run(kernel, page, "said('stop')", cell)
    good = page.frames("comm_msg", {"comm_id": "ours", "data": {"say": "once"}})
    page.send_frames(good)
    delimiter, signature, *rest = good
    for frames in (
        good,  # replayed
        [delimiter, b"0" * len(signature), *page.frames("comm_msg", {"comm_id": "ours", "data": {}})[2:]],
        [delimiter, b"", *rest],
        good[:3],
        [delimiter],
        [b""],
        [b"no delimiter"] * 7,
        [delimiter, signature, *[b"\xff\xfe"] * 4],
    ):
        page.send_frames(frames)
    for kind in ("comm_msg", "comm_open", "comm_close", "comm_info_request"):
        contents: tuple[object, ...] = (None, [], "text", 7, {}, {"comm_id": ["ours"]}, {"comm_id": None})
        for bad in (*contents, {"target_name": {}}):
            page.send(kind, json.dumps(bad))
    updates: tuple[object, ...] = (None, [], "text", 7, {"method": ["request_state"]})
    for data in updates:
        page.send("comm_msg", {"comm_id": "other", "data": data})
    page.send("comm_msg", {"comm_id": "unknown", "data": "x" * 3_000_000})
    page.tell("ours", "stop")
    queued = kernel.send("order.append('queued')")
    page.wait_for_idle(sent, queued)
    assert [each for each in kernel.value("heard") if each[0] is not None] == [
        ("once", True, True),
        ("stop", True, True),
    ]
    assert kernel.value("order") == ["cell", "queued"]


@BOTH
def test_everything_private_is_as_it_was_found(kernel: Kernel, page: Page, cell: str) -> None:
    look = "(id(stream()._recv_callback), [id(each) for each in (getattr(kernel, 'msg_queue', None),)])"
    assert kernel.run("callback = stream()._recv_callback").status == "ok"
    before = kernel.value(look)
    cell = cell.replace("pump.open()\n", "pump.open()\npump.open()\n") + "pump.close()\n"
    sent = run(kernel, page, "said('click')", cell)
    page.wait_for_idle(page.tell("ours", "click"), sent)
    assert kernel.value("stream()._recv_callback is callback")
    assert kernel.value(look) == before


def test_a_pump_that_was_never_opened_delivers_and_leaves_nothing(kernel: Kernel, page: Page) -> None:
    cell = WAITING.replace("pump.open()", "callback = stream()._recv_callback")
    sent = run(kernel, page, "said('click')", cell.replace("pump.close()", "order.append(pump.deliver())"))
    page.wait_for_idle(page.tell("ours", "click"), sent)
    assert kernel.value("heard") == [("click", True, True)]
    assert kernel.value("order") == [0, "cell"]
    assert kernel.value("stream()._recv_callback is callback")


def test_between_cells_the_kernel_does_without_an_open_pump(kernel: Kernel, page: Page) -> None:
    opening = kernel.send("pump.open()")
    page.wait_for_idle(opening)
    click = page.tell("ours", "click")
    page.wait_for_idle(click)
    later = kernel.send("pump.close()")
    page.wait_for_idle(later)
    # A busy that no idle follows would show a kernel at work for ever.
    assert [each["content"] for each in page.said if each["msg_type"] == "status"][-1] == {
        "execution_state": "idle"
    }
    assert page.states(opening, click) == [
        (each, state) for each in (opening, click) for state in ("busy", "idle")
    ]
    assert kernel.value("heard") == [("click", False, True)]


@pytest.mark.parametrize("closing", ["inner, outer", "outer, inner"])
def test_two_pumps_may_be_closed_in_any_order(kernel: Kernel, page: Page, closing: str) -> None:
    cell = (
        "callback = stream()._recv_callback\n"
        "outer, inner = pump, Pump.of(kernel, lambda comm_id: comm_id == 'other')\n"
        "outer.open(); inner.open()\ninside = True\nprint('running', flush=True)\n"
        "def both():\n    inner.deliver()\n    return {until}\n"
        f"pumping(both)\nfor each in ({closing}): each.close()\ninside = False"
    )
    sent = run(kernel, page, "said('1', '2')", cell)
    clicks = [page.tell("ours", "1"), page.tell("other", "2")]
    page.wait_for_idle(sent, *clicks)
    assert kernel.value("1 + 1") == 2
    assert kernel.value("sorted(heard)") == [("1", True, True), ("2", True, True)]
    # The next cell's pump finds a kernel that works, whatever was left of these.
    again = run(kernel, page, "said('3')")
    page.wait_for_idle(again, page.tell("ours", "3"))
    assert kernel.value("heard[-1]") == ("3", True, True)
    assert kernel.value("stream()._recv_callback is callback")


def test_queued_cells_are_looked_at_once(kernel: Kernel, page: Page) -> None:
    counted = (
        "looks = []\noriginal = kernel.session.deserialize\n"
        "def counting(*given, **more):\n    looks.append(1)\n    return original(*given, **more)\n"
        "kernel.session.deserialize = counting\n"
    )
    cell = WAITING.replace(
        "pump.close()",
        "looks.clear(); handled = [pump.deliver() for _ in range(5)]; seen = len(looks)\npump.close()",
    )
    sent = run(kernel, page, "said('stop')", counted + cell + "kernel.session.deserialize = original\n")
    queued = [kernel.send(f"order.append({number})") for number in range(20)]
    page.tell("ours", "stop")
    page.wait_for_idle(sent, queued[-1])
    assert kernel.value("(handled, seen)") == ([0] * 5, 0)
    assert kernel.value("order") == ["cell", *range(20)]


def test_a_kernel_of_another_build_has_no_pump() -> None:
    known = {"comm_manager", "shell_stream", "session", "_publish_status", "get_parent", "_parent_ident"}
    stream = SimpleNamespace(flush=print, _recv_callback=print)
    whole = {
        "comm_manager": SimpleNamespace(comm_msg=print),
        "shell_stream": stream,
        "session": SimpleNamespace(deserialize=print),
        "_publish_status": print,
        "get_parent": lambda _channel: {},
        "_parent_ident": {"shell": b""},
    }
    assert Pump.of(SimpleNamespace(**whole), bool) is not None
    for missing in known:
        less = {name: value for name, value in whole.items() if name != missing}
        assert Pump.of(SimpleNamespace(**less), bool) is None, missing
    for less_of_it in (SimpleNamespace(flush=print), SimpleNamespace(_recv_callback=print, flush=None)):
        assert Pump.of(SimpleNamespace(**{**whole, "shell_stream": less_of_it}), bool) is None
    assert Pump.of(object(), bool) is None
    assert Pump.of(None, bool) is None
