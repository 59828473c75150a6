"""Fixtures for tests against a cluster, loaded by pytest where roadstead is installed."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

import pytest

if TYPE_CHECKING:  # a test run that uses no cluster does not load it
    from roadstead.clients import RunningCluster


class StartRoadstead(Protocol):
    """The type of the fixture ``start_roadstead``."""

    def __call__(self, *options: str) -> RunningCluster:
        """Start a cluster with options of the command ``roadstead``; it ends after the test."""
        ...


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that names a real cluster."""
    parser.getgroup("roadstead").addoption(
        "--roadstead-kubeconfig",
        type=Path,
        metavar="FILE",
        help="run the tests against the cluster of this kubeconfig; left out: roadstead",
    )


@pytest.fixture(scope="session")
def roadstead_process(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningCluster]:
    """A cluster in a process of its own, with three simulated nodes; one for the whole session."""
    from roadstead import clients, processes  # noqa: PLC0415 - loaded when first used

    if given := request.config.getoption("--roadstead-kubeconfig"):
        yield clients.RunningCluster(given, simulated=False)
        return
    with processes.running(tmp_path_factory.mktemp("roadstead"), "--nodes", "3") as cluster:
        yield cluster


@pytest.fixture
def start_roadstead(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartRoadstead]:
    """Start further clusters, each in a process of its own."""
    from roadstead import processes  # noqa: PLC0415 - loaded when first used

    with contextlib.ExitStack() as stack:

        def start(*options: str) -> RunningCluster:
            folder = tmp_path_factory.mktemp("roadstead")
            return stack.enter_context(processes.running(folder, *options))

        yield start
