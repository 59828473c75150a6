"""Conditions of pods, statuses of policies, and lessons of earlier moves."""

from typing import Any

import pytest

from promises.commits import UNKNOWN
from promises.conditions import CLAIMS
from promises.streams import NAMESPACE, Stream, a_cluster, a_move, merged
from promises.view import POLICIES, RECORDS


def conditions(stream: Stream) -> list[str]:
    """What is said of the conditions of pods."""
    return list(stream.checker._conditions.unfinished("plimsoll", 60.0, stream.at))


def scheduled(status: str, reason: str = "", message: str = "x") -> dict[str, Any]:
    """Changes of a pod: its only condition."""
    found = {"type": "PodScheduled", "status": status, "reason": reason, "message": message}
    return {"status": {"conditions": [found]}}


SAYS = "new waits, its PodScheduled is "


@pytest.mark.parametrize(
    ("pod", "said"),
    [
        pytest.param(scheduled("False", "Unschedulable"), [], id="unschedulable"),
        pytest.param(scheduled("False", "SchedulingGated", ""), [], id="gated"),
        pytest.param(
            scheduled("False", "Unschedulable", ""), ["new waits, and does not say what for"], id="silent"
        ),
        pytest.param(scheduled("False", "SchedulerError"), [SAYS + "False (SchedulerError)"], id="error"),
        pytest.param(scheduled("True", "Unschedulable"), [SAYS + "True (Unschedulable)"], id="true"),
        pytest.param({}, [SAYS + "None (None)"], id="nothing"),
        pytest.param({"spec": {"schedulerName": "other"}}, [], id="of-another-scheduler"),
        pytest.param({"status": {"phase": "Failed"}}, [], id="over"),
        pytest.param({"metadata": {"deletionTimestamp": "now"}}, [], id="leaving"),
    ],
)
def test_pods_that_wait_say_why(pod: dict[str, Any], said: list[str]) -> None:
    """Once they have waited for a minute."""
    stream = a_cluster()
    stream.pod("new")
    stream.change("pods", "new", pod)
    stream.wait(59.0)
    assert conditions(stream) == []

    stream.wait(1.0)
    assert conditions(stream) == said


@pytest.mark.parametrize(
    ("claim", "made", "namespace", "said"),
    [
        pytest.param({"resourceClaimName": "gpu"}, None, "", [], id="absent"),
        pytest.param({"resourceClaimName": "gpu"}, None, "elsewhere", [], id="in-another-namespace"),
        pytest.param({"resourceClaimName": "gpu"}, None, NAMESPACE, [SAYS + "None (None)"], id="there"),
        pytest.param({"resourceClaimTemplateName": "t"}, None, NAMESPACE, [], id="not-made-yet"),
        pytest.param({"resourceClaimTemplateName": "t"}, "gpu", NAMESPACE, [SAYS + "None (None)"], id="made"),
        pytest.param({"resourceClaimTemplateName": "t"}, "gone", NAMESPACE, [], id="made-and-gone"),
    ],
)
def test_pods_whose_claims_do_not_exist_are_not_tried(
    claim: dict[str, str], made: str | None, namespace: str, said: list[str]
) -> None:
    """PreEnqueue holds them back, as upstream's does, which says nothing either."""
    stream = a_cluster()
    if namespace:
        stream.put(CLAIMS, {"metadata": {"name": "gpu", "namespace": namespace, "uid": "uid-gpu"}})
    stream.pod("new", spec={"resourceClaims": [{"name": "a", **claim}]})
    if made:
        status = {"resourceClaimStatuses": [{"name": "a", "resourceClaimName": made}]}
        stream.change("pods", "new", {"status": status})
    stream.wait(60.0)

    assert conditions(stream) == said


def test_pods_with_a_node_are_scheduled() -> None:
    """Which the API server says when it binds; of those made with a node only their kubelets know."""
    stream = a_cluster()
    stream.pod("made", "n1")
    stream.change("pods", "made", {"status": {"conditions": []}})
    stream.pod("new")
    stream.wait(60.0)
    stream.lead()
    stream.bind("new", "n2")
    assert conditions(stream) == []

    stream.change("pods", "new", scheduled("False", "Unschedulable"))
    assert conditions(stream) == ["new is on n2, its PodScheduled is False"]


def test_a_pod_of_the_name_that_had_a_node_is_another_one() -> None:
    """The new one has not waited for a minute."""
    stream = a_cluster()
    stream.delete("pods", "web-1")
    stream.pod("web-1", metadata={"uid": "another"})
    stream.pod("old")
    stream.wait(30.0)
    stream.pod("old", metadata={"uid": "another-old"})
    stream.wait(30.0)

    assert conditions(stream) == [SAYS.replace("new", "web-1") + "None (None)"]


