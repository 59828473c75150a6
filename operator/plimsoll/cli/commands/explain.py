"""The commands ``plimsoll explain pod`` and ``plimsoll explain node``: answer why."""

from typing import TYPE_CHECKING, Annotated, TypeVar

import typer

from plimsoll.cli.clusters import From, state_from
from plimsoll.cli.errors import UserError
from plimsoll.cli.options import OUTPUT, SERVER, Flag, Options
from plimsoll.cli.output import print_answer
from plimsoll.cli.verbs import Verb, VerbGroup

if TYPE_CHECKING:
    from plimsoll.inspection.answer import AnswerPart

MemoryT = TypeVar("MemoryT", bound="AnswerPart")

#: Seconds for an answer, and its most bytes.
ANSWER_S, MOST = 10.0, 1 << 20


Pod = Annotated[str, typer.Argument(metavar="POD", help="NAME or NAMESPACE/NAME of the pod.")]
Node = Annotated[str, typer.Argument(metavar="NODE", help="Name of the node.")]


Operator = Annotated[
    str,
    typer.Option(
        "--operator",
        metavar="URL",
        help="Metrics address of the operator, such as http://127.0.0.1:8081 of a port-forward. It is asked"
        " for what only its memory has; the kubeconfig's token is sent there.",
    ),
]


def explain_pod(options: Options, pod: Pod, *, operator: Operator = "", from_: From = None) -> None:
    """Explain why a pod is pending, or why it is where it is.

    Pending: the refusals by plugin, the nearest miss, what would let it fit, and what wakes it. Placed: the
    score of its node against others, the plan of each policy for it, and what keeps it. Nothing is written.
    """
    from plimsoll.cli.views.explain_pod import pod_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import pod as pods  # noqa: PLC0415 - likewise
    from plimsoll.inspection.operator_memory import PodMemory  # noqa: PLC0415 - likewise

    _check(operator, from_)
    namespace, slash, name = pod.rpartition("/")
    if (slash and not namespace) or not name or "/" in namespace:
        raise UserError(f'"{pod}" is no pod; write NAME, with -n for its namespace, or NAMESPACE/NAME')
    if namespace and options.namespace and namespace != options.namespace:
        raise UserError(f'--namespace {options.namespace} contradicts "{pod}"; leave one of them out')
    state = state_from(options, from_)
    where = namespace or options.namespace or (not from_ and options.where()) or "default"
    answer = pods.explain_pod(state, where, name)
    if operator:
        memory, why = remembered(options, operator, ("pods", where, name), PodMemory)
        own = (pods.MEMORY_UNKNOWN, pods.ASSUMED_UNKNOWN)
        answer = answer.model_copy(
            update={"operator": memory, "unknown": known_now(answer.unknown, own, why)}
        )
    print_answer(answer, pod_view(answer), options.output)


def explain_node(options: Options, node: Node, *, operator: Operator = "", from_: From = None) -> None:
    """Explain how full a node is and what keeps it from being emptied.

    A drain is tried on a copy of the cluster, and each policy says what it plans. Nothing is written.
    """
    from plimsoll.cli.views.explain_node import node_view  # noqa: PLC0415 - each command loads what it needs
    from plimsoll.inspection.explanations import node as nodes  # noqa: PLC0415 - likewise
    from plimsoll.inspection.operator_memory import NodeMemory  # noqa: PLC0415 - likewise

    _check(operator, from_)
    state = state_from(options, from_)
    answer = nodes.explain_node(state, node)
    if operator:
        memory, why = remembered(options, operator, ("nodes", node), NodeMemory)
        answer = answer.model_copy(
            update={"operator": memory, "unknown": known_now(answer.unknown, (nodes.MEMORY_UNKNOWN,), why)}
        )
    print_answer(answer, node_view(answer), options.output)


def _check(operator: str, from_: list[str] | None) -> None:
    if operator and from_:
        raise UserError("--operator and --from exclude each other: a file is not the operator's cluster")


def known_now(unknown: list[str], asked: tuple[str, ...], why: str) -> list[str]:
    """What is still not known once the operator was asked; ``why`` it did not answer, "" when it did."""
    left = [each for each in unknown if each not in asked]
    return [why, *(each for each in unknown if each in asked), *left] if why else left


def remembered(
    options: Options, url: str, names: tuple[str, ...], kind: type[MemoryT]
) -> tuple[MemoryT | None, str]:
    """What the operator at an address remembers, and why it does not say, "" when it does.

    The token of the kubeconfig is sent there and nowhere else: a redirect is not followed.

    Args:
        options: Whose kubeconfig has the token.
        url: Of the operator's metrics address, such as ``http://127.0.0.1:8081``.
        names: ``pods``, namespace and name; or ``nodes`` and name.
        kind: What is expected.

    Raises:
        UserError: The address is no URL.
    """
    import asyncio  # noqa: PLC0415 - only where somebody asks
    from urllib.parse import quote, urlsplit  # noqa: PLC0415 - likewise

    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise UserError(f'--operator: "{url}" is no address; write http://HOST:PORT of its metrics endpoint')
    path = f"{url.rstrip('/')}/explain/{'/'.join(quote(each, safe='') for each in names)}"
    status, body = asyncio.run(_asked(options, path))
    if status != 200:
        return None, f"the operator at {url}: {body}"
    try:
        return kind.model_validate_json(body), ""
    except ValueError:
        return None, f"the operator at {url}: its answer cannot be read; is it of another version?"


async def _asked(options: Options, url: str) -> tuple[int, str]:
    """Status and body; 0 and why, without an answer."""
    import asyncio  # noqa: PLC0415 - only where somebody asks

    import aiohttp  # noqa: PLC0415 - likewise

    from plimsoll.kube.session.credentials import loader  # noqa: PLC0415 - likewise
    from plimsoll.kube.session.errors import APIError  # noqa: PLC0415 - likewise

    try:
        shown = (await loader(options.kubeconfig, options.context)()).authorization
    except APIError as exc:
        return 0, f"not asked, {exc}"
    if not shown.lower().startswith("bearer "):
        return 0, "not asked, since the kubeconfig has no token to show"
    try:
        async with (
            asyncio.timeout(ANSWER_S),
            aiohttp.ClientSession() as http,
            http.get(url, headers={"Authorization": shown}, allow_redirects=False) as answer,
        ):
            body = (await answer.content.read(MOST)).decode(errors="replace")
            return answer.status, body.strip() if answer.status == 200 else body.strip()[:200]
    except (aiohttp.ClientError, TimeoutError, OSError) as exc:
        return 0, f"no answer ({str(exc) or type(exc).__name__})"


VERB = VerbGroup(
    "explain",
    "Answer why a pod is pending, or stays, or a node is full.",
    (
        Verb("pod", explain_pod, (*SERVER, Flag.NAMESPACE, *OUTPUT), completes="pods"),
        Verb("node", explain_node, (*SERVER, *OUTPUT), completes="nodes"),
    ),
    {"pods": "pod", "po": "pod", "nodes": "node", "no": "node"},
)
