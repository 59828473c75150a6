"""The commands ``plimsoll top`` nodes, pods, namespaces, queues and racks: use and requests."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import FORMATS, NAMESPACED, OUTPUT, SERVER, Flag, Format, Options
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb, VerbGroup

if TYPE_CHECKING:
    from plimsoll.inspection.state import ClusterState
    from plimsoll.model.prices import PriceTable

#: Resources that each cluster has.
NAMED = ("cpu", "memory")


Prices = Annotated[
    Path | None,
    Option("--prices", metavar="FILE", help="Prices by machine type, for nodes that state none themselves."),
]


def top_nodes(options: Options, *, prices: Prices = None, from_: From = None) -> None:
    """Show what nodes use and cost, what their pods request, and how old the readings are.

    By the readings of the metrics API. Nothing is written.
    """
    from plimsoll.cli.views.top import nodes_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.load import node_loads  # noqa: PLC0415 - likewise

    answer = node_loads(state_from(options, from_), _table(prices))
    print_answer(answer, nodes_view(answer, wide=options.output == Format.WIDE), options)


Resource = Annotated[
    str, Option("--resource", metavar="NAME", help="Only pods that request this, such as nvidia.com/gpu.")
]


def top_pods(options: Options, *, resource: Resource = "", from_: From = None) -> None:
    """Show what pods are expected to use, and what that rests on; or which request a resource.

    By the readings of the metrics API; of a pod without one, by its request. Nothing is written.
    """
    from plimsoll.cli.views.top import pods_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.load import pod_loads  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    namespace = "" if options.all_namespaces else options.namespace or (not from_ and options.where()) or ""
    _known(state, resource)
    answer = pod_loads(state, namespace, resource)
    print_answer(answer, pods_view(answer, wide=options.output == Format.WIDE), options)


By = Annotated[str, Option("--resource", metavar="NAME", help="Sort by this one, such as nvidia.com/gpu.")]


def top_namespaces(
    options: Options, *, resource: By = "cpu", prices: Prices = None, from_: From = None
) -> None:
    """Show who requests and pays which share of the cluster: cpu, memory, and a resource of your choice.

    By the requests of pods with a node. Nothing is written.
    """
    from plimsoll.cli.views.top import shares_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.namespace_shares import namespace_shares  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    _known(state, resource)
    answer = namespace_shares(state, resource, _table(prices))
    print_answer(answer, shares_view(answer, wide=options.output == Format.WIDE), options)


def top_queues(options: Options, *, resource: By = "cpu", from_: From = None) -> None:
    """Show what the queues of fairShare have, deserve and wait for.

    By the requests of pods. Nothing is written.
    """
    from plimsoll.cli.views.top import queues_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.queue_shares import queue_shares  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    _known(state, resource)
    answer = queue_shares(state, resource)
    print_answer(answer, queues_view(answer, wide=options.output == Format.WIDE), options)


Label = Annotated[
    str,
    Option("--label", metavar="KEY", help="The node label; left out, the one that most groups name."),
]


def top_racks(options: Options, *, label: Label = "", resource: By = "cpu", from_: From = None) -> None:
    """Show racks, or other domains of a node label: what is requested there, and which groups run there.

    By the requests of pods with a node. Nothing is written.
    """
    from plimsoll.cli.views.top import racks_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.domain_loads import domain_loads  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    _known(state, resource)
    answer = domain_loads(state, label, resource)
    print_answer(answer, racks_view(answer, wide=options.output == Format.WIDE), options)


def _table(path: Path | None) -> "PriceTable | None":
    """The table of prices in a file."""
    if path is None:
        return None
    import msgspec  # noqa: PLC0415 - for a file of prices alone

    from plimsoll.cli.manifests import manifests_of  # noqa: PLC0415 - likewise
    from plimsoll.model.prices import PriceTable  # noqa: PLC0415 - likewise

    try:
        tables = manifests_of(path)
        if len(tables) > 1:
            raise UserError(f"{path} has {len(tables)} documents; a table of prices is one, in one currency")
        return msgspec.convert(tables[0].content, PriceTable)
    except OSError as exc:
        raise UserError(f"{path} cannot be read: {exc.strerror}") from exc
    except msgspec.ValidationError as exc:
        raise UserError(
            f"{path} has no prices: {exc}; it needs currency, such as EUR, and a list nodes with"
            " instanceType, perHour, and where that matters zone and capacityType"
        ) from exc


def _known(state: "ClusterState", resource: str) -> None:
    """Refuse a resource that nothing has."""
    if resource and resource not in state.cluster.resources:
        there = ", ".join(sorted({*NAMED, *(each for each in state.cluster.resources if "/" in each)}))
        raise UserError(f"no node and no pod has {resource}; there are {there}")


NAMES = (*FORMATS, Format.NAME)

VERB = VerbGroup(
    "top",
    "Show what nodes and pods use, and how much of it is known.",
    (
        Verb("nodes", top_nodes, (*SERVER, *OUTPUT, Flag.WATCH), NAMES),
        Verb("pods", top_pods, (*NAMESPACED, *OUTPUT, Flag.WATCH), NAMES),
        Verb("namespaces", top_namespaces, (*SERVER, *OUTPUT, Flag.WATCH)),
        Verb("queues", top_queues, (*SERVER, *OUTPUT, Flag.WATCH)),
        Verb("racks", top_racks, (*SERVER, *OUTPUT, Flag.WATCH)),
    ),
    {
        "node": "nodes",
        "no": "nodes",
        "pod": "pods",
        "po": "pods",
        "namespace": "namespaces",
        "ns": "namespaces",
        "queue": "queues",
        "rack": "racks",
    },
)
