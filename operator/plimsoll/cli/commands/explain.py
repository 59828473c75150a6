"""The commands ``plimsoll explain pod`` and ``plimsoll explain node``: answer why."""

from typing import Annotated

import typer

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.errors import UserError
from plimsoll.cli.options import OUTPUT, SERVER, Flag, Options
from plimsoll.cli.output import print_answer
from plimsoll.cli.verbs import Verb, VerbGroup

Pod = Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME of the pod.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")]


def explain_pod(options: Options, pod: Pod, *, from_: From = None) -> None:
    """Explain why a pod is pending, or why it is where it is.

    Pending: the refusals by plugin, the nearest miss, what would let it fit, and what wakes it. Placed: the
    score of its node against others, the plan of each policy for it, and what keeps it. Nothing is written.
    """
    from plimsoll.cli.views.explain_pod import pod_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import pod as pods  # noqa: PLC0415 - likewise

    namespace, slash, name = pod.rpartition("/")
    if (slash and not namespace) or not name or "/" in namespace:
        raise UserError(f'"{pod}" is no pod; write NAME, with -n for its namespace, or NAMESPACE/NAME')
    if namespace and options.namespace and namespace != options.namespace:
        raise UserError(f'--namespace {options.namespace} contradicts "{pod}"; leave one of them out')
    state = state_from(options, from_)
    where = namespace or options.namespace or (not from_ and options.where()) or "default"
    answer = pods.explain_pod(state, where, name)
    print_answer(answer, pod_view(answer), options.output)


def explain_node(options: Options, node: Node, *, from_: From = None) -> None:
    """Explain how full a node is and what keeps it from being emptied, with the plan of each policy.

    Each of its pods is tried on the other nodes, as a drain would do it. Nothing is written.
    """
    from plimsoll.cli.views.explain_node import node_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import node as nodes  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    answer = nodes.explain_node(state, node)
    print_answer(answer, node_view(answer), options.output)


VERB = VerbGroup(
    "explain",
    "Answer why a pod is pending, or stays, or a node is full.",
    (
        Verb("pod", explain_pod, (*SERVER, Flag.NAMESPACE, *OUTPUT), completes="pods"),
        Verb("node", explain_node, (*SERVER, *OUTPUT), completes="nodes"),
    ),
)
