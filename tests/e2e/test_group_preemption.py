"""Groups of the core API that preempt and that are preempted, where the API server has them.

The situations are those of Kubernetes' own tests of workload-aware preemption (``test/e2e/scheduling``,
``test/integration/scheduler/preemption/podgroup``) as far as PodGroups without parents have them. Each
has nodes of its own, and all are played at the same time.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from e2e.gangs import a_core_group, serves_core_groups
from e2e.polls import eventually
from e2e.test_preemption import names, with_classes

if TYPE_CHECKING:
    from e2e.scene import Scene

pytestmark = pytest.mark.e2e

WHOLE = {"disruptionMode": "PodGroup"}
CASE = "example.com/case"


@dataclass(frozen=True)
class Case:
    """What runs, what preempts, and what is left.

    Attributes:
        nodes: Cpus of each node.
        running: Name, node, cpus, priority class and group of each pod that runs; "" for no group.
        groups: ``minCount`` and further fields of the spec, of each group that runs.
        gang: Number of pods that preempt, and the cpus of each.
        least: Its ``minCount``; 0 for pods without a group.
        spec: Further fields of the spec of its group.
        priority: The priority class of its pods.
        leave: The pods that leave.
        budget: Pods that a budget protects.
        waits: Whether it gets no place.
    """

    nodes: tuple[int, ...]
    running: tuple[tuple[str, int, int, str, str], ...]
    gang: tuple[int, int]
    leave: set[str]
    groups: dict[str, tuple[int, dict[str, Any]]] = field(default_factory=dict)
    least: int = -1
    spec: dict[str, Any] = field(default_factory=dict)
    priority: str = "high"
    budget: tuple[str, ...] = ()
    waits: bool = False


def low(*names_and_nodes: str, cpu: int = 1, group: str = "", priority: str = "low") -> Any:
    """Pods such as "a0": pod a on node 0."""
    return tuple((each[:-1], int(each[-1]), cpu, priority, group) for each in names_and_nodes)


CASES = {
    "all of a group on one node, by a group": Case(
        (2,), low("a0", "b0", group="v"), (1, 1), {"a", "b"}, {"v": (2, WHOLE)}
    ),
    "all of a group on one node, by a pod": Case(
        (2,), low("a0", "b0", group="v"), (1, 1), {"a", "b"}, {"v": (2, WHOLE)}, least=0
    ),
    "all of a group on two nodes": Case(
        (1, 1), low("a0", "b1", group="v"), (1, 1), {"a", "b"}, {"v": (2, WHOLE)}
    ),
    "all of a gang that cannot spare one, though its members may leave one by one": Case(
        (2,), low("a0", "b0", group="v"), (1, 1), {"a", "b"}, {"v": (2, {})}
    ),
    "one of a gang that can spare two": Case(
        (3,),
        low("a0", "b0", group="v") + low("c0", group="v", priority="least"),
        (1, 1),
        {"c"},
        {"v": (1, {})},
    ),
    "no pod of a group whose priority is higher": Case(
        (2,),
        low("a0", "b0", group="v"),
        (1, 1),
        set(),
        {"v": (2, {**WHOLE, "priorityClassName": "top"})},
        waits=True,
    ),
    "no pod where a member is as important as the gang": Case(
        (2,),
        low("a0", group="v") + low("b0", group="v", priority="high"),
        (1, 1),
        set(),
        {"v": (2, WHOLE)},
        waits=True,
    ),
    "pods on two nodes for a gang": Case((2, 2), low("a0", "b0", "c1", "d1"), (4, 1), {"a", "b", "c", "d"}),
    "no pod for a gang that would not fit even so": Case(
        (2,), low("a0") + low("b0", priority="high"), (2, 1), set(), waits=True
    ),
    "no pod for a gang that may not preempt": Case(
        (1,), low("a0"), (1, 1), set(), priority="polite", waits=True
    ),
    "with the priority of the gang": Case(
        (1,), low("a0", priority="mid"), (1, 1), {"a"}, spec={"priorityClassName": "high"}, priority="low"
    ),
    "the least important of two groups": Case(
        (1, 1, 1, 1),
        low("a0", "b1", group="v", priority="mid") + low("c2", "d3", group="w"),
        (2, 1),
        {"c", "d"},
        {"v": (2, WHOLE), "w": (2, WHOLE)},
    ),
    "what a budget does not protect": Case((3,), low("a0", "b0", "c0"), (1, 1), {"c"}, budget=("a", "b")),
    "only pods whose room is needed": Case(
        (2, 3), low("a0") + low("c0", priority="high") + low("b1", cpu=3), (3, 1), {"b"}
    ),
}


async def test_a_group_takes_the_victims_that_it_should(scene: Scene) -> None:
    """Nothing else leaves, and all members of each group that gets a place are bound."""
    if not await serves_core_groups(scene):
        pytest.skip("the API server does not serve scheduling.k8s.io/v1alpha2")
    await with_classes(scene, least=5, low=10, mid=50, high=1000, polite=1001, top=2000)
    cases = {f"c{at}": case for at, case in enumerate(CASES.values())}
    await asyncio.gather(
        *(
            scene.node(f"{key}-{at}", cpu=str(cpus), labels={CASE: key})
            for key, case in cases.items()
            for at, cpus in enumerate(case.nodes)
        )
    )
    await scene.scheduling()
    await asyncio.gather(*(run(scene, key, case) for key, case in cases.items()))
    await scene.until_running(sum(len(case.running) for case in cases.values()))
    expected = await names(scene)
    for key, case in cases.items():
        if case.budget:
            await scene.budget(key, f"{key}-guarded", minAvailable=len(case.budget))
        expected -= {f"{key}-{name}" for name in case.leave}
        expected |= {f"{key}-m{at}" for at in range(case.gang[0])}

    await asyncio.gather(*(preempt(scene, key, case) for key, case in cases.items()))

    for key, case in cases.items():
        for pod in (f"{key}-m{at}" for at in range(case.gang[0])):
            if case.waits:
                await eventually(
                    lambda pod=pod: scene.condition(pod),  # type: ignore[misc] # a lambda that keeps a variable of the loop
                    lambda one: "nodes are available" in one.get("message", ""),
                )
            else:
                await scene.until_bound(pod)
    left = await names(scene)
    kept = {
        title: [{name for name in each if name.startswith(f"{key}-")} for each in (left, expected)]
        for title, key in zip(CASES, cases, strict=True)
    }
    assert {title: has for title, (has, _) in kept.items()} == {
        title: has for title, (_, has) in kept.items()
    }


async def run(scene: Scene, key: str, case: Case) -> None:
    """Create the groups and pods that run."""
    for name, (least, spec) in case.groups.items():
        await a_core_group(scene, f"{key}-{name}", least, **with_class(scene, spec))
    for name, node, cpus, priority, group in case.running:
        labels = {"app": f"{key}-guarded"} if name in case.budget else {}
        on = {"kubernetes.io/hostname": f"{scene.name}-{key}-{node}"}
        spec = {**pod_of(scene, priority, f"{key}-{group}" if group else ""), "nodeSelector": on}
        await scene.pod(f"{key}-{name}", cpu=str(cpus), labels=labels, **spec)


async def preempt(scene: Scene, key: str, case: Case) -> None:
    """Create the pods that preempt, with their group."""
    count, cpus = case.gang
    group = f"{key}-gang" if case.least else ""
    if group:
        least = count if case.least < 0 else case.least
        await a_core_group(scene, group, least, **with_class(scene, case.spec))
    spec = {**pod_of(scene, case.priority, group), "nodeSelector": {CASE: key}}
    await asyncio.gather(*(scene.pod(f"{key}-m{at}", cpu=str(cpus), **spec) for at in range(count)))


def with_class(scene: Scene, spec: dict[str, Any]) -> dict[str, Any]:
    """The spec of a group, with the scene's priority classes."""
    named = spec.get("priorityClassName")
    return {**spec, "priorityClassName": f"{scene.name}-{named}"} if named else spec


def pod_of(scene: Scene, priority: str, group: str) -> dict[str, Any]:
    """Priority class and group of a pod."""
    named = {"schedulingGroup": {"podGroupName": group}} if group else {}
    return {"priorityClassName": f"{scene.name}-{priority}", "terminationGracePeriodSeconds": 0, **named}
