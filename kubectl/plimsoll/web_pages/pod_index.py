"""Indexes the placed pods of a cluster, so that a page explains each of them in few bytes.

A pod is a row of numbers that refer to texts shared by many pods; the page's script assembles the sentence.
``plimsoll explain pod`` explains more.
"""

from collections.abc import Collection, Iterable
from typing import Any

from msgspec import Struct, field

from plimsoll.framework import PodInfo
from plimsoll.inspection.plans.answer import PolicyPlan
from plimsoll.inspection.state import ClusterState
from plimsoll.model.amounts import amount_text
from plimsoll.model.counted import agreeing, counted
from plimsoll.planning.budgets import BudgetLedger

#: Maximum bytes of the rows of pods; keeps a page of 1,000 nodes below 3 MB.
MOST_BYTES = 1_200_000

#: Bytes of a row in addition to the pod's name.
ROW_BYTES = 20


class _Texts(Struct):
    """Texts in the order of their numbers."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def pod_index(
    state: ClusterState, plans: Iterable[PolicyPlan] = (), first: Collection[str] = ()
) -> dict[str, Any]:
    """Build the input of the page's script.

    Args:
        state: The cluster.
        plans: Explain why pods of a workload stay.
        first: Nodes whose pods are listed first if not all pods fit.

    Returns:
        ``nodes``, ``shapes``, ``owners`` and ``budgets`` are texts; ``pods`` has rows of a name and the
        numbers of these four, -1 for none, in the order of their nodes and there the largest first;
        ``stays`` has sentences by owner; ``leftOut`` counts pods without a row.
    """
    cluster = state.cluster
    nodes, shapes, owners, budgets = _Texts(), _Texts(), _Texts(), _Texts()
    ledger = BudgetLedger(cluster.objects.budgets.values())
    covering: dict[tuple[str, frozenset[tuple[str, str]]], int] = {}
    rows: list[tuple[str, int, int, int, int]] = []
    size = left_out = 0
    names = sorted(cluster.rows, key=lambda name: (name not in first, name))
    for node in names:
        pods = sorted(
            cluster.pods_on(cluster.rows[node]),
            key=lambda each: (-each.template.requests.get("cpu", 0), each.key),
        )
        for pod in pods:
            size += len(pod.key.encode()) + ROW_BYTES
            if size > MOST_BYTES:
                left_out += 1
                continue
            labels = (pod.namespace, frozenset(pod.pod.metadata.labels.items()))
            if labels not in covering:
                text = "; ".join(_budget(ledger, pod))
                covering[labels] = budgets.number(text) if text else -1
            owner = _owner(pod)
            rows.append(
                (
                    pod.key,
                    nodes.number(node),
                    shapes.number(_shape(pod)),
                    owners.number(owner) if owner else -1,
                    covering[labels],
                )
            )
    return {
        "nodes": list(nodes.numbers),
        "shapes": list(shapes.numbers),
        "owners": list(owners.numbers),
        "budgets": list(budgets.numbers),
        "pods": rows,
        "stays": _stays(plans),
        "leftOut": left_out,
    }


def _shape(pod: PodInfo) -> str:
    """The pod's requests, and the scheduler and policy that decide about it."""
    amounts = [
        f"{name} {amount_text(name, amount)}" for name, amount in pod.template.requests.items() if amount
    ]
    spec = pod.pod.spec
    return (
        f"requests: {', '.join(amounts) or 'nothing'}; priority {pod.priority}; "
        f"scheduler {spec.scheduler_name or 'default-scheduler'}"
    )


def _owner(pod: PodInfo) -> str:
    owner = pod.pod.metadata.owner
    return f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None else ""


def _budget(ledger: BudgetLedger, pod: PodInfo) -> Iterable[str]:
    for each in ledger.over(pod):
        status = each.status
        yield (
            f"PodDisruptionBudget {each.key} allows {counted(status.disruptions_allowed, 'disruption')}: "
            f"{status.current_healthy} of {status.expected_pods} pods are healthy, "
            f"{status.desired_healthy} must be"
        )


def _stays(plans: Iterable[PolicyPlan]) -> dict[str, list[str]]:
    """Sentences about why proposed pods of a workload stay, by workload."""
    found: dict[str, list[str]] = {}
    for plan in plans:
        for group in plan.refused:
            for each in group.subjects:
                pods = f"{counted(each.pods, 'pod')} of it {agreeing(each.pods, 'stays', 'stay')}"
                found.setdefault(each.subject, []).append(
                    f"policy {plan.policy}: {pods} for {group.reason}: {each.message}"
                )
    return found
