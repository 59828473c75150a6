"""Records that are not true, each with a neighbour that is."""

from typing import Any

import pytest

from promises.commits import UNKNOWN, Obj
from promises.streams import Stream, a_cluster, a_move
from promises.view import POLICIES, RECORDS

MOVE = "the record move-web-1 "


def replaced(stream: Stream, name: str = "web-3", node: str = "n2", **changes: Any) -> str:
    """A pod that replaces another, ready on a node."""
    stream.pod(name, **changes)
    stream.bind(name, node)
    stream.become_ready(name)
    return name


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        ({}, []),
        ({"uid": "uid-old"}, [MOVE + "is of the pod web-1 (uid-old), which never existed"]),
        ({"name": "web-9"}, [MOVE + "is of the pod web-9 (uid-web-1), which never existed"]),
        ({"namespace": "shop"}, [MOVE + "is of the pod web-1 (uid-web-1), which never existed"]),
    ],
)
def test_a_record_is_of_a_pod_that_existed(pod: dict[str, str], said: list[str]) -> None:
    """By uid, name and namespace."""
    stream = a_cluster()
    stream.record("web-1", pod=pod)

    assert stream.said == said


def test_of_a_pod_that_never_existed_nothing_more_is_said() -> None:
    """However far its record goes."""
    stream = a_cluster()
    stream.record("ghost", phases=("Planned", "Evicting", "Evicted"))

    assert stream.said == ["the record move-ghost is of the pod ghost (uid-ghost), which never existed"]


@pytest.mark.parametrize("phase", ["Evicting", "Evicted", "Surging"])
def test_moves_under_way_are_not_forgotten(phase: str) -> None:
    """By the operator; people may delete what they like."""
    stream = a_cluster()
    path = {"Evicting": ("Planned", "Evicting"), "Surging": ("Planned", "Surging")}
    if phase == "Evicted":
        a_move(stream)
    else:
        stream.record("web-1", phases=path[phase])
    stream.record("web-2", phases=("Planned",))
    stream.delete(RECORDS, "move-web-2", stream.by(method="DELETE"))
    stream.delete(RECORDS, "move-web-1", stream.by(method="DELETE"))
    stream.record("web-2", "another", phases=("Planned", "Evicting"))
    stream.delete(RECORDS, "another")

    assert stream.said == [MOVE + f"was deleted while it was {phase}"]


def test_a_spec_never_changes() -> None:
    """Whatever else is written."""
    stream = a_cluster()
    stream.record("web-1")
    stream.change(RECORDS, "move-web-1", {"spec": {"policy": "serve"}}, stream.by())
    stream.change(RECORDS, "move-web-1", {"metadata": {"labels": {}}}, stream.by())

    assert stream.said == [MOVE + "has another spec than before"]


@pytest.mark.parametrize(
    ("phases", "said"),
    [
        (("Predicted",), []),
        (("Planned", "Blocked"), []),
        (("Planned", "Surging"), []),
        (("Evicting",), ["became Evicting from nothing"]),
        (("Planned", "Settled"), ["became Settled from Planned"]),
        (("Predicted", "Cancelled"), ["became Cancelled from Predicted"]),
    ],
)
def test_phases_follow_one_another(phases: tuple[str, ...], said: list[str]) -> None:
    """As docs/rebalancing/evictions.md has it."""
    stream = a_cluster()
    stream.record("web-1", phases=phases)

    assert [each for each in stream.said if "became" in each] == [MOVE + each for each in said]


def test_a_dry_run_goes_no_further_than_its_prediction() -> None:
    """Its record is never carried out."""
    stream = a_cluster()
    stream.record("web-1", phases=("Predicted",), mode="DryRun")
    stream.record("web-2", "other", phases=("Planned",), mode="DryRun")

    assert stream.said == ["the record other is Planned in a dry run"]


