"""Limits: one eviction too many, and as many as are allowed."""

from typing import Any

import pytest

from promises.policies import allowed
from promises.streams import EPOCH, Stream, a_cluster, a_move, moment
from promises.view import POLICIES, RECORDS

#: Friday, 2027-01-15 08:00 UTC: where streams begin.
BEGIN = "2027-01-15T08:00:00Z"


def limited(stream: Stream, **limits: Any) -> None:
    """The policy has had limits for a while."""
    stream.policy(rebalancing={"limits": limits})
    stream.wait(60.0)
    stream.lead()


def moved(stream: Stream, count: int, apart_s: float = 0.0, node: str = "n1", **spec: Any) -> list[str]:
    """So many pods of no owner are evicted; the names of their records."""
    names = []
    for _ in range(count):
        name = f"p-{len(stream.checker._findings.facts.phases)}-{stream.checker.facts.evictions}"
        stream.pod(name, node, ready=True)
        names.append(a_move(stream, name, owner=None, fromNode=node, **spec))
        stream.wait(apart_s)
        stream.lead()
    return names


def ran(stream: Stream, begin: float, end: float, **given: Any) -> None:
    """The policy's status says that a run has ended."""
    run = {"startTime": moment(begin), "completionTime": moment(end), "mode": "Enforce", **given}
    stream.change(POLICIES, "tidy", {"status": {"lastRun": run}}, stream.by())


@pytest.mark.parametrize(
    ("ceiling", "population", "expected"),
    [
        (3, 100, 3),
        (0, 100, 0),
        ("0%", 100, 0),
        ("1%", 100, 1),
        ("1%", 5, 1),
        ("50%", 5, 2),
        ("99%", 100, 99),
        ("100%", 5, float("inf")),
    ],
)
def test_ceilings(ceiling: int | str, population: int, expected: float) -> None:
    """A share is rounded down, but allows one; all of them is no ceiling."""
    assert allowed(ceiling, population) == expected


def test_evictions_within_a_minute() -> None:
    """The third one is too many; those of other policies, and of victims, do not count."""
    stream = a_cluster()
    stream.policy("other")
    limited(stream, perMinute=2)
    stream.pod("important", spec={"priority": 10})
    moved(stream, 1, policy="other")
    moved(stream, 1, strategy="DefaultPreemption")
    moved(stream, 2)
    (third,) = moved(stream, 1)

    assert stream.said == [f"{third.removeprefix('move-')} was evicted for tidy: 3 evictions, perMinute is 2"]


@pytest.mark.parametrize(("apart_s", "count"), [(27.0, 0), (26.9, 1)])
def test_a_minute_passes(apart_s: float, count: int) -> None:
    """By a clock that may be fast."""
    stream = a_cluster()
    limited(stream, perMinute=2)
    moved(stream, 3, apart_s)

    assert len(stream.said) == count


@pytest.mark.parametrize("how", ["deleted", "meddled"])
def test_what_is_not_on_record_is_not_counted(how: str) -> None:
    """Somebody has deleted it, or written into it."""
    stream = a_cluster()
    limited(stream, perMinute=1)
    (name,) = moved(stream, 1)
    if how == "deleted":
        stream.delete(RECORDS, name)
    else:
        stream.change(RECORDS, name, {"status": {"message": "x"}})
    moved(stream, 1)

    assert stream.said == []


def test_a_share_is_of_the_pods_that_were_there() -> None:
    """Half of five is two; ten limits are the default, and an earlier policy counts for half a minute."""
    stream = a_cluster()
    for number in range(3):
        stream.pod(f"more-{number}", "n2")
    limited(stream, perMinute="50%")
    a_move(stream, "web-1", owner=None)
    a_move(stream, "web-2", owner=None)
    a_move(stream, "more-0", owner=None)

    assert stream.said == ["more-0 was evicted for tidy: 3 evictions, perMinute is 2"]


