"""Policies are judged one by one, served together, and dropped when they are deleted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from engine.toys import Fifo
from plimsoll.access.rights import BIND, EVICT, Access
from plimsoll.api.v1alpha1.annotations import OPERATOR
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.engine.attempt import schedule
from plimsoll.engine.extender import Extender
from plimsoll.engine.nominator import Nominator
from plimsoll.engine.profile import Enabled, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import SUCCESS, PluginArgs, Registry
from plimsoll.leadership.fence import Fence
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.policies.profiles import PluginFailures, ProfileSchedulers, profile_config
from plimsoll.policies.rebalancing import SolverMissingError
from plimsoll.policy_controller.controller import PolicyController
from plimsoll.policy_controller.relist import EVERY_S, FIRST_S, reconcile
from plimsoll.policy_controller.status import PolicyStatuses
from plimsoll.ports.writes import WriteOutcome, WriteResult
from plimsoll.scheduling.extenders.client import ExtenderClient
from plimsoll.scheduling.extenders.health import FAILURES
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.fakes import (
    DONE,
    FakeAccessReviewer,
    FakeClock,
    FakeExtenders,
    FakePods,
    FakePolicyStatuses,
    FakeRandomness,
    FakeRecorder,
    RememberingObserver,
    settled,
)
from plimsoll.timing.signal import Signal


class NoRebalancing:
    """Accepts everything, keeps the names."""

    def __init__(self) -> None:
        self.names: list[Any] = []
        self.told: dict[Any, Any] = {}
        self.asked: list[Any] = []
        self.advised: dict[Any, Any] = {}
        self.known: list[Any] | None = None

    def check(self, policy: Any) -> None:
        """All right."""

    def configure(self, policies: Any) -> None:
        """Keep the names."""
        self.names = [policy.metadata.name for policy in policies]

    def retain_predictions(self, policies: Any) -> None:
        """Keep the names."""
        self.predicting = set(policies)

    def all_known(self) -> None:
        """Keep the names."""
        self.known = list(self.names)

    def advice(self, _: str) -> dict[Any, Any]:
        """Whatever the test says."""
        return self.advised

    def run_now(self, name: str) -> None:
        """Keep the name."""
        self.asked.append(name)

    def troubles(self, name: str) -> Any:
        """Whatever the test says."""
        return self.told.get(name, {})


class Scene:
    """The policies of one operator."""

    def __init__(self, *more: Any, statuses: Any = None, operator: str = "") -> None:
        registry = Registry([*IN_TREE, *more])
        self.clock = FakeClock()
        self.statuses: Any = statuses or FakePolicyStatuses()
        self.served: dict[Any, Any] = {}
        self.rebalancing = NoRebalancing()
        self.observer = RememberingObserver()
        self.conditions = Signal()
        self.failures = PluginFailures(self.conditions)
        self.extenders = FakeExtenders()
        self.extending = ExtenderClient(
            self.extenders,
            FakePods(),
            fence=Fence(self.clock),
            clock=self.clock,
            observer=self.observer,
            conditions=self.conditions,
        )
        self.reviewer, self.recorder = FakeAccessReviewer(), FakeRecorder()
        self.access = Access(self.reviewer, self.clock, self.observer)
        self.policies = PolicyController(
            profiles=ProfileSchedulers(
                registry=registry,
                defaults=[
                    Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items() if name in registry
                ],
                cluster=Cluster(),
                nominator=Nominator(),
                randomness=FakeRandomness(),
                failures=self.failures,
                extending=self.extending,
                observer=self.observer,
            ),
            rebalancing=self.rebalancing,
            statuses=PolicyStatuses(
                self.statuses,
                self.recorder,
                self.access,
                self.clock,
                self.observer,
                [self.rebalancing],
                operator=operator,
            ),
            observer=self.observer,
            access=self.access,
            serve=self._serve,
            conditions=self.conditions,
        )
        self.exists: list[Any] = []
        self.answer = DONE

    def _serve(self, schedulers: Any, forecasts: Any) -> None:
        self.served, self.forecasts = dict(schedulers), forecasts

    async def list(self) -> tuple[WriteResult, list[dict[str, Any]]]:
        """What the API server has."""
        return self.answer, list(self.exists)

    def condition(self, name: str, kind: str = "Accepted") -> tuple[str, ...]:
        """Status, reason and message of a policy's condition."""
        found = next(one for one in self.statuses.statuses[name]["conditions"] if one["type"] == kind)
        return found["status"], found["reason"], found["message"]

    @asynccontextmanager
    async def reconciling(self) -> AsyncIterator[None]:
        """Compare now and then."""
        task = asyncio.create_task(reconcile(self.policies, self, self.clock, self.observer))
        try:
            yield
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


