"""The operator exports its moves to a file and to an address, also when it dies in between."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

import pytest
from aiohttp import web

from cli.commands import say
from e2e.conftest import define
from e2e.polls import eventually
from e2e.scene import Scene
from e2e.speaker import MERGE, speaking
from e2e.stories import consolidation
from e2e.test_tenants import violated_taint
from plimsoll.api.v1alpha1.annotations import STOP
from plimsoll.api.v1alpha1.audit import AuditedEviction

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from e2e.operator_process import Operator
    from roadstead.pytest_plugin import StartRoadstead

pytestmark = [pytest.mark.e2e]


async def test_moves_are_in_the_file_and_at_the_address(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """Two moves: two lines, whose records say so; a restart writes none again. A stop makes a notice, too."""
    events: list[dict[str, Any]] = []

    async def take(request: web.Request) -> web.Response:
        events.append(await request.json())
        return web.Response()

    app = web.Application()
    app.router.add_post("/", take)
    receiver = web.AppRunner(app)
    await receiver.setup()
    await web.TCPSite(receiver, "127.0.0.1", 0).start()
    address, log = f"http://127.0.0.1:{receiver.addresses[0][1]}/", tmp_path / "audit.jsonl"
    options = ("--audit-log", str(log), "--cluster-name", "west", "--notify-url", address)
    cluster = start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        operator = start_operator(cluster.kubeconfig, *options)
        operator.until_ready()
        scene = await Scene(speaker).begin()
        await violated_taint(scene)

        async def exported() -> set[str]:
            records = await scene.records()
            return {each["metadata"]["uid"] for each in records if is_exported(each)}

        uids = await eventually(exported, lambda found: len(found) == 2)
        operator.kill()
        operator.start().until_ready()
        stop = {"metadata": {"annotations": {STOP: "true"}}}
        path = "/api/v1/namespaces/kube-system"
        (await speaker.request("PATCH", path, stop, sends=MERGE)).accepted()

        async def told() -> set[str]:
            return {each["type"] for each in events}

        await eventually(told, lambda types: "dev.plimsoll.schedulingpolicy.paused" in types, 60.0)
        await scene.end()
    await receiver.cleanup()

    lines = [AuditedEviction.from_wire(json.loads(each)) for each in log.read_text("utf-8").splitlines()]
    assert sorted(each.uid for each in lines) == sorted(uids)
    assert {each.cluster for each in lines} == {"west"}
    settled = [each for each in events if each["type"] == "dev.plimsoll.move.settled"]
    assert sorted(each["subject"] for each in settled) == sorted(
        f"{one.namespace}/{one.name}" for one in lines
    )
    assert {each["source"] for each in events} == {"/clusters/west/plimsoll"}
    assert "cluster=west" in operator.log.read_text("utf-8")


async def test_a_freed_node_is_in_the_history_of_records_and_of_the_file(
    tmp_path: Path, start_roadstead: StartRoadstead, start_operator: Callable[..., Operator]
) -> None:
    """With its price, though the node does not state it any more; and what the moves cost."""
    log, cluster = tmp_path / "audit.jsonl", start_roadstead()
    async with speaking(cluster.kubeconfig) as speaker:
        await define(speaker)
        start_operator(cluster.kubeconfig, "--audit-log", str(log)).until_ready()
        scene = await Scene(speaker).begin()
        _, idle = await consolidation(scene, price="0.25 EUR")
        await eventually(scene.records, lambda found: len(found) == 2 and all(map(is_exported, found)))
        await scene.change_node(idle, {"metadata": {"annotations": {"plimsoll.dev/price-per-hour": None}}})
        kept = await asyncio.to_thread(say, "history", "-A", "-o", "json", KUBECONFIG=str(cluster.kubeconfig))
        await scene.end()

    for said in (kept, say("history", "--from", str(log), "-o", "json")):
        totals = json.loads(said.out)["totals"]
        assert (totals["restarts"], totals["nodesFreed"], totals["failures"]) == (2, 1, 0)
        assert totals["freedPerHour"] == {"EUR": 0.25}
        assert totals["secondsBelowReplicas"] >= 0  # the stamps are in whole seconds


def is_exported(record: dict[str, Any]) -> bool:
    """Whether the record is in the file."""
    return "exportedTime" in record.get("status", {})
