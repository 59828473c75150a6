"""Pods that a plan wants gone get the least cost of deletion, and lose it again, the second time as well."""

from typing import Any

import msgspec
import pytest

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.cluster.watch_events import ObjectAdded, PodAdded, PodDeleted, PodUpdated
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import DELETION_COST, LEAST_COST, WANTED_GONE
from plimsoll.model.kinds.workload import Namespace, ReplicaSet
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.rebalancing.deletion_costs import AGAIN_S, LOOK_S, MOST_WRITES
from plimsoll.testing.fakes import settled
from rebalancing.scene import POLICY, Scene, a_policy, named, web

OURS = {DELETION_COST: LEAST_COST, WANTED_GONE: POLICY}


def asking(mode: str = "Enforce", **more: Any) -> SchedulingPolicy:
    """A policy whose limits keep all pods of web, and which asks for costs."""
    return a_policy(mode, **{"deletionCosts": True, "limits": {"perWorkload": 0}, **more})


class Ward(Scene):
    """Four pods of web are on the node that they should leave; the watch shows each write."""

    def __init__(self, *documents: Any, replicas: int = 5, **known: Any) -> None:
        super().__init__(*documents, **known)
        self.present = {each.uid: each for each in (web(1, "bad"), web(2, "good"))}
        self.shows(*(web(number, "bad") for number in (3, 4, 5)))
        owner = {"name": "web", "namespace": "default", "uid": "uid-ReplicaSet/web"}
        self.tell(ObjectAdded(convert(ReplicaSet, {"metadata": owner, "spec": {"replicas": replicas}})))
        self.costs.when_done = self.told
        self.rebalancers.all_known()

    def shows(self, *pods: Any) -> None:
        for pod in pods:
            self.present[pod.uid] = pod
            self.tell(PodAdded(pod))

    def told(self, uid: str, policy: str) -> None:
        """A cost is written or taken away, as the API server does for our manager."""
        self.annotate(uid, {**OURS, WANTED_GONE: policy} if policy else {})

    def annotate(self, uid: str, annotations: dict[str, str]) -> None:
        """The watch shows the pod with these annotations."""
        old = self.present[uid]
        metadata = msgspec.structs.replace(old.metadata, annotations=annotations)
        self.present[uid] = msgspec.structs.replace(old, metadata=metadata)
        self.tell(PodUpdated(old, self.present[uid]))

    async def looks(self, seconds: float = 0) -> None:
        """So many seconds, and the next look."""
        await self.clock.advance(seconds)
        await self.clock.advance(LOOK_S)
        await settled()

    @property
    def marked(self) -> list[str]:
        """The names of the pods that have our cost."""
        return sorted(each.name for each in self.present.values() if WANTED_GONE in each.metadata.annotations)


ALL = ["web-1", "web-3", "web-4", "web-5"]


async def test_what_a_limit_keeps_goes_first_when_its_owner_shrinks() -> None:
    """Written once; taken away when the plan is another one; the second time as the first."""
    ward = Ward()
    async with ward.running(asking()):
        for _ in range(2):
            ward.costs.done.clear()
            ward.rebalancers.adopt(asking())
            await ward.looks()
            assert ward.costs.done == []
            await ward.run()
            await ward.looks()
            assert sorted(ward.costs.done) == [(f"default/{each}", POLICY) for each in ALL]
            await ward.looks()
            assert len(ward.costs.done) == len(ALL)
            assert ward.marked == ALL

            ward.rebalancers.adopt(asking(strategies=[]))
            await ward.run()
            await ward.looks()
            assert ward.marked == []
            assert len(ward.costs.done) == 2 * len(ALL)


@pytest.mark.parametrize("ends", ["deleted", "suspended", "dry run", "no longer asks", "stopped"])
async def test_a_policy_that_ends_takes_its_costs_away(ends: str) -> None:
    ward = Ward()
    async with ward.running(asking()):
        await ward.run()
        await ward.looks()
        assert ward.marked == ALL
        match ends:
            case "deleted" | "suspended":
                ward.rebalancers.configure([])
            case "dry run":
                ward.rebalancers.adopt(asking("DryRun"))
            case "no longer asks":
                ward.rebalancers.adopt(asking(deletionCosts=False))
            case "stopped":
                annotations = {"plimsoll.dev/stop": "true"}
                found = {"metadata": {"name": "plimsoll", "annotations": annotations}}
                ward.tell(ObjectAdded(convert(Namespace, found)))
        await ward.looks()

        assert ward.marked == []


