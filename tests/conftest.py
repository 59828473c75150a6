"""Fixtures that all tests share: a cluster to talk to over HTTP.

``roadstead_process`` and ``kubeconfig`` are one cluster for all tests of a session: use a namespace of your
own. Where ``PLIMSOLL_E2E_KUBECONFIG`` names a cluster, they are that one. ``start_roadstead`` starts further
ones, for tests that need an empty one or other options. All but ``kubeconfig`` come from roadstead's plugin.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from forking import Forked
from roadstead.clients import RunningCluster
from roadstead.processes import Launch

#: Folders whose tests wait for processes most of their time.
WAITING = {"e2e", "deploy"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the tests that wait: the others keep the processors busy beside them."""
    items.sort(key=lambda item: item.path.parent.name not in WAITING)


def pytest_configure(config: pytest.Config) -> None:
    """Hand the named cluster to roadstead's fixtures."""
    if named := os.environ.get("PLIMSOLL_E2E_KUBECONFIG"):
        config.option.roadstead_kubeconfig = Path(named)


@pytest.fixture(scope="session")
def launch_roadstead() -> Launch:
    """Start clusters as forks."""

    def launch(arguments: Sequence[str], log: Path) -> Forked:
        return Forked("roadstead", *arguments, output=log)

    return launch


@pytest.fixture(scope="session")
def kubeconfig(roadstead_process: RunningCluster) -> Path:
    """The kubeconfig of this session's cluster."""
    return roadstead_process.kubeconfig