@pytest.mark.parametrize(
    ("transitions", "said"),
    [
        (["Planned", "Evicting"], []),
        (
            ["Evicting"],
            ["went through ['Planned'], and now says ['Evicting']", "became Evicting from nothing"],
        ),
        (["Planned"], ["is Evicting, and says that it went through ['Planned']"]),
    ],
)
def test_the_path_of_a_record_goes_on_where_it_was(transitions: list[str], said: list[str]) -> None:
    """And ends in its phase."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned",))
    passed = [{"phase": each, "time": "2026-01-01T00:00:00Z"} for each in transitions]
    stream.enter("move-web-1", "Evicting", transitions=passed)

    assert stream.said == [MOVE + each for each in said]


def test_what_people_write_need_not_be_true() -> None:
    """Nor does what the operator makes of it."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting"))
    stream.enter("move-web-1", "Settled", by=UNKNOWN)
    stream.enter("move-web-1", "Evicted")
    stream.put(
        RECORDS,
        {
            "metadata": {"name": "forged", "namespace": "default", "uid": "uid-forged"},
            "spec": {
                **stream.get(RECORDS, "move-web-1")["spec"],
                "pod": {"name": "x", "namespace": "y", "uid": "z"},
            },
        },
    )
    stream.enter("forged", "Evicted")

    assert stream.said == []


def test_evicted_is_a_pod_that_has_left() -> None:
    """It leaves, is gone, or has ended."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting", "Evicted"))
    a_move(stream, "web-2")
    stream.pod("web-3", "n1")
    stream.record("web-3", phases=("Planned", "Evicting"))
    stream.change("pods", "web-3", {"status": {"phase": "Succeeded"}})
    stream.enter("move-web-3", "Evicted")

    assert [each for each in stream.said if "limit" not in each and "perWorkload" not in each] == [
        MOVE + "is Evicted, but web-1 has not left"
    ]


@pytest.mark.parametrize("phase", ["Blocked", "Cancelled", "Failed"])
def test_a_move_that_was_made_does_not_end_as_one_that_was_not(phase: str) -> None:
    """The pod was evicted under this record; once that is on record the move may still fail."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Evicting"), owner=None)
    stream.evict("web-1")
    stream.enter("move-web-1", phase, reason="Gone")
    stream.record("web-2", phases=("Planned", "Evicting"), owner=None)
    stream.enter("move-web-2", phase, reason="Gone")

    assert stream.said == [MOVE + f"is {phase} (Gone), but web-1 was evicted"]


def test_a_move_that_is_on_record_may_be_called_off() -> None:
    """Evicted, then Cancelled."""
    stream = a_cluster()
    a_move(stream)
    stream.enter("move-web-1", "Cancelled", reason="PolicyChanged")

    assert stream.said == []


@pytest.mark.parametrize(
    ("given", "pod", "said"),
    [
        pytest.param({}, {}, [], id="true"),
        pytest.param({"pod": "ghost"}, {}, ["is Settled by a replacement that never existed"], id="ghost"),
        pytest.param(
            {"pod": "web-1", "node": "n1"},
            {},
            [
                "is Settled by web-1, which replaces another pod",
                "is Settled by web-1 on n1, the node that was left",
            ],
            id="itself",
        ),
        pytest.param(
            {}, {"owner": "db"}, ["is Settled by web-3, which replaces another pod"], id="of-another-owner"
        ),
        pytest.param({"node": "n1"}, {}, ["is Settled by web-3 on n1, which is on n2"], id="on-another-node"),
        pytest.param(
            {"node": "n1"},
            {"node": "n1"},
            ["is Settled by web-3 on n1, the node that was left"],
            id="on-the-same-node",
        ),
        pytest.param({"phase": "Returned", "node": "n1"}, {"node": "n1"}, [], id="returned"),
        pytest.param(
            {"phase": "Returned"}, {}, ["is Returned by web-3 on n2, not on n1"], id="returned-elsewhere"
        ),
    ],
)
def test_a_replacement_is_where_the_record_says(
    given: dict[str, Any], pod: dict[str, Any], said: list[str]
) -> None:
    """A pod of the same owner, on the node that is named."""
    stream = a_cluster()
    a_move(stream)
    replaced(stream, **pod)
    stream.settle("move-web-1", **{"pod": "web-3", **given})

    assert stream.said == [MOVE + each for each in said]


def test_a_replacement_is_ready() -> None:
    """Or was; that a watch may be behind is no lie. One that came back has at least run."""
    stream = a_cluster()
    for number, phase in enumerate(("Settled", "Returned", "Settled")):
        stream.pod(f"p-{number}", "n1", ready=True, owner="")
        a_move(stream, f"p-{number}", owner=None)
        stream.pod(f"r-{number}")
        stream.bind(f"r-{number}", "n1" if phase == "Returned" else "n2")
        if number == 2:
            stream.become_ready("r-2")
            stream.change("pods", "r-2", {"status": {"conditions": []}})
        node = "n1" if phase == "Returned" else "n2"
        stream.settle(f"move-p-{number}", f"r-{number}", node, phase)

    assert [each for each in stream.said if "owner" not in each] == [
        "the record move-p-0 is Settled by r-0, which was never ready",
        "the record move-p-1 is Returned by r-1, which never ran",
    ]