def test_the_loosest_policy_of_late_counts() -> None:
    """It was edited a moment ago."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perMinute": 1}})
    moved(stream, 2)

    assert stream.said == []


@pytest.mark.parametrize(
    ("limits", "phase", "owner", "said"),
    [
        ({}, "", "web", ["web-2 was evicted for tidy: 2 evictions, perWorkload is 1"]),
        ({"perWorkload": 2}, "", "web", []),
        ({}, "Cancelled", "web", []),
        ({}, "", "db", []),
    ],
)
def test_one_pod_of_a_workload_at_a_time(
    limits: dict[str, Any], phase: str, owner: str, said: list[str]
) -> None:
    """Until its replacement is ready."""
    stream = a_cluster()
    limited(stream, **limits)
    name = a_move(stream)
    if phase:
        stream.enter(name, phase)
    a_move(stream, "web-2", owner={"uid": f"uid-{owner}"})

    assert stream.said == said


@pytest.mark.parametrize(
    ("is_older", "ready", "evicted", "count"),
    [(False, True, 1, 0), (False, False, 1, 1), (True, True, 1, 1), (False, True, 2, 1)],
)
def test_a_replacement_that_is_ready_ends_a_flight(
    is_older: bool, ready: bool, evicted: int, count: int
) -> None:
    """Its record may say so later, as its answer may; an older pod does not count, and each replaces one."""
    stream = a_cluster()
    stream.pod("web-3", "n1", ready=True)
    stream.policy(rebalancing={"limits": {"perWorkload": evicted}})
    if is_older:
        stream.pod("web-9", "n1", ready=ready)
    stream.wait(60.0)
    stream.lead()
    for name in ("web-1", "web-3")[:evicted]:
        stream.record(name, phases=("Planned", "Evicting"))
        stream.evict(name)
        stream.delete("pods", name)
    if not is_older:
        stream.pod("web-9", "n1", ready=ready)
    stream.policy(rebalancing={"limits": {"perWorkload": 1}})
    stream.wait(60.0)
    stream.lead()
    a_move(stream, "web-2")

    assert len(stream.said) == count


def test_a_pod_that_becomes_ready_in_the_moment_of_an_eviction_is_ready() -> None:
    """The flight of the one before it has ended."""
    stream = a_cluster()
    limited(stream)
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.evict("web-1")
    stream.wait(1.0)
    stream.pod("web-3", "n1", ready=True)
    a_move(stream, "web-2")

    assert stream.said == []


def test_each_of_several_flights_ends_with_a_replacement_of_its_own() -> None:
    """The earliest one that came after it."""
    stream = a_cluster()
    stream.pod("web-3", "n1", ready=True)
    limited(stream)
    for name, replacement in (("web-1", "web-8"), ("web-3", "web-9")):
        stream.record(name, phases=("Planned", "Evicting"))
        stream.evict(name)
        stream.wait(1.0)
        stream.pod(replacement, "n1", ready=True)
        stream.wait(1.0)
    a_move(stream, "web-2")

    assert stream.said == []


BUNDLE = {"name": "b", "group": "train", "moves": 2}
TORN = ["web-1 was evicted for tidy: 1 of 2 moves of train were announced"]


@pytest.mark.parametrize(
    ("others", "said"),
    [
        pytest.param([], TORN, id="alone"),
        pytest.param([("web-2", {})], [], id="whole"),
        pytest.param([("web-2", {}), ("web-3", {})], [], id="more-than-it-says"),
        pytest.param([("web-2", {"phases": ("Planned",)})], TORN, id="only-planned"),
        pytest.param([("web-2", {"policy": "other"})], TORN, id="of-another-policy"),
        pytest.param([("web-2", {"bundle": {"name": "c"}})], TORN, id="of-another-group"),
        pytest.param([("web-2", {"bundle": None})], TORN, id="of-no-group"),
    ],
)
def test_a_group_leaves_whole(others: list[tuple[str, dict[str, Any]]], said: list[str]) -> None:
    """All of its moves are announced before the first of its pods is evicted."""
    stream = a_cluster()
    stream.pod("web-3", "n1", ready=True)
    for name, given in (*others, ("web-1", {})):
        stream.record(name, **{"phases": ("Planned", "Evicting"), "bundle": BUNDLE, **given})
    stream.evict("web-1")

    assert stream.said == said


def test_the_moves_of_a_group_are_not_counted_by_workload() -> None:
    """They are evicted together, though one of a workload at a time is the limit."""
    stream = a_cluster()
    limited(stream)
    for name in ("web-1", "web-2"):
        stream.record(name, phases=("Planned", "Evicting"), bundle=BUNDLE)
    for name in ("web-1", "web-2"):
        stream.evict(name)

    assert stream.said == []


FROZEN = ["web-1 was evicted for tidy: a budget of the policy allows none at that time"]


@pytest.mark.parametrize(
    ("budget", "said"),
    [
        ({"evictions": 0}, FROZEN),
        ({"evictions": "0%"}, FROZEN),
        ({"evictions": 1}, []),
        ({"evictions": 0, "schedule": "0 8 * * *", "duration": "1h"}, FROZEN),
        ({"evictions": 0, "schedule": "0 7 * * *", "duration": "1h"}, []),
        ({"evictions": 0, "schedule": "0 9 * * *", "duration": "1h", "timeZone": "Europe/Berlin"}, FROZEN),
        ({"evictions": 0, "schedule": "0 9 * * *", "duration": "1h"}, []),
    ],
)
def test_windows(budget: dict[str, Any], said: list[str]) -> None:
    """By the operator's clock: it is two minutes past eight."""
    stream = a_cluster()
    limited(stream, budgets=[{"name": "b", **budget}])
    a_move(stream)

    assert moment(0.0) == BEGIN
    assert EPOCH == 1_800_000_000
    assert stream.said == said