@pytest.mark.parametrize("other", ["a", "z"])
@pytest.mark.parametrize("ends", ["deleted", "no longer asks", "wants none"])
@pytest.mark.parametrize("first", [True, False])
async def test_costs_that_two_policies_want_stay_until_neither_does(
    other: str, ends: str, first: bool
) -> None:
    """Whichever ends first, and whichever name sorts first; the mark is written once."""
    policies = {POLICY: asking(), other: named(asking(), other)}
    ward = Ward()
    async with ward.running():
        ward.rebalancers.configure([*policies.values()])
        for name in policies:
            await ward.run(name)
        await ward.looks()
        for name in sorted(policies, reverse=first):
            assert ward.marked == ALL
            assert len(ward.costs.done) == len(ALL)
            match ends:
                case "deleted":
                    del policies[name]
                case "no longer asks":
                    policies[name] = named(asking(deletionCosts=False), name)
                case "wants none":
                    policies[name] = named(asking(strategies=[]), name)
            ward.rebalancers.configure([*policies.values()])
            await ward.run(name)
            await ward.looks()

        assert ward.marked == []


async def test_a_new_process_takes_over_what_an_earlier_one_has_written() -> None:
    """Of a policy that asks until its first run has said more; of others immediately."""
    first = Ward()
    async with first.running(asking()):
        await first.run()
        await first.looks()
    second = Ward()
    second.annotate(web(1).uid, OURS)
    second.annotate(web(2).uid, OURS)
    second.annotate(web(3).uid, {**OURS, WANTED_GONE: "gone"})
    async with second.running(asking()):
        await second.looks()
        assert second.marked == ["web-1", "web-2"]
        assert second.costs.done == [("default/web-3", "")]
        await second.run()
        await second.looks()

    assert second.marked == ALL


async def test_nothing_is_taken_away_before_all_policies_are_known() -> None:
    """A leader that has just begun may not have seen the policy yet."""
    ward = Ward()
    ward.rebalancers.are_all_known = False
    ward.annotate(web(1).uid, OURS)
    async with ward.running(None):
        await ward.looks()
        assert ward.marked == ["web-1"]
        ward.rebalancers.all_known()
        await ward.looks()
        assert ward.marked == []


async def test_the_cost_of_somebody_else_stays() -> None:
    """One that was there is not overwritten; one that came since is a conflict, which is no failure."""
    ward = Ward()
    ward.annotate(web(1).uid, {DELETION_COST: "100"})
    async with ward.running(asking()):
        await ward.run()
        ward.costs.answer = WriteResult(WriteOutcome.CONFLICT, "conflict with another manager")
        await ward.looks()
        assert ward.marked == []
        ward.costs.answer = WriteResult(WriteOutcome.DONE)
        await ward.looks()
        assert ward.costs.done == [], "asked again after a minute, not in each look"
        await ward.looks(AGAIN_S)

        assert ward.marked == ["web-3", "web-4", "web-5"]
        assert ward.observer.failures == []


async def test_a_failed_write_is_said_and_repeated() -> None:
    ward = Ward()
    async with ward.running(asking()):
        await ward.run()
        ward.costs.answer = WriteResult(WriteOutcome.REFUSED, "no right")
        await ward.looks()
        assert len(ward.observer.failures) == len(ALL)
        ward.costs.answer = WriteResult(WriteOutcome.DONE)
        await ward.looks(AGAIN_S)

        assert ward.marked == ALL


async def test_writes_are_bounded() -> None:
    """So many in each look, removals first."""
    ward = Ward(replicas=60)
    ward.shows(*(web(number, "bad") for number in range(10, 50)))
    async with ward.running(asking()):
        await ward.run()
        counts = []
        for _ in range(4):
            await ward.looks()
            counts.append(len(ward.marked))
        assert counts == [MOST_WRITES, 2 * MOST_WRITES, 44, 44]


async def test_a_pod_made_again_under_its_name_has_no_cost() -> None:
    """The mark is of one uid; a pod that is gone is written no more."""
    ward = Ward()
    async with ward.running(asking()):
        await ward.run()
        gone = ward.present.pop(web(1).uid)
        ward.tell(PodDeleted(gone))
        again = msgspec.structs.replace(gone, metadata=msgspec.structs.replace(gone.metadata, uid="again"))
        ward.shows(again)
        await ward.looks()

        assert ward.marked == ALL[1:]


@pytest.mark.parametrize(
    ("annotations", "replicas"),
    [({"plimsoll.dev/evict": "false"}, 5), ({"karpenter.sh/do-not-disrupt": "true"}, 5), ({}, 1)],
)
async def test_pods_that_stay_and_single_ones_are_not_marked(
    annotations: dict[str, str], replicas: int
) -> None:
    """Who asks for no disruption does not want to be the first to go."""
    ward = Ward(replicas=replicas)
    for number in (1, 3, 4, 5):
        ward.annotate(web(number).uid, annotations)
    async with ward.running(asking()):
        await ward.run()
        await ward.looks()

    assert ward.costs.done == []


async def test_a_policy_that_does_not_ask_writes_nothing() -> None:
    ward = Ward()
    async with ward.running(asking(deletionCosts=False)):
        await ward.run()
        await ward.looks()

    assert ward.costs.done == []
