"""Eviction records: their way through the phases, their names and their labels."""

import re
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from plimsoll.api.schema.resource import ResourceMeta
from plimsoll.api.v1alpha1 import Eviction
from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus, PodReference, Replacement
from plimsoll.api.v1alpha1.eviction_naming import label_value, record_labels, record_name
from plimsoll.api.v1alpha1.eviction_phases import FINISHED, OPEN, Phase, may_follow
from plimsoll.api.v1alpha1.rebalancing import Mode

NOON = datetime(2026, 1, 31, 12, 0, 0, 123456, tzinfo=UTC)
DNS_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
LABEL_VALUE = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
LABELS = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,9}[a-z0-9])?", fullmatch=True)
POD_NAMES = st.lists(LABELS, min_size=1, max_size=40).map(".".join).filter(lambda name: len(name) <= 253)


def a_record(status: EvictionStatus | None = None) -> Eviction:
    """A record of moving web-1 from n1 to n2."""
    return Eviction(
        metadata=ResourceMeta(name="web-1-0123abcd", namespace="shop"),
        spec=EvictionSpec(
            pod=PodReference(namespace="shop", name="web-1", uid="u1"),
            policy="default",
            strategy="RemoveDuplicates",
            mode=Mode.ENFORCE,
            reason="two pods of ReplicaSet web on one node",
            from_node="n1",
            target_node="n2",
        ),
        status=status,
    )


def test_a_record_reads_back_as_it_was_written() -> None:
    """Nothing is lost between the model and the wire, and times keep whole seconds in UTC."""
    status = EvictionStatus().entering(Phase.PLANNED, NOON)
    record = a_record(status.entering(Phase.EVICTING, NOON + timedelta(hours=1)))
    wire = record.to_wire()

    assert Eviction.from_wire(wire) == record
    assert wire["status"]["transitions"] == [
        {"phase": "Planned", "time": "2026-01-31T12:00:00Z"},
        {"phase": "Evicting", "time": "2026-01-31T13:00:00Z"},
    ]
    assert wire["spec"]["targetNode"] == "n2"
    assert "owner" not in wire["spec"]


def test_a_record_follows_its_move_from_plan_to_landing() -> None:
    """Each phase is stamped once; what was learnt of the replacement stays."""
    replacement = Replacement(name="web-2", uid="u2")
    status = EvictionStatus()
    for hour, phase in enumerate((Phase.PLANNED, Phase.EVICTING, Phase.EVICTED, Phase.EVICTED)):
        status = status.entering(phase, NOON + timedelta(hours=hour), replacement=replacement)

    settled = status.entering(
        Phase.SETTLED,
        NOON,
        reason="Running",
        message="web-2 runs on n2",
        replacement=Replacement(name="web-2", uid="u2", node="n2"),
    )

    assert [reached.phase.value for reached in settled.transitions] == [
        "Planned",
        "Evicting",
        "Evicted",
        "Settled",
    ]
    assert settled.replacement is not None
    assert settled.replacement.node == "n2"
    assert (settled.reason, settled.message) == ("Running", "web-2 runs on n2")


def test_a_finished_record_refuses_another_end() -> None:
    """A second completion after a restart is an error here, and refused by the API server."""
    blocked = (
        EvictionStatus().entering(Phase.PLANNED, NOON).entering(Phase.BLOCKED, NOON, blocked_by="web-pdb")
    )

    assert blocked.blocked_by == "web-pdb"
    with pytest.raises(ValueError, match="Blocked cannot become Evicting"):
        blocked.entering(Phase.EVICTING, NOON)
    with pytest.raises(ValueError, match="new cannot become Evicted"):
        EvictionStatus().entering(Phase.EVICTED, NOON)


def test_every_phase_is_open_or_finished_and_every_open_one_can_end() -> None:
    """No record is stuck for ever by the phases themselves."""
    assert set(OPEN) | set(FINISHED) == set(Phase)
    assert set(OPEN) == {Phase.PLANNED, Phase.EVICTING, Phase.EVICTED, Phase.SURGING}
    for phase in OPEN:
        assert may_follow(phase, Phase.CANCELLED)
        assert may_follow(phase, Phase.FAILED)
    for phase in FINISHED:
        assert [after for after in Phase if may_follow(phase, after)] == [phase]
    assert {phase for phase in Phase if may_follow(None, phase)} == {Phase.PREDICTED, Phase.PLANNED}


@given(POD_NAMES, st.uuids().map(str), st.text())
@example("a" * 253, "u1", "c1")
@example("a" * 243 + ".bbbbbbbbb", "u1", "c1")
def test_a_records_name_is_an_object_name_of_the_pods(pod: str, uid: str, cycle: str) -> None:
    """At most 253 characters, beginning with the pod's name as far as it fits."""
    name = record_name(pod, uid, cycle)

    assert DNS_SUBDOMAIN.fullmatch(name)
    assert len(name) <= 253
    assert name.startswith(pod[:244].rstrip("-."))


def test_a_records_name_depends_on_pod_and_cycle_alone() -> None:
    """Written again after a crash it is the same record; the next cycle's is another."""
    assert record_name("web-1", "u1", "default/5") == record_name("web-1", "u1", "default/5")
    assert record_name("web-1", "u1", "default/5") != record_name("web-1", "u1", "default/6")
    assert record_name("web-1", "u1", "default/5") != record_name("web-1", "u2", "default/5")
    assert re.fullmatch(r"web-1-[0-9a-f]{8}", record_name("web-1", "u1", "default/5"))


@given(st.text(max_size=300))
@example("-begins")
@example("ends.")
def test_a_label_value_is_one(text: str) -> None:
    """Whatever the name, the label is valid; a valid value is left alone."""
    value = label_value(text)

    assert LABEL_VALUE.fullmatch(value)
    assert len(value) <= 63
    assert label_value(value) == value
    if LABEL_VALUE.fullmatch(text) and len(text) <= 63:
        assert value == text


def test_long_names_stay_apart_as_labels() -> None:
    """Two nodes whose first 63 characters are equal have different labels."""
    assert label_value("n" * 100 + "1") != label_value("n" * 100 + "2")
    assert label_value("example.com/Mine").startswith("example.com_Mine-")


def test_labels_select_by_policy_strategy_node_and_owner() -> None:
    """A bare pod has no owner labels."""
    labels = record_labels(
        policy="default",
        strategy="RemoveDuplicates",
        from_node="n1",
        owner_kind="ReplicaSet",
        owner_name="web",
    )

    assert labels == {
        "plimsoll.dev/policy": "default",
        "plimsoll.dev/strategy": "RemoveDuplicates",
        "plimsoll.dev/from-node": "n1",
        "plimsoll.dev/owner-kind": "ReplicaSet",
        "plimsoll.dev/owner-name": "web",
    }
    bundle = record_labels(policy="default", strategy="A", from_node="n1", bundle="run 7/3")
    assert bundle.pop("plimsoll.dev/bundle") == label_value("run 7/3")
    assert bundle == record_labels(policy="default", strategy="A", from_node="n1")
    assert len(bundle) == 3
