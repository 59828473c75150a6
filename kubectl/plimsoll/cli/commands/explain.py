"""The commands ``plimsoll explain``: of pods, a PodGroup, a node, a policy, an eviction."""

from typing import TYPE_CHECKING, Annotated

from plimsoll.cli.callers.memory import UNASKED, memory_of
from plimsoll.cli.clusters import From, content_from, state_from
from plimsoll.cli.output import print_answer
from plimsoll.commands.errors import UserError
from plimsoll.commands.options import FORMATS, NAMESPACED, OUTPUT, SERVER, Flag, Format, Options
from plimsoll.commands.parameters import Argument, Option
from plimsoll.commands.verbs import Verb, VerbGroup

if TYPE_CHECKING:
    from plimsoll.inspection.explanations.moved_pod import MoveExplanation

Pod = Annotated[
    str | None,
    Argument(metavar="POD", help="NAME or NAMESPACE/NAME of the pod; left out, all that are pending."),
]
GroupName = Annotated[str, Argument(metavar="PODGROUP", help="NAME or NAMESPACE/NAME of the PodGroup.")]
PolicyName = Annotated[str, Argument(metavar="POLICY", help="Name of the SchedulingPolicy.")]
Node = Annotated[str, Argument(metavar="NODE", help="Name of the node.")]
RecordName = Annotated[str, Argument(metavar="RECORD", help="NAME or NAMESPACE/NAME of the Eviction record.")]


Operator = Annotated[
    str,
    Option(
        "--operator",
        metavar="URL",
        help="Metrics address of the operator, such as http://127.0.0.1:8081 of a port-forward. It is asked"
        " for what only its memory has; the kubeconfig's token is sent there. Left out, the operator that"
        " leads is asked through the API server; with none it is not asked.",
    ),
]
Lease = Annotated[
    str, Option("--lease", metavar="LEASE", help="NAME or NAMESPACE/NAME of the operator's lease.")
]


def explain_pod(
    options: Options,
    pod: Pod = None,
    *,
    operator: Operator = "",
    lease: Lease = "plimsoll",
    from_: From = None,
) -> None:
    """Explain why a pod is pending, why it is where it is, or why it was moved.

    Without a name, all pending pods of the namespace are explained in a line each, or of all with -A.
    Pending: the refusals by plugin, the nearest miss, what would let it fit, and what wakes it. Placed: the
    score of its node against others, the plan of each policy for it, and what keeps it. Gone: what the
    records say of its move. Nothing is written; to ask the leading operator, a token of ten minutes is
    requested (docs/cli/explain.md).
    """
    from plimsoll.cli.views.moved_pod import moved_view  # noqa: PLC0415 - each command loads what it needs

    _check(operator, from_)
    if pod is None:
        _explain_waiting(options, from_)
        return
    if options.all_namespaces:
        raise UserError("-A is for all pending pods; a pod that is named is in one namespace, NAMESPACE/NAME")
    where, name = _placed_name(options, "pod", pod, from_)
    moved = None if from_ else _gone(options, where, name)
    if moved is None:
        moved = _explain_known(options, (where, name), from_, operator, lease)
    if moved is not None:
        print_answer(moved, moved_view(moved), options)


def explain_pod_group(options: Options, group: GroupName, *, from_: From = None) -> None:
    """Explain why a PodGroup waits, where its members are, and where they would go.

    The scheduler's search is tried on a copy of the cluster, for all members together. Nothing is written.
    """
    from plimsoll.cli.views.explain_pod_group import pod_group_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import pod_group as groups  # noqa: PLC0415 - likewise
    from plimsoll.inspection.unknown_objects import UnknownObjectError  # noqa: PLC0415 - likewise

    where, name = _placed_name(options, "PodGroup", group, from_)
    state = state_from(options, from_)
    answer = groups.explain_pod_group(state, where, name)
    if answer is None:
        known = [each.key.rpartition("k8s.io/")[2] for each in state.objects.groups]
        raise UnknownObjectError("podgroup", f"{where}/{name}", known)
    print_answer(answer, pod_group_view(answer), options)


