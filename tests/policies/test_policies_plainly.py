"""Nodes that two policies may share, failures of plugins, and words, each read a second way."""

from __future__ import annotations

import random
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.api.v1alpha1.rebalancing import Mode
from plimsoll.framework.selectors import NodeAffinityTerms, compile_node_terms
from plimsoll.model.decoding import convert
from plimsoll.planning.moves import Objective, Optimisation
from plimsoll.policies.conditions import (
    may_predict,
    names_in,
    near,
    scheduler_name_of,
    work_of,
    written_conditions,
)
from plimsoll.policies.operators import may_share_nodes, moves_pods, operator_of, titled
from plimsoll.policies.profiles import AWAITED, SLOW_CALLS, SLOW_S, PluginFailures
from plimsoll.policies.run_figures import optimisation_status
from plimsoll.policies.scheduler_names import is_served, may_wait, sentence
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.timing.signal import Signal
from policies.test_judgement import a_policy, a_pool, where

# -- nodes of two operators ------------------------------------------------------------------------------

VALUES = {"pool": [None, "1", "7", "red"], "zone": [None, "a", "b"]}
NAMES = ("n1", "n2")
#: Every node that there can be.
ALL = [
    a_node(name, labels={key: value for key, value in zip(VALUES, chosen, strict=True) if value is not None})
    for name in NAMES
    for chosen in product(*VALUES.values())
]


