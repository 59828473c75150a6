"""Lays out the answers of ``plimsoll top``."""

from collections.abc import Sequence

from plimsoll.cli.output import View
from plimsoll.cli.tables import Column, Table
from plimsoll.cli.views.fit import note_lines
from plimsoll.inspection.domain_loads import DomainLoads
from plimsoll.inspection.load import NodeLoads, PodLoads
from plimsoll.inspection.namespace_shares import NamespaceShares
from plimsoll.inspection.queue_shares import QueueShares
from plimsoll.model.amounts import amount_text
from plimsoll.model.counted import agreeing, counted
from plimsoll.model.prices import Price

#: Number of rows of a table; ``-o wide`` lists all.
ROWS = 50

RIGHT = ("CPU", "MEMORY", "CPU REQUESTED", "MEMORY REQUESTED", "AGE")


def nodes_view(answer: NodeLoads, *, wide: bool = False) -> View:
    """A table of nodes, and notes."""
    has_prices = any(each.currency for each in answer.nodes)
    rows = [
        (
            each.node,
            _percent(each.used.get("cpu")),
            _percent(each.used.get("memory")),
            _percent(each.requested.get("cpu")),
            _percent(each.requested.get("memory")),
            "" if each.age_seconds is None else f"{each.age_seconds:.0f}s",
            *([_price(each.price_per_hour, each.currency)] if has_prices else []),
            each.state,
        )
        for each in answer.nodes
    ]
    columns: tuple[Column | str, ...] = (
        "NODE",
        *(Column(each, right=True) for each in (*RIGHT, *(["PRICE/H"] if has_prices else []))),
        Column("STATE", status=True),
    )
    return [_fullest(answer), *_table(columns, rows, wide=wide), *note_lines(answer.notes)]


def _fullest(answer: NodeLoads) -> str:
    """The node that uses most cpu, or that most is requested of: the first."""
    if not answer.nodes:
        return "there is no node"
    measured = [each for each in answer.nodes if "cpu" in each.used]
    known = f"{len(measured)} of {counted(len(answer.nodes), 'node')} measured"
    if measured:
        return f"node {measured[0].node} uses most cpu: {_percent(measured[0].used['cpu'])}; {known}"
    fullest = answer.nodes[0]
    return f"most cpu is requested of node {fullest.node}: {_percent(fullest.requested.get('cpu'))}; {known}"


def shares_view(answer: NamespaceShares, *, wide: bool = False) -> View:
    """A table of namespaces."""
    costs = any(each.cost_per_hour for each in answer.namespaces)
    shown = tuple(dict.fromkeys((answer.resource, "cpu", "memory")))
    heads = [head for each in shown for head in (each.upper(), "%")]
    columns: tuple[Column | str, ...] = (
        "NAMESPACE",
        *(Column(each, right=True) for each in ("PODS", "PENDING", *heads, *(["COST/H"] if costs else []))),
    )
    rows = [
        (
            each.namespace,
            each.pods,
            each.pending,
            *(
                cell
                for name in shown
                for cell in (amount_text(name, each.requested.get(name, 0)), f"{each.percent.get(name, 0):g}")
            ),
            *([" + ".join(_price(*one[::-1]) for one in each.cost_per_hour.items())] if costs else []),
        )
        for each in answer.namespaces
    ]
    return [answer.summary, *_table(columns, rows, wide=wide)]


def queues_view(answer: QueueShares, *, wide: bool = False) -> View:
    """A table of queues, each below its parent."""
    several, paths = len({each.scheduler for each in answer.queues}) > 1, dict[str, str]()
    heads = ("PODS", "PENDING", "USED", "WAITING", "GUARANTEED", "DESERVED", "BORROWED", "CAPABILITY")
    name, rows = answer.resource, []
    for each in answer.queues:
        path = paths[each.queue] = (
            f"{paths.get(each.parent, each.parent)}/{each.queue}" if each.parent else each.queue
        )
        amounts = (each.used, each.waiting, each.guaranteed, each.deserved, each.borrowed, each.capability)
        shown = (amount_text(name, amount[name]) if amount.get(name) else "-" for amount in amounts)
        scheduler = [each.scheduler] if several else []
        rows.append((path, *scheduler, each.pods, each.pending, *shown))
    columns: tuple[Column | str, ...] = (
        "QUEUE",
        *(["SCHEDULER"] if several else []),
        *(Column(each, right=True) for each in heads),
    )
    return [answer.summary, *_table(columns, rows, wide=wide)]


def racks_view(answer: DomainLoads, *, wide: bool = False) -> View:
    """A table of domains."""
    heads = ("NODES", "WITHOUT GROUP", "PODS", f"{answer.resource.upper()}", "REQUESTED")
    rows = [
        (
            each.domain,
            each.nodes,
            each.without,
            each.pods,
            amount_text(answer.resource, each.allocatable),
            amount_text(answer.resource, each.requested),
            ", ".join(f"{one.group} ({one.members})" for one in each.groups),
        )
        for each in answer.domains
    ]
    columns: tuple[Column | str, ...] = (
        "DOMAIN",
        *(Column(each, right=True) for each in heads),
        "GROUPS",
    )
    return [answer.summary, *_table(columns, rows, wide=wide)]


def pods_view(answer: PodLoads, *, wide: bool = False) -> View:
    """A table of pods, and notes."""
    named = [Column(answer.resource.upper(), right=True)] if answer.resource else []
    rows = [
        (
            each.pod,
            each.node,
            *([amount_text(answer.resource, each.requested or 0)] if answer.resource else []),
            f"{each.cpu_milli}m",
            f"{each.memory_bytes >> 20}Mi",
            each.basis,
        )
        for each in answer.pods
    ]
    columns: tuple[Column | str, ...] = (
        "POD",
        "NODE",
        *named,
        Column("CPU", right=True),
        Column("MEMORY", right=True),
        Column("BASIS", status=True),
    )
    return [_most(answer), *_table(columns, rows, wide=wide), *note_lines(answer.notes)]


def _table(columns: Sequence[Column | str], rows: Sequence[Sequence[object]], *, wide: bool) -> View:
    table = Table(columns, rows)
    return ["", table if wide else table.first_rows(ROWS)] if rows else []


def _most(answer: PodLoads) -> str:
    """How many pods there are, and what the first of them takes."""
    if not answer.pods:
        return f"no pod requests {answer.resource}" if answer.resource else "no pod has a node"
    first, pods = answer.pods[0], counted(len(answer.pods), "pod")
    if not answer.resource:
        return f"{pods}; {first.pod} uses most cpu: {first.cpu_milli}m"
    taken = amount_text(answer.resource, sum(each.requested or 0 for each in answer.pods))
    request = agreeing(len(answer.pods), "requests", "request")
    room = "" if answer.allocatable is None else f" of {amount_text(answer.resource, answer.allocatable)}"
    return f"{pods} {request} {answer.resource}: {taken}{room} taken"


def _price(amount: float | None, currency: str | None) -> str:
    return "" if amount is None or currency is None else str(Price(amount, currency))


def _percent(share: float | None) -> str:
    return "" if share is None else f"{share:.0f}%"
