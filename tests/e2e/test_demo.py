"""The demo, as a newcomer types it."""

from __future__ import annotations

import asyncio
import io
import os
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import yaml
from rich.console import Console

from demo.balance import Balance, NodeUse
from demo.screen import move_table, node_table
from e2e.polls import eventually
from forked import NURSERY

if TYPE_CHECKING:
    from rich.table import Table

pytestmark = pytest.mark.e2e

ROOT = Path(__file__).parents[2]


def found(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder that match."""
    return list(folder.glob(pattern))


async def demo(*args: str, folder: Path = ROOT) -> tuple[int, str, str]:
    """Exit status and what was said, on both streams, of the demo."""
    process = await asyncio.create_subprocess_exec(
        NURSERY.commands / "python",
        *("-m", "demo", *args),
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "examples"), "COLUMNS": "80"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        said, complained = await process.communicate()
    except asyncio.CancelledError:
        process.terminate()
        await process.wait()
        raise
    return process.returncode or 0, said.decode(), complained.decode()


@pytest.mark.slow(reason="the whole story of a small cluster, about 20 s")
async def test_the_demo_mends_a_small_cluster() -> None:
    """It ends by itself, with every check passed and numbers that come from the cluster."""
    status, said, complained = await demo("--nodes", "20")

    assert status == 0, said + complained
    assert said.count("✓") == 5
    assert "no pod was moved twice" in said
    assert "Settled" in said
    assert "0 violations" in said
    assert re.search(r"^imbalance of cpu, lower is better: \d+ → \d+ → \d+$", said, re.MULTILINE)
    for step in (
        "custom resources",
        "Creating 15 nodes",
        "Applying a SchedulingPolicy",
        "Starting the operator",
    ):
        assert f"{step}\n" in said or f"{step}, " in said
    assert max(map(len, said.splitlines())) <= 80
    nodes = [line for line in said.splitlines() if line.startswith("  node-")]
    assert len(nodes) == 16
    assert all(line.count("%") == 2 for line in nodes)


@pytest.mark.slow(reason="services are placed, room is made for a training job: about 20 s")
async def test_the_demo_makes_room_on_gpus() -> None:
    """A job that needs all GPUs of a node gets them by moves of other pods, as 80 columns show."""
    status, said, complained = await demo("--devices")

    assert status == 0, said + complained
    assert said.count("✓") == 5
    assert "no GPU was given out twice" in said
    assert "0/4 nodes are available: 4 cannot allocate all claims" in said
    assert "T T T T  T T T T" in said
    assert max(map(len, said.splitlines())) <= 80


def lines(table: Table) -> list[str]:
    """A table on a terminal of 80 columns."""
    console = Console(width=80, file=io.StringIO(), force_terminal=True, color_system=None)
    console.print(table)
    assert isinstance(console.file, io.StringIO)
    return [line.rstrip() for line in console.file.getvalue().splitlines()]


def test_a_node_is_a_line_of_80_columns() -> None:
    """With names as long as those of the trace, and as many pods as a node may have."""
    uses = tuple(NodeUse(f"openb-node-{row:04}", 0.3, 0.4, 110, is_open=True) for row in range(5))
    full = tuple(NodeUse(use.name, 1.25, 1.0, 110, is_open=True) for use in uses)

    shown = lines(node_table(Balance(uses, 0, 550, 0), Balance(full, 0, 550, 0)))

    rows = [line.split() for line in shown if "openb" in line]
    assert [(row[0], row[2:4], row[-2:]) for row in rows] == [
        (use.name, ["30%", "110"], ["125%", "110"]) for use in uses
    ]


def test_a_move_is_a_line_of_80_columns() -> None:
    """The newest first; what is not shown is counted."""
    records = [
        {
            "metadata": {"creationTimestamp": f"2026-01-31T12:00:{at:02}Z"},
            "spec": {"pod": {"name": f"w{at:03}-be-dmbbldmfbf-x2k4q"}, "fromNode": "node-0001"}
            | {"targetNode": "node-0002"},
            "status": {"phase": "Settled", "replacement": {"node": "node-0002"}},
        }
        for at in range(14)
    ]

    shown = lines(move_table(records))

    rows = [line.strip("│ ").split(" │ ") for line in shown if "node-0001" in line]
    assert [row[0].strip() for row in rows] == [f"w{at:03}-be-dmbbldmfbf-x2k4q" for at in range(13, 1, -1)]
    assert {tuple(cell.strip() for cell in row[1:]) for row in rows} == {
        ("node-0001", "node-0002", "node-0002", "Settled")
    }
    assert shown[-1].strip() == "the newest 12 of 14"


async def test_an_interrupted_demo_leaves_nothing_behind(tmp_path: Path) -> None:
    """Its processes and its folder go with it."""
    process = await asyncio.create_subprocess_exec(
        NURSERY.commands / "python",
        *("-m", "demo", "--nodes", "4"),
        cwd=ROOT,
        env={**os.environ, "TMPDIR": str(tmp_path), "PYTHONPATH": str(ROOT / "examples")},
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
    )

    async def logs() -> list[Path]:
        return [log for log in found(tmp_path, "plimsoll-demo-*/operator.log") if log.stat().st_size]

    (log,) = await eventually(logs)
    kubeconfig = yaml.safe_load((log.parent / "kubeconfig").read_text())
    port = int(kubeconfig["clusters"][0]["cluster"]["server"].rpartition(":")[2])
    process.terminate()

    assert await process.wait() == 130
    assert found(tmp_path, "*") == []
    with socket.socket() as one:
        assert one.connect_ex(("127.0.0.1", port)) != 0, "the development cluster still listens"


@pytest.mark.parametrize(
    ("args", "status", "says"),
    [
        pytest.param(
            ("--trace", "no-such-folder"), 1, "openb_node_list_all_node.csv.gz is not in", id="no trace"
        ),
        pytest.param(("--nodes", "3"), 2, "3 is not in the range 4", id="too small"),
    ],
)
async def test_bad_input_is_one_sentence(args: tuple[str, ...], status: int, says: str) -> None:
    """What is wrong and what is wanted, before anything is started."""
    ended, said, complained = await demo(*args)

    assert ended == status
    assert says in " ".join(complained.replace("│", " ").split())
    assert "Traceback" not in said + complained


async def test_an_unusable_trace_is_one_sentence(tmp_path: Path) -> None:
    """Files of the right name and the wrong content."""
    for name in ("openb_node_list_all_node.csv.gz", "openb_pod_list_default.csv.gz"):
        (tmp_path / name).write_bytes(b"no gzip")

    ended, said, complained = await demo("--trace", str(tmp_path))

    assert ended == 1
    assert complained.startswith("demo: ")
    assert "Traceback" not in said + complained
