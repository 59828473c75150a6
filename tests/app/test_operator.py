"""Probes of a whole operator."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from plimsoll.api.v1alpha1.annotations import APPROVED
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.app.machine.loop_thread import LoopThread
from plimsoll.app.machine.machine import Machine
from plimsoll.app.operator import HANGS_S, Operator
from plimsoll.app.process import OperatorProcess, TaskEnded, raise_first
from plimsoll.app.settings import Settings
from plimsoll.app.supervision import STUCK_S
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, PodAdded, PodUpdated, Synced
from plimsoll.cluster.watched_resources import WATCHED
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.kube.custom_resources import RECORDS
from plimsoll.kube.session.session import connected
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.planning.forecasts import Forecasts
from plimsoll.plugins import IN_TREE
from plimsoll.ports.custom_resources import WatchedRecord
from plimsoll.testing.builders import a_pod
from plimsoll.testing.fakes import FakeExtenders, settled


@asynccontextmanager
async def built(folder: Path) -> AsyncIterator[Any]:
    """An operator that has not begun, of a cluster that is nowhere."""
    path = folder / "kubeconfig"
    path.write_text(
        yaml.safe_dump(
            {
                "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:9"}}],
                "users": [{"name": "u", "user": {"token": "a-token"}}],
                "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
                "current-context": "x",
            }
        )
    )
    async with (
        connected(path) as session,
        LoopThread("election") as thread,
        thread.entered(connected(path)) as lease_session,
    ):
        settings = Settings(kubeconfig=path)
        operator = Operator(
            settings, session, lease_session, thread, Machine(call_later=lambda *_: None), FakeExtenders()
        )
        yield operator


async def test_readiness_waits_for_the_first_lists(tmp_path: Path) -> None:
    """And for nothing else: a standby is ready."""
    async with built(tmp_path) as operator:
        assert operator.unready().startswith("waiting for the first list of ")
        operator.wing.mirror.synced.update(resource.name for resource in WATCHED)
        assert operator.unready() == ""
        assert operator.broken() == ""


async def test_what_the_first_lists_bring_is_no_garbage_collectors_business(tmp_path: Path) -> None:
    """A full collection of a large cluster's objects would hold up the election's thread, too."""
    async with built(tmp_path) as operator:
        pods = [PodAdded(a_pod(f"p{number}")) for number in range(100)]
        gc.unfreeze()
        waiting = asyncio.create_task(operator.startup.until_leading())
        try:
            await settled()
            operator.startup._ingest("pods", pods)
            assert not gc.isenabled()
            assert gc.get_freeze_count() == 0
            for resource in WATCHED:
                operator.startup._ingest(resource.name, [Synced(resource.name)])
            await settled()
            assert gc.isenabled()
            assert gc.get_freeze_count() > 100
        finally:
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            gc.freeze()  # a full collection looks at the tests, too, otherwise


async def test_a_process_that_ends_before_its_lists_collects_garbage_again(tmp_path: Path) -> None:
    """Whatever ends the wait."""
    async with built(tmp_path) as operator:
        waiting = asyncio.create_task(operator.startup.until_leading())
        await settled()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

        assert gc.isenabled()


async def test_a_new_leader_lists_again_what_others_may_have_changed(tmp_path: Path) -> None:
    """Its own watches may have been behind for as long as it stood by: those of nodes, too."""
    async with built(tmp_path) as operator:
        listing = asyncio.create_task(operator.startup.until_listed(7.0))
        await settled()

        again = {each.resource.name for each in operator.startup._reflectors if each._needed_from == 7.0}
        assert again == {"nodes", "persistentvolumeclaims", "persistentvolumes", "podgroups", "pods"}
        listing.cancel()
        await asyncio.gather(listing, return_exceptions=True)


async def test_kubelets_that_refuse_what_fits_have_nodes_listed_again(tmp_path: Path) -> None:
    """Its owner replaces each refused pod immediately, and the watch of nodes may be minutes behind."""
    async with built(tmp_path) as operator:
        operator.wing.served.replace({"s": SimpleNamespace()})
        reflectors = {each.resource.name: each for each in operator.startup._reflectors}
        for number in range(2):
            pod = a_pod(f"p{number}", node="n1", schedulerName="s")
            failed = {"phase": "Failed", "reason": "OutOfcpu"}
            refused = a_pod(f"p{number}", node="n1", schedulerName="s", status=failed)
            assert reflectors["nodes"]._needed_from < 0.0
            operator.startup._ingest("pods", [PodUpdated(pod, refused)])

        assert reflectors["nodes"]._needed_from > 0.0
        assert reflectors["pods"]._needed_from < 0.0


async def test_an_election_that_stands_still_is_broken(tmp_path: Path) -> None:
    """Two retry periods after its next step was due."""
    async with built(tmp_path) as operator:
        elected = operator.leadership._elected
        elected._step_due = operator.clock.monotonic() - 3.5
        assert operator.broken() == ""
        elected._step_due -= 1
        assert operator.broken() in {f"the election's next step is {late} s overdue" for late in (4, 5)}


async def test_a_scheduling_loop_that_hangs_is_broken(tmp_path: Path) -> None:
    """After fifteen minutes."""
    async with built(tmp_path) as operator:
        operator.loop._waits_since = operator.clock.monotonic() - HANGS_S - 1
        assert operator.broken() == "the scheduling loop hangs for 901 s"


async def test_a_task_that_has_ended_is_broken_and_not_ready(tmp_path: Path) -> None:
    """The supervision's business; here, that it is asked."""
    async with built(tmp_path) as operator:
        operator.supervision.fail("kopf's watcher has failed")
        assert operator.broken() == operator.unready() == "kopf's watcher has failed"
        operator.supervision.failure = ""
        operator.supervision._beaten -= STUCK_S + 1
        assert operator.broken() == "the event loop has not run for 61 s"


