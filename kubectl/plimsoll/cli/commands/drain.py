"""The command ``plimsoll drain``: asks for nodes to be emptied, or says what would move where."""

from typing import TYPE_CHECKING, Annotated, Any

from click.exceptions import Exit

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.output import print_answer, print_lines
from plimsoll.commands.errors import ExitCode, UserError
from plimsoll.commands.options import OUTPUT, SERVER, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb

if TYPE_CHECKING:
    from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance
    from plimsoll.kube.session.session import Session

Nodes = Annotated[list[str] | None, Argument(metavar="NODE", help="Nodes to empty, in this order.")]
Labels = Annotated[
    str, Option("--selector", "-l", help="Instead of names: nodes with these labels, as key=value,key=value.")
]
Name = Annotated[str, Option("--name", help="Name of the NodeMaintenance; left out, that of the first node.")]
Window = Annotated[str, Option("--window", metavar="CRON", help="When nodes may be begun, in five fields.")]
Lasts = Annotated[str, Option("--duration", help="How long the window stays open, such as 4h.")]
Zone = Annotated[str, Option("--time-zone", help="Time zone of the window; left out, UTC.")]
Deadline = Annotated[
    str, Option("--deadline", metavar="TIME", help="When no more is begun: 8h from now, or an RFC 3339 time.")
]
Most = Annotated[int, Option("--max-concurrent", help="Nodes that are being emptied at the same time.")]
MostPerZone = Annotated[
    int, Option("--max-concurrent-per-zone", help="Nodes of one zone at the same time; 0 sets no limit.")
]
LocalData = Annotated[
    bool, Option("--delete-emptydir-data", help="Move pods with emptyDir volumes; their data is lost.")
]
NoSets = Annotated[
    bool, Option("--keep-nodes-with-daemonsets", help="Leave nodes alone that have pods of DaemonSets.")
]
Replicas = Annotated[
    int,
    Option(
        "--min-replicas",
        help="Ready pods that an owner must have; 1 evicts the only one where it cannot surge: an outage.",
    ),
]
Others = Annotated[
    list[str] | None,
    Option("--other-scheduler", metavar="NAME", help="Move pods of this scheduler, too, by forecast."),
]
Wait = Annotated[
    bool, Option("--wait", help="Follow it until all nodes are drained; the operator goes on without you.")
]
Timeout = Annotated[str, Option("--timeout", help="With --wait: how long, such as 1h; left out, no limit.")]
DryRun = Annotated[bool, Option("--dry-run", help="Only say what would move where, and what could not.")]


def drain(  # noqa: PLR0913 - cli/parameters.py reads the flags from the parameters
    options: Options,
    nodes: Nodes = None,
    *,
    selector: Labels = "",
    name: Name = "",
    window: Window = "",
    duration: Lasts = "",
    time_zone: Zone = "",
    deadline: Deadline = "",
    max_concurrent: Most = 1,
    max_concurrent_per_zone: MostPerZone = 0,
    delete_emptydir_data: LocalData = False,
    keep_nodes_with_daemonsets: NoSets = False,
    min_replicas: Replicas = 2,
    other_scheduler: Others = None,
    wait: Wait = False,
    timeout: Timeout = "",
    dry_run: DryRun = False,
    from_: From = None,
) -> None:
    """Empty nodes by proven moves, replacement first where possible.

    Creates a NodeMaintenance, which the operator carries out; deleting it cancels and opens the nodes again.
    With --dry-run, or --from, nothing is written, and the exit code is 2 if a node cannot be emptied now.
    """
    from plimsoll.api.v1alpha1.node_maintenance import NodeMaintenance  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.moments import seconds_of  # noqa: PLC0415 - likewise

    if not nodes and not selector:
        raise UserError("name nodes, or select them by labels with --selector")
    if timeout and not wait:
        raise UserError("--timeout needs --wait")
    timeout_s = seconds_of(timeout, "--timeout") if timeout else None
    opened = {"schedule": window, "duration": duration or None, "timeZone": time_zone or None}
    if (duration or time_zone) and not window:
        raise UserError("--duration and --time-zone need --window")
    spec: dict[str, Any] = {
        "nodes": list(nodes or ()) or None,
        "nodeSelector": {"matchLabels": _labels(selector)} if selector else None,
        "window": {key: each for key, each in opened.items() if each} if window else None,
        "deadline": _deadline(deadline) if deadline else None,
        "maxConcurrent": max_concurrent,
        "maxConcurrentPerZone": max_concurrent_per_zone or None,
        "deleteEmptyDirData": delete_emptydir_data or None,
        "ignoreDaemonSets": False if keep_nodes_with_daemonsets else None,
        "minReplicas": min_replicas if min_replicas != 2 else None,
        "otherSchedulers": other_scheduler or None,
    }
    document = {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "NodeMaintenance",
        "metadata": {"name": name or (nodes[0] if nodes else "selected-nodes")},
        "spec": {key: each for key, each in spec.items() if each is not None},
    }
    given = _read(NodeMaintenance, document)
    if dry_run or from_:
        _foresee(options, given, from_)
        return
    from plimsoll.cli.callers.maintenances import create, follow  # noqa: PLC0415 - likewise
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - likewise

    called = given.metadata.name

    async def ask(session: "Session") -> None:
        print_lines(await create(session, document))
        if wait:
            await follow(session, called, timeout_s, lambda line: print_lines([line]))

    with_session(options, ask)
    if not wait:
        print_lines([f"next: kubectl wait --for=condition=Drained nodemaintenance/{called} --timeout=1h"])


def _read(kind: "type[NodeMaintenance]", document: dict[str, Any]) -> "NodeMaintenance":
    from pydantic import ValidationError  # noqa: PLC0415 - as above

    from plimsoll.framework.field_errors import field_errors  # noqa: PLC0415 - as above

    try:
        return kind.from_wire(document)
    except ValidationError as exc:
        raise UserError("; ".join(map(str, field_errors(exc, model=kind)))) from exc


def _labels(text: str) -> dict[str, str]:
    found = {}
    for each in text.split(","):
        key, equal, value = each.partition("=")
        if not key or not equal:
            raise UserError(f'--selector: "{each[:100]}" is not key=value')
        found[key] = value
    return found


def _deadline(text: str) -> str:
    import time  # noqa: PLC0415 - as above
    from datetime import UTC, datetime  # noqa: PLC0415 - as above

    from plimsoll.cli.moments import moment_of  # noqa: PLC0415 - as above

    now = time.time()
    moment = moment_of(text, "--deadline", now)
    if "T" not in text:
        moment = 2 * now - moment  # durations count backwards there
    return datetime.fromtimestamp(moment, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _foresee(options: Options, given: "NodeMaintenance", from_: Any) -> None:
    """Print the plan of all nodes; exit code 2 if one of them cannot be emptied."""
    from plimsoll.cli.views.plan import plan_view  # noqa: PLC0415 - as above
    from plimsoll.inspection.plans.drain import drain_plan  # noqa: PLC0415 - as above

    state = state_from(options, from_)
    answer, unmoved = drain_plan(state, given)
    print_answer(answer, plan_view(answer, wide=options.output == Format.WIDE), options)
    if unmoved:
        raise Exit(ExitCode.FOUND)


VERB = Verb("drain", drain, (*SERVER, *OUTPUT), completes="nodes")