def a_policy(
    name: Any = "one",
    scheduler: Any = "plimsoll",
    *,
    generation: Any = 1,
    created: Any = "2026-01-01T00:00:00Z",
    uid: Any = "",
    **spec: Any,
) -> dict[str, Any]:
    """A policy as the API server has it."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {
            "name": name,
            "uid": uid or f"uid-{name}",
            "generation": generation,
            "creationTimestamp": created,
        },
        "spec": {"scheduling": {"schedulerName": scheduler}, **spec},
    }


async def test_the_smallest_policy_is_served() -> None:
    """A scheduler name is all it takes."""
    scene = Scene()

    await scene.policies.set(a_policy())

    assert set(scene.served) == {"plimsoll"}
    assert scene.condition("one")[0] == "True"
    assert scene.condition("one", "Ready")[0] == "True"


def a_pool(name: str, operator: str = "", **of_policy: Any) -> dict[str, Any]:
    """A policy of an operator whose pods go to a pool of nodes that bears its name."""
    policy = a_policy(name, f"{name}-scheduler", **of_policy)
    terms = [{"matchExpressions": [{"key": "pool", "operator": "In", "values": [name]}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    args = {"addedAffinity": required}
    policy["spec"]["scheduling"]["pluginConfig"] = [{"name": "NodeAffinity", "args": args}]
    policy["metadata"]["labels"] = {OPERATOR: operator} if operator else {}
    return policy


@pytest.mark.parametrize("name", ["", "r"])
async def test_an_operator_leaves_the_policies_of_others_to_them(name: str) -> None:
    """It serves its own and writes their status alone; of the others it needs neither plugin nor strategy."""
    scene = Scene(operator=name)
    theirs = a_pool("theirs", "" if name else "r")
    theirs["spec"]["scheduling"]["plugins"] = {"score": {"enabled": [{"name": "OnlyInTheirImage"}]}}

    await scene.policies.set(a_pool("own", name))
    await scene.policies.set(theirs)
    await scene.policies.refresh()

    assert set(scene.served) == {"own-scheduler"}
    assert set(scene.policies.others) == {"theirs-scheduler"}
    assert set(scene.statuses.statuses) == {"own"}
    assert {each for each, _, _ in scene.policies.conditions()} == {"own"}
    assert scene.policies.claimed()["theirs-scheduler"] == ("theirs", "")


async def test_a_policy_is_handed_over_by_its_label() -> None:
    """The spec is the same, and so is its generation."""
    scene = Scene(operator="r")
    await scene.policies.set(a_pool("pool", "r"))
    assert set(scene.served) == {"pool-scheduler"}

    await scene.policies.set(a_pool("pool", "b"))
    assert not scene.served

    await scene.policies.set(a_pool("pool", "r"))
    assert set(scene.served) == {"pool-scheduler"}


async def test_an_operator_does_not_serve_a_policy_whose_nodes_another_one_fills() -> None:
    """The older one has the nodes, of any operator; when it goes, the younger one is served."""
    scene = Scene(operator="r")
    await scene.policies.set(a_pool("pool", "r", created="2026-02-01T00:00:00Z"))
    everywhere = a_policy("everywhere", "other")

    await scene.policies.set(everywhere)
    lost = scene.condition("pool")
    assert not scene.served
    await scene.policies.remove("everywhere")

    assert lost[:2] == ("False", "NodesOverlap")
    assert "the older policy everywhere of the operator without a name" in lost[2]
    assert set(scene.served) == {"pool-scheduler"}


async def test_the_older_of_two_keeps_the_name_whichever_came_first() -> None:
    """The status of the other one names it; the other one takes over when the older one goes."""
    scene = Scene()
    await scene.policies.set(a_policy("young", created="2026-02-01T00:00:00Z"))
    await scene.policies.set(a_policy("old"))

    lost = scene.condition("young")
    await scene.policies.remove("old")

    assert lost[:2] == ("False", "SchedulerNameTaken")
    assert "old" in lost[2]
    assert scene.condition("young")[0] == "True"
    assert set(scene.served) == {"plimsoll"}


async def test_a_profile_bears_the_name_of_the_policy_that_serves_it() -> None:
    """The older one goes, and the younger one takes over with the same spec: what is done is its own."""
    scene = Scene()
    await scene.policies.set(a_policy("old"))
    await scene.policies.set(a_policy("young", created="2026-02-01T00:00:00Z"))
    assert scene.served["plimsoll"].profile.policy == "old"

    await scene.policies.remove("old")

    assert scene.served["plimsoll"].profile.policy == "young"


async def test_a_policy_that_is_refused_disturbs_no_other() -> None:
    """The exact field is named; the other one keeps its scheduler, and what that has learnt."""
    scene = Scene()
    await scene.policies.set(a_policy("good"))
    before = scene.served["plimsoll"]
    bad = a_policy("bad", "other")
    bad["spec"]["scheduling"]["plugins"] = {"score": {"enabled": [{"name": "NoSuchPlugin"}]}}

    await scene.policies.set(bad)

    status, _, message = scene.condition("bad")
    assert status == "False"
    assert "spec.scheduling.plugins.score.enabled[0].name" in message
    assert scene.served["plimsoll"] is before


async def test_a_bad_change_leaves_the_last_good_spec_in_force() -> None:
    """And says so."""
    scene = Scene()
    await scene.policies.set(a_policy())
    bad = a_policy(generation=2)
    bad["spec"]["scheduling"]["pluginConfig"] = [{"name": "NoSuchPlugin", "args": {}}]

    await scene.policies.set(bad)

    assert scene.condition("one")[0] == "False"
    assert scene.condition("one", "Ready")[0] == "True"
    assert set(scene.served) == {"plimsoll"}


async def test_a_policy_whose_deletion_the_watch_missed_stops_deciding() -> None:
    """The watch was broken when it went: the next comparison finds out."""
    scene = Scene()
    await scene.policies.set(a_policy("gone"))
    await scene.policies.set(a_policy("there", "other"))
    scene.exists = [a_policy("there", "other")]

    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert set(scene.served) == {"other"}


async def test_a_policy_that_goes_while_policies_are_listed_stays_away() -> None:
    """The list is older than the deletion."""
    scene = Scene()
    await scene.policies.set(a_policy("gone"))
    scene.exists = [a_policy("gone", generation=2)]
    plain = scene.list

    async def late() -> Any:
        found = await plain()
        await scene.policies.remove("gone")
        return found

    scene.list = late  # type: ignore[method-assign] # deletes meanwhile
    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert scene.served == {}


async def test_policies_are_compared_soon_after_the_start() -> None:
    """What a policy asked for that was deleted while no process led is undone within seconds."""
    scene = Scene()

    async with scene.reconciling():
        await scene.clock.advance(FIRST_S)

    assert scene.rebalancing.known == []


async def test_once_compared_all_policies_are_known() -> None:
    """Proposals of others are called off then, and not before."""
    scene = Scene()
    scene.exists = [a_policy("there", rebalancing={"mode": "Approve", "strategies": []})]
    scene.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")

    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)
        assert scene.rebalancing.known is None
        scene.answer = DONE
        await scene.clock.advance(EVERY_S)

    assert scene.rebalancing.known == ["there"]


@pytest.mark.parametrize(
    ("known", "listed", "answer", "was_led"),
    [
        pytest.param([{}], [], DONE, False, id="new"),
        pytest.param([{}, {"observedGeneration": 1}], [], DONE, True, id="served-before"),
        pytest.param([], [], DONE, False, id="none"),
        pytest.param([], [{}], DONE, False, id="listed-and-new"),
        pytest.param([{}], [{"observedGeneration": 1}], DONE, True, id="served-since"),
        pytest.param([], [{}, {"observedGeneration": 1}], DONE, True, id="listed"),
        pytest.param([], [], WriteResult(WriteOutcome.UNKNOWN, "no answer"), True, id="no-answer"),
        pytest.param([], [], WriteResult(WriteOutcome.GONE, "not served"), False, id="not-installed"),
    ],
)
async def test_policies_with_a_status_were_served_before(
    known: list[Any], listed: list[Any], answer: WriteResult, *, was_led: bool
) -> None:
    """Each leader writes one; what is known may be behind."""
    scene = Scene()
    for number, status in enumerate(known):
        await scene.policies.set({**a_policy(f"known-{number}", f"of-{number}"), "status": status})
    scene.exists = [{**a_policy(f"listed-{number}"), "status": each} for number, each in enumerate(listed)]
    scene.answer = answer

    assert await scene.policies.were_served(scene) is was_led


async def test_a_status_that_comes_while_this_process_begins_is_of_a_leader() -> None:
    """It writes none before it leads."""
    scene = Scene()
    await scene.policies.set(a_policy())
    await scene.policies.set({**a_policy(), "status": {"observedGeneration": 1}})

    assert await scene.policies.were_served(scene)


@pytest.mark.parametrize(
    ("verdict", "failures"),
    [(WriteOutcome.FENCED, set()), (WriteOutcome.REFUSED, {("status of policy one", "no")})],
)
async def test_a_status_that_the_server_refuses_is_a_failure(verdict: WriteOutcome, failures: Any) -> None:
    """Unlike one that a former leader does not send."""
    scene = Scene()

    async def answered(name: str, status: object) -> WriteResult:
        return WriteResult(verdict, "no")

    scene.statuses.write_status = answered

    await scene.policies.set(a_policy())

    assert set(scene.observer.failures) == failures


async def test_a_policy_made_again_is_another_one() -> None:
    """Its status is written into the new object, its age is the new one's."""
    scene = Scene()
    await scene.policies.set(a_policy(uid="first"))
    scene.statuses.statuses.clear()
    scene.exists = [a_policy(uid="second", created="2026-03-01T00:00:00Z")]

    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert scene.condition("one")[0] == "True"
    assert scene.policies.uids() == {"one": "second"}


