"""Fixtures for tests against a cluster, loaded by pytest where roadstead is installed."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

#: The decorator of the asynchronous fixture; pytest's own where pytest-asyncio is not installed.
async_fixture: Callable[..., Any] = pytest.fixture
with contextlib.suppress(ModuleNotFoundError):
    import pytest_asyncio

    async_fixture = pytest_asyncio.fixture

if TYPE_CHECKING:  # a test run that uses no cluster does not load it
    from roadstead.clients import RunningCluster
    from roadstead.cluster import DevCluster
    from roadstead.processes import Launch


#: Options of the command, such as ``{"nodes": 3}``.
Options = dict[str, str | float | Path | bool]


class StartRoadstead(Protocol):
    """The type of the fixture ``start_roadstead``."""

    def __call__(self, **options: str | float | Path | bool) -> RunningCluster:
        """Start a cluster with options of the command, such as ``nodes=3``; it ends after the test."""
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
def launch_roadstead() -> Launch:
    """The function that starts the process; a project may override it."""
    from roadstead import processes  # noqa: PLC0415 - loaded when first used

    return processes.launch


@pytest.fixture(scope="session")
def roadstead_options() -> Options:
    """Options of the command for ``roadstead`` and ``roadstead_process``; a project may override it."""
    return {"nodes": 3, "scheduler": True, "storage_class": "standard"}


@pytest.fixture(scope="session")
def roadstead_process(
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
    launch_roadstead: Launch,
    roadstead_options: Options,
) -> Iterator[RunningCluster]:
    """A cluster in a process of its own, as ``roadstead_options`` describes it; one for the whole session."""
    from roadstead import clients, processes  # noqa: PLC0415 - loaded when first used

    if given := request.config.getoption("--roadstead-kubeconfig"):
        cluster = clients.RunningCluster(given, simulated=False)
        yield cluster
        cluster.reset()
        return
    with processes.running(
        tmp_path_factory.mktemp("roadstead"), launch_roadstead, **roadstead_options
    ) as cluster:
        yield cluster


@pytest.fixture
def roadstead(roadstead_process: RunningCluster) -> RunningCluster:
    """The cluster of the session, without objects of earlier tests.

    In an external cluster only objects created with ``apply`` are deleted.
    """
    roadstead_process.reset()
    return roadstead_process


@pytest.fixture
def start_roadstead(
    tmp_path_factory: pytest.TempPathFactory, launch_roadstead: Launch
) -> Iterator[StartRoadstead]:
    """Start further clusters, each in a process of its own."""
    from roadstead import processes  # noqa: PLC0415 - loaded when first used

    with contextlib.ExitStack() as stack:

        def start(**options: str | float | Path | bool) -> RunningCluster:
            folder = tmp_path_factory.mktemp("roadstead")
            return stack.enter_context(processes.running(folder, launch_roadstead, **options))

        yield start


@async_fixture
async def roadstead_in_process() -> AsyncIterator[DevCluster]:
    """A cluster of three nodes in the event loop of the test, without a port; needs pytest-asyncio."""
    from roadstead.cluster import DevCluster, simulated_nodes  # noqa: PLC0415 - loaded when first used

    async with DevCluster(nodes=simulated_nodes(3), port=None) as cluster:
        yield cluster
