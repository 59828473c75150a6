"""The owner of a namespace restricts the moves of her pods by RebalancingRules, and can do nothing else."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.api.schema.conditions import condition
from plimsoll.api.v1alpha1.rebalancing_rule import ACTIVE, RebalancingRuleStatus
from plimsoll.cluster.watch_events import ObjectAdded, ObjectDeleted, ObjectUpdated, PodAdded, PodUpdated
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.rebalancing_rule import RebalancingRule
from plimsoll.policies import rebalancing_rules
from plimsoll.policies.rebalancing_rules import MOST_RULES
from plimsoll.rebalancing import rule_statuses
from plimsoll.rebalancing.rule_statuses import MOST_WRITES, status_of
from plimsoll.testing.fakes import settled
from rebalancing.scene import Scene, a_policy, web

if TYPE_CHECKING:
    from collections.abc import Iterable

OLD = web(1, "bad")

HUGE = ["x"] * 9_999

both_planners = pytest.mark.parametrize("planner", [Planner.PROVEN.value, Planner.UPSTREAM.value])


def a_rule(spec: Any, name: str = "mine", namespace: str = "default", **more: Any) -> RebalancingRule:
    """A rule as the watch shows it."""
    metadata = {"name": name, "namespace": namespace, "uid": f"{namespace}-{name}", "generation": 1}
    return convert(RebalancingRule, {"metadata": metadata, "spec": spec, **more})


def moment(scene: Scene) -> datetime:
    """The time of the scene."""
    return datetime.fromtimestamp(scene.clock.now(), UTC)


def window(begins: datetime, hours: int = 2) -> dict[str, Any]:
    """A window that opens daily at that minute."""
    return {"schedule": f"{begins.minute} {begins.hour} * * *", "duration": f"{hours}h"}


async def moved(rules: Iterable[RebalancingRule], planner: str = "Proven", **policy: Any) -> Scene:
    """One run with these rules."""
    scene = Scene()
    scene.tell(*map(ObjectAdded, rules))
    async with scene.running(a_policy(planner=planner, **policy)):
        await scene.run()
        await settled()
    return scene


#: By what they try: rules of an attacker, and whether web-1 of namespace default leaves its broken node.
ATTEMPTS: dict[str, tuple[list[RebalancingRule], bool]] = {
    "no rule": ([], True),
    "opt out": ([a_rule({"never": True})], False),
    "opt out by label": ([a_rule({"never": True, "podSelector": {"matchLabels": {"app": "web"}}})], True),
    "of another namespace": ([a_rule({"never": True}, namespace="other")], True),
    "names another namespace in the spec": (
        [a_rule({"never": True, "namespace": "default", "namespaces": ["default"]}, namespace="other")],
        True,
    ),
    "selects everything, elsewhere": ([a_rule({"never": True, "podSelector": {}}, namespace="other")], True),
    "a window that never closes does not lift another rule": (
        [a_rule({"never": True}), a_rule({"windows": [{"schedule": "* * * * *", "duration": "1h"}]}, "wide")],
        False,
    ),
    "a high number does not lift another rule": (
        [a_rule({"never": True}), a_rule({"maxMovesPerHour": 10_000}, "wide")],
        False,
    ),
    "never: false widens nothing and is no rule": ([a_rule({"never": False})], False),
    "widening fields are unknown, so the rule holds": (
        [a_rule({"maxMovesPerHour": 5, "minReplicas": 1, "force": True})],
        False,
    ),
    "no spec": ([a_rule(None)], False),
    "a spec that is a list": ([a_rule(["never"])], False),
    "an unreadable selector": (
        [a_rule({"never": True, "podSelector": {"matchExpressions": [{"key": "a", "operator": "In"}]}})],
        False,
    ),
    "a schedule that never fires": (
        [a_rule({"windows": [{"schedule": "0 0 30 2 *", "duration": "1h"}]})],
        False,
    ),
    "an unknown time zone": (
        [a_rule({"windows": [{"schedule": "* * * * *", "duration": "1h", "timeZone": "Mars/Base"}]})],
        False,
    ),
    "a duration beyond the calendar": (
        [a_rule({"windows": [{"schedule": "* * * * *", "duration": "99999999999h"}]}, namespace="other")],
        True,
    ),
    "the same at home": (
        [a_rule({"windows": [{"schedule": "* * * * *", "duration": "99999999999h"}]})],
        False,
    ),
    "a huge list, elsewhere": (
        [
            a_rule(
                {
                    "never": True,
                    "podSelector": {
                        "matchExpressions": [{"key": "a", "operator": "In", "values": ["x"] * 9999}]
                    },
                },
                namespace="other",
            )
        ],
        True,
    ),
    "more rules than are read": (
        [a_rule({"maxMovesPerHour": 9}, f"rule-{each:02}") for each in range(MOST_RULES + 1)],
        False,
    ),
    "as many rules as are read": (
        [a_rule({"maxMovesPerHour": 9}, f"rule-{each:02}") for each in range(MOST_RULES)],
        True,
    ),
    "a forged status": (
        [a_rule({"never": True}, status={"conditions": [{"type": "Active", "status": "False"}]})],
        False,
    ),
    "an unreadable status": ([a_rule({"maxMovesPerHour": 1}, status=["x"])], True),
}


@both_planners
@pytest.mark.parametrize("attempt", ATTEMPTS)
async def test_rules_only_restrict_and_only_at_home(attempt: str, planner: str) -> None:
    """Whatever a rule holds: it widens nothing, touches no other namespace, and no run ends by it."""
    rules, leaves = ATTEMPTS[attempt]

    scene = await moved(rules, planner)

    assert (scene.evictor.evicted == ["web-1"]) is leaves
    assert scene.observer.failures == []


async def test_no_rule_lifts_what_a_policy_forbids() -> None:
    """A rule that allows everything it can: the policy's own protections and limits stay."""
    wide = [a_rule({"windows": [{"schedule": "* * * * *", "duration": "24h"}], "maxMovesPerHour": 10_000})]

    out_of_scope = await moved(wide, scope={"namespaces": {"exclude": ["default"]}})
    no_moves = await moved(wide, limits={"total": 0})

    assert out_of_scope.evictor.evicted == no_moves.evictor.evicted == []