def test_a_restart_may_come_back() -> None:
    """It wanted a fresh pod on any node."""
    stream = a_cluster()
    a_move(stream, purpose="Restart")
    replaced(stream, node="n1")
    stream.settle("move-web-1", "web-3", "n1")

    assert stream.said == []


def test_a_pod_replaces_one_other() -> None:
    """Two records cannot both have it; one that was deleted does not count."""
    stream = a_cluster()
    a_move(stream)
    replaced(stream)
    stream.settle("move-web-1", "web-3")
    a_move(stream, "web-2")
    stream.settle("move-web-2", "web-3")
    stream.delete(RECORDS, "move-web-1")
    stream.delete(RECORDS, "move-web-2")
    stream.pod("web-4", "n1", ready=True)
    a_move(stream, "web-4")
    stream.settle("move-web-4", "web-3")

    assert stream.said == ["the record move-web-2 is Settled by web-3, as move-web-1 is"]


def test_settled_is_a_pod_that_has_left() -> None:
    """By a rollout the replacement comes first, of another owner."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Surging"), surge={"deployment": "web"})
    replaced(stream, owner="new")
    stream.settle("move-web-1", "web-3")
    stream.record("web-2", phases=("Planned", "Surging"), surge={"deployment": "web"})
    replaced(stream, "web-4", owner="new")
    stream.delete("pods", "web-2")
    stream.settle("move-web-2", "web-4")

    assert stream.said == [MOVE + "is Settled, but web-1 has not left"]


def test_returned_by_a_rollout_is_a_new_pod_on_the_old_node() -> None:
    """The old pod may leave later: the rollout goes on."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Surging"), surge={"deployment": "web"})
    replaced(stream, node="n1", owner="new")
    stream.settle("move-web-1", "web-3", "n1", "Returned")
    stream.record("web-2", phases=("Planned", "Evicting", "Evicted"))
    replaced(stream, "web-4", node="n1")
    stream.settle("move-web-2", "web-4", "n1", "Returned")

    said = [each for each in stream.said if "has not left" in each and "Evicted" not in each]
    assert said == ["the record move-web-2 is Returned, but web-2 has not left"]


@pytest.mark.parametrize(
    ("deadline", "waited_s", "said"),
    [
        ({"progressDeadlineSeconds": 20}, 20.0, []),
        (
            {"progressDeadlineSeconds": 20},
            10.0,
            ["is Failed (ReplacementNotReady) 10 s after its rollout began"],
        ),
        ({"progressDeadlineSeconds": 100}, 89.0, []),
        (
            {"progressDeadlineSeconds": 100},
            88.0,
            ["is Failed (ReplacementNotReady) 88 s after its rollout began"],
        ),
        ({}, 267.0, []),
        ({}, 200.0, ["is Failed (ReplacementNotReady) 200 s after its rollout began"]),
        (None, 1.0, []),
    ],
)
def test_a_rollout_gets_the_time_of_its_author(
    deadline: Obj | None, waited_s: float, said: list[str]
) -> None:
    """Five minutes, or less where the Deployment says so; one that is gone says nothing."""
    stream = a_cluster()
    if deadline is not None:
        meta = {"name": "web", "namespace": "default"}
        stream.put("deployments.apps", {"metadata": meta, "spec": deadline})
    stream.record("web-1", phases=("Planned", "Surging"), surge={"deployment": "web"})
    stream.wait(waited_s)
    stream.enter("move-web-1", "Failed", reason="ReplacementNotReady")

    assert stream.said == [MOVE + each for each in said]


