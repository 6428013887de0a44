"""ipykernel 7.0 to 7.3 may overlook requests; code that makes such a kernel look again goes to the tests.

They send replies past the stream that they read requests by, and what arrives meanwhile is stranded
(ipykernel pull request 1529, in 7.4). Bursts of requests alone do that, without ct_notebook, so a test of
something else would fail at random.
"""

from __future__ import annotations

LOOK_AGAIN = """
def _look_again():
    import ipykernel, threading, time, zmq
    stream = get_ipython().kernel.shell_stream
    def look():
        while True:
            time.sleep(0.2)
            stream.io_loop.add_callback(stream.flush, zmq.POLLIN)
    if (7, 0) <= ipykernel.version_info[:2] < (7, 4):
        threading.Thread(target=look, daemon=True).start()
_look_again()
"""
"""A cell that does nothing on any other version."""
