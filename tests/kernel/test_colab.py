"""The question in Colab when its page shows no panel. The protocol is Colab's, the page is emulated."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support import colab
from support.kernel import Kernel, old_clients_are_quiet, started
from support.page import cell, drain

pytestmark = old_clients_are_quiet


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Kernel]:
    package = colab.package(tmp_path_factory.mktemp("colab"))
    with started(tmp_path_factory.mktemp("kernel"), before=[package]) as kernel:
        assert kernel.run("import google.colab.output").status == "ok"
        yield kernel


@pytest.mark.parametrize(("go_on", "epochs"), [(True, 6), (False, 2)])
def test_buttons_of_colabs_own_answer(
    kernel: Kernel,
    tmp_path: Path,
    go_on: bool,  # noqa: FBT001 - a parameter of the test
    epochs: int,
) -> None:
    kernel.reset()
    sent = kernel.client.execute(cell(tmp_path, "--stop-and-confirm"), allow_stdin=True)
    asked = colab.request(kernel)
    assert asked["metadata"]["colab_request_type"] == "cell_javascript_eval"
    script = asked["content"]["request"]["script"]
    assert "Continue training?" in script
    assert "[continues by itself after 10 min]" in script
    colab.reply(kernel, asked, data=go_on)
    drain(kernel, sent)
    assert kernel.value("steps") == epochs


def test_a_page_that_lets_the_time_pass_takes_the_default(kernel: Kernel, tmp_path: Path) -> None:
    kernel.reset()
    flags = "--stop-and-confirm --confirm-timeout 1 --on-timeout stop"
    sent = kernel.client.execute(cell(tmp_path, flags), allow_stdin=True)
    asked = colab.request(kernel)
    assert '"milliseconds": 1000' in asked["content"]["request"]["script"]
    colab.reply(kernel, asked, data=None)
    drain(kernel, sent)
    assert kernel.value("steps") == 2


def test_a_page_that_refuses_the_script_takes_the_other_default(kernel: Kernel, tmp_path: Path) -> None:
    kernel.reset()
    flags = "--stop-and-confirm --on-headless stop"
    sent = kernel.client.execute(cell(tmp_path, flags), allow_stdin=True)
    colab.reply(kernel, colab.request(kernel), error="refused")
    drain(kernel, sent)
    assert kernel.value("steps") == 2
