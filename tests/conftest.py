"""Fixtures that all tests share: a cluster to talk to over HTTP.

``kubeconfig`` and ``devcluster`` are one cluster for all tests of a session: use a namespace of your own.
Where ``PLIMSOLL_E2E_KUBECONFIG`` names a cluster, they are that one. ``start_devcluster`` starts further
development clusters, for tests that need an empty one or other options.
"""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import yaml
from hypothesis import settings

from forking import Forked

#: Seconds until a development cluster answers; an operator has as long (tests/e2e/operating.py).
PATIENCE_S = 90

# A busy machine is slow, not wrong: the time limit of a whole test is pytest's.
settings.register_profile("plimsoll", deadline=None)
settings.load_profile("plimsoll")


#: Folders whose tests wait for processes most of their time.
WAITING = {"e2e", "deploy"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait: the others keep the processors busy beside them."""
    items.sort(key=lambda item: item.path.parent.name not in WAITING)


@dataclass(frozen=True, slots=True)
class RunningCluster:
    """A cluster that answers.

    Attributes:
        kubeconfig: the file that names it.
        simulated: whether it is a development cluster, with simulated nodes.
    """

    kubeconfig: Path
    simulated: bool = True

    @property
    def url(self) -> str:
        """Where it listens, with TLS."""
        return self._cluster()["server"]

    @property
    def plain_url(self) -> str:
        """Where it listens without TLS; a development cluster only."""
        return self._cluster("-http")["server"]

    @property
    def token(self) -> str:
        """The bearer token of the current context's user."""
        token: str = self._config()["users"][0]["user"]["token"]
        return token

    def _config(self) -> dict:
        return yaml.safe_load(self.kubeconfig.read_text())

    def _cluster(self, suffix: str = "") -> dict:
        config = self._config()
        wanted = config["current-context"] + suffix
        context = next(one["context"] for one in config["contexts"] if one["name"] == wanted)
        return next(one["cluster"] for one in config["clusters"] if one["name"] == context["cluster"])


StartDevCluster = Callable[..., RunningCluster]


def _started(folder: Path, options: tuple[str, ...]) -> tuple[RunningCluster, Forked]:
    """Start a development cluster in a process of its own and wait until it answers."""
    path, log = folder / "kubeconfig", folder / "log"
    process = Forked("roadstead", "--kubeconfig", str(path), *options, output=log)
    deadline = time.monotonic() + PATIENCE_S
    while not path.exists():
        if process.poll() is not None or time.monotonic() > deadline:
            process.kill()
            pytest.fail(f"the development cluster did not start: {log.read_text()}")
        time.sleep(0.02)
    return RunningCluster(path), process


def _stop(process: Forked) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()


@pytest.fixture(scope="session")
def devcluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """The cluster of this session, with three simulated nodes unless it is somebody else's."""
    if named := os.environ.get("PLIMSOLL_E2E_KUBECONFIG"):
        yield RunningCluster(Path(named), simulated=False)
        return
    cluster, process = _started(tmp_path_factory.mktemp("devcluster"), ("--nodes", "3"))
    yield cluster
    _stop(process)


@pytest.fixture(scope="session")
def kubeconfig(devcluster: RunningCluster) -> Path:
    """The kubeconfig of this session's cluster."""
    return devcluster.kubeconfig


@pytest.fixture
def start_devcluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartDevCluster]:
    """Start a development cluster with command line options, such as ``"--nodes", "10"``."""
    processes = []

    def start(*options: str) -> RunningCluster:
        cluster, process = _started(tmp_path_factory.mktemp("devcluster"), options)
        processes.append(process)
        return cluster

    yield start
    for process in processes:
        _stop(process)