@pytest.mark.parametrize(
    ("reason", "gone", "said"),
    [
        ("Left", "deletion", ["is Settled, but the victim web-1 is still there"]),
        ("Left", "gone", []),
        ("Left", "over", []),
        ("NoReplacement", "", ["is Settled, but web-1 has not left"]),
        ("NoReplacement", "deletion", []),
    ],
)
def test_what_is_settled_without_a_replacement(reason: str, gone: str, said: list[str]) -> None:
    """A victim has left its node; a pod that had ended goes."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned", "Surging"))
    if gone == "deletion":
        stream.change("pods", "web-1", {"metadata": {"deletionTimestamp": "now"}})
    elif gone == "over":
        stream.change("pods", "web-1", {"status": {"phase": "Failed"}})
    elif gone:
        stream.delete("pods", "web-1")
    stream.enter("move-web-1", "Settled", reason=reason)

    assert stream.said == [MOVE + each for each in said]


@pytest.mark.parametrize("reason", ["NoReplacement", "ReplacementNotRunning", "ReplacementNotReady"])
@pytest.mark.parametrize(
    ("seconds", "owner", "said"),
    [
        (266.0, {}, "is Failed ({reason}) 266 s after its pod has left"),
        (267.0, {}, ""),
        (1.0, None, ""),
    ],
)
def test_a_replacement_is_waited_for(reason: str, seconds: float, owner: Any, said: str) -> None:
    """Five minutes by a clock that may be fast; where there is an owner that makes one."""
    stream = a_cluster()
    a_move(stream, owner=owner)
    stream.wait(seconds)
    stream.enter("move-web-1", "Failed", reason=reason)

    assert stream.said == ([MOVE + said.format(reason=reason)] if said else [])


def test_a_replacement_is_waited_for_since_the_pod_has_left() -> None:
    """It had ended before it was evicted."""
    stream = a_cluster()
    name = stream.record("web-1", phases=("Planned", "Evicting"))
    stream.change("pods", "web-1", {"status": {"phase": "Failed"}})
    stream.wait(200.0)
    stream.lead()
    stream.evict("web-1")
    stream.enter(name, "Evicted")
    stream.wait(67.0)
    stream.enter(name, "Failed", reason="NoReplacement")

    assert stream.said == []


@pytest.mark.parametrize(
    ("ready_s", "said"), [(30.1, ["is Failed, though web-3 has taken the place of web-1"]), (30.0, [])]
)
def test_a_replacement_is_not_overlooked(ready_s: float, said: list[str]) -> None:
    """It has been ready for longer than a watch is behind."""
    stream = a_cluster()
    a_move(stream)
    stream.wait(400.0)
    stream.lead()
    replaced(stream)
    stream.wait(ready_s)
    stream.enter("move-web-1", "Failed", reason="NoReplacement")

    assert stream.said == [MOVE + each for each in said]


def test_who_counts_as_an_overlooked_replacement() -> None:
    """Not a pod that was there before, that another record has, or waits for, or that is not ready."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perWorkload": 9}})
    a_move(stream)
    replaced(stream)
    stream.settle("move-web-1", "web-3")
    a_move(stream, "web-2")
    stream.pod("web-4", "n1", ready=True)
    a_move(stream, "web-4")
    replaced(stream, "web-5")
    stream.pod("web-6")
    stream.pod("foreign", "n1", ready=True, owner="db")
    a_move(stream, "foreign", owner={"uid": "uid-db"})
    stream.wait(400.0)
    stream.lead()
    stream.enter("move-web-2", "Failed", reason="NoReplacement")

    assert [each for each in stream.said if "lease" not in each] == []


@pytest.mark.parametrize(
    ("phases", "mode", "said"),
    [
        (("Planned",), "Enforce", ["is still Planned"]),
        (("Planned", "Evicting"), "Enforce", ["is still Evicting"]),
        (("Planned",), "Approve", []),
        (("Planned", "Blocked"), "Enforce", []),
    ],
)
def test_every_move_ends(phases: tuple[str, ...], mode: str, said: list[str]) -> None:
    """But a proposal, which waits for people."""
    stream = a_cluster()
    stream.change(POLICIES, "tidy", {"spec": {"rebalancing": {"mode": mode}}})
    stream.record("web-1", phases=phases, mode=mode)
    stream.finish()

    assert [each for each in stream.said if "policy" not in each] == [MOVE + each for each in said]


