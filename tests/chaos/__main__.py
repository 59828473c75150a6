"""Chaos on sockets: two operators, a cluster, a proxy between them that does harm, and the checker.

make chaos MINUTES=30                      the development cluster
make chaos MINUTES=5 KUBECONFIG=file       any test cluster
make chaos MINUTES=2 ARGS="--planted NAME" an operator with a planted bug, which must be found
make chaos ARGS="--judge FOLDER"           judge what a run has recorded once more
"""

from __future__ import annotations

import argparse
import asyncio
import filecmp
import io
import os
import random
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
from contextlib import AsyncExitStack
from pathlib import Path

from chaos.features import FEATURES
from chaos.lives import Version
from chaos.planes import Plane, development
from chaos.report import judged_again, report
from chaos.run import ChaosOutcome, ChaosPlan, ChaosRun
from distributions import PRODUCT


def parser() -> argparse.ArgumentParser:
    """The command line."""
    one = argparse.ArgumentParser(prog="make chaos", description=(__doc__ or "").partition("\n")[0])
    one.add_argument("--minutes", type=float, default=10.0, help="with faults")
    one.add_argument("--peace", type=float, default=480.0, help="seconds without faults after them")
    one.add_argument("--still", type=float, default=60.0, help="seconds at their end without a write")
    one.add_argument("--kubeconfig", type=Path, help="a test cluster; left out: the development cluster")
    one.add_argument("--programs", type=Path, help="of a control plane to start: kube-apiserver and so on")
    one.add_argument("--seed", type=int, help="what goes wrong, and what is made; random")
    one.add_argument("--folder", type=Path, help="where logs and records go")
    one.add_argument("--features", nargs="*", choices=FEATURES, default=list(FEATURES), help="of the world")
    one.add_argument("--older", metavar="COMMIT", help="a version that runs next to this one, from git")
    one.add_argument("--planted", help="a bug of simulation.planted_bugs or chaos.feature_slips")
    one.add_argument("--judge", type=Path, metavar="FOLDER", help="judge a recorded run again")
    return one


async def chaos(chosen: argparse.Namespace, folder: Path, seed: int) -> ChaosOutcome:
    """One run."""
    own = Version("this")
    if chosen.planted:
        own = Version("planted", [sys.executable, "-m", "chaos.planted_operator", chosen.planted])
    versions = [own, checked_out(chosen.older, folder)] if chosen.older else [own]
    plan = ChaosPlan(
        folder,
        seed,
        chosen.minutes * 60.0,
        chosen.peace,
        chosen.still,
        versions,
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
            plane = await stack.enter_async_context(development(folder, seed, chosen.features))
        return await ChaosRun(plan, plane).run()


def checked_out(commit: str, folder: Path) -> Version:
    """The operator of a commit of this repository."""
    root, tree = Path(__file__).parents[2], folder / "older"
    tree.mkdir()
    git = shutil.which("git") or "git"
    archive = subprocess.run([git, "-C", root, "archive", commit, *PRODUCT], check=True, capture_output=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as files:
        files.extractall(tree, filter="data")
    kernel = "plimsoll/engine/kernel"
    if not filecmp.cmp(root / "core" / kernel / "kernel.c", tree / "core" / kernel / "kernel.c"):
        raise SystemExit(f"{commit} has another kernel.c; name a commit with the present one")
    shutil.copy(root / "core" / kernel / "_kernel.so", tree / "core" / kernel)
    return Version(commit, environment={"PYTHONPATH": os.pathsep.join(str(tree / each) for each in PRODUCT)})


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
