"""Each distribution works with what its metadata requires: no test environment lends it a package."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from deploy.installation import link, required
from deploy.released import FIRST, released

#: The wheels of ours that a distribution stands on, and a program that does its first work.
FIRST_WORK = {
    "plimsoll_core": (
        (),
        (
            "from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile\n"
            "from plimsoll.framework import Registry\n"
            "from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE\n"
            "enabled = [Enabled(name) for name in DEFAULT_PLUGINS]\n"
            "build_profile(ProfileConfig('s'), Registry(IN_TREE), enabled)"
        ),
    ),
    "plimsoll": (("plimsoll_core", "plimsoll_client"), "import plimsoll.app.process, plimsoll.app.command"),
    "kubectl_plimsoll": (
        ("plimsoll_core", "plimsoll_client"),
        (
            "from importlib import import_module\n"
            "from pkgutil import walk_packages\n"
            "for name in ('cli', 'inspection', 'migration', 'simulation', 'web_pages'):\n"
            "    package = import_module(f'plimsoll.{name}')\n"
            "    for each in walk_packages(package.__path__, f'{package.__name__}.'):\n"
            "        import_module(each.name)"
        ),
    ),
    "dra_cel": (
        (),
        (
            "from dra_cel import selector\n"
            "found = selector('device.driver == \"gpu.example.com\"')\n"
            "assert not found.error, found.error"
        ),
    ),
    "plimsoll_optimal": (("plimsoll_core",), "import plimsoll_optimal.planner, plimsoll_optimal.milp"),
    "plimsoll_testing": (
        ("plimsoll_core", "plimsoll_client"),
        "import plimsoll.testing.conformance, plimsoll.testing.fakes",
    ),
    "roadstead": (
        (),
        (
            "import asyncio\n"
            "from roadstead.cluster import DevCluster, simulated_nodes\n"
            "async def serve():\n"
            "    async with DevCluster(nodes=simulated_nodes(1), port=None):\n"
            "        pass\n"
            "asyncio.run(serve())"
        ),
    ),
}


def installed(folder: Path, *names: str) -> Path:
    """A folder with these wheels of a release and what they require, for a Python that sees nothing else."""
    for name in names:
        (wheel,) = (released() / FIRST).glob(f"{name}-*.whl")
        zipfile.ZipFile(wheel).extractall(folder)
    link(required([*metadata.distributions(path=[str(folder)])]), folder)
    return folder


def ran(folder: Path, code: str) -> subprocess.CompletedProcess[str]:
    """Python without packages but those of the folder."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1"}
    command = [sys.executable, "-S", "-c", code]
    return subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, text=True)


@pytest.mark.parametrize("name", FIRST_WORK)
def test_it_works_with_what_it_requires(name: str, tmp_path: Path) -> None:
    """And with nothing else."""
    below, code = FIRST_WORK[name]
    done = ran(installed(tmp_path, *below, name), code)

    assert done.returncode == 0, done.stderr


def test_a_package_that_is_not_required_is_missing(tmp_path: Path) -> None:
    """Although the environment of these tests has it."""
    assert "No module named 'kopf'" in ran(installed(tmp_path, "plimsoll_core"), "import kopf").stderr