async def test_what_ended_the_process_is_one_sentence(tmp_path: Path) -> None:
    """The first task that ended is named, with its error as the cause."""
    async with built(tmp_path) as operator:

        async def work() -> None:
            raise ValueError("no luck")

        operator.supervision.begin("decisions", work())
        await operator.supervision.cancel()
        with pytest.raises(TaskEnded, match=r"^decisions has ended: (ValueError\('no luck'\)|cancelled)$"):
            raise_first(operator.supervision.ended)
        raise_first([])


@pytest.mark.parametrize(("scored", "is_needed"), [((), False), (("b",), True), (("a", "b"), True)])
async def test_readings_are_needed_as_soon_as_one_profile_scores_by_load(
    tmp_path: Path, scored: tuple[str, ...], is_needed: bool
) -> None:
    """However many others do not."""
    async with built(tmp_path) as operator:
        profiles = {
            name: build_profile(
                ProfileConfig(name),
                Registry(IN_TREE),
                [
                    Enabled(each)
                    for each in ("PrioritySort", "DefaultBinder", *["NodeLoad"] * (name in scored))
                ],
            )
            for name in ("a", "b")
        }
        schedulers = {name: ProfileScheduler(each, Cluster()) for name, each in profiles.items()}
        operator._serve(schedulers, Forecasts())

        assert operator.parts.load.is_scored is is_needed


async def test_writes_under_way_are_waited_for_before_tasks_are_cancelled(tmp_path: Path) -> None:
    """A task that awaits the answer to a write would never see it."""
    async with built(tmp_path) as operator:
        task = operator.supervision.begin("decisions", asyncio.Event().wait())
        drain, running = operator.leadership.drain, []

        async def drained() -> None:
            await settled()
            running.append(not task.done())
            await drain()

        operator.leadership.drain = drained
        await OperatorProcess(operator)._end_tasks()

        assert (running, task.cancelled()) == ([True], True)


async def test_what_others_do_to_records_is_noticed(tmp_path: Path) -> None:
    """An answer to a proposal, and that a record is gone."""
    async with built(tmp_path) as operator:
        (records,) = [each for each in operator.startup._reflectors if each.resource is RECORDS]
        approvals, known = operator.rebalancing.approvals, operator.rebalancing.keeper.known
        meta = ObjectMeta(name="r", namespace="a", annotations={APPROVED: "false"})
        record: Any = WatchedRecord(metadata=meta)
        pod = SimpleNamespace(uid="u", namespace="a", name="p")
        spec = SimpleNamespace(policy="p", strategy="RemoveDuplicates", pod=pod, owner=None, surge=None)
        mine: Any = SimpleNamespace(
            key="a/r", spec=spec, phase=Phase.PLANNED, is_finished=False, uid="", came_true=None
        )
        known.put(mine)
        records._sink([ObjectAdded(record), Synced("evictions")])
        assert approvals.take_over("a/r") is False

        records._sink([ObjectDeleted(record)])
        assert approvals.take_over("a/r") is None
        assert dict(known) == {}
