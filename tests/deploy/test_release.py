"""A release is the same bytes when it is made twice, and is enough for somebody who has nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tarfile
import venv
from typing import TYPE_CHECKING

import pytest

import plimsoll
from deploy.tools import ROOT, tool
from release import wheels

if TYPE_CHECKING:
    from pathlib import Path

    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.slow,  # builds five distributions twice, and installs one with what it requires
    pytest.mark.timeout(900),
]

VERSION = plimsoll.__version__


def made(folder: Path, version: str = VERSION) -> subprocess.CompletedProcess[str]:
    """A release in a folder."""
    command = [sys.executable, "-m", "release", version, str(folder), "--dry-run"]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "tools")}
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def dist(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `make release` writes."""
    folder = tmp_path_factory.mktemp("release") / "dist"
    done = made(folder)
    assert done.returncode == 0, done.stderr
    return folder


def test_two_releases_of_a_commit_are_the_same(dist: Path, tmp_path: Path) -> None:
    """To the byte, so that a second build can be compared with what was published."""
    made(tmp_path / "again")

    assert (tmp_path / "again/SHA256SUMS").read_text() == (dist / "SHA256SUMS").read_text()


def test_it_has_what_the_page_says(dist: Path) -> None:
    """Wheels, sources, charts in both forms, definitions, bill of materials, notes; checksums of them all."""
    names = {each.name for each in dist.iterdir() if each.is_file()}
    (wheel,) = dist.glob("plimsoll-*.whl")

    assert wheel.name.startswith(f"plimsoll-{VERSION}-py3-none-")
    assert names - {wheel.name} == {
        f"plimsoll-{VERSION}.tar.gz",
        f"plimsoll-{VERSION}.tgz",
        f"plimsoll-crds-{VERSION}.tgz",
        f"plimsoll_demo-{VERSION}-py3-none-any.whl",
        f"plimsoll_testing-{VERSION}-py3-none-any.whl",
        "roadstead-0.1.0-py3-none-any.whl",
        "crds.yaml",
        "notes.md",
        "plimsoll.cdx.json",
        "SHA256SUMS",
    }
    assert wheels.newest_symbol(wheel) <= wheels.C_LIBRARY
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, check=True)


def test_the_layout_of_a_chart_holds_the_archive(dist: Path) -> None:
    """With helm's media types, as helm pushes it."""
    layout = dist / "oci/plimsoll"
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads((layout / "blobs/sha256" / entry["digest"].removeprefix("sha256:")).read_text())
    (layer,) = manifest["layers"]

    assert entry["annotations"]["org.opencontainers.image.ref.name"] == VERSION
    assert manifest["config"]["mediaType"] == "application/vnd.cncf.helm.config.v1+json"
    content = (layout / "blobs/sha256" / layer["digest"].removeprefix("sha256:")).read_bytes()
    assert content == (dist / f"plimsoll-{VERSION}.tgz").read_bytes()


def test_a_version_that_is_not_stated_is_not_released(tmp_path: Path) -> None:
    """By the package and both charts; and nothing is written."""
    done = made(tmp_path / "dist", "9.9.9")

    assert done.returncode == 1
    assert "deploy/chart/Chart.yaml" in done.stderr
    assert not (tmp_path / "dist").exists()


def test_a_stranger_installs_the_wheel(dist: Path, tmp_path: Path) -> None:
    """In an empty environment, with the locked versions of what it requires; the command runs."""
    venv.create(tmp_path / "venv")
    (wheel,) = dist.glob("plimsoll-*.whl")
    # The pip that runs the tests, for that environment: to install another one takes a second of its own.
    pip = [
        *(sys.executable, "-m", "pip", "--python", str(tmp_path / "venv/bin/python")),
        "install",
        "--quiet",
        "--disable-pip-version-check",
        "--no-compile",
    ]
    pinned = tmp_path / "constraints"
    lock = (ROOT / "requirements-runtime.lock").read_text(encoding="utf-8").splitlines()
    pinned.write_text(
        "\n".join(line.rstrip(" \\") for line in lock if "==" in line and not line.startswith(" "))
    )
    subprocess.run([*pip, "--constraint", str(pinned), str(wheel)], check=True, capture_output=True)

    def said(*args: str) -> str:
        command = [str(tmp_path / "venv/bin/plimsoll"), *args]
        environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said("version").strip() == VERSION
    assert "explain" in said("--help")
    assert not (tmp_path / "venv/lib/python3/site-packages/highspy").exists()


def test_a_stranger_installs_the_chart(dist: Path, start_roadstead: StartRoadstead) -> None:
    """From its archive, into a cluster that has none of our kinds: it brings the definitions."""
    cluster = start_roadstead(nodes=0)
    archive = dist / f"plimsoll-{VERSION}.tgz"
    with tarfile.open(archive) as opened:
        assert not [each.name for each in opened if not each.isfile()]
    common = ["--kubeconfig", str(cluster.kubeconfig)]
    install = [
        tool("helm"),
        "install",
        "plimsoll",
        str(archive),
        "--namespace",
        "plimsoll",
        "--create-namespace",
    ]
    done = subprocess.run([*install, *common], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    listed = subprocess.run(
        [tool("kubectl"), *common, "get", "deployments,schedulingpolicies,evictions", "-A", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert listed.stdout.split() == ["deployment.apps/plimsoll"]