async def test_a_policy_made_again_while_the_watch_was_down_is_another_one() -> None:
    """The new list has an object of the same spec and another uid, and no deletion was seen."""
    scene = Scene()
    await scene.policies.set(a_policy(uid="first"))
    await scene.policies.set(a_policy("rival", created="2026-02-01T00:00:00Z"))
    scene.statuses.statuses.clear()

    await scene.policies.set(a_policy(uid="second", created="2026-03-01T00:00:00Z"))

    assert scene.condition("one")[0] == "False"  # the rival is older now
    assert scene.condition("rival")[0] == "True"
    assert scene.policies.uids()["one"] == "second"


async def test_a_server_that_does_not_answer_deletes_nothing() -> None:
    """No list, no conclusion."""
    scene = Scene()
    await scene.policies.set(a_policy())
    scene.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")

    async with scene.reconciling():
        await scene.clock.advance(3 * EVERY_S)

    assert set(scene.served) == {"plimsoll"}


async def test_policies_go_with_their_definition() -> None:
    """One answer that there is no such resource may be a mistake of something in between; two are not."""
    scene = Scene()
    await scene.policies.set(a_policy())
    scene.answer = WriteResult(WriteOutcome.GONE, "404 page not found")

    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)
        assert set(scene.served) == {"plimsoll"}
        scene.answer = WriteResult(WriteOutcome.UNKNOWN, "no answer")
        await scene.clock.advance(EVERY_S)
        scene.answer = WriteResult(WriteOutcome.GONE, "404 page not found")
        await scene.clock.advance(EVERY_S)
        assert set(scene.served) == {"plimsoll"}
        await scene.clock.advance(EVERY_S)

    assert scene.served == {}


