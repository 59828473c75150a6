"""Explains queues of fair shares: their requests and shares, and the queue of one pod."""

from collections import Counter

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PodInfo, Snapshot
from plimsoll.inspection.placement.fit import pending_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.model.amounts import amount_text
from plimsoll.model.columns.queue_usage import WaitingDemand
from plimsoll.model.counted import agreeing, counted
from plimsoll.toolkit.scheduling.fair_shares import QueueAccount, fair_queues

#: Number of queues that a sentence names.
SHOWN = 3


class QueueShare(AnswerPart):
    """What a queue has, with those below it."""

    scheduler: str = Field(description="Scheduler name of its pods.")
    queue: str = Field(description="Name of the queue.")
    parent: str = Field(description="The queue that it is below; empty for none.")
    pods: int = Field(ge=0, description="Pods with a node that name the queue itself.")
    pending: int = Field(ge=0, description="Pods without a node that name the queue itself.")
    used: dict[str, int] = Field(
        description="Requests of the queue's pods with a node, by resource; cpu in milli."
    )
    waiting: dict[str, int] = Field(
        description="Requests of the queue's pending pods, by resource; cpu in milli."
    )
    guaranteed: dict[str, int] = Field(
        description="What the queue deserves first, by resource; cpu in milli."
    )
    capability: dict[str, int] = Field(
        description="The most that the queue may have, by resource; cpu in milli."
    )
    deserved: dict[str, int] = Field(
        description="What the queue deserves of what all queues request now, by resource."
    )
    borrowed: dict[str, int] = Field(
        description="What the queue has above what it deserves, by resource; cpu in milli."
    )
    standing: float = Field(
        ge=0, description="Part of the cluster that it has, divided by its weight: the lowest goes first."
    )


class QueueShares(Answer):
    """Which queue has what."""

    resource: str = Field(description="The resource that the table shows.")
    summary: str = Field(description="The answer in a sentence.")
    queues: list[QueueShare] = Field(description="Each queue after the one that it is below.")


class QueueExplanation(AnswerPart):
    """The queue of a pod, and what it waits for there."""

    share: QueueShare = Field(description="What the queue has.")
    above: list[QueueShare] = Field(description="The queues above it, from the root.")
    served_before: list[str] = Field(
        description="Queues with pending pods that are served before it now, the first of them first."
    )


def queue_shares(state: ClusterState, resource: str = "cpu") -> QueueShares:
    """The shares of the queues of all policies."""
    found = [each for name, scheduler in state.schedulers.items() for each in _shares(state, name, scheduler)]
    return QueueShares(resource=resource, summary=_summary(found, resource), queues=found)


def explain_queue(state: ClusterState, pod: PodInfo, scheduler: ProfileScheduler) -> QueueExplanation | None:
    """The queue of a pod; None if its policy has none."""
    fair = fair_queues(scheduler.profile.plugins)
    if fair is None:
        return None
    shares = {each.queue: each for each in _shares(state, pod.pod.spec.scheduler_name, scheduler)}
    path = [shares[fair.queue_of(pod)]]
    while path[0].parent:
        path.insert(0, shares[path[0].parent])
    return QueueExplanation(share=path[-1], above=path[:-1], served_before=_before(path, shares))


def queue_sentences(found: QueueExplanation, pod: PodInfo | None = None) -> list[str]:
    """What a queue has and deserves; ``pod`` waits there, for whatever is not said yet."""
    own, names = found.share, " in ".join(each.queue for each in reversed([*found.above, found.share]))
    shown = [name for name in sorted({*own.used, *own.waiting}) if pod is None or pod.requests.get(name)]
    said = []
    for name in shown:
        parts = [f"has {_text(name, own.used)}", f"deserves {_text(name, own.deserved)}"]
        if name in own.guaranteed:
            parts.append(f"is guaranteed {_text(name, own.guaranteed)}")
        if name in own.capability:
            parts.append(f"may have {_text(name, own.capability)}")
        if own.borrowed.get(name):
            parts.append(f"borrows {_text(name, own.borrowed)}, which others may take back")
        said.append(f"{name}: {', '.join(parts)}")
    told = f"its queue {names}" + (f" ({'; '.join(said)})" if said else " has nothing")
    if pod is None or not found.served_before:
        return [told]
    first, more = found.served_before[:SHOWN], len(found.served_before) - SHOWN
    others = f" and {counted(more, 'more queue')}" if more > 0 else ""
    goes = agreeing(len(found.served_before), "goes", "go")
    return [told, f"{', '.join(first)}{others} {goes} first: less of the cluster for the weight"]


def _shares(state: ClusterState, name: str, scheduler: ProfileScheduler) -> list[QueueShare]:
    fair = fair_queues(scheduler.profile.plugins)
    if fair is None:
        return []
    ours = [pod for pod in pending_pods(state) if pod.pod.spec.scheduler_name == name]
    placed = (pod for pod in state.cluster.pods.values() if pod.pod.spec.scheduler_name == name)
    pods, pending = Counter(map(fair.queue_of, placed)), Counter(map(fair.queue_of, ours))
    accounts = fair.accounts(name, Snapshot(state.cluster), state.cluster.index(WaitingDemand).sums)
    return [_share(name, each, pods[each.name], pending[each.name]) for each in accounts]


def _share(scheduler: str, account: QueueAccount, pods: int, pending: int) -> QueueShare:
    return QueueShare(
        scheduler=scheduler,
        queue=account.name,
        parent=account.parent,
        pods=pods,
        pending=pending,
        used=dict(account.used),
        waiting=dict(account.pending),
        guaranteed=dict(account.guaranteed),
        capability=dict(account.capability),
        deserved=dict(account.deserved),
        borrowed=account.borrowed,
        standing=round(account.standing, 6),
    )


def _before(path: list[QueueShare], shares: dict[str, QueueShare]) -> list[str]:
    """The queues that go first, at the highest level where the path does not."""
    for own in path:
        others = (each for each in shares.values() if each.parent == own.parent and each.waiting)
        first = [(each.standing, each.queue) for each in others if each.standing < own.standing]
        if first:
            return [queue for _, queue in sorted(first)]
    return []


def _summary(found: list[QueueShare], resource: str) -> str:
    if not found:
        return "no policy has queues: see spec.scheduling.fairShare"
    borrowing = [each for each in found if each.borrowed.get(resource)]
    waiting = [each for each in found if each.waiting and each.pending]
    count = counted(len(found), "queue")
    if borrowing:
        most = max(borrowing, key=lambda each: each.borrowed[resource])
        lent = f"{most.queue} borrows most {resource}: {_text(resource, most.borrowed)}"
    else:
        lent = f"none has more {resource} than it deserves"
    return f"{count}, {len(waiting)} with pending pods; {lent}"


def _text(resource: str, amounts: dict[str, int]) -> str:
    return amount_text(resource, amounts.get(resource, 0))
