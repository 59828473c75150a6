"""Each artefact of a release, installed by the programs that strangers use, in a clean place, and run.

``make release-check`` makes the release and runs them: an image takes minutes, root and programs of Debian;
pip fetches from its index what the wheels require. ``PLIMSOLL_RELEASE`` names the folder of a release.
In ``make test`` test_release.py and test_wheel.py install what needs none of these.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from deploy.container import missing_programs, unpack
from deploy.layout_registry import served
from deploy.test_wheel import FIRST_WORK, of_ours
from deploy.tools import ROOT, tool
from e2e.host import Host
from e2e.operator_process import Operator
from e2e.polls import eventually
from e2e.speaker import speaking
from plimsoll.version import __version__
from release import wheels

if TYPE_CHECKING:
    from collections.abc import Iterator

    from roadstead.pytest_plugin import StartRoadstead

FOLDER = "PLIMSOLL_RELEASE"
pytestmark = [
    pytest.mark.skipif(
        FOLDER not in os.environ, reason="no release with images: make release-check makes one"
    ),
    pytest.mark.slow,  # fetches what each wheel requires, unpacks an image
    pytest.mark.timeout(900),
]
DIST = Path(os.environ.get(FOLDER, "dist"))
#: The first work of distributions that tests/deploy/test_wheel.py tries in another way.
FIRST = {
    **{name: code for name, (_, code) in FIRST_WORK.items()},
    "dra_cel": "from dra_cel import selector; assert not selector('true').error",
    "plimsoll_core": "import plimsoll.engine.profile",
    "plimsoll_client": "import plimsoll.commands.program",
    "plimsoll_demo": "import plimsoll_demo.__main__",
}
#: What a wheel requires of ours by the extra of another.
MORE = {"plimsoll_demo": ["kubectl_plimsoll"]}
#: Wheels whose commands are run, and how.
COMMANDS = {
    "plimsoll": ["plimsoll", "version"],
    "kubectl_plimsoll": ["kubectl-plimsoll", "version"],
    "roadstead": ["roadstead", "--version"],
}
#: Nothing of the environment that runs the tests.
CLEAN = {"PATH": "/usr/bin:/bin", "COLUMNS": "120"}


def ran(*command: str | Path, **environment: str) -> str:
    """What a program prints that must succeed, without this environment's variables."""
    done = subprocess.run(command, env={**CLEAN, **environment}, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
    return done.stdout


def test_every_wheel_is_tried() -> None:
    """As many as there are projects."""
    names = {each.name.partition("-")[0] for each in DIST.glob("*.whl")}

    assert names == FIRST.keys()
    assert len(names) == len(wheels.PROJECTS)


def test_the_checksums_are_those_of_all_files() -> None:
    """Images and charts in their layouts, too."""
    listed = {line.split("  ", 1)[1] for line in (DIST / "SHA256SUMS").read_text().splitlines()}

    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=DIST, check=True)
    assert listed == {str(each.relative_to(DIST)) for each in DIST.rglob("*") if each.is_file()} - {
        "SHA256SUMS"
    }


