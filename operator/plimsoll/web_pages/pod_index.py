"""Indexes the placed pods of a cluster, so that a page explains each of them in few bytes.

A pod is a row of numbers that point to texts which many pods share; the page's script puts the sentence
together. ``plimsoll explain pod`` says more.
"""

from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from typing import Any

from plimsoll.framework import PodInfo
from plimsoll.inspection.explanations.amounts import amount_text
from plimsoll.inspection.plans.answer import PolicyPlan
from plimsoll.inspection.state import ClusterState
from plimsoll.planning.budgets import BudgetLedger

#: Bytes that the rows of pods take at most; a page of 1,000 nodes stays below 3 MB with them.
MOST_BYTES = 1_200_000

#: Bytes of a row in addition to the pod's name.
ROW_BYTES = 20


@dataclass(slots=True)
class _Texts:
    """Texts in the order of their numbers."""

    numbers: dict[str, int] = field(default_factory=dict)

    def number(self, text: str) -> int:
        return self.numbers.setdefault(text, len(self.numbers))


def pod_index(
    state: ClusterState, plans: Iterable[PolicyPlan] = (), first: Collection[str] = ()
) -> dict[str, Any]:
    """Returns what the page's script reads.

    Args:
        state: The cluster.
        plans: Say why pods of a workload stay.
        first: Nodes whose pods come first, should not all pods have room.

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
    """What it requests, and who decides about it."""
    amounts = [
        f"{name} {amount_text(name, amount)}" for name, amount in pod.template.requests.items() if amount
    ]
    spec = pod.pod.spec
    return (
        f"requests: {', '.join(amounts) or 'nothing'}; priority {pod.priority}; "
        f"scheduler {spec.scheduler_name or 'default-scheduler'}"
    )


def _owner(pod: PodInfo) -> str:
    owner = pod.pod.metadata.controller
    return f"{owner.kind} {pod.namespace}/{owner.name}" if owner is not None else ""


def _budget(ledger: BudgetLedger, pod: PodInfo) -> Iterable[str]:
    for each in ledger.over(pod):
        status = each.status
        yield (
            f"PodDisruptionBudget {each.key} allows {status.disruptions_allowed} disruptions: "
            f"{status.current_healthy} of {status.expected_pods} pods are healthy, "
            f"{status.desired_healthy} must be"
        )


def _stays(plans: Iterable[PolicyPlan]) -> dict[str, list[str]]:
    """Why pods of a workload stay though a strategy wants them moved, by the workload."""
    found: dict[str, list[str]] = {}
    for plan in plans:
        for group in plan.refused:
            for each in group.subjects:
                pods = "1 pod of it stays" if each.pods == 1 else f"{each.pods} pods of it stay"
                found.setdefault(each.subject, []).append(
                    f"policy {plan.policy}: {pods} for {group.reason}: {each.message}"
                )
    return found
