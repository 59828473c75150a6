"""Chaos on sockets: two operators, a cluster, a proxy between them that does harm, and the checker.

make chaos MINUTES=30                      the development cluster
make chaos MINUTES=5 KUBECONFIG=file       any test cluster
make chaos MINUTES=2 ARGS="--planted NAME" an operator with a planted bug, which must be found
make chaos ARGS="--judge FOLDER"           judge what a run has recorded once more
"""

from __future__ import annotations

import argparse
import asyncio
import os
import random
import signal
import sys
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from chaos.planes import Plane, development
from chaos.report import judged_again, report
from chaos.run import ChaosOutcome, ChaosPlan, ChaosRun


def parser() -> argparse.ArgumentParser:
    """The command line."""
    one = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    one.add_argument("--minutes", type=float, default=10.0, help="with faults")
    one.add_argument("--peace", type=float, default=420.0, help="seconds without faults after them")
    one.add_argument("--still", type=float, default=60.0, help="seconds at their end without a write")
    one.add_argument("--kubeconfig", type=Path, help="a test cluster; left out: the development cluster")
    one.add_argument("--programs", type=Path, help="of a control plane to start: kube-apiserver and so on")
    one.add_argument("--seed", type=int, help="what goes wrong, and what is made; random")
    one.add_argument("--folder", type=Path, help="where logs and records go")
    one.add_argument("--planted", help="the name of a bug of tests/simulation/planted_bugs.py")
    one.add_argument("--judge", type=Path, metavar="FOLDER", help="judge a recorded run again")
    return one


async def chaos(chosen: argparse.Namespace, folder: Path, seed: int) -> ChaosOutcome:
    """One run."""
    command = [sys.executable, "-m", "plimsoll"]
    if chosen.planted:
        command = [sys.executable, "-m", "chaos.planted_operator", chosen.planted]
    plan = ChaosPlan(
        folder,
        seed,
        chosen.minutes * 60.0,
        chosen.peace,
        chosen.still,
        command,
        stops=bool(chosen.planted),
    )
    task = asyncio.current_task()
    assert task is not None
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, task.cancel)
    async with AsyncExitStack() as stack:
        if chosen.programs:
            from chaos.control_planes import control_plane  # noqa: PLC0415 - benchmarks have what it needs

            plane = await stack.enter_async_context(control_plane(chosen.programs, folder))
        elif chosen.kubeconfig:
            plane = Plane(chosen.kubeconfig)
        else:
            plane = await stack.enter_async_context(development(folder))
        return await ChaosRun(plan, plane).run()


def main() -> int:
    """Run, or judge again; 0 when no promise was broken, 1 when one was."""
    chosen = parser().parse_args()
    if chosen.judge:
        return judged_again(chosen.judge)
    seed = random.randrange(10**6) if chosen.seed is None else chosen.seed
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="plimsoll-chaos-"))
    folder.mkdir(parents=True, exist_ok=chosen.folder is None)
    print(f"seed {seed}, logs and records in {folder}", flush=True)
    os.environ["PYTHONUNBUFFERED"] = "1"
    outcome = asyncio.run(chaos(chosen, folder, seed))
    status = report(outcome, folder)
    return 1 - status if chosen.planted else status  # a planted bug must be found


if __name__ == "__main__":
    sys.exit(main())
