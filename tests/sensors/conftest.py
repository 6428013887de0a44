"""What the tests of sensors share: a made-up NVIDIA driver in this process."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.nvml_stub import VARIABLE, NvmlStub


@pytest.fixture(scope="session")
def stub_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("nvml")


@pytest.fixture
def stub(stub_folder: Path, monkeypatch: pytest.MonkeyPatch) -> NvmlStub:
    """One GPU of 100 W. After the test there is no driver in this process any more."""
    stub = NvmlStub.build(stub_folder)
    stub.load()
    monkeypatch.setenv(VARIABLE, stub.variable)
    return stub
