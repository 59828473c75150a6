"""Rules over several things: each counts, in any order, and the boundary of a time belongs to one side."""

import itertools
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planning.rounds import NOW
from planning.surge_builders import a_crowded_node, an_only_pod
from planning.test_history import NOON, a_move
from planning.test_surges import planned
from plimsoll.framework.descheduling.complaints import Vicinity
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.storage import PersistentVolumeClaim
from plimsoll.planning.complaint_comparison import ComplaintWatcher
from plimsoll.planning.history import HOLD_BACK_S, MAX_HOLD_BACK_S, MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.scope import PolicyScope
from plimsoll.testing.builders import a_pod

VOLUMES = {
    "config": {"configMap": {"name": "c"}},
    "shared": {"persistentVolumeClaim": {"claimName": "shared"}},
    "own": {"persistentVolumeClaim": {"claimName": "own"}},
    "missing": {"persistentVolumeClaim": {"claimName": "missing"}},
}
MODES = {"shared": ["ReadWriteOnce", "ReadWriteMany"], "own": ["ReadWriteOnce"]}


@pytest.mark.parametrize("names", [each for n in (1, 2, 3) for each in itertools.permutations(VOLUMES, n)])
def test_a_pod_is_surged_if_each_of_its_volumes_can_be_used_twice(names: Sequence[str]) -> None:
    """Wherever in the list the one stands that cannot; the first of these is named."""
    volumes = [{"name": name, **VOLUMES[name]} for name in names]
    cluster = a_crowded_node(an_only_pod(node="full", volumes=volumes))
    for name, modes in MODES.items():
        document = {"metadata": {"name": name, "namespace": "default"}, "spec": {"accessModes": modes}}
        cluster.objects.claims[f"default/{name}"] = convert(PersistentVolumeClaim, document)
    tied = [name for name in names if name in {"own", "missing"}]

    found = planned(cluster)

    assert len(found.moves) == (not tied)
    for name in tied[:1]:
        assert f"PersistentVolumeClaim {name} cannot be used on two nodes" in found.refused[0].refusal.message


@settings(max_examples=40)
@given(
    st.lists(st.sampled_from(["a", "b", "c"]), max_size=3),
    st.lists(st.sets(st.sampled_from(["a", "b", "c"]), min_size=1), max_size=2),
)
def test_a_move_concerns_another_policy_if_one_of_its_pods_is_in_all_scopes(spaces: Any, scopes: Any) -> None:
    """One pod of several is enough; one of two scopes is not."""
    cluster = Cluster()
    pods = [cluster.templates.info(a_pod(f"p{n}", namespace=space)) for n, space in enumerate(spaces)]
    evictors = tuple(PolicyScope(include=frozenset(each)) for each in scopes)
    context = StrategyContext(cluster, (), NOW, evictors)
    strategy: Any = None

    other = ComplaintWatcher(strategy, context, "other").is_about(Vicinity(tuple(pods), frozenset()))

    assert other is bool([space for space in spaces if not [each for each in scopes if space not in each]])
    assert ComplaintWatcher(strategy, context).is_about(Vicinity(tuple(pods), frozenset()))


PAST = st.lists(
    st.builds(
        a_move,
        st.sampled_from(
            [
                MoveOutcome.SETTLED,
                MoveOutcome.RETURNED,
                MoveOutcome.STRANDED,
                MoveOutcome.REFUSED,
                MoveOutcome.BLOCKED,
            ]
        ),
        st.sampled_from([0.0, 1.0, 60.0, HOLD_BACK_S, MAX_HOLD_BACK_S]),
        owner=st.sampled_from(["u", "v"]),
        controller=st.sampled_from(["", "u", "w"]),
        strategy=st.sampled_from(["Balance", "Other"]),
        source=st.sampled_from(["a", "b"]),
        target=st.sampled_from(["b", "c"]),
    ),
    max_size=6,
).map(lambda moves: sorted(moves, key=lambda each: each.ended))


def about(past: Sequence[PastMove], owner: str) -> list[PastMove]:
    """The moves of Balance that were made, of an owner or of what controls it."""
    made = [each for each in past if each.strategy == "Balance" and each.fate is not MoveOutcome.BLOCKED]
    return [each for each in made if owner in {each.owner, each.controller or each.owner}]


@settings(max_examples=80)
@given(PAST, st.sampled_from([0.0, 1.0, 60.0, HOLD_BACK_S, MAX_HOLD_BACK_S]))
def test_what_is_remembered_equals_a_plain_look_through_the_past(past: Any, ago: float) -> None:
    """A move that ended at the very moment is not after it; one by its owner's own controller counts once."""
    memory = MoveHistory(past, NOON)
    for owner in ("u", "v", "w"):
        moves = about(past, owner)
        made = [each for each in moves if each.fate is not MoveOutcome.REFUSED]
        assert memory.made_since(owner, "Balance", NOON - ago) == len(
            [each for each in made if each.ended > NOON - ago]
        )
        row = list(itertools.takewhile(lambda each: each.fate is not MoveOutcome.SETTLED, reversed(moves)))
        held = memory.held_back(owner, "Balance")
        if not row:
            assert held is None
        elif held is None:
            assert NOON - row[0].ended >= min(HOLD_BACK_S * 2 ** (len(row) - 1), MAX_HOLD_BACK_S)
        else:
            assert f"{len(row)} unsuccessful move" in held.message
            expected = NOON - row[0].ended < min(HOLD_BACK_S * 2 ** (len(row) - 1), MAX_HOLD_BACK_S)
            assert expected or held.reason == "Suspended"
        over = memory.still_over(owner, "Balance", frozenset({"b"}))
        if over is not None:
            last = made[-1]
            assert "b" in {last.source, last.target}
            times = len([each for each in made if each.ended > NOON - MAX_HOLD_BACK_S])
            assert last.ended + min(HOLD_BACK_S * 2 ** max(times - 1, 0), MAX_HOLD_BACK_S) > NOON
