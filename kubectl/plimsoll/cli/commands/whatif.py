"""The command ``plimsoll whatif``: applies changes to a copy of the cluster and compares the result."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

from click.exceptions import Exit

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer
from plimsoll.cli.reports import ReportFile
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import OUTPUT, SERVER, Flag, Format, Options
from plimsoll.commands.parameters import Option, OrderedCommand
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.inspection.changes.cluster_changes import ClusterChange

Texts = list[str] | None
Files = Annotated[
    Texts,
    Option(
        "--filename",
        "-f",
        metavar="FILE",
        help="Manifests of nodes, workloads and others; - for standard input.",
    ),
]
Added = Annotated[Texts, Option(metavar="NAME[=NODE]", help="Add a node like another one.")]
AddedMany = Annotated[Texts, Option(metavar="COUNT[=NODE]", help="Add so many nodes like another one.")]
Removed = Annotated[Texts, Option(metavar="NAME[,NAME]", help="Remove nodes, and what runs on them.")]
Drained = Annotated[Texts, Option(metavar="NAME[,NAME]", help="Drain nodes, as kubectl drain does.")]
Cordoned = Annotated[Texts, Option(metavar="NAME[,NAME]", help="Make nodes unschedulable.")]
Uncordoned = Annotated[Texts, Option(metavar="NAME[,NAME]", help="Make nodes schedulable.")]
Labels = Annotated[Texts, Option(metavar="NODE KEY=VALUE", help="Label a node; KEY- removes the label.")]
Taints = Annotated[
    Texts, Option(metavar="NODE KEY=VALUE:EFFECT", help="Taint a node; a - behind removes the taint.")
]
Scaled = Annotated[Texts, Option(metavar="[NS/]KIND/NAME=N", help="Scale a workload that has pods.")]
Policies = Annotated[
    Texts, Option(metavar="FILE", help="SchedulingPolicies that take the place of all others.")
]
Order = Annotated[Texts, Option("--order", help="", hidden=True)]


class WhatIfCommand(OrderedCommand):
    """Applies its changes in the order of their flags."""

    pairs: ClassVar = frozenset({"--label", "--taint"})


def whatif(  # noqa: PLR0913 - cli/parameters.py reads the flags from the parameters
    options: Options,
    *,
    filename: Files = None,
    add_node: Added = None,
    add_nodes: AddedMany = None,
    remove_node: Removed = None,
    drain: Drained = None,
    cordon: Cordoned = None,
    uncordon: Uncordoned = None,
    label: Labels = None,
    taint: Taints = None,
    scale: Scaled = None,
    policies: Policies = None,
    report: ReportFile = None,
    from_: From = None,
    order: Order = None,
) -> None:
    """Preview a drain, new nodes or other changes of the cluster.

    The changes are made on a copy of the cluster, in the order of their flags; each may be repeated. Nothing
    is written. Exit code 0: no pod becomes pending. 2: some do, or cannot be drained. 1: error.
    """
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.whatif import what_if_view  # noqa: PLC0415 - likewise
    from plimsoll.inspection.changes.what_if_answer import what_if  # noqa: PLC0415 - likewise
    from plimsoll.inspection.manifests.documents import POLICY  # noqa: PLC0415 - likewise

    given = {
        "filename": filename,
        "add_node": add_node,
        "add_nodes": add_nodes,
        "remove_node": remove_node,
        "drain": drain,
        "cordon": cordon,
        "uncordon": uncordon,
        "label": label,
        "taint": taint,
        "scale": scale,
    }
    left = {name: iter(values or ()) for name, values in given.items()}
    steps = [(name, next(left[name])) for name in order or () if name in left]
    if not steps and not policies:
        raise UserError("there is no change; give one, such as --drain NODE or --scale NAMESPACE/KIND/NAME=N")
    documents = {text: _documents([text]) for name, text in steps if name == "filename"}
    changed = _documents(policies or ())
    state = state_from(options, from_)
    namespace = options.namespace or (not from_ and options.where()) or "default"
    changes = [_change(name, value, documents, namespace, state.cluster.objects) for name, value in steps]
    applied = [document for each in documents.values() for document in each if document.get("kind") == POLICY]
    target = state.with_policies(_policies(state, changed, applied)) if changed or applied else None
    with progress("steps") as bar:
        answer = what_if(state, changes, target, bar)
    if report is not None:
        from plimsoll.cli.reports import what_if_report, write_report  # noqa: PLC0415 - for pages alone

        write_report(report, what_if_report(answer, state))
    print_answer(answer, what_if_view(answer, wide=options.output == Format.WIDE), options)
    if answer.pending or answer.blocked:
        raise Exit(ExitCode.FOUND)


def _documents(paths: Iterable[str]) -> list[Any]:
    from plimsoll.cli.manifests import manifests  # noqa: PLC0415 - as above

    return [each.content for each in manifests(map(Path, paths))]


def _change(
    name: str, value: str, documents: dict[str, list[Any]], namespace: str, objects: Any
) -> "ClusterChange":
    from plimsoll.inspection.changes import cluster_changes as changes  # noqa: PLC0415 - as above
    from plimsoll.inspection.manifests.documents import read_manifests  # noqa: PLC0415 - as above

    read: dict[str, Callable[[], ClusterChange]] = {
        "filename": lambda: changes.ApplyManifests(read_manifests(documents[value], namespace, objects)),
        "add_node": lambda: changes.node_to_add(value),
        "add_nodes": lambda: changes.nodes_to_add(value),
        "remove_node": lambda: changes.RemoveNodes(changes.node_names(value, "--remove-node")),
        "drain": lambda: changes.Drain(changes.node_names(value, "--drain")),
        "cordon": lambda: changes.Cordon(changes.node_names(value, "--cordon")),
        "uncordon": lambda: changes.Cordon(changes.node_names(value, "--uncordon"), unschedulable=False),
        "label": lambda: changes.label_change(*_pair(value)),
        "taint": lambda: changes.taint_change(*_pair(value)),
        "scale": lambda: changes.scale_change(value, namespace),
    }
    return read[name]()


def _pair(value: str) -> tuple[str, str]:
    node, _, text = value.partition(" ")
    return node, text


def _policies(state: Any, changed: list[Any], applied: list[Any]) -> list[Any]:
    """The policies of --policies, else the cluster's; policies of -f are added or replace them."""
    documents = changed or [each.document for each in state.policies.values()]
    names = {(each.get("metadata") or {}).get("name") for each in applied}
    return [each for each in documents if (each.get("metadata") or {}).get("name") not in names] + applied


VERB = Verb("whatif", whatif, (*SERVER, Flag.NAMESPACE, *OUTPUT), command=WhatIfCommand)