def statuses(stream: Stream) -> list[str]:
    """What is said of the status of policies, a minute later."""
    stream.wait(60.1)
    return list(stream.checker._statuses.unfinished(60.0, stream.at))


@pytest.mark.parametrize(
    ("change", "said"),
    [
        pytest.param({}, [], id="true"),
        pytest.param(
            {"metadata": {"generation": 2}}, ["has generation 2, its status is about 1"], id="old-generation"
        ),
        pytest.param({"metadata": {"generation": None}}, [], id="no-generation"),
        pytest.param(
            {"status": {"conditions": [{"type": "Accepted", "status": "True"}]}},
            ["is Ready None (None)"],
            id="not-ready",
        ),
        pytest.param(
            {
                "status": {
                    "conditions": [
                        {"type": "Accepted", "status": "True"},
                        {"type": "Ready", "status": "False", "reason": "NotAllowed"},
                    ]
                }
            },
            ["is Ready False (NotAllowed)"],
            id="not-allowed",
        ),
        pytest.param({"status": {"conditions": []}, "spec": {"suspend": True}}, [], id="suspended"),
        pytest.param(
            {"status": {"conditions": [{"type": "Accepted", "status": "False"}]}}, [], id="not-accepted"
        ),
    ],
)
def test_policies_are_at_work(change: dict[str, Any], said: list[str]) -> None:
    """Unless they are suspended, or their spec cannot be used."""
    stream = a_cluster()
    stream.change(POLICIES, "tidy", change)

    assert statuses(stream) == ["the policy tidy " + each for each in said]


def counted(stream: Stream, **totals: int) -> None:
    """The policy's status counts its moves."""
    stream.change(POLICIES, "tidy", {"status": {"totals": totals}}, stream.by())


@pytest.mark.parametrize(
    ("phases", "total"),
    [
        (("Predicted",), "predicted"),
        (("Planned",), "open"),
        (("Planned", "Evicting"), "open"),
        (("Planned", "Surging"), "open"),
        (("Planned", "Blocked"), "blocked"),
        (("Planned", "Failed"), "failed"),
    ],
)
def test_totals_count_the_records(phases: tuple[str, ...], total: str) -> None:
    """Each phase in its own number."""
    stream = a_cluster()
    counted(stream)
    stream.record("web-1", phases=phases)

    assert statuses(stream) == [f"the policy tidy counts 0 moves {total}, its records say 1"]

    counted(stream, **{total: 1})
    assert statuses(stream) == []


def test_what_totals_do_not_count() -> None:
    """Victims, records that are gone, those of others; a policy that moves nothing has none."""
    stream = a_cluster()
    counted(stream)
    stream.record("web-1", phases=("Planned",), policy="serve")
    stream.record("web-1", "victim", phases=("Planned",), strategy="DefaultPreemption")
    stream.record("web-1", "gone", phases=("Planned",))
    stream.delete(RECORDS, "gone")
    stream.change(POLICIES, "serve", {"status": {"totals": {}}})

    assert statuses(stream) == []


def test_totals_are_not_judged_where_people_write_records() -> None:
    """What they write is not read back."""
    stream = a_cluster()
    counted(stream)
    stream.record("web-1", phases=("Planned",))
    stream.enter("move-web-1", "Cancelled", by=UNKNOWN)

    assert statuses(stream) == []


@pytest.mark.parametrize("what", ["record", "spec"])
def test_a_status_may_be_a_minute_behind(what: str) -> None:
    """After a record or the spec was written."""
    stream = a_cluster()
    counted(stream, open=5)
    stream.wait(60.0)
    if what == "record":
        stream.record("web-1", phases=("Planned",))
    else:
        stream.change(POLICIES, "tidy", {"spec": {"scope": {}}})
    stream.wait(-0.1)

    assert statuses(stream) == []


# -- rest ------------------------------------------------------------------------------------------------


def fruitless(stream: Stream, phase: str = "Failed", reason: str = "NoReplacement", **spec: Any) -> None:
    """A move of web that failed: its pod was not replaced in time."""
    a_move(stream, **spec)
    stream.wait(300.0)
    stream.lead()
    stream.enter("move-web-1", phase, reason=reason)


LEFT_ALONE = ["the record move-web-2 moves a pod whose owner is to be left alone: move-web-1 is Failed"]