def explain_node(
    options: Options, node: Node, *, operator: Operator = "", lease: Lease = "plimsoll", from_: From = None
) -> None:
    """Explain how full a node is and what keeps it from being emptied.

    A drain is tried on a copy of the cluster, and each policy says what it plans. Nothing is written.
    """
    from plimsoll.answers.operator_memory import NodeMemory  # noqa: PLC0415 - likewise
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.explain_node import node_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import node as nodes  # noqa: PLC0415 - likewise

    _check(operator, from_)
    state = state_from(options, from_)
    with progress("steps", "explaining"):
        answer = nodes.explain_node(state, node)
    if operator != UNASKED and not from_:
        memory, why = memory_of(options, operator, lease, ("nodes", node), NodeMemory)
        answer = answer.model_copy(
            update={"operator": memory, "unknown": known_now(answer.unknown, (nodes.MEMORY_UNKNOWN,), why)}
        )
    print_answer(answer, node_view(answer, wide=options.output == Format.WIDE), options)


def explain_eviction(options: Options, record: RecordName, *, from_: From = None) -> None:
    """Explain a move by its Eviction record: from where, to where, when, why, and how it ended.

    Nothing is written.
    """
    from plimsoll.cli.views.moved_pod import moved_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations.moved_pod import explain_move  # noqa: PLC0415 - likewise
    from plimsoll.inspection.recorded_moves import records_of  # noqa: PLC0415 - likewise
    from plimsoll.inspection.unknown_objects import UnknownObjectError  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.content import RECORDS  # noqa: PLC0415 - likewise

    where, name = _placed_name(options, "record", record, from_)
    content = content_from(options, from_, only=(RECORDS,))
    records = records_of(content)
    answer = explain_move(records, content.taken, where, name)
    if answer is None:
        raise UnknownObjectError("eviction", f"{where}/{name}", list(records))
    print_answer(answer, moved_view(answer), options)


def explain_policy(options: Options, policy: PolicyName, *, from_: From = None) -> None:
    """Explain whether a policy acts, what it did last, and what its next run would do.

    Nothing is written.
    """
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.views.explain_policy import explained_policy  # noqa: PLC0415 - likewise
    from plimsoll.inspection.explanations import policy as policies  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.content import POLICIES  # noqa: PLC0415 - likewise

    state = state_from(options, from_, needed=(POLICIES,))
    with progress("steps", "planning"):
        answer = policies.explain_policy(state, policy)
    print_answer(answer, explained_policy(answer), options)


def _explain_known(
    options: Options, pod: tuple[str, str], from_: list[str] | None, operator: str, lease: str
) -> "MoveExplanation | None":
    """Explain a pod of the cluster; one that it does not have is returned as its records know it."""
    from plimsoll.answers.operator_memory import PodMemory  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - likewise
    from plimsoll.cli.views.explain_pod import pod_view  # noqa: PLC0415 - likewise
    from plimsoll.inspection.explanations import pod as pods  # noqa: PLC0415 - likewise
    from plimsoll.inspection.explanations.moved_pod import explain_gone_pod  # noqa: PLC0415 - likewise
    from plimsoll.inspection.unknown_objects import UnknownObjectError  # noqa: PLC0415 - likewise

    state = state_from(options, from_)
    try:
        with progress("steps", "explaining"):
            answer = pods.explain_pod(state, *pod)
    except UnknownObjectError:
        moved = explain_gone_pod(state.records, state.now, *pod)
        if moved is None:
            raise
        return moved
    if operator != UNASKED and not from_:
        memory, why = memory_of(options, operator, lease, ("pods", *pod), PodMemory)
        answer = answer.model_copy(
            update={"operator": memory, "unknown": known_now(answer.unknown, (pods.MEMORY_UNKNOWN,), why)}
        )
    print_answer(answer, pod_view(answer), options)
    return None


