"""The page on background work names the tasks that an operator has, and no others."""

from __future__ import annotations

import asyncio
import importlib
import re
from typing import TYPE_CHECKING

import pytest

from e2e.conftest import ROOT, define
from e2e.polls import eventually
from e2e.speaker import speaking
from plimsoll.app.machine.loop_thread import LoopThread
from plimsoll.app.machine.machine import Machine
from plimsoll.app.operator import Operator
from plimsoll.app.settings import Settings
from plimsoll.http_services.extenders import HTTPExtenders
from plimsoll.kube.session.session import connected

if TYPE_CHECKING:
    from roadstead.pytest_plugin import StartRoadstead

PAGE = ROOT / "docs" / "background-work.md"
ROW = re.compile(r"^\| `([^`]+)` \| `([^`]+)` \|", re.MULTILINE)
NAMED_BY_ASYNCIO = re.compile(r"Task-\d+")


def rows() -> dict[str, str]:
    """Module by task, as the page has them."""
    return dict(ROW.findall(PAGE.read_text(encoding="utf-8")))


def running(others: set[asyncio.Task[object]]) -> set[str]:
    """The names of the tasks that have begun since, watches as one."""
    names = {task.get_name() for task in asyncio.all_tasks() - others}
    named = {name for name in names if not NAMED_BY_ASYNCIO.fullmatch(name)}
    return {"watch of <resource>" if name.startswith("watch of ") else name for name in named}


@pytest.mark.e2e
async def test_the_page_names_every_task_of_an_operator(start_roadstead: StartRoadstead) -> None:
    """A leader on an empty cluster, once it decides."""
    cluster = start_roadstead(controllers=False)
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
    async with (
        connected(cluster.kubeconfig) as session,
        LoopThread("election") as thread,
        thread.entered(connected(cluster.kubeconfig)) as lease_session,
    ):
        settings = Settings(kubeconfig=cluster.kubeconfig)
        operator = Operator(settings, session, lease_session, thread, Machine(), HTTPExtenders())
        others = asyncio.all_tasks()
        for name, work in operator.work.items():
            operator.supervision.begin(name, work)

        async def names() -> set[str]:
            return running(others)

        try:
            found = await eventually(names, lambda found: found == set(rows()))
        finally:
            await operator.supervision.cancel()
            await operator.extenders.retain(())

    assert found == set(rows())


def test_the_modules_of_the_page_exist() -> None:
    """Each can be imported."""
    for module in set(rows().values()):
        importlib.import_module(f"plimsoll.{module}")
