"""Limits of control groups, on folders of our own."""

from __future__ import annotations

from pathlib import Path

import pytest

from ct_notebook.sensors.cgroup import cpu_limit, cpu_time_file, memory_limit_bytes
from support.sysfs import Proc


@pytest.mark.parametrize(
    ("line", "files", "cpus"),
    [
        ("0::/", {}, None),
        ("0::/", {"cpu.max": "max 100000"}, None),
        ("0::/", {"cpu.max": "200000 100000"}, 2.0),
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "150000 100000"}, 1.5),
        ("0::/a/b", {"a/b/cpu.max": "50000 100000", "a/cpu.max": "150000 100000"}, 0.5),
        ("0::/hosts/path/not/here", {"cpu.max": "300000 100000"}, 3.0),
        ("0::/../../x", {"cpu.max": "100000 100000"}, 1.0),
        ("0::/a", {"unified/a/cpu.max": "100000 100000"}, 1.0),
        ("0::/", {"cpu.max": "garbage"}, None),
        ("0::/", {"cpu.max": ""}, None),
        ("0::/", {"cpu.max": "100000 0"}, None),
        ("0::/a\x00b", {"cpu.max": "100000 100000"}, 1.0),
        ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "-1", "cpu/a/cpu.cfs_period_us": "100000"}, None),
        ("3:cpu:/a", {"cpu/a/cpu.cfs_quota_us": "250000", "cpu/a/cpu.cfs_period_us": "100000"}, 2.5),
        (
            "3:cpu,cpuacct:/a/b",
            {"cpu,cpuacct/a/cpu.cfs_quota_us": "400000", "cpu,cpuacct/a/cpu.cfs_period_us": "100000"},
            4.0,
        ),
        ("3:cpuset:/a", {"cpu/a/cpu.cfs_quota_us": "1", "cpu/a/cpu.cfs_period_us": "1"}, None),
    ],
)
def test_the_tightest_quota_counts(
    tmp_path: Path, line: str, files: dict[str, str], cpus: float | None
) -> None:
    Proc(tmp_path).group(line, files)
    assert cpu_limit(tmp_path) == cpus


@pytest.mark.parametrize(
    ("line", "files", "limit"),
    [
        ("0::/", {}, None),
        ("0::/a", {"a/memory.max": "max"}, None),
        ("0::/a", {"a/memory.max": "1073741824", "memory.max": "max"}, 2**30),
        ("0::/a/b", {"a/b/memory.max": "max", "a/memory.max": "5"}, 5),
        ("4:memory:/a", {"memory/a/memory.limit_in_bytes": "1073741824"}, 2**30),
        ("4:memory:/gone", {"memory/memory.limit_in_bytes": "7"}, 7),
        ("0::/a", {"a/memory.max": "9" * 5000, "memory.max": "garbage"}, None),
        ("0::/a\x00b", {"memory.max": "6"}, 6),
    ],
)
def test_the_tightest_memory_limit_counts(
    tmp_path: Path, line: str, files: dict[str, str], limit: int | None
) -> None:
    Proc(tmp_path).group(line, files)
    assert memory_limit_bytes(tmp_path) == limit


def test_the_group_of_the_whole_machine_is_not_ours(tmp_path: Path) -> None:
    proc = Proc(tmp_path)
    proc.group("0::/", {"cpu.stat": "usage_usec 1"})
    assert cpu_time_file(tmp_path) is None
    proc.group("0::/a", {"a/cpu.stat": "usage_usec 1", "a/cpu.max": "max 100000"})
    assert cpu_time_file(tmp_path) == tmp_path / "sys/fs/cgroup/a/cpu.stat"


def test_a_system_without_groups_has_no_limits(tmp_path: Path) -> None:
    assert cpu_limit(tmp_path) is None
    assert memory_limit_bytes(tmp_path) is None
    assert cpu_time_file(tmp_path) is None
