"""Upgrades from the release before with work under way, and rolls back: ``make upgrade-check [FROM=COMMIT]``.

Both versions run from environments of their own, against the development cluster over HTTP. The figures are
printed; what breaks a promise ends it with an AssertionError. ``--record FILE`` writes what the older version
had stored at the hand-over, for the test of this folder.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deploy.tools import tool
from e2e.operator_process import Operator
from e2e.scene import Scene
from e2e.speaker import speaking
from roadstead import processes
from upgrades.release_before import ROOT, Release, before, defaults_of, git, installed
from upgrades.story import Story, until_leading

if TYPE_CHECKING:
    from collections.abc import Iterator


#: In the log of an operator: it failed, or left an object of the other version alone.
WRONG = ("[error", "Traceback", "object cannot be read")


def define(kubeconfig: Path, release: Release) -> None:
    """Apply a release's definitions as docs/install.md says."""
    apply = [tool("kubectl"), "--kubeconfig", str(kubeconfig), "apply", "--server-side", "-f"]
    subprocess.run([*apply, str(release.definitions)], check=True, capture_output=True)
    wait = [
        tool("kubectl"),
        "--kubeconfig",
        str(kubeconfig),
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
    ]
    subprocess.run(wait, check=True, capture_output=True)


@contextmanager
def running(kubeconfig: Path, release: Release, log: Path) -> Iterator[Operator]:
    """Its operator, ready; killed at the end if it still runs. Its log has nothing wrong."""
    operator = Operator(kubeconfig, log, command=release.command, bundle=None)
    try:
        yield operator.start().until_ready()
    finally:
        operator.kill()
    lines = operator.said().splitlines()
    errors = [line for line in lines if any(word in line for word in WRONG)]
    assert not errors, f"{release.name}: {errors[:3]}"


async def upgraded(old: Release, new: Release, folder: Path, record: Path | None) -> None:
    """Up politely, down by a crash; print what was kept, and write what the older version had stored."""
    with processes.running(folder, nodes=0, pod_groups=True) as cluster:
        config = cluster.kubeconfig
        define(config, old)
        async with speaking(config) as speaker:
            story = Story(await Scene(speaker).begin())
            with running(config, old, folder / "first.log") as first:
                await story.begin()
                await story.trouble()
                stored = await story.stored()
                if record is not None:
                    written(record, old, stored)
                define(config, new)
                assert (await story.stored()).keys() >= stored.keys(), (
                    "the new definitions serve what was stored"
                )
                await story.places_a_pod("between")
                with running(config, new, folder / "second.log") as second:
                    assert not second.leads, "a standby"
                    assert first.terminate() == 0
                    await until_leading(second)
                    await story.finish()
                    print(f"up, {old.name} to {new.name}, by SIGTERM:", await story.judge(stored), flush=True)
                    await story.open_again()
                    await story.trouble()
                    stored = await story.stored()
                    with running(config, old, folder / "third.log") as third:
                        second.kill()
                        await until_leading(third)
                        await story.finish()
                        print(
                            f"back, {new.name} to {old.name}, by SIGKILL:",
                            await story.judge(stored),
                            flush=True,
                        )
                        define(config, old)
                        assert (await story.stored()).keys() >= stored.keys(), (
                            "older definitions serve it, too"
                        )
                        await story.places_a_pod("back")
                        assert third.terminate() == 0
            await story.scene.end()


def written(record: Path, release: Release, stored: dict[str, Any]) -> None:
    """Write stored objects as tests/upgrades/test_stored_objects.py reads them."""
    objects = list(stored.values())
    for each in objects:
        each["metadata"].pop("managedFields", None)
    content = {"release": release.name, "defaults": defaults_of(release.definitions), "objects": objects}
    record.write_text(json.dumps(content, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def main() -> None:
    """Upgrade and roll back."""
    parser = argparse.ArgumentParser(
        prog="make upgrade-check", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument(
        "--from", dest="older", help="a tag or commit; left out: the release before", default=""
    )
    parser.add_argument(
        "--kept", type=Path, default=ROOT / "build/upgrades", help="where releases are installed"
    )
    parser.add_argument("--record", type=Path, help="a file for what the older version has stored")
    chosen = parser.parse_args()
    old = installed(chosen.older or before(), chosen.kept)
    new = Release(git("rev-parse", "--short=12", "HEAD"), ROOT)
    folder = Path(tempfile.mkdtemp(prefix="plimsoll-upgrade-"))
    print(f"logs are in {folder}", flush=True)
    asyncio.run(upgraded(old, new, folder, chosen.record))


if __name__ == "__main__":
    main()