@pytest.mark.parametrize("was_frozen", [True, False])
def test_a_freeze_of_late_may_not_be_known(was_frozen: bool) -> None:
    """Nor that it has ended: while the policy is edited either version may decide."""
    stream = a_cluster()
    for frozen in (was_frozen, not was_frozen):
        stream.policy(rebalancing={"limits": {"budgets": [{"name": "b", "evictions": 0}] if frozen else []}})
        stream.wait(29.0)
    stream.lead()
    a_move(stream)

    assert stream.said == []


def test_the_seconds_in_which_a_window_closes_are_nobodys() -> None:
    """Times are cut, and clocks differ: it closes after 162 s, the eviction is sent after 161."""
    stream = a_cluster()
    limited(stream, budgets=[{"name": "b", "evictions": 0, "schedule": "0 8 * * *", "duration": "162s"}])
    stream.wait(1.0)
    a_move(stream)

    assert stream.said == []


@pytest.mark.parametrize(
    ("limits", "moves", "said"),
    [
        pytest.param({"total": 2}, [("n1", {}), ("n2", {})], [], id="total"),
        pytest.param(
            {"total": 1},
            [("n1", {}), ("n2", {})],
            ["a run of tidy made 2 evictions, total is 1"],
            id="total-beyond",
        ),
        pytest.param({"perNode": 1}, [("n1", {}), ("n2", {})], [], id="node"),
        pytest.param(
            {"perNode": 1},
            [("n1", {}), ("n1", {})],
            ["a run of tidy made 2 evictions, perNode is 1"],
            id="node-beyond",
        ),
        pytest.param(
            {"perNode": 1},
            [("n1", {"bundle": {"name": "b"}}), ("n1", {"bundle": {"name": "b"}})],
            [],
            id="bundle",
        ),
        pytest.param(
            {"perNode": "34%"},
            [("n1", {}), ("n1", {})],
            ["a run of tidy made 2 evictions, perNode is 1"],
            id="share-of-a-node",
        ),
        pytest.param(
            {"perNamespace": 1},
            [("n1", {}), ("n2", {})],
            ["a run of tidy made 2 evictions, perNamespace is 1"],
            id="namespace-beyond",
        ),
        pytest.param({"perNamespace": "100%"}, [("n1", {}), ("n2", {})], [], id="share-of-a-namespace"),
    ],
)
def test_a_run_is_within_its_ceilings(
    limits: dict[str, Any], moves: list[tuple[str, dict[str, Any]]], said: list[str]
) -> None:
    """As its policy's status says when it has ended."""
    stream = a_cluster()
    limited(stream, **limits)
    for node, spec in moves:
        stream.wait(1.0)
        moved(stream, 1, node=node, **spec)
    stream.lead()
    ran(stream, 160.0, 170.0)

    assert stream.said == said


