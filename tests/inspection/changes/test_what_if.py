"""whatif: changes on a fork, their effects, and laws that tie them to fit and to placement."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspection.forked_states import a_state, a_workload, manifests, shares
from plimsoll.inspection.changes.changed_cluster import ChangedCluster
from plimsoll.inspection.changes.cluster_changes import (
    AddNode,
    ApplyManifests,
    ClusterChange,
    Cordon,
    Drain,
    LabelNode,
    RemoveNodes,
    ScaleWorkload,
    label_change,
    node_names,
    node_to_add,
    scale_change,
    taint_change,
)
from plimsoll.inspection.changes.what_if_answer import WhatIfAnswer, what_if
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.placement.fit import FitQuestion, fit
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.testing.builders import a_node, a_pod

OLD = {"creationTimestamp": "2026-01-01T00:00:00Z"}
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def web(number: int, node: str = "", cpu: str = "1", **spec: Any) -> Any:
    """A pod of ReplicaSet web."""
    labels = {"app": "web"}
    return a_pod(
        f"web-{number}", node=node, cpu=cpu, owner="ReplicaSet/web", labels=labels, metadata=OLD,
        status=READY if node else {}, **spec,
    )  # fmt: skip


def a_budget(allowed: int) -> PodDisruptionBudget:
    """Over the pods of web."""
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": 1},
            "status": {"disruptionsAllowed": allowed, "currentHealthy": 2, "expectedPods": 2},
        },
    )


def places(answer: WhatIfAnswer) -> dict[str, str]:
    """Node by pod."""
    return {each.pod: each.node for each in answer.placed}


def test_a_drained_node_loses_its_pods_to_the_others() -> None:
    """Two pods go where there is room; the third has no place, and is said why."""
    state = a_state(
        a_node("n1"), a_node("n2", cpu="2"), web(0, "n1"), web(1, "n1"), web(2, "n1"),
    )  # fmt: skip

    answer = what_if(state, [Drain(("n1",))])

    assert places(answer) == {"default/web-0": "n2", "default/web-1": "n2"}
    assert [(each.pod, each.reason) for each in answer.pending] == [
        (
            "default/web-2",
            "0/2 nodes are available: 1 Insufficient cpu, 1 node(s) were unschedulable.",
        )
    ]
    assert (answer.total_before.cpu_milli, answer.total_after.cpu_milli) == (3000, 2000)


def test_a_budget_lets_pods_leave_one_after_the_other_while_replacements_find_room() -> None:
    """One disruption is allowed; its replacement has a place, so the second pod may leave as well."""
    state = a_state(a_node("n1"), a_node("n2"), web(0, "n1"), web(1, "n1"), a_budget(1))

    answer = what_if(state, [Drain(("n1",))])

    assert (sorted(places(answer)), answer.blocked) == (["default/web-0", "default/web-1"], [])


@pytest.mark.parametrize(
    ("allowed", "blocked"),
    [
        pytest.param(0, ["default/web-0", "default/web-1"], id="none-allowed"),
        pytest.param(1, ["default/web-1"], id="the-first-replacement-has-no-place"),
    ],
)
def test_a_budget_that_blocks_a_drain_is_named(allowed: int, blocked: list[str]) -> None:
    """Their nodes keep the pods that may not leave."""
    state = a_state(a_node("n1"), a_node("n2", cpu="500m"), web(0, "n1"), web(1, "n1"), a_budget(allowed))

    answer = what_if(state, [Drain(("n1",))])

    assert [each.pod for each in answer.blocked] == blocked
    assert answer.blocked[0].message.startswith("PodDisruptionBudget default/web allows")
    assert len(answer.pending) == allowed


def test_pods_without_a_controller_block_a_drain_and_end_with_a_removed_node() -> None:
    """Daemon pods stay in the one case, and are gone without a word in the other."""
    objects = (
        a_node("n1"),
        a_node("n2"),
        a_pod("bare", node="n1", metadata=OLD),
        a_pod("agent", node="n1", owner="DaemonSet/agent", metadata=OLD),
    )

    drained, removed = (
        what_if(a_state(*objects), [change]) for change in (Drain(("n1",)), RemoveNodes(("n1",)))
    )

    assert [each.reason for each in drained.blocked] == ["NoController"]
    assert (removed.gone, removed.placed, removed.pending) == (["default/bare"], [], [])
    assert removed.nodes[0].after is None


def test_an_added_node_takes_what_waits_and_its_daemon_pod_first() -> None:
    """A copy of n1, whose labels but the host name it has."""
    state = a_state(
        a_node("n1", cpu="2", labels={"zone": "a"}),
        web(0, "n1", cpu="1900m"),
        a_pod("agent-x", cpu="100m", node="n1", owner="DaemonSet/agent", metadata=OLD),
        web(1, cpu="1900m", nodeSelector={"zone": "a"}),
    )

    answer = what_if(state, [AddNode("n9", "n1")])

    assert places(answer) == {"default/agent-n9": "n9"}
    assert [(each.pod, each.node) for each in answer.released] == [("default/web-1", "n9")]
    assert answer.nodes[0].before is None
    assert answer.nodes[0].after.cpu_milli == 2000  # type: ignore[union-attr]


def test_a_node_of_the_most_common_kind_is_of_the_cluster_as_it_was() -> None:
    """Nodes that were added before do not make their kind more common."""
    large = [a_node(name, cpu="8") for name in ("large-1", "large-2")]
    full = [web(number, node.name, cpu="8") for number, node in enumerate(large)]
    state = a_state(a_node("small", cpu="1"), *large, *full, web(2, cpu="7"))

    answer = what_if(state, [AddNode("a", "small"), AddNode("b", "small"), AddNode("c"), AddNode("d", "a")])

    assert [(each.pod, each.node) for each in answer.released] == [("default/web-2", "c")]


def test_changes_are_made_in_their_order() -> None:
    """Cordoned first, the node takes nothing; scaled first, it does."""
    state = a_state(a_node("n1"), web(0, "n1"))
    scale, cordon = ScaleWorkload("ReplicaSet", "default", "web", 2), Cordon(("n1",))

    first, last = what_if(state, [cordon, scale]), what_if(state, [scale, cordon])

    assert (len(first.pending), len(last.pending)) == (1, 0)


def test_scaling_down_deletes_what_the_controller_would() -> None:
    """Pods without a node first, then those that share one; the room goes to what waits."""
    state = a_state(
        a_node("n1", cpu="2"), a_node("n2", cpu="1"),
        web(0, "n1"), web(1, "n1"), web(2, "n2"), web(3),
        a_pod("other", cpu="1", metadata=OLD),
    )  # fmt: skip

    answer = what_if(state, [ScaleWorkload("ReplicaSet", "default", "web", 2)])

    assert answer.gone == ["default/web-3", "default/web-0"]
    assert [(each.pod, each.node) for each in answer.released] == [("default/other", "n1")]


def test_a_label_opens_a_node_and_a_taint_empties_it() -> None:
    """NoExecute deletes what does not tolerate it, without budgets."""
    state = a_state(
        a_node("n1"), a_node("n2"), web(0, nodeSelector={"disk": "ssd"}), web(1, "n1"), a_budget(0)
    )

    labelled = what_if(state, [LabelNode("n2", "disk", "ssd")])
    tainted = what_if(state, [taint_change("node/n1", "bad:NoExecute")])
    again = what_if(state, [taint_change("node/n1", "bad:NoExecute"), taint_change("n1", "bad:NoExecute-")])

    assert [each.node for each in labelled.released] == ["n2"]
    assert places(tainted) == {"default/web-1": "n2"}
    assert again.placed == tainted.placed
    assert again.still_pending == 1


def test_policies_plan_with_and_without_the_changes() -> None:
    """Two duplicates on one node: with a second node, one would be moved to it."""
    policy = {
        "metadata": {"name": "tidy"},
        "spec": {
            "scheduling": {"schedulerName": "default-scheduler"},
            "rebalancing": {"mode": "Enforce", "strategies": [{"name": "RemoveDuplicates"}]},
        },
    }
    state = a_state(a_node("n1"), web(0, "n1"), web(1, "n1"), policies=[policy])

    answer = what_if(state, [AddNode("n2", "n1")])
    other = what_if(state, [AddNode("n2", "n1")], state.with_policies([]))

    assert answer.policies[0].before == []
    assert [(each.target_node, each.strategy) for each in answer.policies[0].after] == [
        ("n2", "RemoveDuplicates")
    ]
    assert other.policies[0].after == []


def test_manifests_bring_nodes_workloads_and_the_rest() -> None:
    """A workload that has pods gets those that are missing; it is said that no rollout is simulated."""
    state = a_state(a_node("n1", cpu="1"), web(0, "n1"))
    node = {
        "kind": "Node",
        "metadata": {"name": "n2"},
        "status": {"allocatable": {"cpu": 4, "memory": "1Gi", "pods": 9}},
    }
    found = manifests(state, node, a_workload("ReplicaSet", replicas=3))

    answer = what_if(state, [ApplyManifests(found)])

    assert sorted(places(answer).values()) == ["n2", "n2"]
    assert "ReplicaSet default/web has 1 pod already: a rollout is not simulated" in answer.notes


def test_a_new_job_starts_as_the_group_that_its_policy_derives() -> None:
    """Three indexes on two nodes of one pod each: none starts; a third node, and all do."""
    policy = {
        "metadata": {"name": "p"},
        "spec": {"scheduling": {"schedulerName": "mine", "groups": {"derive": "Automatic"}}},
    }
    state = a_state(a_node("n1", cpu="1"), a_node("n2", cpu="1"), policies=[policy])
    spec = {"completionMode": "Indexed", "completions": 3, "parallelism": 3}
    found = manifests(state, a_workload("Job", "train", spec=spec, schedulerName="mine"))

    without = what_if(state, [ApplyManifests(found)])
    with_it = what_if(state, [AddNode("n3", "n1"), ApplyManifests(found)])

    assert places(without) == {}
    assert sorted(places(with_it).values()) == ["n1", "n2", "n3"]


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (RemoveNodes(("no",)), "there is no node no; the cluster has 1 node, such as n1"),
        (AddNode("n1"), "node n1 exists already"),
        (ScaleWorkload("Deployment", "default", "no", 1), "Deployment default/no has no pods"),
    ],
)
def test_changes_of_what_does_not_exist_are_refused(change: ClusterChange, problem: str) -> None:
    """In one sentence."""
    with pytest.raises(ManifestError, match=problem):
        what_if(a_state(a_node("n1")), [change])


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (lambda: node_to_add("x="), "--add-node x=: write NAME"),
        (lambda: node_names("a,", "--drain"), "--drain a,: write one name"),
        (lambda: label_change("node/x", "y"), "--label node/x y: write node/NAME KEY=VALUE"),
        (lambda: taint_change("x", "a=b:Never"), "where EFFECT is one of NoExecute, NoSchedule, Prefer"),
        (lambda: scale_change("job/x=1", "default"), "--scale job/x=1: write NAMESPACE/KIND/NAME=N"),
        (lambda: scale_change("deploy/x=-1", "default"), "N is 0 or more"),
    ],
)
def test_flags_that_cannot_be_read_are_refused(read: Any, problem: str) -> None:
    """With the form that they have."""
    with pytest.raises(ManifestError, match=problem.replace("[", r"\[")):
        read()


# -- laws ----------------------------------------------------------------------------------------------------


@st.composite
def loaded_nodes(draw: st.DrawFn) -> tuple[list[Any], int]:
    """Nodes with pods of web on them, at least one, and a request in milli-CPU."""
    cpu = draw(st.integers(2, 8)) * 100
    objects: list[Any] = []
    number = 0
    for node in range(draw(st.integers(2, 4))):
        room = draw(st.integers(0, 4))
        objects.append(a_node(f"n{node}", cpu=f"{room * 400 + 100}m"))
        for _ in range(draw(st.integers(0, room * 400 // cpu)) or int(node == 0)):
            objects.append(web(number, f"n{node}", cpu=f"{cpu}m"))
            number += 1
    return objects, cpu


@settings(max_examples=15, deadline=None)
@given(loaded_nodes(), st.integers(0, 8))
def test_scaling_equals_fit(world: tuple[list[Any], int], more: int) -> None:
    """So many more pods of a workload are placed where fit places so many pods of its manifest."""
    objects, cpu = world
    state = a_state(*objects)
    running = sum(1 for each in objects if each.name.startswith("web"))

    scaled = what_if(state, [ScaleWorkload("ReplicaSet", "default", "web", running + more)])
    document = a_workload("ReplicaSet", cpu=f"{cpu}m", replicas=more)
    document["spec"]["template"]["spec"]["containers"][0]["resources"]["requests"].pop("memory")
    fitting = fit(state, manifests(state, document), FitQuestion())

    nodes = list(places(scaled).values())
    assert {node: nodes.count(node) for node in nodes} == shares(fitting)
    assert len(scaled.pending) == more - fitting.workloads[0].placed


@settings(max_examples=15, deadline=None)
@given(loaded_nodes())
def test_draining_equals_placing_the_pods_elsewhere(world: tuple[list[Any], int]) -> None:
    """As if they waited in a cluster whose node is cordoned; and twice the same."""
    objects, _ = world
    left = [each for each in objects if not (each.name.startswith("web") and each.node_name == "n0")]
    waiting = [web(int(each.name[4:]), cpu=each.spec.containers[0].resources.requests["cpu"])
               for each in objects if each not in left]  # fmt: skip
    cordoned = [a_node("n0", cpu="1", unschedulable=True) if each.name == "n0" else each for each in left]

    drained = what_if(a_state(*objects), [Drain(("n0",))])
    placed = ChangedCluster(a_state(*cordoned, *waiting))
    placed.settle()

    assert places(drained) == {each.pod.key: each.node for each in placed.placed.values()}
    assert {each.pod for each in drained.pending} == {each.key for each in placed.queue.waiting.values()}
    assert drained == what_if(a_state(*objects), [Drain(("n0",))])