@both_planners
async def test_pods_move_only_in_windows(planner: str) -> None:
    """Closed, they stay, and the refusal names the rule and the next opening; open, they go."""
    scene = Scene()
    opens = moment(scene) + timedelta(hours=3)
    scene.tell(ObjectAdded(a_rule({"windows": [window(opens)]}, "at-night")))

    async with scene.running(a_policy(planner=planner)):
        await scene.run()
        assert scene.evictor.evicted == []
        await scene.clock.advance(3 * 3600 + 60)
        await scene.run()
        await settled()

    assert scene.evictor.evicted == ["web-1"]


@both_planners
async def test_a_rule_that_comes_under_way_stops_the_move(planner: str) -> None:
    """Planned, not announced yet: the rule is asked again right before the eviction."""
    scene = Scene()
    opened = scene.records.create

    async def late(document: dict[str, Any]) -> Any:
        scene.tell(ObjectAdded(a_rule({"never": True})))
        return await opened(document)

    scene.records.create = late  # type: ignore[method-assign, assignment] # the moment between plan and eviction
    async with scene.running(a_policy(planner=planner)):
        await scene.run()
        await settled()

    assert scene.evictor.evicted == []
    assert scene.phases == [["Planned", "Cancelled"]]
    assert scene.record["status"]["reason"] == "HeldByRule"
    assert "RebalancingRule default/mine" in scene.record["status"]["message"]


async def test_a_rule_that_goes_under_way_changes_no_record() -> None:
    """Deleted, made again, changed: each run reads what is there, and a held pod goes only without it."""
    scene, rule = Scene(), a_rule({"never": True})
    scene.tell(ObjectAdded(rule))
    async with scene.running(a_policy()):
        await scene.run()
        scene.tell(ObjectDeleted(rule))
        scene.tell(ObjectAdded(rule))
        await scene.run()
        assert scene.evictor.evicted == []
        scene.tell(ObjectUpdated(rule, a_rule({"maxMovesPerHour": 1})))
        await scene.run()
        await settled()

    assert scene.evictor.evicted == ["web-1"]


@both_planners
async def test_so_many_moves_an_hour_and_no_more(planner: str) -> None:
    """Over runs, policies and processes; the next hour allows as many again."""
    scene = Scene()
    scene.tell(ObjectAdded(a_rule({"maxMovesPerHour": 1})))
    async with scene.running(a_policy(planner=planner, limits={"perWorkload": "100%"})):
        await scene.run()
        await settled()
        assert scene.evictor.evicted == ["web-1"]
        scene.gone(OLD)
        scene.tell(PodAdded(web(4, "bad")))
        await scene.run()
        await settled()
        assert scene.evictor.evicted == ["web-1"]
        (rule,) = scene.cache.cluster.objects.rules.values()
        assert scene.wing._rules.hourly() == {"default": 1}
        await scene.clock.advance(3601)
        scene.tell(PodUpdated(web(4, "bad"), web(4, "bad")))
        await scene.run()
        await settled()

    assert scene.evictor.evicted[1:] == ["web-4"]
    assert rule.name == "mine"