@pytest.mark.parametrize(
    ("begin", "end", "given", "count"),
    [
        pytest.param(160.0, 170.0, {}, 1, id="within"),
        pytest.param(161.0, 170.0, {}, 0, id="one-in-the-second-in-which-it-began"),
        pytest.param(160.0, 162.0, {}, 1, id="to-its-last-second"),
        pytest.param(160.0, 161.0, {}, 0, id="one-after-it"),
        pytest.param(160.0, 170.0, {"mode": "DryRun"}, 0, id="dry-run"),
        pytest.param(160.0, 170.0, {"completionTime": None}, 0, id="under-way"),
        pytest.param(165.0, 170.0, {}, 0, id="nothing-made"),
    ],
)
def test_which_evictions_a_run_has_made(begin: float, end: float, given: dict[str, Any], count: int) -> None:
    """Those that were sent between its beginning and its end."""
    stream = a_cluster()
    limited(stream, total=1)
    for _ in range(2):
        stream.wait(1.0)
        moved(stream, 1)
    stream.wait(10.0)
    stream.lead()
    ran(stream, begin, end, **given)
    stream.change(POLICIES, "tidy", {"status": {"message": "x"}}, stream.by())
    stream.change(POLICIES, "tidy", {"status": {"lastRun": {"startTime": moment(159.0)}}})

    assert len(stream.said) == count


def test_a_run_goes_by_the_policy_that_it_began_with() -> None:
    """One that is edited in the middle of it counts for the next."""
    stream = a_cluster()
    limited(stream, total=2)
    stream.wait(1.0)
    moved(stream, 1)
    limited(stream, total=1)
    moved(stream, 1)
    ran(stream, 160.0, 230.0)

    assert stream.said == []


def test_evictions_of_other_policies_are_not_of_the_run() -> None:
    """Each has its own ceilings; and what people write into a status is no report."""
    stream = a_cluster()
    stream.policy("other")
    limited(stream, total=1)
    stream.wait(1.0)
    moved(stream, 1)
    moved(stream, 1, policy="other")
    ran(stream, 160.0, 170.0)

    assert stream.said == []


def test_a_deleted_policy_has_no_ceilings() -> None:
    """That it evicts at all is judged elsewhere."""
    stream = a_cluster()
    stream.delete(POLICIES, "tidy")
    stream.wait(60.0)
    stream.lead()
    a_move(stream)

    assert stream.said == ["web-1 was evicted for tidy: its policy did not exist"]


def test_shares_are_of_the_node_and_of_the_namespace() -> None:
    """Not of all pods: half of the four on the node, of the five in the namespace."""
    stream = a_cluster()
    for number in range(2):
        stream.pod(f"near-{number}", "n1", ready=True)
    stream.pod("same-namespace", "n2", ready=True)
    for number in range(9):
        stream.pod(f"far-{number}", "n2", metadata={"namespace": "shop"})
    limited(stream, perNode="50%", perNamespace="50%", perMinute="100%")
    stream.wait(1.0)
    for name in ("web-1", "web-2", "near-0"):
        a_move(stream, name, owner=None)
    stream.lead()
    ran(stream, 160.0, 170.0)

    assert stream.said == [
        "a run of tidy made 3 evictions, perNode is 2",
        "a run of tidy made 3 evictions, perNamespace is 2",
    ]


def test_a_policy_that_came_between_a_record_and_its_eviction_counts() -> None:
    """The one before it was deleted a while ago."""
    stream = a_cluster()
    stream.delete(POLICIES, "tidy")
    stream.wait(60.0)
    stream.lead()
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.policy(rebalancing={"limits": {"perMinute": 0, "total": 0}})
    stream.evict("web-1")
    stream.wait(1.0)
    ran(stream, 159.0, 161.0)

    assert stream.said == [
        "web-1 was evicted for tidy: 1 evictions, perMinute is 0",
        "a run of tidy made 1 evictions, total is 0",
    ]


def test_deletions_are_no_evictions() -> None:
    """A victim of preemption that is deleted has no record; a record that waits counts nothing."""
    stream = a_cluster()
    limited(stream, perMinute=0, perWorkload=0)
    stream.pod("important", spec={"priority": 10})
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.change("pods", "web-1", {"status": {"conditions": [{"type": "DisruptionTarget"}]}}, stream.by())
    stream.delete("pods", "web-1", stream.by("/api/v1/namespaces/default/pods/web-1", method="DELETE"))

    assert stream.said == []
