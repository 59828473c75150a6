"""The end-to-end benchmark runs: another scheduler and ours, every figure there, nothing left behind."""

from __future__ import annotations

import asyncio
import json
import os
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from forked import NURSERY

if TYPE_CHECKING:
    from roadstead.pytest_plugin import StartRoadstead

BENCHMARK = Path(__file__).parents[2] / "benchmarks" / "end_to_end"

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.slow,  # schedulers are started, become idle and are ended, twice
]


async def test_two_schedulers_are_measured_side_by_side(
    start_roadstead: StartRoadstead, tmp_path: Path
) -> None:
    """The other one is a second plimsoll, started by a command line as a user would give it."""
    kubeconfig = start_roadstead().kubeconfig
    python = NURSERY.commands / "python"
    other = f"{python} -m plimsoll run --kubeconfig {kubeconfig} --metrics-port 0 --health-port 0"
    command = [str(python), str(BENCHMARK), "--kubeconfig", str(kubeconfig)]
    command += ["--nodes", "6", "--pods", "5", "--initial", "3", "--arriving", "2", "--patience", "60"]
    command += ["--families", "preemption,devices", "--output", str(tmp_path / "results")]
    command += ["--scheduler-command", other, "--scheduler-name", "plimsoll-benchmark"]

    process = await asyncio.create_subprocess_exec(
        *command,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "PYTHONPATH": str(BENCHMARK.parent)},
    )
    said = (await process.communicate())[0].decode()

    assert process.returncode == 0, said
    results = [json.loads(line) for line in (tmp_path / "results").read_text().splitlines()]
    assert [(each["family"], each["scheduler"]) for each in results] == [
        ("preemption", "plimsoll"),
        ("preemption", python.stem),
        ("devices", "plimsoll"),
        ("devices", python.stem),
    ]
    for each in results:
        assert (each["unbound"], each["late"]) == (0, 0)
        assert each["bound_per_s"] > 0
        assert (each["ceiling_per_s"] > 0) is (each["family"] == "preemption")  # nothing is there before
        assert each["peak_mib"] > 0  # of the process that has it forked
        assert 0 < each["p50_s"] <= each["p99_s"]
        assert each["cpu_s_at_start"] >= 0
        # A binding for each pod at least; a scheduler by its command line does not tell.
        assert (each["writes_per_pod"] or 0) >= 1 or each["scheduler"] != "plimsoll"
