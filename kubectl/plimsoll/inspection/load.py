"""Reports the usage of nodes and pods in a snapshot: the readings of one moment, unsmoothed.

The running operator's load book smooths readings, remembers workloads, and does not rely on a single reading
of a pod. Here each reading counts unchanged.
"""

from collections.abc import Mapping, Sequence

from pydantic import Field

from plimsoll.answers.answer import Answer, AnswerPart
from plimsoll.inspection.state import ClusterState
from plimsoll.load.expectations import Expectation
from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import PER_COLUMN_UNIT
from plimsoll.load.states import LoadState
from plimsoll.load.summary import RESOURCES
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.counted import counted
from plimsoll.model.prices import Price, PriceTable, price_of, prices_of
from plimsoll.usage.load_keeper import LoadKeeper

NO_READINGS = "the metrics API has no readings"


class NodeFigures(AnswerPart):
    """One node."""

    node: str = Field(description="Name of the node.")
    state: str = Field(description="measured, estimated (some pods are not measured), stale or unknown.")
    age_seconds: float | None = Field(default=None, description="Age of the node's latest reading.")
    used: dict[str, float] = Field(description="Percent of allocatable, by resource; empty when unknown.")
    requested: dict[str, float] = Field(
        description="Percent of allocatable that the node's pods request, by resource."
    )
    price_per_hour: float | None = Field(default=None, description="Price an hour; null if it is not known.")
    currency: str | None = Field(default=None, description="Currency of the price, such as EUR.")


class NodeLoads(Answer):
    """The usage of nodes."""

    nodes: list[NodeFigures] = Field(
        description="The nodes, the fullest by measured cpu first, others by requested cpu."
    )
    notes: list[str] = Field(description="What is not known.")

    def names(self) -> list[str]:
        """As ``-o name`` prints them."""
        return [f"node/{each.node}" for each in self.nodes]


class PodFigures(AnswerPart):
    """One pod that is placed."""

    pod: str = Field(description="The pod, as namespace/name.")
    node: str = Field(description="Node that the pod runs on.")
    cpu_milli: int = Field(description="Cpu that the pod is expected to use, in milli.")
    memory_bytes: int = Field(description="Memory that the pod is expected to use, in bytes.")
    requested: int | None = Field(
        default=None,
        description="Amount of the named resource that it requests, cpu in milli; null where none was named.",
    )
    basis: str = Field(
        description="What the expected use rests on: measured, stale, predecessor, workload, or request (a"
        " share of it)."
    )


class PodLoads(Answer):
    """The usage of pods."""

    resource: str = Field(default="", description="The resource that all of them request; empty for any pod.")
    allocatable: int | None = Field(
        default=None,
        description="Amount of that resource on all nodes, cpu in milli; null where none was named.",
    )
    pods: list[PodFigures] = Field(
        description="The pods, those that use most cpu first, or that request most of the resource."
    )
    notes: list[str] = Field(description="What is not known.")

    def names(self) -> list[str]:
        """As ``-o name`` prints them."""
        return [f"pod/{each.pod.partition('/')[2]}" for each in self.pods]


def node_loads(state: ClusterState, prices: PriceTable | None = None) -> NodeLoads:
    """The usage of each node, the requests of its pods, and its price."""
    cluster, book = _book(state)
    load, states, found = book.load, book.states, []
    for row, node in enumerate(cluster.nodes):
        used, requested = {}, {}
        for resource, (place, column) in RESOURCES.items():
            room = int(cluster.allocatable[row, column])
            if room > 0:
                requested[resource] = _percent(int(cluster.requested[row, column]), room)
                if states[row]:
                    used[resource] = _percent(int(load[row, place]), room * PER_COLUMN_UNIT[place])
        price = price_of(node, prices)
        read_at = float(book.read_at[row])
        found.append(
            NodeFigures(
                node=node.name,
                state=book.state(row).name.lower(),
                age_seconds=round(max(state.now - read_at, 0.0), 1) if read_at else None,
                used=used,
                requested=requested,
                price_per_hour=None if price is None else price.per_hour,
                currency=None if price is None else price.currency,
            )
        )
    found.sort(key=lambda each: (-each.used.get("cpu", -1.0), -each.requested.get("cpu", 0.0), each.node))
    without = sum(each.currency is None for each in found)
    notes = _price_notes(prices_of(cluster.nodes, prices), without)
    return NodeLoads(nodes=found, notes=[*_notes(state), *notes])


