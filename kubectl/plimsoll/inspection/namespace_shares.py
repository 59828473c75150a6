"""Shares of the cluster that the pods of each namespace request."""

from collections import Counter, defaultdict

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.placement.fit import pending_pods
from plimsoll.inspection.state import ClusterState
from plimsoll.model.amounts import amount_text
from plimsoll.model.prices import PriceTable, price_of, share_of_node


class NamespaceShare(AnswerPart):
    """What the placed pods of a namespace request."""

    namespace: str = Field(description="Name of the namespace.")
    pods: int = Field(ge=0, description="Pods of the namespace with a node.")
    pending: int = Field(ge=0, description="Pods of the namespace without a node.")
    requested: dict[str, int] = Field(description="Amount by resource, cpu in milli.")
    percent: dict[str, float] = Field(description="Share of what all nodes can allocate, by resource.")
    cost_per_hour: dict[str, float] = Field(
        default={},
        description="What its pods bear of the prices of their nodes, by currency: the mean of their shares "
        "of allocatable cpu and memory.",
    )


class NamespaceShares(Answer):
    """Who requests which share of the cluster."""

    resource: str = Field(description="The resource by which the namespaces are sorted.")
    summary: str = Field(description="The answer in a sentence.")
    namespaces: list[NamespaceShare] = Field(description="The largest share of that resource first.")


def namespace_shares(
    state: ClusterState, resource: str = "cpu", prices: PriceTable | None = None
) -> NamespaceShares:
    """The shares of all namespaces that have pods."""
    cluster, shown = state.cluster, tuple(dict.fromkeys((resource, "cpu", "memory")))
    room = cluster.allocatable[: len(cluster)].sum(axis=0)
    total = {name: int(room[axis]) for axis, name in enumerate(cluster.resources) if name in shown}
    pods: Counter[str] = Counter()
    pending = Counter(pod.namespace for pod in pending_pods(state))
    requested: defaultdict[str, Counter[str]] = defaultdict(Counter)
    axes = {name: axis for axis, name in enumerate(cluster.resources) if name in ("cpu", "memory")}
    costs: defaultdict[str, defaultdict[str, float]] = defaultdict(lambda: defaultdict(float))
    for pod, row in cluster.placed():
        price = price_of(cluster.nodes[row], prices)
        if price is not None:
            room_there = {name: int(cluster.allocatable[row, axis]) for name, axis in axes.items()}
            share = share_of_node(pod.requests, room_there)
            costs[pod.namespace][price.currency] += share * price.per_hour
    for pod in cluster.pods.values():
        pods[pod.namespace] += 1
        for name in shown:
            requested[pod.namespace][name] += int(pod.requests.get(name, 0))
    found = [
        NamespaceShare(
            namespace=name,
            pods=pods[name],
            pending=pending[name],
            requested={each: requested[name][each] for each in shown},
            percent={each: _percent(requested[name][each], total.get(each, 0)) for each in shown},
            cost_per_hour={each: round(amount, 6) for each, amount in costs[name].items()},
        )
        for name in pods.keys() | pending.keys()
    ]
    found.sort(key=lambda each: (-each.requested[resource], -each.pods, each.namespace))
    return NamespaceShares(
        resource=resource, summary=_summary(found, resource, total.get(resource, 0)), namespaces=found
    )


def _percent(amount: int, room: int) -> float:
    return round(100 * amount / room, 1) if room else 0.0


def _summary(found: list[NamespaceShare], resource: str, room: int) -> str:
    taken = sum(each.requested[resource] for each in found)
    if not taken:
        return f"no namespace requests {resource}"
    first = found[0]
    return (
        f"namespace {first.namespace} requests most {resource}: {first.percent[resource]:g} % of the nodes'"
        f" {amount_text(resource, room)} {resource}; all namespaces together {_percent(taken, room):g} %"
    )
