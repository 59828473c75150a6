"""Nodes that are emptied are closed first, stay closed while that makes sense, and never for longer."""

import asyncio
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from plimsoll.cluster.watch_events import (
    NodeAdded,
    NodeDeleted,
    NodeUpdated,
    PodAdded,
    PodDeleted,
    PodUpdated,
)
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Taint
from plimsoll.model.kinds.pod import MIRROR, Pod
from plimsoll.model.taints import CONSOLIDATING
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.closed_nodes import KEPT_S, SEEN_S
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.fakes import settled
from rebalancing.scene import Scene, a_policy, status_of

EMPTYING = {"strategies": [{"name": "ConsolidateNodes"}], "evictor": {"minReplicas": 1}}


def of(app: str, node: str, uid: str = "1", phase: str = "Running", cpu: str = "200m") -> Pod:
    """A pod of an application's ReplicaSet."""
    return a_pod(f"{app}-{uid}", owner=f"ReplicaSet/{app}", cpu=cpu, node=node, status=status_of(node, phase))


class Consolidation(Scene):
    """A busy node, and a little used one with two pods; the watch shows each taint immediately."""

    def __init__(self, *documents: Any) -> None:
        super().__init__(*documents)
        nodes = list(self.cache.cluster.nodes)
        pods = [pod.pod for pod in self.cache.cluster.pods.values()]
        self.tell(*map(PodDeleted, pods), *map(NodeDeleted, nodes))
        self.present = {name: a_node(name) for name in ("busy", "idle")}
        self.tell(*map(NodeAdded, self.present.values()))
        self.tell(
            PodAdded(of("db", "busy", cpu="2")), PodAdded(of("api", "idle")), PodAdded(of("job", "idle"))
        )
        self.closer.when_done = self.told

    def told(self, verb: str, node: str) -> None:
        effect = {"close": "NoSchedule", "avoid": "PreferNoSchedule"}.get(verb)
        taints = [{"key": CONSOLIDATING, "effect": effect, "timeAdded": self.stamp}] if effect else []
        old = self.present[node]
        spec = msgspec.structs.replace(old.spec, taints=tuple(convert(Taint, each) for each in taints))
        self.present[node] = msgspec.structs.replace(old, spec=spec)
        self.tell(NodeUpdated(old, self.present[node]))

    @property
    def stamp(self) -> str:
        """Now, in whole seconds as the API has it."""
        return datetime.fromtimestamp(int(self.clock.now()), UTC).strftime("%Y-%m-%dT%H:%M:%SZ")

    def arrives(self, app: str, node: str = "busy") -> None:
        """The owner makes a replacement, and it runs there; the evicted pod is gone."""
        self.tell(PodDeleted(of(app, "idle")))
        waiting = of(app, "", "2", "Pending")
        self.tell(PodAdded(waiting), PodUpdated(waiting, of(app, node, "2")))


async def test_the_node_is_closed_before_the_first_eviction() -> None:
    """Then its pods go, and it stays closed for a while after the last one has settled."""
    scene = Consolidation()
    seen = []
    scene.evictor.when_done = lambda _: seen.append(list(scene.closer.done))

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        assert sorted(scene.evictor.evicted) == ["api-1", "job-1"]
        assert seen == [[("close", "idle")]] * 2
        scene.arrives("api")
        scene.arrives("job")
        await settled()
        assert [phases[-1] for phases in scene.phases] == ["Settled", "Settled"]
        await scene.clock.advance(KEPT_S - 30)
        assert scene.closer.done == [("close", "idle")]
        await scene.clock.advance(60)

    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]


async def test_it_stays_closed_for_as_long_after_the_last_pod_has_settled() -> None:
    """The first one settled minutes before: an autoscaler counts from the moment when the node is empty."""
    scene = Consolidation()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        scene.arrives("api")
        await scene.clock.advance(200)
        scene.arrives("job")
        await scene.clock.advance(KEPT_S - 100)
        assert scene.closer.done == [("close", "idle")]
        await scene.clock.advance(200)

    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]