@pytest.mark.parametrize(
    ("how", "count"),
    [
        ("deleted", 1),
        ("suspended", 1),
        ("another mode", 1),
        ("no rebalancing", 1),
        ("unusable", 0),
        ("late", 0),
    ],
)
def test_a_proposal_ends_with_its_policy(how: str, count: int) -> None:
    """A spec that cannot be used leaves the one before it in force."""
    stream = a_cluster()
    stream.policy(rebalancing={"mode": "Approve"})
    stream.record("web-1", phases=("Planned",), mode="Approve")
    stream.wait(2.0 if how != "late" else 30.0)
    unaccepted = {"conditions": [{"type": "Accepted", "status": "False"}]}
    match how:
        case "deleted":
            stream.delete(POLICIES, "tidy")
        case "no rebalancing":
            stream.policy(moves=False)
        case "another mode":
            stream.policy(rebalancing={"mode": "DryRun"})
        case "unusable":
            stream.change(POLICIES, "tidy", {"spec": {"rebalancing": {"mode": "x"}}, "status": unaccepted})
        case _:
            stream.policy(rebalancing={"mode": "Approve"}, suspend=True)
    stream.wait(60.1 if how != "late" else 40.0)

    found = list(stream.checker._records.unfinished(60.0, stream.at))

    assert found == [MOVE.removeprefix("100.000 ") + "is still Planned, though its policy has ended"] * count


@pytest.mark.parametrize("how", ["recent", "meddled", "deleted"])
def test_what_may_be_unfinished(how: str) -> None:
    """What was just written, what people have written, and what is gone."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned",))
    stream.wait(2.0)
    if how == "meddled":
        stream.change(RECORDS, "move-web-1", {"status": {"message": "x"}})
        stream.wait(2.0)
    elif how == "deleted":
        stream.delete(RECORDS, "move-web-1")
    stream.wait(57.0 if how == "recent" else 60.0)

    assert list(stream.checker._records.unfinished(60.0, stream.at)) == []


def test_a_record_sees_its_replacement() -> None:
    """Evicted, though the replacement has been ready for a minute; one without an owner has none."""
    stream = a_cluster()
    a_move(stream)
    stream.wait(1.0)
    replaced(stream)
    a_move(stream, "web-2", owner=None)
    stream.finish()

    assert [each for each in stream.said if "record" in each and "policy" not in each] == [
        MOVE + "is Evicted, though web-3 has taken the place of web-1"
    ]


@pytest.mark.parametrize(("ready_s", "count"), [(60.0, 0), (60.1, 1)])
def test_a_record_may_not_have_seen_a_replacement_of_late(ready_s: float, count: int) -> None:
    """One that has become ready within the last minute."""
    stream = a_cluster()
    a_move(stream)
    stream.wait(100.0)
    replaced(stream)
    stream.wait(ready_s)

    assert len(list(stream.checker._records.unfinished(60.0, stream.at))) == count


def test_phases_are_counted_by_who_wrote_them() -> None:
    """A record that is deleted enters none, nor does one whose message changes."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned",))
    stream.change(RECORDS, "move-web-1", {"status": {"message": "x"}}, stream.by())
    stream.enter("move-web-1", "Cancelled", by=UNKNOWN)
    stream.delete(RECORDS, "move-web-1")

    assert stream.checker.facts.phases == {"Planned": 1, "Cancelled": 1}
    assert stream.checker.facts.transitions == {("", "Planned", "red"): 1, ("Planned", "Cancelled", ""): 1}


def test_others_that_wait_for_a_replacement_come_first() -> None:
    """One ready pod for two moves of the owner: it may be the other's, but not one of another owner."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perWorkload": 9}})
    a_move(stream)
    a_move(stream, "web-2")
    stream.pod("db-1", "n1", ready=True, owner="db")
    a_move(stream, "db-1", owner={"uid": "uid-db"})
    stream.wait(1.0)
    replaced(stream)
    stream.wait(61.0)
    assert list(stream.checker._records.unfinished(60.0, stream.at)) == []

    stream.wait(300.0)
    stream.lead()
    stream.enter("move-web-2", "Failed", reason="ReplacementNotReady")
    assert list(stream.checker._records.unfinished(60.0, stream.at)) == [
        MOVE + "is Evicted, though web-3 has taken the place of web-1"
    ]


@pytest.mark.parametrize(("born_s", "count"), [(0.0, 0), (0.1, 1)])
def test_a_replacement_is_made_after_the_eviction(born_s: float, count: int) -> None:
    """One that was there in that moment was there before."""
    stream = a_cluster()
    a_move(stream)
    stream.wait(born_s)
    replaced(stream)
    stream.wait(400.0)
    stream.lead()
    stream.enter("move-web-1", "Failed", reason="NoReplacement")

    assert len(stream.said) == count


@pytest.mark.parametrize(("seconds", "count"), [(60.1, 1), (60.0, 0)])
def test_a_minute_without_a_write_is_the_end(seconds: float, count: int) -> None:
    """What was written in it may go on."""
    stream = a_cluster()
    stream.record("web-1", phases=("Planned",))
    stream.wait(seconds)

    assert len(list(stream.checker._records.unfinished(60.0, stream.at))) == count


@pytest.mark.parametrize(("owner", "count"), [("web", 0), ("db", 1)])
def test_a_pod_that_another_record_has_is_not_overlooked(owner: str, count: int) -> None:
    """Another one of the same owner."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perWorkload": 9}})
    a_move(stream)
    a_move(stream, "web-2", owner={"uid": f"uid-{owner}"})
    stream.wait(1.0)
    replaced(stream)
    stream.settle("move-web-2", "web-3")
    stream.wait(400.0)
    stream.lead()
    stream.enter("move-web-1", "Failed", reason="NoReplacement")

    assert len([each for each in stream.said if "though web-3" in each]) == count