@pytest.mark.parametrize("between", [DONE, WriteResult(WriteOutcome.UNKNOWN, "none")], ids=["list", "none"])
async def test_answers_without_the_resource_that_do_not_follow_each_other_delete_nothing(
    between: WriteResult,
) -> None:
    """The first answer, and one after a list or after none, however often."""
    scene = Scene()
    await scene.policies.set(a_policy())
    answers = [WriteResult(WriteOutcome.GONE, "404 page not found"), between]

    async with scene.reconciling():
        for turn in range(6):
            scene.answer = answers[turn % 2]
            scene.exists = [a_policy()] if scene.answer is DONE else []
            await settled()
            await scene.clock.advance(EVERY_S)
            await settled()
            assert (turn, set(scene.served)) == (turn, {"plimsoll"})


async def test_a_policy_made_while_the_list_was_on_its_way_stays() -> None:
    """Events that come after the list was requested are newer than the list."""
    scene = Scene()

    async def list_late() -> tuple[WriteResult, list[Any]]:
        await scene.policies.set(a_policy("fresh"))
        return DONE, []

    scene.list = list_late  # type: ignore[method-assign] # replaced for this test
    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert set(scene.served) == {"plimsoll"}


async def test_a_policy_that_no_watch_showed_is_served() -> None:
    """Nor its next change; what the watch has shown meanwhile is newer than the list."""
    scene = Scene()
    scene.exists = [a_policy()]
    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)
        assert set(scene.served) == {"plimsoll"}
        scene.exists = [a_policy(scheduler="other", generation=2)]
        await scene.clock.advance(EVERY_S)
        assert set(scene.served) == {"other"}
        scene.exists = [a_policy(scheduler="old", generation=1)]
        await scene.clock.advance(EVERY_S)

    assert set(scene.served) == {"other"}


async def test_a_policy_deleted_while_the_list_was_on_its_way_is_gone() -> None:
    """Although the list has it."""
    scene = Scene()
    await scene.policies.set(a_policy())

    async def list_early() -> tuple[WriteResult, list[Any]]:
        await scene.policies.remove("one")
        return DONE, [a_policy()]

    scene.list = list_early  # type: ignore[method-assign] # replaced for this test
    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert scene.served == {}


async def test_a_policy_that_changes_while_policies_are_listed_is_newer_than_the_list() -> None:
    """The watch showed it after the server had made the list."""
    scene = Scene()
    listed, newer = a_policy(scheduler="old"), a_policy(scheduler="new", generation=2)

    async def late() -> tuple[WriteResult, list[dict[str, Any]]]:
        await scene.policies.set(newer)
        return DONE, [listed]

    scene.list = late  # type: ignore[method-assign] # replaced for this test
    async with scene.reconciling():
        await scene.clock.advance(EVERY_S)

    assert list(scene.served) == ["new"]


async def test_a_suspended_policy_does_not_serve() -> None:
    """Neither scheduling nor rebalancing, and it says why."""
    scene = Scene()

    await scene.policies.set(a_policy(suspend=True, rebalancing={}))

    assert scene.served == {}
    assert scene.rebalancing.names == []
    assert scene.condition("one", "Ready")[1] == "Suspended"


async def test_a_suspended_policy_describes_another_scheduler() -> None:
    """While it is suspended; another spec of it is another profile, and an unchanged one stays the same."""
    scene = Scene()
    seen = []

    unscored = {"score": {"disabled": [{"name": "*"}]}}
    steps: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"suspend": True}, {}),
        ({"suspend": True, "scope": {}}, {}),
        ({"suspend": True}, {"plugins": unscored}),
        ({}, {}),
    ]
    for generation, (spec, plugins) in enumerate(steps, start=1):
        scheduling = {"schedulerName": "theirs", **plugins}
        await scene.policies.set(a_policy(generation=generation, scheduling=scheduling, **spec))
        seen.append(scene.forecasts.profile_of("theirs", {}))

    first, same, other, gone = seen
    assert first.policy == "one"
    assert same is first
    assert [each.name for each in other.score] == []
    assert gone is scene.forecasts.default
    assert scene.forecasts.basis("theirs") == "kube-scheduler's default profile, which is assumed"
    assert set(scene.served) == {"theirs"}


def sorted_by(plugin: str) -> dict[str, Any]:
    """``spec.scheduling.plugins`` with another queue sort."""
    return {"queueSort": {"enabled": [{"name": plugin}], "disabled": [{"name": "*"}]}}