@pytest.mark.parametrize("name", FIRST)
def test_a_wheel_is_installed_by_pip_into_an_empty_environment(name: str, tmp_path: Path) -> None:
    """Alone, with those of ours that it requires as files: an index may have others of their names."""
    subprocess.run([sys.executable, "-m", "venv", tmp_path / "venv"], check=True)
    programs = tmp_path / "venv/bin"
    pip = [str(programs / "pip"), "install", "--quiet", "--disable-pip-version-check", "--only-binary=:all:"]
    ours = of_ours(name, *MORE.get(name, ()))
    files = [next(DIST.glob(f"{each}-*.whl")) for each in sorted(ours)]
    done = subprocess.run([*pip, *files], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr

    assert ran(programs / "python", "-c", FIRST[name]) == ""
    if command := COMMANDS.get(name):
        version = "0.1.0" if name == "roadstead" else __version__
        assert ran(programs / command[0], *command[1:]).split()[-1] == version


@pytest.fixture(scope="module")
def bundle() -> Iterator[Path]:
    """The image, unpacked."""
    missing = missing_programs()
    assert not missing, f"make release-check needs {', '.join(missing)}"
    folder = Path(tempfile.mkdtemp())  # pytest's folders are closed to other users
    folder.chmod(0o755)
    yield unpack(DIST / "images" / __version__, folder / "bundle")
    shutil.rmtree(folder)


async def test_the_charts_come_from_a_registry_and_the_image_serves_a_policy(
    bundle: Path, tmp_path: Path, start_roadstead: StartRoadstead
) -> None:
    """Both charts by helm; the installed Deployment's options and rights; a plan of a dry run is recorded."""
    cluster = start_roadstead(nodes=2)
    environment = {"KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}
    processes: list[Operator] = []

    def start(kubeconfig: Path, *options: str) -> Operator:
        log = tmp_path / f"operator-{len(processes)}.log"
        processes.append(Operator(kubeconfig, log, options=options, bundle=bundle))
        return processes[-1].start()

    async with speaking(cluster.kubeconfig) as speaker:
        host = Host(speaker, cluster, start, tmp_path)
        with served(DIST / "oci") as registry:
            for chart, more in (("plimsoll-crds", ()), ("plimsoll", ("--set", "crds.enabled=false"))):
                ran(
                    *(tool("helm"), "install", chart, f"oci://{registry}/{chart}", "--plain-http"),
                    *("--version", __version__, "--namespace", "plimsoll", "--create-namespace", *more),
                    **environment,
                )
        speaker.begin(host.run())
        ran(tool("kubectl"), "apply", "-f", str(ROOT / "examples/rebalance-dry-run.yaml"), **environment)

        async def conditions() -> dict[str, Any]:
            path = "/apis/plimsoll.dev/v1alpha1/schedulingpolicies/rebalance"
            found = (await speaker.request("GET", path)).accepted().get("status", {}).get("conditions", ())
            return {each["type"]: each["status"] for each in found}

        await eventually(conditions, lambda found: found.get("Ready") == "True")
    assert host.refused == set()
    assert processes[0].said()


def test_the_minimal_image_starts(tmp_path: Path) -> None:
    """The other variant, in its own root."""
    layout = DIST / "images" / f"{__version__}-minimal"
    root = unpack(layout, tmp_path / "bundle") / "rootfs"

    said = ran("/usr/sbin/chroot", "--userspec=65532:65532", root, "python", "-m", "plimsoll", "version")

    assert said.strip() == __version__


def test_the_archive_for_krew_is_a_plugin_of_kubectl(tmp_path: Path, start_roadstead: StartRoadstead) -> None:
    """As krew installs it: checked, unpacked, linked to where kubectl looks; no Python is on the PATH."""
    manifest = yaml.safe_load((DIST / "plimsoll.krew.yaml").read_text(encoding="utf-8"))
    (platform,) = manifest["spec"]["platforms"]
    archive = DIST / platform["uri"].rpartition("/")[2]
    assert hashlib.sha256(archive.read_bytes()).hexdigest() == platform["sha256"]
    with tarfile.open(archive) as opened:
        opened.extractall(tmp_path / "store", filter="data")
    found = tmp_path / "bin"
    found.mkdir()
    (found / "kubectl-plimsoll").symlink_to(tmp_path / "store" / platform["bin"])
    (found / "kubectl").symlink_to(tool("kubectl"))
    for name in ("sh", "dirname", "readlink"):
        (found / name).symlink_to(f"/bin/{name}")
    cluster = start_roadstead(nodes=2)
    environment = {"PATH": str(found), "KUBECONFIG": str(cluster.kubeconfig), "HOME": str(tmp_path)}

    assert ran(found / "kubectl", "plimsoll", "version", **environment).strip() == __version__
    planned = ran(
        *(found / "kubectl", "plimsoll", "plan", "-f", ROOT / "examples/rebalance-dry-run.yaml"),
        **environment,
    )
    assert "rebalance" in planned
