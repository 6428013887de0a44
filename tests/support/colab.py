"""Google Colab's side of a kernel, as far as a question needs it: an emulation of the package `google.colab`.

The protocol is Colab's (googlecolab/colabtools, `google/colab/_message.py` and `output/_js.py`): a message
`colab_request` goes out on iopub with its id in the metadata; the reply is an `input_reply` whose value is
`{"type": "colab_reply", "colab_msg_id": id, "data": …}`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from support.kernel import PATIENCE_S, Kernel

_OUTPUT = """
import time, types, uuid
import zmq
from ipykernel.kernelapp import IPKernelApp

_widgets = types.SimpleNamespace(_installed_url="https://example.invalid/widgets.js")


def enable_custom_widget_manager():
    pass


def eval_js(script, ignore_result=False, timeout_sec=None):
    kernel = IPKernelApp.instance().kernel
    request = uuid.uuid4().hex
    content = {"request": {"script": script}}
    metadata = {"colab_msg_id": request, "colab_request_type": "cell_javascript_eval"}
    parent = kernel.get_parent()
    message = kernel.session.msg("colab_request", content, parent, None, metadata)
    kernel.session.send(kernel.iopub_socket, message)
    until = None if timeout_sec is None else time.time() + timeout_sec
    while until is None or time.time() < until:
        if not kernel.stdin_socket.poll(25):
            continue
        _, reply = kernel.session.recv(kernel.stdin_socket, zmq.NOBLOCK)
        value = reply["content"].get("value") if reply else None
        if isinstance(value, dict) and value.get("colab_msg_id") == request:
            if "error" in value:
                raise RuntimeError(value["error"])
            return value.get("data")
    return None
"""


def package(folder: Path) -> Path:
    """A folder with the emulated package, for the path of a kernel."""
    place = folder / "google" / "colab"
    place.mkdir(parents=True)
    (place / "__init__.py").write_text("", "utf-8")
    (place / "output.py").write_text(_OUTPUT, "utf-8")
    return folder


def request(kernel: Kernel) -> dict[str, Any]:
    """Wait for what the kernel asks of the page."""
    while True:
        message: dict[str, Any] = kernel.client.get_iopub_msg(timeout=PATIENCE_S)
        if message["msg_type"] == "colab_request":
            return message


def reply(kernel: Kernel, asked: dict[str, Any], **data: Any) -> None:
    """Answer as the page does: `data=…` or `error=…`."""
    value = {"type": "colab_reply", "colab_msg_id": asked["metadata"]["colab_msg_id"], **data}
    client = kernel.client
    client.stdin_channel.send(client.session.msg("input_reply", {"value": value, "status": "ok"}))