async def test_it_is_opened_when_a_pod_may_not_go() -> None:
    """A budget says no to the second pod: the first has gone, the second stays, new ones may come."""
    scene = Consolidation()
    scene.evictor.answers = [
        WriteResult(WriteOutcome.DONE),
        WriteResult(WriteOutcome.BLOCKED, "no", "default/api"),
    ]

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()

    assert len(scene.evictor.evicted) == 1
    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]


async def test_it_is_opened_when_a_replacement_comes_back() -> None:
    """What was promised does not hold: the node is in use."""
    scene = Consolidation()

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        scene.arrives("api", "idle")
        await scene.clock.advance(10)

    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]


@pytest.mark.parametrize("verdict", [WriteOutcome.REFUSED, WriteOutcome.UNKNOWN, WriteOutcome.FENCED])
async def test_nothing_is_evicted_from_a_node_that_cannot_be_closed(verdict: WriteOutcome) -> None:
    """Without the right to taint nodes, say."""
    scene = Consolidation()
    scene.closer.answer = WriteResult(verdict, "nodes is forbidden")

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()

    assert (scene.evictor.evicted, scene.phases) == ([], [])
    is_failure = ("closing node idle", "nodes is forbidden") in scene.observer.failures
    assert is_failure == (verdict is not WriteOutcome.FENCED), "what a standby does not send is no failure"


async def test_a_taint_that_a_failed_closing_has_left_is_taken_away_later() -> None:
    """Its answer was lost, and opening the node failed as well: the next look tries again."""
    scene = Consolidation()
    scene.closer.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await scene.run()
        scene.closer.answer = WriteResult(WriteOutcome.DONE)
        scene.told("close", "idle")
        done = len(scene.closer.done)
        await scene.clock.advance(10)

    assert scene.evictor.evicted == []
    assert scene.closer.done[done:] == [("reopen", "idle")]


async def test_nothing_is_evicted_while_the_scheduler_does_not_see_it_closed() -> None:
    """The watch lags: pods could still come."""
    scene = Consolidation()
    scene.closer.when_done = lambda _verb, _node: None

    async with scene.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        run = asyncio.create_task(scene.run())
        await scene.clock.advance(SEEN_S + 1)
        await run

    assert scene.evictor.evicted == []
    assert scene.closer.done == [("close", "idle"), ("reopen", "idle")]


async def test_a_new_process_opens_what_no_policy_empties_any_more() -> None:
    """The old one ended between the taint and the first record."""
    scene = Consolidation()
    scene.told("close", "idle")

    async with scene.running():
        await scene.clock.advance(10)

    assert scene.closer.done == [("reopen", "idle")]


async def test_a_new_process_keeps_closed_what_is_being_emptied() -> None:
    """Both pods were evicted, their replacements are awaited; once they run it is as if nothing had been."""
    first = Consolidation()
    async with first.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await first.run()
    scene = Consolidation(*first.records.documents.values())
    scene.told("close", "idle")
    scene.tell(PodDeleted(of("api", "idle")), PodDeleted(of("job", "idle")))
    scene.tell(PodAdded(a_pod("kube-proxy", node="idle", annotations={MIRROR: "hash"})))  # has no owner

    async with scene.running():
        await scene.clock.advance(30)
        assert scene.closer.done == []
        scene.arrives("api")
        scene.arrives("job")
        await scene.clock.advance(30)
        assert scene.closer.done == []
        await scene.clock.advance(KEPT_S)

    assert scene.closer.done == [("reopen", "idle")]


async def test_a_new_process_opens_what_was_emptied_in_part() -> None:
    """The old one ended after the first of two evictions: the rest will not go."""
    first = Consolidation()
    first.evictor.answers = [
        WriteResult(WriteOutcome.DONE),
        WriteResult(WriteOutcome.BLOCKED, "no", "default/api"),
    ]
    async with first.running(a_policy(**EMPTYING)):  # type: ignore[arg-type] # fields as in the API
        await first.run()
    evicted = [each for each in first.records.documents.values() if each["status"]["phase"] == "Evicted"]
    (gone,) = [each["spec"]["pod"]["name"].removesuffix("-1") for each in evicted]
    scene = Consolidation(*evicted)
    scene.told("close", "idle")

    async with scene.running():
        scene.arrives(gone)
        await scene.clock.advance(30)

    assert scene.closer.done == [("reopen", "idle")]