async def test_a_number_holds_within_one_plan() -> None:
    """Three pods want to leave, the rule allows two: two leave."""
    scene = Scene()
    scene.tell(ObjectAdded(a_rule({"maxMovesPerHour": 2})))
    scene.tell(*(PodAdded(web(number, "bad")) for number in (4, 5)))
    async with scene.running(a_policy(limits={"perWorkload": "100%"})):
        await scene.run()
        await settled()

    assert len(scene.evictor.evicted) == 2


@both_planners
async def test_a_number_that_comes_under_way_holds_for_what_is_left(planner: str) -> None:
    """Two moves are planned when the rule arrives that allows one: the second is called off."""
    scene = Scene()
    scene.tell(PodAdded(web(4, "bad")))
    opened = scene.records.create

    async def late(document: dict[str, Any]) -> Any:
        scene.tell(ObjectAdded(a_rule({"maxMovesPerHour": 1})))
        return await opened(document)

    scene.records.create = late  # type: ignore[method-assign, assignment] # the moment between plan and evictions
    async with scene.running(a_policy(planner=planner, limits={"perWorkload": "100%"})):
        await scene.run()
        await settled()

    assert len(scene.evictor.evicted) == 1
    ends = [each["status"]["reason"] for each in scene.records.documents.values()]
    assert "RuleLimit" in ends


async def test_the_status_says_what_a_rule_holds() -> None:
    """And that one is malformed, whose namespace is held; it is written once, until it says something new."""
    scene = Scene()
    rules = [
        a_rule(
            {"never": True, "podSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}}
        ),
        a_rule({"windows": [{"schedule": "0 0 30 2 *", "duration": "1h"}]}, "broken"),
        a_rule({"maxMovesPerHour": 3}, "slow"),
    ]
    scene.tell(*map(ObjectAdded, rules))

    statuses = scene.wing._rules
    await statuses.look()
    written = dict(statuses.statuses.written)  # type: ignore[attr-defined] # of the fake
    said = {name: RebalancingRuleStatus.from_wire(each) for name, each in written.items()}
    for rule in rules:
        scene.tell(ObjectUpdated(rule, a_rule(rule.spec, rule.name, status=written[rule.key])))
    await statuses.look()

    assert len(statuses.statuses.written) == 3  # type: ignore[attr-defined] # nothing new
    broken = condition(said["default/broken"].conditions, ACTIVE)
    assert broken is not None
    assert (broken.status, broken.reason) == ("False", "Invalid")
    assert "never fires" in broken.message
    assert [said[f"default/{name}"].held_pods for name in ("mine", "broken", "slow")] == [2, 2, 0]
    slow = condition(said["default/slow"].conditions, ACTIVE)
    assert slow is not None
    assert "0 of 3 moves an hour made" in slow.message


async def test_thousands_of_rules_cost_a_look_no_more_than_some(monkeypatch: pytest.MonkeyPatch) -> None:
    """The status of each says in its turn that there are too many."""
    scene, judged = Scene(), list[str]()

    def counted(rule: RebalancingRule, *given: Any) -> RebalancingRuleStatus:
        judged.append(rule.name)
        return status_of(rule, *given)

    monkeypatch.setattr(rule_statuses, "status_of", counted)
    rules = {f"default/r{number:03}": a_rule({"never": True}, f"r{number:03}") for number in range(100)}
    scene.tell(*map(ObjectAdded, rules.values()))
    statuses = scene.wing._rules
    said: dict[str, Any] = {}

    for look in range(1, 10):
        await statuses.look()
        assert len(judged) <= look * (MOST_RULES + MOST_WRITES)
        said = dict(statuses.statuses.written)  # type: ignore[attr-defined] # of the fake
        for key, status in said.items():
            told = a_rule({"never": True}, rules[key].name, status=status)
            scene.tell(ObjectUpdated(rules[key], told))
            rules[key] = told

    assert said.keys() == rules.keys()
    last = RebalancingRuleStatus.from_wire(said["default/r099"])
    assert last.held_pods == 2
    assert "at most 16 rules, and this one has 100" in last.conditions[0].message


def test_a_rule_that_cannot_be_read_keeps_the_pods_of_its_namespace(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever it breaks; the rules next to it are read all the same."""
    read = rebalancing_rules.read

    def broken(rule: RebalancingRule) -> rebalancing_rules.ReadRule:
        if rule.name == "broken":
            raise RecursionError("too deep")
        return read(rule)

    monkeypatch.setattr(rebalancing_rules, "read", broken)
    rules = [a_rule({"never": True}, "broken"), a_rule({"never": True}, "mine")]
    unread, mine = rebalancing_rules.present_in(rules, datetime(2026, 1, 1, tzinfo=UTC))

    assert (unread.invalid, mine.invalid) == ("RecursionError('too deep')", "")
    assert "no pod of the namespace is moved" in unread.forbids
