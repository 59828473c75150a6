"""A release is the same bytes when it is made twice, and is enough for somebody who has nothing else."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tarfile
import venv
import zipfile
from importlib import metadata
from typing import TYPE_CHECKING

import pytest

from deploy.installation import link, required
from deploy.layout_registry import served
from deploy.released import AGAIN, FIRST, made, released
from deploy.tools import ROOT, tool
from plimsoll.version import __version__
from release import wheels
from release.__main__ import epoch

if TYPE_CHECKING:
    from pathlib import Path

    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [
    pytest.mark.slow,  # builds five distributions twice, and installs one
]

VERSION = __version__
#: Imports every module, and prints the packages that are missing.
IMPORT_ALL = """
import importlib, pkgutil, plimsoll
names = [each.name for each in pkgutil.walk_packages(plimsoll.__path__, "plimsoll.")]
for name in names:
    try:
        if not name.endswith((".__main__", "._kernel")):
            importlib.import_module(name)
    except ModuleNotFoundError as exc:
        print(exc.name.partition(".")[0])
"""


@pytest.fixture(scope="module")
def dist() -> Path:
    """What `make release` writes."""
    return released() / FIRST


def test_two_releases_of_a_commit_are_the_same(dist: Path) -> None:
    """To the byte, so that a second build can be compared with what was published."""
    again = (dist.with_name(AGAIN) / "SHA256SUMS").read_text()

    assert again == (dist / "SHA256SUMS").read_text()
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=dist, check=True)


def test_the_times_are_those_of_the_last_commit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Unless somebody names another time."""
    done = subprocess.run(["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, check=True)
    monkeypatch.delenv("SOURCE_DATE_EPOCH", raising=False)

    assert epoch() == int(done.stdout)
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert epoch() == 1700000000


def test_it_has_what_the_page_says(dist: Path) -> None:
    """Wheels, sources, charts in both forms, definitions, bill of materials, notes; checksums of them all."""
    names = {each.name for each in dist.iterdir() if each.is_file()}
    (wheel,) = dist.glob("plimsoll_core-*.whl")

    assert wheel.name.startswith(f"plimsoll_core-{VERSION}-py3-none-")
    assert names - {wheel.name} == {
        f"dra_cel-{VERSION}-py3-none-any.whl",
        f"plimsoll-{VERSION}-py3-none-any.whl",
        f"plimsoll_client-{VERSION}-py3-none-any.whl",
        f"plimsoll_optimal-{VERSION}-py3-none-any.whl",
        f"kubectl_plimsoll-{VERSION}-py3-none-any.whl",
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


def test_the_source_archive_has_what_the_wheel_is_made_of(dist: Path) -> None:
    """And no file of the same name that lies elsewhere."""
    with tarfile.open(dist / f"plimsoll-{VERSION}.tar.gz") as opened:
        names = [each.name.removeprefix(f"plimsoll-{VERSION}/") for each in opened]

    folders = {name.split("/")[0] for name in names if "/" in name}
    assert folders == {"operator", "crds"}
    assert not [name for name in names if name.endswith(".so")]
    expected = {".gitignore", "LICENSE", "PKG-INFO", "README.md", "pyproject.toml"}
    assert {name for name in names if "/" not in name} == expected


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
    done = made(ROOT, tmp_path / "dist", "9.9.9")

    assert done.returncode == 1
    assert "deploy/chart/Chart.yaml" in done.stderr
    assert not (tmp_path / "dist").exists()


def test_what_is_there_stays_when_there_are_no_notes(tmp_path: Path) -> None:
    """It is checked before anything is deleted or built."""
    kept = tmp_path / "dist" / "kept.whl"
    kept.parent.mkdir()
    kept.touch()

    done = made(ROOT, kept.parent, VERSION, "--files=here")

    assert (done.returncode, done.stdout) == (1, "")
    assert f"no entries under {VERSION}" in done.stderr
    assert kept.exists()


def test_a_dry_run_of_the_stated_version_needs_no_argument() -> None:
    """And is whole; images are left out only on request."""
    told = subprocess.run(
        ["make", "-n", "--no-print-directory", "release", "ARGS=--dry-run"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )

    assert "__version__" in told.stdout
    assert told.stdout.strip().endswith("dist --dry-run")


def test_a_stranger_installs_the_wheel(dist: Path, tmp_path: Path) -> None:
    """In an environment that has what the wheel requires and nothing else, as pip finds; the command runs."""
    venv.create(tmp_path / "venv", symlinks=True)
    (packages,) = (tmp_path / "venv/lib").glob("python*/site-packages")
    names = ("plimsoll_core", "plimsoll_client", "plimsoll", "kubectl_plimsoll")
    ours = [next(dist.glob(f"{name}-*.whl")) for name in names]
    unpacked = packages / "unpacked"
    for wheel in ours:
        zipfile.ZipFile(wheel).extractall(unpacked)
    wanted = required([*metadata.distributions(path=[str(unpacked)])])
    link([each for each in wanted if each.name.replace("-", "_") not in names], packages)
    shutil.rmtree(unpacked)
    # The pip that runs the tests, for that environment: to install another one takes a second of its own.
    pip = [
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(tmp_path / "venv/bin/python"),
        "install",
        "--no-index",
    ]
    subprocess.run([*pip, "--quiet", "--no-compile", *map(str, ours)], check=True, capture_output=True)

    def said(program: str, *args: str) -> str:
        command = [str(tmp_path / "venv/bin" / program), *args]
        environment = {"PATH": "/usr/bin:/bin", "COLUMNS": "120"}
        done = subprocess.run(
            command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert set(said("python", "-c", IMPORT_ALL).split()) <= {"highspy", "dra_cel"}
    assert said("plimsoll", "version").strip() == VERSION
    assert "explain" in said("plimsoll", "--help")


def test_a_stranger_installs_the_chart(dist: Path, start_roadstead: StartRoadstead) -> None:
    """From its layout, as from a registry, into a cluster without our kinds: it brings the definitions."""
    cluster = start_roadstead(nodes=0)
    with tarfile.open(dist / f"plimsoll-{VERSION}.tgz") as opened:
        assert not [each.name for each in opened if not each.isfile()]
    common = ["--kubeconfig", str(cluster.kubeconfig)]
    with served(dist / "oci") as registry:
        install = [tool("helm"), "install", "plimsoll", f"oci://{registry}/plimsoll", "--plain-http"]
        install += ["--version", VERSION, "--namespace", "plimsoll", "--create-namespace", *common]
        done = subprocess.run(install, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr

    listed = subprocess.run(
        [tool("kubectl"), *common, "get", "deployments,schedulingpolicies,evictions", "-A", "-o", "name"],
        capture_output=True,
        text=True,
        check=True,
    )

    assert listed.stdout.split() == ["deployment.apps/plimsoll"]
