"""The image as it is built for real where no registry is reached, and run as deploy/ runs it.

``make image-check`` runs them: a build takes three minutes, root and Debian's mmdebstrap, buildah, umoci and
crun. In ``make test`` test_image.py carries out the same Dockerfile's steps. ``PLIMSOLL_IMAGE_LAYOUT`` names
a layout that has been built.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from deploy.container import Container, missing_programs, restricted, unpack
from deploy.tools import ROOT
from e2e.conftest import define
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import speaking
from plimsoll.version import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.pytest_plugin import StartRoadstead

MISSING = [] if sys.version_info[:2] == (3, 11) else ["Python 3.11"]
MISSING += missing_programs() + [name for name in ("mmdebstrap", "buildah") if shutil.which(name) is None]

#: ``make image-check`` fails where something is missing, so that a workflow cannot pass without an image.
MUST_RUN = "PLIMSOLL_IMAGE_CHECK" in os.environ
IS_ASKED = MUST_RUN or "PLIMSOLL_IMAGE_LAYOUT" in os.environ

pytestmark = [
    pytest.mark.skipif(
        not IS_ASKED, reason="the image was not built for real: make image-check does, in minutes"
    ),
    pytest.mark.skipif(
        bool(MISSING) and not MUST_RUN, reason=f"the image is built with {', '.join(MISSING)}"
    ),
    pytest.mark.slow,  # makes a root file system of Debian's packages
    pytest.mark.timeout(1800),
]


@pytest.fixture(scope="module")
def bundle() -> Iterator[Path]:
    """The smallest image, built and unpacked."""
    assert not MISSING, f"make image-check needs {', '.join(MISSING)}"
    folder = Path(tempfile.mkdtemp())  # pytest's folders are closed to other users
    folder.chmod(0o755)
    try:
        layout = Path(os.environ.get("PLIMSOLL_IMAGE_LAYOUT", folder / "layout"))
        if not layout.exists():
            build = [sys.executable, str(ROOT / "deploy/image/build.py"), str(layout), ""]
            done = subprocess.run(build, capture_output=True, text=True, check=False)
            assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
        yield unpack(layout, folder / "bundle")
    finally:
        shutil.rmtree(folder)


def said(bundle: Path, folder: Path, *args: str) -> tuple[int, str]:
    """The status and the words of one command of the image."""
    with folder.with_suffix(".said").open("wb+") as sink:
        status = Container(folder, restricted(bundle, {}, {}, *args), sink).wait(60)
        sink.seek(0)
        return status, sink.read().decode()


def test_it_starts(bundle: Path, tmp_path: Path) -> None:
    """As the image's own user, with its own interpreter."""
    assert said(bundle, tmp_path / "version", "version") == (0, f"{__version__}\n")

    status, text = said(bundle, tmp_path / "run", "run")

    assert status == 1
    assert "no usable configuration" in text
    assert "Traceback" not in text


def test_it_is_small_and_holds_nothing_to_work_with(bundle: Path) -> None:
    """120 MB without the solver and the engine of CEL; no shell, no package manager, one interpreter."""
    files = [path for path in (bundle / "rootfs").rglob("*") if path.is_file() and not path.is_symlink()]
    programs = {path.name for path in files if os.access(path, os.X_OK) and "bin" in path.parts}
    names = {path.name for path in files}

    assert [name for name in programs if not name.startswith("python3.")] == []
    assert len(programs) == 1
    assert not names & {"sh", "bash", "dash", "busybox", "apt", "dpkg", "pip", "perl"}
    assert not [path for path in files if path.stat().st_mode & 0o6022]  # no setuid, nothing others may write
    if "PLIMSOLL_IMAGE_LAYOUT" not in os.environ:
        assert not any("highs" in name or "cel_expr" in name for name in names)
        assert sum(path.stat().st_size for path in files) < 120_000_000


async def test_it_serves_a_policy(bundle: Path, tmp_path: Path, start_roadstead: StartRoadstead) -> None:
    """It becomes ready, binds pods, moves them off a tainted node with records, and ends with status 0."""
    cluster = start_roadstead(nodes=0)
    operator = Operator(cluster.kubeconfig, tmp_path / "log", bundle=bundle).start().until_ready()
    try:
        async with speaking(cluster.kubeconfig) as speaker:
            await define(speaker)
            scene = await Scene(speaker).begin()
            old = await scene.node("old")
            await scene.scheduling()
            await scene.deployment("web", 3)
            new = await scene.node("new")
            taint = {"key": "maintenance", "value": "now", "effect": "NoSchedule"}
            await scene.change_node(old, {"spec": {"taints": [taint]}})
            await scene.policy(scene.rebalancing("RemovePodsViolatingNodeTaints"))
            await eventually(lambda: scene.running(app="web"), [new, new, new].__eq__)
            records = await scene.until_finished(3)
            await scene.end()
    finally:
        status = operator.terminate()

    assert {each["status"]["phase"] for each in records} == {"Settled"}
    assert status == 0, operator.said()
