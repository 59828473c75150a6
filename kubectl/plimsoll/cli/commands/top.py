"""The commands ``plimsoll top nodes`` and ``plimsoll top pods``."""

from typing import Annotated

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import NAMESPACED, OUTPUT, SERVER, Options
from plimsoll.commands.parameters import Option
from plimsoll.commands.verbs import Verb, VerbGroup

#: Resources that each cluster has.
NAMED = ("cpu", "memory")


def top_nodes(options: Options, *, from_: From = None) -> None:
    """Show what nodes use, what their pods request, and how old the readings are.

    By the readings of the metrics API. Nothing is written.
    """
    from plimsoll.cli.views.top import nodes_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.load import node_loads  # noqa: PLC0415 - likewise

    answer = node_loads(state_from(options, from_))
    print_answer(answer, nodes_view(answer), options.output)


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
    if resource and resource not in state.cluster.resources:
        there = ", ".join(sorted({*NAMED, *(each for each in state.cluster.resources if "/" in each)}))
        raise UserError(f"no node and no pod has {resource}; there are {there}")
    answer = pod_loads(state, namespace, resource)
    print_answer(answer, pods_view(answer), options.output)


VERB = VerbGroup(
    "top",
    "Show what nodes and pods use, and how much of it is known.",
    (Verb("nodes", top_nodes, (*SERVER, *OUTPUT)), Verb("pods", top_pods, (*NAMESPACED, *OUTPUT))),
    {"node": "nodes", "no": "nodes", "pod": "pods", "po": "pods"},
)