def a_term(draw: random.Random) -> dict[str, Any]:
    """At most one requirement for each label, and one for the name."""
    written: list[tuple[str, ...]] = []
    for key, values in VALUES.items():
        given_values = [value for value in values if value is not None]
        word = draw.choice(["", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
        if word in {"Gt", "Lt"}:
            written.append((key, word, draw.choice(["0", "3", "9"])))
        elif word in {"In", "NotIn"}:
            written.append((key, word, *draw.sample(given_values, draw.randint(1, 2))))
        elif word:
            written.append((key, word))
    term = where(*written)
    if draw.random() < 0.4:
        names = {
            "key": "metadata.name",
            "operator": draw.choice(["In", "NotIn"]),
            "values": [draw.choice(NAMES)],
        }
        term["matchFields"] = [names]
    return term


def matches(terms: list[dict[str, Any]]) -> set[int]:
    """Which of all nodes match one of the terms."""
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    compiled = convert(NodeAffinityTerms, required).required
    assert compiled is not None
    alternatives = compile_node_terms(compiled)
    return {
        at
        for at, node in enumerate(ALL)
        if any(each.matches(node.labels, node.name) for each in alternatives)
    }


def has_order(terms: list[dict[str, Any]]) -> bool:
    """Whether a term compares numbers, which are compared with nothing but values."""
    words = [each["operator"] for term in terms for each in term["matchExpressions"]]
    return any(word in {"Gt", "Lt"} for word in words)


def test_policies_share_nodes_if_there_can_be_a_node_of_both() -> None:
    """Never overlooked; and found where it needs no comparison of two numbers."""
    shared = apart = 0
    for seed in range(300):
        draw = random.Random(seed)
        one, other = ([a_term(draw) for _ in range(draw.choice([1, 1, 2]))] for _ in range(2))
        specs = [a_pool(name, name, *terms).spec.scheduling for name, terms in (("a", one), ("b", other))]
        assert specs[0] is not None
        assert specs[1] is not None
        both = matches(one) & matches(other)

        found = may_share_nodes(specs[0], specs[1])

        assert found == may_share_nodes(specs[1], specs[0])
        assert found or not both, (one, other)
        if not has_order([*one, *other]) and not any(term.get("matchFields") for term in [*one, *other]):
            assert found == (bool(both) or is_beyond(one, other)), (one, other)
        shared, apart = shared + found, apart + (not found)
    assert min(shared, apart) > 30


def is_beyond(one: list[dict[str, Any]], other: list[dict[str, Any]]) -> bool:
    """Whether a node with a value that no term names matches both: those of ALL have other values."""

    def leaves_open(term: dict[str, Any], key: str) -> bool:
        words = [each["operator"] for each in term["matchExpressions"] if each["key"] == key]
        return all(word in {"NotIn", "Exists"} for word in words)

    def meets(mine: dict[str, Any], theirs: dict[str, Any]) -> bool:
        return all(
            (leaves_open(mine, key) and leaves_open(theirs, key))
            or bool(allowed(mine, key) & allowed(theirs, key))
            for key in VALUES
        )

    return any(meets(mine, theirs) for mine in one for theirs in other)


def allowed(term: dict[str, Any], key: str) -> set[str | None]:
    """The values of a label that a term allows."""
    found = set(VALUES[key])
    for each in term["matchExpressions"]:
        if each["key"] == key:
            given_values = set(each["values"])
            found &= {
                "In": given_values,
                "NotIn": set(VALUES[key]) - given_values,
                "Exists": set(VALUES[key]) - {None},
                "DoesNotExist": {None},
            }[each["operator"]]
    return found


def test_a_named_operator_moves_no_pods() -> None:
    evicts = a_policy("p", "s")
    spec = {"schedulerName": "s", "preemption": {"viaEviction": True}}
    evicting = a_policy("p", "s").model_validate({"metadata": {"name": "p"}, "spec": {"scheduling": spec}})

    assert moves_pods(evicts) == ""
    assert moves_pods(evicting) == "spec.scheduling.preemption.viaEviction"
    assert moves_pods(a_policy("p", "s", rebalances=True)) == "spec.rebalancing"
    assert moves_pods(a_policy("p", rebalances=True)) == "spec.rebalancing"
    assert (titled(""), titled("a")) == ("the operator without a name", "operator a")
    assert [operator_of(each) for each in (None, {}, {"plimsoll.dev/operator": ""}, ["x"])] == [""] * 4


# -- failures of plugins ---------------------------------------------------------------------------------

CALLS = st.tuples(
    st.sampled_from(["A", "B", "Ours"]),
    st.sampled_from(["filter", "score", "bind"]),
    st.sampled_from(["fast", "exactly", "slow", "slower", "slow", "fails", "is forgiven"]),
)
SECONDS = {"fast": 0.01, "exactly": SLOW_S, "slow": 0.2, "slower": 0.74}


@settings(max_examples=60)
@given(st.lists(CALLS, max_size=14))
def test_plugins_are_slow_and_failed_as_a_list_of_their_calls_says(calls: list[tuple[str, str, str]]) -> None:
    conditions = Signal()
    failures = PluginFailures(conditions, {"Ours"})
    rows: dict[tuple[str, str], list[float]] = {}
    failed: dict[tuple[str, str], str] = {}
    notified = 0
    for number, (plugin, point, end) in enumerate(calls):
        key = plugin, point
        match end:
            case "fails":
                failures.plugin_failed(plugin, point, f"problem {number}")
                notified += key not in failed
                failed.setdefault(key, f'plugin "{plugin}" failed at {point}: problem {number}')
            case "is forgiven":
                failures.forgive({plugin})
                rows = {each: row for each, row in rows.items() if each[0] != plugin}
                failed = {each: text for each, text in failed.items() if each[0] != plugin}
            case _:
                failures.plugin_called(plugin, point, False, SECONDS[end])  # noqa: FBT003 - as the engine calls it
                if end in {"fast", "exactly"}:
                    notified += len(rows.pop(key, [])) >= SLOW_CALLS
                elif plugin != "Ours" and point not in AWAITED:
                    rows.setdefault(key, []).append(SECONDS[end])
                    notified += len(rows[key]) == SLOW_CALLS

        slow = [
            f'plugin "{name}" takes up to {max(row):.1f} s a call at {where_}; no pod is placed meanwhile'
            for (name, where_), row in sorted(rows.items())
            if len(row) >= SLOW_CALLS
        ]
        for some in ({"A", "B", "Ours"}, {"A"}, {"B"}, set()):
            assert failures.slow(some) == [each for each in slow if each.split('"')[1] in some]
            assert failures.of(some) == [text for each, text in sorted(failed.items()) if each[0] in some]
        assert conditions.count == notified


# -- words -----------------------------------------------------------------------------------------------


def test_what_an_accepted_policy_does_is_a_sentence_of_its_parts() -> None:
    from plimsoll.access.rights import Part  # noqa: PLC0415 - for this test

    both = a_policy("p", "mine", rebalances=True)
    placed = "pods with schedulerName mine are placed"
    moved = f"rebalancing in mode {Mode.DRY_RUN} with RemoveDuplicates"

    assert work_of(both, {}) == f"{placed}; {moved}"
    assert work_of(both, {Part.SCHEDULING: "no right"}) == f"no right; {moved}"
    assert work_of(both, {Part.REBALANCING: "no right"}) == f"no right; {placed}"
    assert work_of(a_policy("p", "mine"), {}) == placed
    assert work_of(a_policy("p", rebalancing={}), {}).endswith("with no strategy")
    assert work_of(a_policy("p"), {}) == "the spec asks for nothing"


def test_what_is_read_of_policies_that_were_never_accepted() -> None:
    """Their documents may hold anything."""
    document = {
        "spec": {
            "scheduling": {"schedulerName": "mine"},
            "rebalancing": {"strategies": [{"name": "A"}, {"name": 3}]},
        }
    }
    inner = [{"name": "B", "args": {"name": "C", "list": [{"name": "D"}, "name"]}}]

    assert scheduler_name_of(None, document) == "mine"
    odd: list[dict[str, Any]] = [{}, {"spec": 3}, {"spec": {"scheduling": []}}]
    assert {scheduler_name_of(None, each) for each in odd} == {""}
    assert scheduler_name_of(a_policy("p", "yours"), document) == "yours"
    assert scheduler_name_of(a_policy("p"), document) == ""
    assert names_in(document) == {"A"}
    assert names_in({"name": "no", "spec": {"deep": inner}}) == {"B", "C", "D"}
    assert may_predict(None)
    assert may_predict(a_policy("p", rebalances=True))
    assert not may_predict(a_policy("p", "s"))
    assert not may_predict(a_policy("p", rebalancing={"mode": "Enforce"}))


def test_conditions_that_can_be_read_are_taken_over() -> None:
    """One that cannot leaves the others."""
    fine = {
        "type": "Ready",
        "status": "True",
        "reason": "Accepted",
        "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }
    conditions = ["odd", fine, {"type": 3}, {**fine, "type": "Degraded"}]

    found = written_conditions({"status": {"conditions": conditions}})

    assert [each.type for each in found] == ["Ready", "Degraded"]
    odd: list[dict[str, Any]] = [{}, {"status": []}, {"status": {"conditions": {}}}]
    assert {written_conditions(each) for each in odd} == {()}


@pytest.mark.parametrize(
    ("name", "known", "end"),
    [
        ("PriorityClas", ["PriorityClass", "Other"], '; did you mean "PriorityClass"?'),
        ("PriorityClass", ["PriorityClass"], ""),
        ("PriorityClass", ["PriorityClass", "PriorityClasses"], '; did you mean "PriorityClasses"?'),
        ("abcdefgh", ["stuvwxyz"], ""),
        ("node", ["nodes"], '; did you mean "nodes"?'),
        ("pod", ["pot"], ""),
    ],
)
def test_a_name_that_nearly_matches_is_suggested(name: str, known: list[str], end: str) -> None:
    assert near(name, known) == end


def test_why_no_scheduler_places_pods_of_a_name() -> None:
    claimed = {"mine": ("p", "it is suspended")}

    assert (
        sentence("mine", claimed)
        == 'SchedulingPolicy p has schedulerName "mine" and does not serve it: it is suspended'
    )
    assert sentence("mini", claimed).endswith('was ever placed; did you mean "mine"?')
    assert sentence("default-schedule", {}).endswith('did you mean "default-scheduler"?')


ENDED = {"status": {"phase": "Succeeded"}}
LEAVES = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}


@pytest.mark.parametrize(
    ("fields", "waits", "served"),
    [
        ({}, True, False),
        ({"node": "n1"}, False, True),
        (ENDED, False, False),
        (LEAVES, False, False),
        ({"schedulingGates": [{"name": "g"}]}, False, False),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "PodScheduled", "status": "False", "reason": "NotReadyForScheduling"}
                    ]
                }
            },
            True,
            True,
        ),
        (
            {
                "status": {
                    "conditions": [
                        {"type": "Ready", "status": "False", "reason": "X"},
                        {"type": "PodScheduled", "status": "False", "reason": "SchedulerError"},
                    ]
                }
            },
            True,
            True,
        ),
    ],
)
def test_a_pod_waits_for_a_scheduler_or_shows_one(fields: dict[str, Any], waits: bool, served: bool) -> None:
    pod = a_pod(**fields)

    assert (may_wait(pod), is_served(pod)) == (waits, served)


def test_figures_of_a_search_are_rounded_in_their_units() -> None:
    """Seconds stay seconds, and the gap is in percent."""
    found = Optimisation(Objective.FEWEST_NODES, 10.004, 5.006, 4.0, 7.0, 3, 1.2345, waiting=2, served=1)

    shown = optimisation_status(found)

    assert optimisation_status(None) is None
    assert shown is not None
    assert (shown.before, shown.value, shown.bound, shown.proven) == (10.0, 5.01, 4.0, 7.0)
    assert (shown.moves, shown.seconds, shown.waiting, shown.served) == (3, 1.23, 2, 1)
    assert shown.gap_percent == round(100 * found.gap, 1)