def _explain_waiting(options: Options, from_: list[str] | None) -> None:
    """All pending pods, by owner and reason."""
    from plimsoll.cli.progress import progress  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.cli.views.explain_pod import waiting_view  # noqa: PLC0415 - likewise
    from plimsoll.inspection.explanations.waiting_pods import explain_waiting  # noqa: PLC0415 - likewise

    namespace = "" if options.all_namespaces else options.namespace or (not from_ and options.where()) or ""
    state = state_from(options, from_)
    with progress("steps", "explaining"):
        answer = explain_waiting(state, namespace)
    print_answer(answer, waiting_view(answer, wide=options.output == Format.WIDE), options)


def _gone(options: Options, namespace: str, name: str) -> "MoveExplanation | None":
    """What the records say of a pod that the server does not have; they alone are read. None otherwise."""
    from plimsoll.cli.connection import with_session  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations.moved_pod import explain_gone_pod  # noqa: PLC0415 - likewise
    from plimsoll.inspection.recorded_moves import records_of  # noqa: PLC0415 - likewise
    from plimsoll.kube.session.errors import APIError, NotFound  # noqa: PLC0415 - likewise
    from plimsoll.kube.session.session import Session  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.cluster_reader import read_cluster  # noqa: PLC0415 - likewise
    from plimsoll.snapshots.content import RECORDS, SnapshotContent  # noqa: PLC0415 - likewise

    async def ask(session: Session) -> SnapshotContent | None:
        try:
            await session.request("GET", f"/api/v1/namespaces/{namespace}/pods/{name}")
        except NotFound:
            try:
                return await read_cluster(session, only=(RECORDS,))
            except APIError:
                return None
        except APIError:
            pass  # reading the cluster says it with the remedy
        return None

    content = with_session(options, ask)
    if content is None:
        return None
    return explain_gone_pod(records_of(content), content.taken, namespace, name)


def _placed_name(options: Options, kind: str, text: str, from_: list[str] | None) -> tuple[str, str]:
    """The namespace and the name of ``NAME`` or ``NAMESPACE/NAME``."""
    namespace, slash, name = text.rpartition("/")
    if (slash and not namespace) or not name or "/" in namespace:
        raise UserError(f'"{text}" is no {kind}; write NAME, with -n for its namespace, or NAMESPACE/NAME')
    namespace = options.namespace_of(text, namespace)
    return namespace or (not from_ and options.where()) or "default", name


def _check(operator: str, from_: list[str] | None) -> None:
    if operator not in ("", UNASKED) and from_:
        raise UserError("--operator and --from exclude each other: a file is not the operator's cluster")


def known_now(unknown: list[str], asked: tuple[str, ...], why: str) -> list[str]:
    """What remains unknown after the request to the operator; ``why`` it failed, "" if it did not."""
    left = [each for each in unknown if each not in asked]
    return [why, *(each for each in unknown if each in asked), *left] if why else left


VERB = VerbGroup(
    "explain",
    "Answer why a pod is pending, stays, or was moved.",
    (
        Verb(
            "pod",
            explain_pod,
            (*NAMESPACED, *OUTPUT, Flag.WATCH),
            (*FORMATS, Format.NAME),
            completes="pods",
        ),
        Verb("podgroup", explain_pod_group, (*SERVER, Flag.NAMESPACE, *OUTPUT), completes="podgroups"),
        Verb("node", explain_node, (*SERVER, *OUTPUT), completes="nodes"),
        Verb("policy", explain_policy, (*SERVER, *OUTPUT, Flag.WATCH), completes="policies"),
        Verb("eviction", explain_eviction, (*SERVER, Flag.NAMESPACE, *OUTPUT), completes="records"),
    ),
    {
        "pods": "pod",
        "po": "pod",
        "podgroups": "podgroup",
        "podgroups.plimsoll.dev": "podgroup",
        "podgroups.scheduling.k8s.io": "podgroup",
        "plpg": "podgroup",
        "nodes": "node",
        "no": "node",
        "policies": "policy",
        "spol": "policy",
        "schedulingpolicy": "policy",
        "schedulingpolicies": "policy",
        "evictions": "eviction",
        "evictions.plimsoll.dev": "eviction",
        "plev": "eviction",
    },
)
