"""Runs end-to-end suites of others with their programs and with Plimsoll, and compares the results.

make upstream-e2e KUBE=FOLDER                          Kubernetes' suite, with one scheduler after the other
make upstream-e2e KUBE=FOLDER DESCHEDULER=FOLDER       descheduler's tests, likewise
make upstream-e2e KUBE=FOLDER ARGS="--focus Preempt"   only specs whose names match
make upstream-e2e KUBE=FOLDER PAGE=docs/upstream-e2e.md  write the results on the page, too
make upstream-e2e KUBE=FOLDER ARGS="--judge FOLDER"  compare the reports of earlier runs once more
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from upstream_suite.descheduler import DESCHEDULER
from upstream_suite.kubernetes import KUBERNETES
from upstream_suite.results import Comparison
from upstream_suite.stage import Suite, stage

#: The file that a run leaves for the comparison, in addition to its suite's: the version of the suite.
VERSION = "version"


def parser() -> argparse.ArgumentParser:
    """The command line."""
    one = argparse.ArgumentParser(prog="make upstream-e2e", description=(__doc__ or "").partition("\n")[0])
    one.add_argument("programs", type=Path, help="folder of etcd, kube-apiserver, ... and e2e.test")
    one.add_argument("--descheduler", type=Path, help="folder of descheduler and its e2e.test")
    one.add_argument(
        "--focus", action="append", default=[], help="only specs whose names match an expression"
    )
    one.add_argument("--only", action="append", help="only this column of the table")
    one.add_argument("--folder", type=Path, help="where data, logs and reports go")
    one.add_argument(
        "--judge", type=Path, metavar="FOLDER", help="compare the reports in it, and run nothing"
    )
    one.add_argument("--page", type=Path, help="a page whose section of this version is written")
    return one


async def write_results(
    suite: Suite, name: str, focus: Sequence[str], programs: Path, own: Path, folder: Path
) -> None:
    """Run a suite with one program; what it says of its specs, and its version, go into a folder."""
    async with stage(programs, own, folder) as made:
        version = await suite.play(made, name, focus)
    (folder / VERSION).write_text(version, encoding="utf-8")


def compared(suite: Suite, folder: Path, names: Sequence[str]) -> Comparison:
    """The results that runs with some programs left in a folder; prints why specs fail.

    Raises:
        BrokenSuiteError: A run left no results.
    """
    runs, version = {}, ""
    for name in names:
        judged = suite.judge(folder / name)
        version = (folder / name / VERSION).read_text(encoding="utf-8")
        runs[name] = judged.results
        for spec, message in judged.failures.items():
            print(f"{name} fails: {spec}: {message}", flush=True)
    return Comparison(f"{suite.title} {version}", runs)


def main() -> int:
    """Run and compare; 0 when each spec that passes with the reference passes in the same way with us."""
    chosen = parser().parse_args()
    suite = DESCHEDULER if chosen.descheduler else KUBERNETES
    names = chosen.only or list(suite.programs)
    folder = chosen.judge or chosen.folder or Path(tempfile.mkdtemp(prefix="plimsoll-upstream-e2e-"))
    if not chosen.judge:
        programs = chosen.programs.resolve()
        own = (chosen.descheduler or programs).resolve()
        for name in names:
            (run := folder.resolve() / name).mkdir(parents=True)
            print(f"the suite runs with {name}: {run}", flush=True)
            asyncio.run(write_results(suite, name, chosen.focus, programs, own, run))
    comparison = compared(suite, folder, names)
    print(f"\n{comparison.table()}\n\n{comparison.summary()}")
    if chosen.page:
        chosen.page.write_text(comparison.on_page(chosen.page.read_text(encoding="utf-8")), encoding="utf-8")
    for spec in comparison.worse:
        print(f"passes in the same way with {names[0]} only: {spec}")
    return int(bool(comparison.worse))


if __name__ == "__main__":
    sys.exit(main())
