"""Records say the same about moves, their sending and their ends as their documents, read a second way."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime
from random import Random
from typing import Any

from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.planning.context import SentMove
from plimsoll.planning.history import MoveOutcome
from plimsoll.records.history import (
    about_to_leave,
    counts_as_sent,
    ended_at,
    is_reversal,
    latest_sent,
    memory_of,
    past_move,
    sent_moves,
    sent_since,
    sent_since_by_namespace,
    unready_replacements,
)
from plimsoll.records.record import Record, recorded_workload
from plimsoll.testing.builders import a_pod

NOON = 1_800_000_000
HOUR = 3600
#: What a finished move is to planners, by its phase and the reason of that.
FATES = {
    ("Settled", ""): MoveOutcome.SETTLED,
    ("Returned", ""): MoveOutcome.RETURNED,
    ("Failed", "NoReplacement"): MoveOutcome.STRANDED,
    ("Failed", "ReplacementNotRunning"): MoveOutcome.STRANDED,
    ("Failed", "ReplacementNotReady"): MoveOutcome.STRANDED,
    ("Failed", "EvictionRefused"): MoveOutcome.REFUSED,
    ("Failed", "EvictionAbandoned"): MoveOutcome.REFUSED,
    ("Failed", "SurgeRefused"): MoveOutcome.REFUSED,
    ("Failed", "PodChanged"): None,
    ("Blocked", "PodDisruptionBudget"): MoveOutcome.BLOCKED,
    ("Blocked", "EvictionBudget"): None,
    ("Cancelled", ""): None,
    ("Predicted", ""): None,
    ("Planned", ""): None,
    ("Evicting", ""): None,
    ("Evicted", ""): None,
    ("Evicted", "StillThere"): None,
    ("Surging", ""): None,
}
ENDS = [*FATES]
OWNER = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "uid-r"}
OWNERS = ("uid-r",)
ROLLOUT = {"deployment": "web", "uid": "uid-d", "template": "abc"}
REPLICA = {"deployment": "web", "uid": "uid-d", "kind": "CloneSet", "replicas": 2}


def a_document(random: Random, number: int) -> dict[str, Any]:
    """A record as the server has it."""
    phase, reason = random.choice(ENDS[:5] * 2 + ENDS)
    space = random.choice("xy")
    begun = NOON + random.choice([0, 1, HOUR - 1, HOUR, HOUR + 1])
    surge = random.choice([None, None, None, ROLLOUT, REPLICA])
    sent = "Surging" if surge else "Evicting"
    steps = ["Planned", *([sent] if random.random() < 0.8 else []), phase]
    spec = {
        "pod": {"namespace": space, "name": f"web-{number}", "uid": f"uid-{number}"},
        "owner": random.choice([None, *[OWNER] * 4]),
        "policy": random.choice(["one", "two"]),
        "strategy": random.choice(["PodLifeTime"] * 4 + ["DefaultPreemption"]),
        "mode": random.choice(["Enforce", "Enforce", "Approve", "DryRun"]),
        "reason": "for a test",
        "fromNode": random.choice("ab"),
        "targetNode": random.choice([None, "b", "c"]),
        "forecast": random.random() < 0.5,
        "equalTargets": random.choice([[], ["a"], ["a", "c"]]),
        "planner": random.choice(["Proven", "Optimal", "Upstream"]),
        "purpose": random.choice(["Move", "Move", "Restart"]),
        "surge": surge,
    }
    landed = random.choice([None, "", "a", "b", "c"])
    replacement = (
        None if landed is None else {"name": "new", "uid": f"uid-new-{number}", "node": landed or None}
    )
    return {
        "name": f"{space}-{number}",
        "space": space,
        "created": begun - 5,
        "spec": spec,
        "status": {
            "phase": phase,
            "reason": reason or None,
            "blockedBy": random.choice([None, "pdb"]),
            "replacement": replacement,
            "transitions": [
                {"phase": each, "time": datetime.fromtimestamp(begun + 2 * at, UTC).isoformat()}
                for at, each in enumerate(dict.fromkeys(steps))
            ],
        },
    }


def a_record(document: dict[str, Any]) -> Record:
    return Record(
        document["space"],
        document["name"],
        EvictionSpec.model_validate(document["spec"]),
        EvictionStatus.model_validate(document["status"]),
        document["created"],
    )


class Plain:
    """The same record by its document."""

    def __init__(self, document: dict[str, Any]) -> None:
        self.name, self.space = document["name"], document["space"]
        self.spec, self.status = document["spec"], document["status"]
        self.phase, self.reason = self.status["phase"], self.status["reason"] or ""
        times = [(each["phase"], datetime.fromisoformat(each["time"])) for each in self.status["transitions"]]
        self.ended = times[-1][1].timestamp()
        self.sent = [each.timestamp() for phase, each in times if phase in {"Evicting", "Surging"}]
        self.is_victim = self.spec["strategy"] == "DefaultPreemption"
        self.landed = self.status["replacement"]
        surge, owner = self.spec["surge"], self.spec["owner"]
        by_rollout = surge is not None and "replicas" not in surge
        uid = surge["uid"] if by_rollout else owner["uid"] if owner else self.spec["pod"]["uid"]
        self.workload = f"{self.space}/{uid}"
        self.rollout = surge if by_rollout else None
        landed_on = self.landed["node"] if self.landed else None
        target = self.spec["targetNode"]
        self.came_true = (
            landed_on in {target, *self.spec["equalTargets"]}
            if self.spec["forecast"] and target and landed_on
            else None
        )
        self.landing = "" if self.came_true is None else "other"
        if self.came_true:
            self.landing = "expected" if landed_on == target else "equal"
        self.counts = (
            self.phase not in {"Blocked", "Cancelled"}
            and self.reason != "StillThere"
            and not self.is_victim
            and bool(self.sent)
        )

    @property
    def fate(self) -> MoveOutcome | None:
        fate = FATES[self.phase, self.reason]
        is_elsewhere = self.landed and self.spec["targetNode"] not in {None, self.landed["node"]}
        if fate is MoveOutcome.SETTLED and self.spec["planner"] == "Optimal" and is_elsewhere:
            return MoveOutcome.ASTRAY
        return fate

    @property
    def is_lesson(self) -> bool:
        is_move = self.spec["mode"] != "DryRun" and not self.is_victim and self.spec["owner"] is not None
        return is_move and self.fate is not None

    @property
    def relieves(self) -> str:
        """Whose pod was moved for the sake of another node; empty for others."""
        is_one = not self.is_victim and self.spec["purpose"] == "Move" and self.spec["owner"] is not None
        return self.workload if is_one and self.phase == "Settled" else ""

    def moves_back(self, others: list[Plain]) -> bool:
        node = self.landed["node"] if self.landed else None
        last = max(self.sent, default=0.0)
        return bool(self.landed and self.relieves and node != self.spec["fromNode"]) and any(
            each.name != self.name
            and each.relieves == self.relieves
            and each.spec["fromNode"] == node
            and 0 <= last - max(each.sent, default=0.0) < HOUR
            for each in others
        )


def test_records_say_what_their_documents_say() -> None:
    ends: Counter[Any] = Counter()
    for seed in range(60):
        random = Random(seed)
        documents = [a_document(random, number) for number in range(8)]
        plain = [Plain(each) for each in documents]
        records = [a_record(each) for each in documents]

        for record, one in zip(records, plain, strict=True):
            ends[one.fate if one.is_lesson else None, one.landing] += 1
            found = past_move(record)
            assert (found is not None) == one.is_lesson
            if found is not None:
                kind, name = ("ReplicaSet", "web")
                if one.rollout:
                    kind, name = one.rollout.get("kind", "Deployment"), one.rollout["deployment"]
                assert (found.fate, found.owner, found.ended) == (one.fate, one.workload, one.ended)
                assert found.name == f"{kind} {one.space}/{name}"
                assert found.controller == (f"{one.space}/uid-r" if one.rollout else "")
                blocked = one.status["blockedBy"]
                assert found.budget == (f"{one.space}/{blocked}" if blocked else "")
                assert found.target == ((one.landed["node"] or "") if one.landed else "")
                assert found.source == one.spec["fromNode"]
                assert found.came_true is one.came_true
            assert record.came_true is one.came_true
            assert record.landing == one.landing
            assert record.is_forecast == (one.spec["forecast"] or one.spec["planner"] == "Upstream")
            assert record.is_moving == (one.phase in {"Evicting", "Evicted", "Surging"})
            assert record.is_finished == (one.phase not in {"Planned", "Evicting", "Evicted", "Surging"})
            assert ended_at(record) == one.ended
            assert latest_sent(record) == max(one.sent, default=0.0)
            assert recorded_workload(record.spec) == one.workload
            assert counts_as_sent(record, "one") == (one.counts and one.spec["policy"] == "one")
            assert is_reversal(record, records) == one.moves_back(plain)
        for moment in (NOON, NOON + 2, NOON + HOUR, NOON + HOUR + 2):
            late = [each for each in plain if each.counts and max(each.sent) > moment]
            assert sent_since_by_namespace(records, moment) == Counter(each.space for each in late)
            for policy in ("one", "two"):
                mine = [each for each in late if each.spec["policy"] == policy]
                assert sent_since(records, policy, moment) == len(mine)
    assert len(ends) >= 15


def settled(random: Random, number: int) -> dict[str, Any]:
    """The record of a move that was made, mostly of the same owner and within the hour."""
    document = a_document(random, number)
    for key, value in {"owner": OWNER, "strategy": "PodLifeTime", "purpose": "Move", "surge": None}.items():
        if random.random() < 0.9:
            document["spec"][key] = value
    begun = NOON + random.choice([0, 1, HOUR - 1, HOUR, HOUR + 1])
    phases = ["Planned", "Evicting", "Settled"]
    times = [datetime.fromtimestamp(begun + 2 * at, UTC).isoformat() for at in range(3)]
    transitions = [{"phase": phase, "time": time} for phase, time in zip(phases, times, strict=True)]
    document["status"] |= {"phase": "Settled", "reason": None, "transitions": transitions}
    return document


def test_a_move_to_where_another_of_the_owner_was_moved_off_is_a_reversal() -> None:
    """Within the hour; whatever other moves there are."""
    found: Counter[bool] = Counter()
    for seed in range(300):
        random = Random(3000 + seed)
        documents = [settled(random, number) for number in range(random.randint(1, 5))]
        plain = [Plain(each) for each in documents]
        records = [a_record(each) for each in documents]
        for record, one in zip(records, plain, strict=True):
            assert is_reversal(record, records) == one.moves_back(plain)
            found[one.moves_back(plain)] += 1
    assert min(found[True], found[False]) > 30


def test_a_sent_move_leaves_alone_the_nodes_and_the_pod_that_it_touched() -> None:
    for seed in range(60):
        random = Random(1000 + seed)
        documents = [a_document(random, number) for number in range(8)]
        expected = []
        for one in map(Plain, documents):
            is_moving = one.phase in {"Evicting", "Evicted", "Surging"}
            if is_moving or one.landed:
                landed_on = one.landed["node"] if one.landed else None
                nodes = (one.spec["fromNode"], one.spec["targetNode"], landed_on)
                stays = one.landed["uid"] if one.landed and one.phase != "Returned" else ""
                expected.append(
                    SentMove(
                        "" if one.is_victim else one.workload,
                        tuple(filter(None, nodes)),
                        None if is_moving else one.ended,
                        stays,
                    )
                )

        assert sent_moves(map(a_record, documents)) == expected


def test_a_proposal_takes_no_pod_off_its_node_before_a_person_agrees() -> None:
    for seed in range(60):
        random = Random(2000 + seed)
        documents = [a_document(random, number) for number in range(8)]
        leaving = {
            each["spec"]["pod"]["uid"]
            for each in documents
            if each["status"]["phase"] in {"Evicting", "Surging"}
            or (each["status"]["phase"], each["spec"]["mode"]) == ("Planned", "Enforce")
        }

        assert about_to_leave(map(a_record, documents)) == leaving


def test_refusals_before_a_right_was_granted_are_forgotten() -> None:
    """Those of the moment itself count; whatever else is remembered stays."""
    document = a_document(Random(7), 1)
    document["spec"] |= {"strategy": "PodLifeTime", "mode": "Enforce", "surge": None, "owner": OWNER}
    document["status"] |= {"phase": "Failed", "reason": "EvictionRefused"}
    refused = a_record(document)
    document["status"] |= {"reason": "NoReplacement"}
    stranded = a_record(document)
    owner, ended = recorded_workload(refused.spec), ended_at(refused)

    def holds_back(record: Record, granted: float) -> bool:
        memory = memory_of([record], ended + 1, granted)
        return memory.held_back(owner, "PodLifeTime") is not None

    assert [holds_back(refused, ended + after) for after in (-1, 0, 1)] == [True, True, False]
    assert [holds_back(stranded, ended + after) for after in (-1, 0, 1)] == [True, True, True]


def test_replacements_that_are_not_ready_are_those_of_evictions_that_have_ended() -> None:
    """A surge makes a pod of another owner, or one more of the same, before any leaves."""
    found_any = 0
    for seed in range(80):
        random = Random(2000 + seed)
        documents = [a_document(random, number) for number in range(6)]
        plain = [Plain(each) for each in documents]
        waits = {"phase": "Pending"}
        late = {"creationTimestamp": datetime.fromtimestamp(NOON + 3 * HOUR, UTC).isoformat()}
        pods = [a_pod("late", namespace=space, metadata=late, status=waits) for space in "xy"]

        found = unready_replacements(map(a_record, documents), dict.fromkeys(OWNERS, pods).__getitem__)

        ended = [
            one
            for one in plain
            if one.spec["owner"] and not one.spec["surge"] and not one.is_victim
            if FATES[one.phase, one.reason]
            in {MoveOutcome.SETTLED, MoveOutcome.RETURNED, MoveOutcome.STRANDED}
        ]
        assert {*found} == {one.workload for one in ended}
        for key, each in found.items():
            assert each.pod == f"{key[0]}/late"
        found_any += len(found)
    assert found_any > 40
