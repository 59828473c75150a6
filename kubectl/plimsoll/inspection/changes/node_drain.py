"""Drains nodes of a fork as ``kubectl drain --ignore-daemonsets --delete-emptydir-data`` does.

It works in rounds: pods that the budgets allow are evicted and placed elsewhere. A placed replacement frees
its disruption, so that the next pods of its budget may leave. A pod that no round can evict is blocked.
"""

from collections.abc import Callable, Sequence

from msgspec import Struct

from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.proposals import Refusal
from plimsoll.offline.cluster import OfflineCluster
from plimsoll.planning.budgets import BudgetLedger
from plimsoll.planning.moves import replacement_uid


class Blocked(Struct, frozen=True):
    """A pod that cannot be evicted."""

    pod: PodInfo
    node: str
    refusal: Refusal


class DrainOutcome(Struct, frozen=True):
    """The outcome of a drain."""

    evicted: tuple[PodInfo, ...]
    blocked: tuple[Blocked, ...]


def drain(
    queue: OfflineCluster,
    nodes: Sequence[str],
    evict: Callable[[PodInfo], None],
    settle: Callable[[], object],
) -> DrainOutcome:
    """Evict the pods of cordoned nodes, node by node.

    Args:
        queue: The queue whose fork has the nodes.
        nodes: Names of the nodes.
        evict: Removes a pod from its node and adds its replacement to the queue.
        settle: Places every pod that fits.
    """
    fork = queue.fork
    evicted: list[PodInfo] = []
    blocked: list[Blocked] = []
    for node in nodes:
        left = sorted(
            (pod for pod in fork.pods_on(fork.rows[node]) if not pod.pod.goes_with_its_node),
            key=lambda pod: pod.key,
        )
        refused: dict[str, Refusal] = {}
        while left:
            ledger = BudgetLedger(fork.objects.budgets.values())
            for pod in evicted:
                if replacement_uid(pod) in queue.waiting:
                    ledger.take(pod)
            gone = []
            for pod in left:
                refusal = _refusal(pod, ledger)
                if refusal is not None:
                    refused[pod.uid] = refusal
                    continue
                ledger.take(pod)
                evict(pod)
                gone.append(pod)
            settle()
            evicted += gone
            left = [pod for pod in left if pod not in gone]
            if not gone:
                break
        blocked += [Blocked(pod, node, refused[pod.uid]) for pod in left]
    return DrainOutcome(tuple(evicted), tuple(blocked))


def _refusal(pod: PodInfo, ledger: BudgetLedger) -> Refusal | None:
    if pod.pod.metadata.controller is None and not pod.is_terminating:
        return Refusal(
            "NoController", "no controller makes it again; kubectl drain deletes it with --force only"
        )
    return ledger.refusal(pod)