@pytest.mark.parametrize(
    ("first", "seconds", "second", "said"),
    [
        pytest.param({}, 597.0, {}, LEFT_ALONE, id="held-back"),
        pytest.param({}, 598.0, {}, [], id="after-ten-minutes"),
        pytest.param({}, 1.0, {"strategy": "PodLifeTime"}, [], id="another-strategy"),
        pytest.param({}, 1.0, {"owner": {"uid": "uid-db"}}, [], id="another-owner"),
        pytest.param({}, 1.0, {"owner": None}, [], id="no-owner"),
        pytest.param({}, 1.0, {"planner": "Upstream"}, [], id="upstream"),
        pytest.param({"reason": "EvictionFailed"}, 1.0, {}, [], id="not-evicted"),
        pytest.param({"phase": "Cancelled"}, 1.0, {}, [], id="cancelled"),
        pytest.param({}, -10.0, {}, [], id="by-a-clock-that-is-behind"),
    ],
)
def test_an_owner_whose_move_was_fruitless_is_left_alone(
    first: dict[str, Any], seconds: float, second: dict[str, Any], said: list[str]
) -> None:
    """By that strategy, for ten minutes by the operator's clock."""
    stream = a_cluster()
    fruitless(stream, **first)
    stream.wait(seconds)
    stream.record("web-2", phases=("Planned", "Evicting"), **second)

    assert stream.said == said


def test_a_fruitful_move_ends_it() -> None:
    """Or somebody deletes the record, or has written into it."""
    stream = a_cluster()
    fruitless(stream)
    stream.delete(RECORDS, "move-web-1")
    stream.record("web-2", phases=("Planned", "Evicting"))
    stream.enter("move-web-2", "Cancelled", reason="Changed")
    stream.pod("web-3", "n1", ready=True)
    a_move(stream, "web-3")
    stream.wait(300.0)
    stream.lead()
    stream.enter("move-web-3", "Failed", reason="NoReplacement")
    stream.wait(1.0)
    stream.pod("web-4", "n1", ready=True)
    a_move(stream, "web-4")
    said = list(stream.said)
    stream.pod("web-5")
    stream.bind("web-5", "n2")
    stream.become_ready("web-5")
    stream.wait(1.0)
    stream.settle("move-web-4", "web-5")
    stream.wait(1.0)
    stream.record("web-2", "again", phases=("Planned", "Evicting"))

    assert said == ["the record move-web-4 moves a pod whose owner is to be left alone: move-web-3 is Failed"]
    assert stream.said == said


def test_records_that_people_have_written_teach_nothing() -> None:
    """They need not be true."""
    stream = a_cluster()
    fruitless(stream)
    stream.change(RECORDS, "move-web-1", {"status": {"message": "x"}})
    stream.record("web-2", phases=("Planned", "Evicting"))

    assert stream.said == []


def test_a_returned_pod_teaches_the_same() -> None:
    """It came back to its node."""
    stream = a_cluster()
    a_move(stream)
    stream.pod("web-3")
    stream.bind("web-3", "n1")
    stream.become_ready("web-3")
    stream.settle("move-web-1", "web-3", "n1", "Returned")
    stream.record("web-2", phases=("Planned", "Evicting"))

    assert stream.said == [LEFT_ALONE[0].replace("Failed", "Returned")]


@pytest.mark.parametrize(
    ("moves", "spec", "calm_since", "count"),
    [
        pytest.param(5, {}, 0.0, 1, id="again-and-again"),
        pytest.param(4, {}, 0.0, 0, id="a-few-times"),
        pytest.param(5, {}, 100.0, 0, id="while-things-went-wrong"),
        pytest.param(5, {"planner": "Upstream"}, 0.0, 0, id="upstream"),
        pytest.param(5, {"strategy": "DefaultPreemption"}, 0.0, 0, id="victims"),
        pytest.param(5, {"owner": None}, 0.0, 0, id="no-owner"),
    ],
)
def test_pods_are_not_moved_again_and_again(
    moves: int, spec: dict[str, Any], calm_since: float, count: int
) -> None:
    """More than three times, and once for each pod that its owner has."""
    stream = a_cluster()
    stream.pod("db-1", "n1", owner="db")
    for number in range(moves):
        name = f"move-{number}"
        stream.record(
            "web-1",
            name,
            **merged({"owner": {"uid": "uid-db"}}, spec) | ({} if spec.get("owner", 1) else {"owner": None}),
        )
        stream.enter(name, "Evicted")

    assert len(list(stream.checker._rest.unfinished(calm_since))) == count


def test_pods_that_were_gone_before_do_not_count() -> None:
    """The calm began later."""
    stream = a_cluster()
    stream.delete("pods", "web-1")
    stream.delete("pods", "web-2")
    stream.wait(1.0)
    for number in range(4):
        stream.record("web-1", f"move-{number}")
        stream.enter(f"move-{number}", "Evicted")

    assert len(list(stream.checker._rest.unfinished(100.0))) == 1
    assert len(list(stream.checker._rest.unfinished(99.0))) == 0