def pod_loads(state: ClusterState, namespace: str = "", resource: str = "") -> PodLoads:
    """The usage of the placed pods of a namespace, "" for all; ``resource`` is what they request."""
    cluster, book = _book(state)
    found = []
    for pod, row in cluster.placed():
        requested = int(pod.requests.get(resource, 0))
        if namespace in ("", pod.namespace) and (requested or not resource):
            expected = book.of(pod)
            found.append(
                PodFigures(
                    pod=pod.key,
                    node=cluster.nodes[row].name,
                    cpu_milli=round(expected.cpu / PER_COLUMN_UNIT[0]),
                    memory_bytes=expected.memory,
                    requested=requested if resource else None,
                    basis=expected.basis.name.lower(),
                )
            )
    found.sort(key=lambda each: (-(each.requested or 0), -each.cpu_milli, each.pod))
    room = None
    if resource:
        axis = list(cluster.resources).index(resource)
        room = int(cluster.allocatable[: len(cluster), axis].sum())
    return PodLoads(resource=resource, allocatable=room, pods=found, notes=_notes(state))


def _book(state: ClusterState) -> tuple[Cluster, LoadBook]:
    """The cluster with a load book, filled if the snapshot has readings."""
    cluster = state.cluster
    if not cluster.has_index(LoadBook):
        cluster = cluster.fork()
        LoadKeeper(cluster).observe(state.now)
    return cluster, cluster.index(LoadBook)


def _percent(amount: int, room: int) -> float:
    return round(100 * amount / room, 1)


def _price_notes(total: Mapping[str, float], without: int) -> list[str]:
    """What all nodes cost together, by currency, and how many have no price; nothing if none has one."""
    if not total:
        return []
    told = " and ".join(str(Price(amount, currency)) for currency, amount in sorted(total.items()))
    unknown = f"; the price of {counted(without, 'node')} is not known" if without else ""
    return [f"all nodes cost {told} an hour{unknown}"]


def _notes(state: ClusterState) -> list[str]:
    usage = state.content.usage
    if usage.problem:
        return [usage.problem]
    return [] if usage.nodes else [NO_READINGS]


def load_sentences(
    cluster: Cluster, expected: Expectation, nodes: Sequence[str], now: float
) -> Mapping[str, str]:
    """Expected usage of nodes with an unplaced pod added, keyed by name; empty without readings.

    Args:
        cluster: The cluster without the pod.
        expected: The pod's expected usage.
        nodes: The nodes to report.
        now: Seconds since the epoch.
    """
    if not cluster.has_index(LoadBook):
        return {}
    book = cluster.index(LoadBook)
    wanted = {cluster.rows[name]: name for name in nodes}
    guessed = dict.fromkeys(wanted, 0)
    for each, row in cluster.placed():
        share = book.share(each.uid) if row in wanted else None
        if share is not None and not share.is_measured:
            guessed[row] += 1
    return {name: _sentence(cluster, expected, row, guessed[row], now) for row, name in wanted.items()}


def _sentence(cluster: Cluster, expected: Expectation, row: int, guessed: int, now: float) -> str:
    book = cluster.index(LoadBook)
    state, load = book.state(row), book.load_on(row)
    if state is LoadState.UNKNOWN:
        return "not measured: it counts with the median load of the nodes that are"
    said = []
    for resource, (place, column) in RESOURCES.items():
        room = int(cluster.allocatable[row, column]) * PER_COLUMN_UNIT[place]
        if room > 0:
            before, after = load[place] / room, (load[place] + expected[place]) / room
            said.append(f"{before:.0%} + {after - before:.0%} = {after:.0%} {resource}")
    age = max(now - float(book.read_at[row]), 0.0)
    said.append(f"read {age:.0f} s ago" + (", which is too old" if state is LoadState.STALE else ""))
    if guessed:
        said.append(f"{counted(guessed, 'pod')} estimated")
    return ", ".join(said)