@pytest.mark.parametrize(("when", "said"), [("before", 1), ("with", 0), ("after", 0), ("never", 1)])
def test_a_pod_may_be_there_for_a_victim_that_left_since(when: str, said: int) -> None:
    """Nothing tells whose place it has taken; a victim's record ends when its pod has left, or will not."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perWorkload": 9}})
    stream.pod("important", spec={"priority": 1})

    def preempt() -> None:
        victim = a_move(stream, "web-2", strategy="DefaultPreemption", policy="serve")
        stream.enter(victim, "Settled", reason="Left")

    if when in ("before", "with"):
        preempt()
        stream.wait(1.0 if when == "before" else 0.0)
    a_move(stream)
    stream.wait(1.0)
    if when == "after":
        preempt()
    elif when == "never":
        spared = stream.record("web-2", phases=("Planned",), strategy="DefaultPreemption", policy="serve")
        stream.enter(spared, "Cancelled")
    replaced(stream)
    stream.wait(400.0)
    stream.lead()
    stream.enter("move-web-1", "Failed", reason="ReplacementNotRunning")

    assert len([each for each in stream.said if "though web-3" in each]) == said


@pytest.mark.parametrize(
    ("record", "born", "left", "said"),
    [
        pytest.param("", "before", "after", 0, id="deleted"),
        pytest.param("Cancelled", "before", "after", 0, id="not-evicted"),
        pytest.param("Settled", "before", "after", 1, id="moved"),
        pytest.param("", "with", "after", 0, id="came-with-it"),
        pytest.param("", "before", "with", 0, id="left-with-it"),
        pytest.param("", "before", "before", 1, id="left-before"),
        pytest.param("", "after", "after", 1, id="came-later"),
        pytest.param("", "before", "never", 1, id="stays"),
    ],
)
def test_a_pod_may_be_there_for_one_that_was_deleted(record: str, born: str, left: str, said: int) -> None:
    """By preemption or by hand, without a record, after the move."""
    stream = a_cluster()
    stream.policy(rebalancing={"limits": {"perWorkload": 9}})

    def leave(when: str) -> None:
        if when == left:
            stream.change("pods", "web-8", {"metadata": {"deletionTimestamp": "now"}})
            stream.delete("pods", "web-8")
            stream.wait(1.0)

    if born == "before":
        stream.pod("web-8", "n1", ready=True, owner="web")
    leave("before")
    if record == "Cancelled":
        stream.enter(stream.record("web-8", phases=("Planned",)), record)
    stream.wait(1.0)
    if born == "with":
        stream.pod("web-8", "n1", ready=True, owner="web")
    a_move(stream)
    leave("with")
    stream.wait(1.0)
    if born == "after":
        stream.pod("web-8", "n1", ready=True, owner="web")
        stream.wait(1.0)
    if record == "Settled":
        a_move(stream, "web-8")
        stream.settle("move-web-8", replaced(stream, "web-9"))
    else:
        leave("after")
    replaced(stream)
    stream.wait(400.0)
    stream.lead()
    stream.enter("move-web-1", "Failed", reason="ReplacementNotRunning")

    assert len([each for each in stream.said if "though web-3" in each]) == said


def test_a_record_that_names_its_replacement_overlooks_it_all_the_same() -> None:
    """It says that the pod was not ready in time, which it has been for long."""
    stream = a_cluster()
    a_move(stream)
    stream.wait(1.0)
    replaced(stream)
    stream.wait(400.0)
    stream.lead()
    stream.settle("move-web-1", "web-3", phase="Failed", reason="ReplacementNotReady")

    assert stream.said == [MOVE + "is Failed, though web-3 has taken the place of web-1"]