async def test_one_queue_has_one_order() -> None:
    """The status of a younger policy with another one names the older; it is served once it agrees."""
    scene = Scene(Fifo)
    younger = a_policy("two", "other", created="2026-01-02T00:00:00Z")
    younger["spec"]["scheduling"]["plugins"] = sorted_by("Fifo")

    await scene.policies.set(younger)
    assert set(scene.served) == {"other"}
    await scene.policies.set(a_policy())

    assert set(scene.served) == {"plimsoll"}
    status, reason, message = scene.condition("two", "Ready")
    assert (status, reason) == ("False", "QueueSortDiffers")
    assert message == (
        "spec.scheduling.plugins.queueSort: one queue serves all policies, sorted by the PrioritySort of an "
        "older one; use it with the same arguments, not Fifo"
    )
    await scene.policies.set(a_policy("two", "other", created="2026-01-02T00:00:00Z", generation=2))
    assert set(scene.served) == {"plimsoll", "other"}


async def test_a_plugin_that_fails_is_named_by_the_policies_that_use_it() -> None:
    """Until one of them changes its profile."""
    scene = Scene(Fifo)
    await scene.policies.set(a_policy())
    scene.failures.plugin_failed("NodeAffinity", "filter", "ValueError: no")
    scene.failures.plugin_failed("Fifo", "queueSort", "ValueError: not used here")

    await scene.policies.refresh()

    assert scene.condition("one", "Degraded") == (
        "True",
        "PluginFailed",
        'plugin "NodeAffinity" failed at filter: ValueError: no',
    )
    changed = a_policy(generation=2)
    changed["spec"]["scheduling"]["pluginConfig"] = [
        {"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 2}}
    ]
    await scene.policies.set(changed)
    assert scene.condition("one", "Degraded")[0] == "False"


async def test_a_plugin_that_breaks_at_its_second_birth_harms_its_own_policy_only() -> None:
    """It passes the check and raises when it is to serve: the others are served all the same."""

    class Fickle:
        name = "Fickle"
        args_model = PluginArgs
        births = 0

        def pre_enqueue(self, pod: Any) -> Any:
            return SUCCESS

        def __init__(self, args: Any) -> None:
            Fickle.births += 1
            if Fickle.births > 1:
                raise RuntimeError("once is enough")

    scene = Scene()
    scene.policies._profiles._registry.add(Fickle)  # type: ignore[arg-type] # a fake has only what is used
    plugins = {"multiPoint": {"enabled": [{"name": "Fickle"}]}}
    odd = a_policy("odd", scheduling={"schedulerName": "odd", "plugins": plugins})
    await scene.policies.set(odd)
    await scene.policies.set(a_policy("two"))

    assert Fickle.births > 1
    assert set(scene.served) == {"plimsoll"}
    assert scene.observer.failures


async def test_each_new_value_of_the_annotation_asks_for_one_run() -> None:
    """Once for each value; a policy that is first seen, as after a restart, asks for none."""
    scene = Scene()
    policy = a_policy(rebalancing={"strategies": []})

    for value in ("a", "a", "b", "b"):
        policy = {**policy, "metadata": {**policy["metadata"], "annotations": {"plimsoll.dev/run": value}}}
        await scene.policies.set(policy)
    asked = list(scene.rebalancing.asked)
    await scene.policies.set({**policy, "metadata": {**policy["metadata"], "annotations": {}}})

    assert asked == ["one"]
    assert scene.rebalancing.asked == ["one"]


async def test_what_keeps_a_policy_from_moving_degrades_it() -> None:
    """The condition has the reason and the sentence of the rebalancers."""
    scene = Scene()
    scene.rebalancing.told = {"one": {"Resting": "the last 5 moves were unsuccessful"}}

    await scene.policies.set(a_policy(rebalancing={"strategies": []}))

    assert scene.condition("one", "Degraded") == ("True", "Resting", "the last 5 moves were unsuccessful")


class FencedStatuses(FakePolicyStatuses):
    """Rejects writes as the fence of a standby does, until it leads."""

    leads = False

    async def write_status(self, name: str, status: Any) -> WriteResult:
        """Not sent."""
        return await super().write_status(name, status) if self.leads else WriteResult(WriteOutcome.FENCED)


class SlowStatuses(FakePolicyStatuses):
    """Answers about one policy when the test says so."""

    def __init__(self, slow: str) -> None:
        super().__init__()
        self.slow, self.answers = slow, asyncio.Event()

    async def write_status(self, name: str, status: Any) -> WriteResult:
        """Takes effect when it is answered, whatever was written meanwhile."""
        if name == self.slow:
            await self.answers.wait()
        return await super().write_status(name, status)


async def test_a_policy_that_was_made_again_gets_no_status_of_its_predecessor() -> None:
    """Its own was written while all statuses were, one after the other, and is not overwritten."""
    scene = Scene(statuses=SlowStatuses("one"))
    scene.statuses.answers.set()
    await scene.policies.set(a_policy("one", "one", generation=1, uid="1"))
    await scene.policies.set(a_policy("two", "two", generation=2, uid="2"))
    scene.statuses.answers.clear()
    scene.policies.degrade("Bad", "something is bad")
    refreshing = asyncio.create_task(scene.policies.refresh())
    await settled()
    removed = asyncio.create_task(to_end(scene.policies.remove("two")))
    await settled()
    made = asyncio.create_task(to_end(scene.policies.set(a_policy("two", "two", generation=1, uid="3"))))
    await settled()
    scene.statuses.answers.set()
    await asyncio.gather(refreshing, removed, made)

    assert scene.statuses.statuses["two"]["observedGeneration"] == 1


async def test_a_write_for_a_predecessor_that_takes_effect_late_is_made_good() -> None:
    """The API server takes a status for whatever policy has the name by then."""
    scene = Scene(statuses=SlowStatuses("one"))
    writing = asyncio.create_task(to_end(scene.policies.set(a_policy("one", "one", generation=2, uid="1"))))
    await settled()
    scene.statuses.slow = ""
    await scene.policies.remove("one")
    await scene.policies.set(a_policy("one", "one", generation=1, uid="2"))
    assert scene.statuses.statuses["one"]["observedGeneration"] == 1
    scene.statuses.answers.set()
    await writing

    assert scene.statuses.statuses["one"]["observedGeneration"] == 1


async def to_end(writing: Any) -> None:
    """Await what is no coroutine."""
    await writing


async def test_a_standby_keeps_policies_warm_and_says_what_they_are_when_it_leads() -> None:
    """It writes no status and no complaint; when it leads, all of them."""
    scene = Scene(statuses=FencedStatuses())
    await scene.policies.set(a_policy("one"))
    await scene.policies.set(a_policy("two", "other"))
    assert set(scene.served) == {"plimsoll", "other"}
    assert scene.statuses.statuses == {}
    assert scene.observer.failures == []

    scene.statuses.leads = True
    await scene.policies.refresh()

    assert scene.condition("one", "Ready")[0] == scene.condition("two", "Ready")[0] == "True"


EXTENDER = {"urlPrefix": "http://x", "filterVerb": "filter"}


async def test_an_extender_that_fails_degrades_its_policy_until_it_is_well() -> None:
    """The message names the extender; a change of the policy is another chance, too."""
    scene = Scene()
    scheduling = {"schedulerName": "plimsoll", "extenders": [EXTENDER]}
    await scene.policies.set(a_policy(scheduling=scheduling))
    task = asyncio.create_task(scene.policies.run())
    for _ in range(FAILURES):
        scene.extending.health.failed("plimsoll", "http://x", "no answer", 0.0)
    await settled()
    degraded = scene.condition("one", "Degraded")

    scene.extending.health.succeeded("plimsoll", "http://x")
    await settled()
    task.cancel()

    said = 'extender "http://x" has failed 3 times in a row: no answer'
    assert degraded == ("True", "ExtenderFailed", said)
    assert scene.condition("one", "Degraded")[0] == "False"


def test_what_an_extender_counts_is_not_counted_here() -> None:
    """These resources replace what the plugin is configured to ignore, as upstream replaces it."""
    managed = [
        {"name": "example.com/slice", "ignoredByScheduler": True},
        {"name": "example.com/card", "ignoredByScheduler": False},
    ]
    args = {"ignoredResources": ["example.com/other"], "ignoredResourceGroups": ["example.org"]}
    scheduling = {
        "schedulerName": "plimsoll",
        "extenders": [{**EXTENDER, "managedResources": managed}],
        "pluginConfig": [{"name": "NodeResourcesFit", "args": args}],
    }

    config = profile_config(SchedulingSpec.from_wire(scheduling))

    assert config.args["NodeResourcesFit"] == {**args, "ignoredResources": ["example.com/slice"]}


async def test_an_invalid_certificate_is_not_accepted() -> None:
    """With the field; what was accepted before goes on."""
    scene = Scene()
    bad = {"urlPrefix": "https://x", "tlsConfig": {"caData": "bad"}}
    await scene.policies.set(a_policy())
    before = scene.served["plimsoll"]

    await scene.policies.set(
        a_policy(generation=2, scheduling={"schedulerName": "plimsoll", "extenders": [bad]})
    )

    status, reason, message = scene.condition("one")
    assert (status, reason) == ("False", "InvalidConfiguration")
    assert message.startswith("spec.scheduling.extenders[0].tlsConfig: the certificates cannot be used")
    assert scene.served["plimsoll"] is before


async def test_what_a_policy_lacks_may_have_a_reason_of_its_own() -> None:
    """As when the solver of its planner is not installed."""

    def check(_: Any) -> None:
        raise SolverMissingError("spec.rebalancing.planner", "install it")

    scene = Scene()
    scene.rebalancing.check = check  # type: ignore[assignment, method-assign] # replaced for this test

    await scene.policies.set(a_policy(rebalancing={"planner": "Optimal"}))

    assert scene.condition("one") == ("False", "SolverMissing", "spec.rebalancing.planner: install it")
    assert scene.condition("one", "Degraded")[:2] == ("True", "SolverMissing")


async def test_extenders_come_and_go_with_their_policy() -> None:
    """The profile has them, binds through the one that binds, and lets their connections go in the end."""
    scene = Scene()
    extenders = [EXTENDER, {"urlPrefix": "http://b", "bindVerb": "bind"}]

    await scene.policies.set(a_policy(scheduling={"schedulerName": "plimsoll", "extenders": extenders}))
    profile = scene.served["plimsoll"].profile
    kept = {each.url for each in scene.extenders.retained}
    await scene.policies.remove("one")

    assert [each.name for each in profile.extenders] == ["http://x", "http://b"]
    assert [each.name for each in profile.bind] == ["Extender", "DefaultBinder"]
    assert kept == {"http://x", "http://b"}
    assert scene.extenders.retained == frozenset()


async def test_metrics_follow_the_conditions() -> None:
    """Prometheus reads the conditions of each policy until it is gone."""
    scene = Scene()
    await scene.policies.set(a_policy("good"))
    await scene.policies.set(a_policy("bad", created="2026-02-01T00:00:00Z"))

    told = set(scene.policies.conditions())
    scene.rebalancing.told = {"good": {"NotAllowed": "it may not", "Resting": "it rests"}}
    await scene.policies.refresh()
    degraded = set(scene.policies.degradations())
    scene.rebalancing.told = {}
    await scene.policies.refresh()
    await scene.policies.remove("bad")

    assert ("good", "Ready", True) in told
    assert ("good", "Degraded", False) in told
    assert ("bad", "Ready", False) in told
    assert {name for name, _, _ in scene.policies.conditions()} == {"good"}
    assert degraded == {("good", "NotAllowed"), ("good", "Resting"), ("bad", "SchedulerNameTaken")}
    assert set(scene.policies.degradations()) == set()


def without_score_plugins(*extenders: Extender) -> ProfileScheduler:
    """The scheduler of a policy that disables all score plugins, on two nodes, one of them used."""
    spec = SchedulingSpec.model_validate(
        {"schedulerName": "s", "plugins": {"score": {"disabled": [{"name": "*"}]}}}
    )
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(profile_config(spec), Registry(IN_TREE), defaults)
    cluster = a_cluster([a_node("used"), a_node("free")], [a_pod("other", cpu="1", node="used")])
    return ProfileScheduler(replace(profile, extenders=extenders), cluster)


def test_without_score_plugins_every_node_scores_1() -> None:
    """As in kube-scheduler, whose extenders score on top of 0 instead."""
    decided, with_extender = without_score_plugins(), without_score_plugins(Extender("http://one"))
    pod = decided.cluster.templates.info(a_pod("p"))

    decision = schedule(decided, pod)
    ranking = decided.rank(pod)

    assert (decision.total, decision.feasible, decision.ties) == (1, 2, 2)
    assert ranking.totals.tolist() == [1, 1]
    assert decided.evaluate(pod).scores.totals.tolist() == [1, 1]
    assert with_extender.rank(with_extender.cluster.templates.info(a_pod("p"))).totals.tolist() == [0, 0]


# -- missing rights, and how they are reported -------------------------------------------------------


def noted(scene: Scene) -> list[tuple[str, ...]]:
    """The Warning events of policies: name and reason."""
    return [(note.regarding["name"], note.reason) for note in scene.recorder.notes if note.is_warning]


async def test_a_refused_policy_is_degraded_and_told() -> None:
    """Its last accepted state goes on; an event says what is wrong, once."""
    scene = Scene()
    await scene.policies.set(a_policy())
    broken = a_policy(generation=2)
    broken["spec"]["scheduling"]["pluginConfig"] = [{"name": "Nothing", "args": {}}]
    await scene.policies.set(broken)
    await scene.policies.refresh()

    assert scene.condition("one")[:2] == ("False", "InvalidConfiguration")
    assert scene.condition("one", "Degraded")[:2] == ("True", "InvalidConfiguration")
    assert scene.condition("one", "Ready")[:2] == ("True", "Serving")
    assert noted(scene) == [("one", "InvalidConfiguration")]

    await scene.policies.set(a_policy(generation=3))
    assert scene.condition("one", "Degraded")[:2] == ("False", "AsExpected")


async def test_a_policy_that_may_not_bind_is_not_ready() -> None:
    """It says which right is missing; the other policy, which only rebalances in a dry run, is at work."""
    scene = Scene()
    scene.reviewer.denied = {BIND}
    await scene.access.review()
    await scene.policies.set(a_policy())
    dry = a_policy("two", "unused", rebalancing={})
    del dry["spec"]["scheduling"]
    await scene.policies.set(dry)

    assert scene.condition("one", "Accepted")[0] == "True"
    status, reason, message = scene.condition("one", "Ready")
    assert (status, reason) == ("False", "NotAllowed")
    assert message.startswith("pods are not placed: the operator may not create pods/binding; apply deploy/")
    assert scene.condition("one", "Degraded")[:2] == ("True", "NotAllowed")
    assert scene.condition("two", "Ready")[:2] == ("True", "Serving")
    assert scene.condition("two", "Degraded")[0] == "False"
    assert noted(scene) == [("one", "NotAllowed")]


async def test_the_part_that_works_is_named_with_the_one_that_does_not() -> None:
    """Pods are placed, and none is moved."""
    scene = Scene()
    scene.reviewer.denied = {EVICT}
    await scene.access.review()
    await scene.policies.set(a_policy(rebalancing={"mode": "Enforce"}))

    status, _, message = scene.condition("one", "Ready")
    assert status == "False"
    assert message.startswith("no pod is moved: the operator may not create pods/eviction")
    assert message.endswith("pods with schedulerName plimsoll are placed")


async def test_rights_that_are_granted_mend_the_status() -> None:
    """As soon as a review finds them."""
    scene = Scene()
    scene.reviewer.denied = {BIND}
    await scene.access.review()
    await scene.policies.set(a_policy())
    task = asyncio.create_task(scene.policies.run())
    await settled()
    scene.reviewer.denied = set()
    await scene.access.review()
    await settled()
    task.cancel()

    assert scene.condition("one", "Ready")[:2] == ("True", "Serving")
    assert scene.condition("one", "Degraded")[:2] == ("False", "AsExpected")


async def test_a_status_that_breaks_does_not_end_the_writing() -> None:
    """The next change is written."""
    scene = Scene()
    await scene.policies.set(a_policy())
    write, scene.statuses.write_status = scene.statuses.write_status, None
    scene.policies.degrade("Bad", "something is bad")
    task = asyncio.create_task(scene.policies.run())
    await settled()
    assert [where for where, _ in scene.observer.failures] == ["writing the status of policies"]

    scene.statuses.write_status = write
    scene.policies.degrade("Worse", "something is worse")
    await settled()
    task.cancel()

    assert scene.condition("one", "Degraded") == ("True", "Bad", "something is bad; something is worse")


async def test_an_event_of_an_earlier_process_is_not_repeated() -> None:
    """What the condition says was reported before."""
    first, second = Scene(), Scene()
    for scene, document in ((first, a_policy()), (second, a_policy())):
        scene.rebalancing.told = {"one": {"Resting": "it rests"}}
        if scene is second:
            document["status"] = {"conditions": first.statuses.statuses["one"]["conditions"]}
        await scene.policies.set(document)

    assert noted(first) == [("one", "Resting")]
    assert noted(second) == []


async def test_further_conditions_come_and_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are false once they have been true; the observer receives both."""
    scene, told = Scene(), list[tuple[str, ...]]()
    monkeypatch.setattr(scene.observer, "object_noted", lambda *said, is_warning: told.append(said))
    await scene.policies.set(a_policy())
    conditions = scene.statuses.statuses["one"]["conditions"]
    assert {each["type"] for each in conditions} == {"Accepted", "Ready", "Degraded"}
    since = {datetime.fromisoformat(each["lastTransitionTime"]).timestamp() for each in conditions}
    assert since == {scene.clock.now()}
    scene.rebalancing.advised = {"Overlapping": ("SamePods", "as another one")}
    await scene.policies.refresh()
    assert scene.condition("one", "Overlapping") == ("True", "SamePods", "as another one")
    scene.rebalancing.advised = {}
    await scene.policies.refresh()
    assert scene.condition("one", "Overlapping")[0] == "False"
    assert noted(scene) == [("one", "SamePods")]
    assert [said[:3] for said in told] == [
        ("SchedulingPolicy", "one", "Overlapping"),
        ("SchedulingPolicy", "one", "NotOverlapping"),
    ]


async def test_whose_predictions_may_stay() -> None:
    """Those of dry runs, and of policies of which nothing is known."""
    scene = Scene()
    for name, spec in (
        ("dry", {"rebalancing": {"mode": "DryRun"}}),
        ("live", {"rebalancing": {"mode": "Enforce"}}),
        ("placing", {}),
        ("broken", {"rebalancing": {"mode": "Maybe"}}),
    ):
        await scene.policies.set(a_policy(name, name, **spec))
    assert scene.rebalancing.predicting == {"dry", "broken"}
    await scene.policies.remove("dry")
    assert scene.rebalancing.predicting == {"broken"}


async def test_who_claims_a_scheduler_name() -> None:
    """And why it is not served."""
    scene = Scene()
    await scene.policies.set(a_policy("one", "first"))
    await scene.policies.set(a_policy("two", "second", suspend=True))
    broken = a_policy("three", "third")
    broken["spec"]["scheduling"]["plugins"] = []
    await scene.policies.set(broken)

    claimed = scene.policies.claimed()
    assert claimed["first"] == ("one", "")
    assert claimed["second"] == ("two", "spec.suspend is true")
    assert claimed["third"][0] == "three"
    assert "spec.scheduling.plugins" in claimed["third"][1]


def withdrawn(document: dict[str, Any], conditions: Any) -> dict[str, Any]:
    """The policy with the condition that the watchdog writes."""
    written = [
        {**each, "status": "False", "reason": "NoLeader"} if each["type"] == "Ready" else dict(each)
        for each in conditions
    ]
    return {**document, "status": {"conditions": written}}


async def test_a_policy_that_the_watchdog_has_withdrawn_is_ready_again_while_we_lead() -> None:
    """Once; our own status, which comes back by the watch, is not written again."""
    scene = Scene()
    await scene.policies.set(a_policy())
    before = scene.statuses.statuses["one"]["conditions"]
    scene.statuses.statuses["one"] = {}

    await scene.policies.set({**a_policy(), "status": {"conditions": before}})
    unwritten = dict(scene.statuses.statuses["one"])
    await scene.policies.set(withdrawn(a_policy(), before))

    assert unwritten == {}
    assert scene.condition("one", "Ready")[:2] == ("True", "Serving")


async def test_a_withdrawn_policy_is_ready_when_the_next_process_leads() -> None:
    """Its first status comes from the rights and the spec, not from what was written."""
    scene, first = Scene(), Scene()
    await first.policies.set(a_policy())

    await scene.policies.set(withdrawn(a_policy(), first.statuses.statuses["one"]["conditions"]))

    assert scene.condition("one", "Ready")[:2] == ("True", "Serving")
