"""Fixtures that all tests share: a cluster to talk to over HTTP.

``roadstead_process`` and ``kubeconfig`` are one cluster for all tests of a session: use a namespace of your
own. Where ``PLIMSOLL_E2E_KUBECONFIG`` names a cluster, they are that one. ``start_roadstead`` starts further
ones, for tests that need an empty one or other options. All but ``kubeconfig`` come from roadstead's plugin.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from roadstead.clients import RunningCluster

#: Folders whose tests wait for processes most of their time.
WAITING = {"e2e", "deploy"}
#: Files to begin with: a test of theirs that began last would keep one worker busy after the others.
LONG = {
    "test_conformance.py",
    "test_credentials.py",
    "test_dashboards.py",
    "test_demo.py",
    "test_deploying.py",
    "test_high_availability.py",
    "test_image.py",
    "test_installing.py",
    "test_least_privilege.py",
    "test_not_allowed.py",
    "test_status.py",
    "test_talking.py",
    "test_trouble.py",
    "test_wheel.py",
}
#: Files that compute for seconds: begun last, one of them would keep a single worker busy at the end.
HEAVY = {
    "test_attempt_cost.py",
    "test_descheduler_recordings.py",
    "test_machine_anything.py",
    "test_planner.py",
    "test_process_reaper.py",
    "test_pytest_plugin.py",
    "test_rounds.py",
    "test_scheduler_recordings.py",
    "test_structure.py",
    "test_time_limits.py",
}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Alternate tests that wait with tests that compute, so that both kinds are done at the same time.

    ``make quick`` has an order of its own, the nearest first.
    """
    if config.option.within:
        return
    waiting = [item for item in items if item.path.parent.name in WAITING]
    computing = [item for item in items if item.path.parent.name not in WAITING]
    waiting.sort(key=lambda item: item.path.name not in LONG)
    computing.sort(key=lambda item: item.path.name not in LONG | HEAVY)
    paths = dict.fromkeys(item.path for item in computing)
    files = {path: place / len(paths) for place, path in enumerate(paths)}
    turn: dict[pytest.Item, float] = {item: place / len(waiting) for place, item in enumerate(waiting)}
    turn |= {item: files[item.path] for item in computing}
    items.sort(key=turn.__getitem__)


def pytest_configure(config: pytest.Config) -> None:
    """Hand the named cluster to roadstead's fixtures."""
    if named := os.environ.get("PLIMSOLL_E2E_KUBECONFIG"):
        config.option.roadstead_kubeconfig = Path(named)


@pytest.fixture(scope="session", autouse=True)
def _browsers_end() -> Iterator[None]:
    yield
    if browser := sys.modules.get("web_pages.browser"):
        browser.end_browsers()


@pytest.fixture(scope="module", autouse=True)
def _no_timer_is_left() -> Iterator[None]:
    """One that ends an operator's process would end that of the tests, during any later test."""
    yield
    timers = (each for each in threading.enumerate() if isinstance(each, threading.Timer))
    assert [each for each in timers if not each.finished.is_set()] == []  # its thread ends a moment later


@pytest.fixture(scope="session")
def kubeconfig(roadstead_process: RunningCluster) -> Path:
    """The kubeconfig of this session's cluster."""
    return roadstead_process.kubeconfig
