"""Requests the operator's memory: at a URL, or through the API server without one."""

from typing import TYPE_CHECKING, TypeVar

from plimsoll.commands.errors import UserError
from plimsoll.commands.options import Options

if TYPE_CHECKING:
    from plimsoll.answers.answer import AnswerPart

MemoryT = TypeVar("MemoryT", bound="AnswerPart")

#: In place of a URL: sends no request to the operator.
UNASKED = "none"

#: Seconds to wait for an answer, and the maximum bytes of one.
ANSWER_S, MOST = 10.0, 1 << 20


def memory_of(
    options: Options, url: str, lease: str, names: tuple[str, ...], kind: type[MemoryT]
) -> tuple[MemoryT | None, str]:
    """The operator's memory, and why there is no answer, "" with one.

    Args:
        options: Name the cluster.
        url: The operator's address; "" means the leader, through the API server.
        lease: NAME or NAMESPACE/NAME of the leading operator's lease.
        names: ``pods``, namespace and name; or ``nodes`` and name.
        kind: The type of the answer.

    Raises:
        UserError: The address is no URL.
    """
    if url:
        return remembered(options, url, names, kind)
    from plimsoll.cli.callers.leader import NotAsked, leader_memory  # noqa: PLC0415 - where it is asked

    try:
        body = leader_memory(options, lease, names)
    except NotAsked as exc:
        return None, f"the operator was not asked: {exc}"
    try:
        return kind.model_validate_json(body), ""
    except ValueError:
        return None, "the operator that leads: its answer cannot be read; is it of another version?"


def remembered(
    options: Options, url: str, names: tuple[str, ...], kind: type[MemoryT]
) -> tuple[MemoryT | None, str]:
    """The memory of the operator at an address, and why there is no answer, "" with one.

    The token of the kubeconfig is sent there and nowhere else: a redirect is not followed.

    Args:
        options: Their kubeconfig has the token.
        url: The URL of the metrics address, such as ``http://127.0.0.1:8081``.
        names: ``pods``, namespace and name; or ``nodes`` and name.
        kind: The type of the answer.

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
    """Status and body of the response; without one, 0 and the reason."""
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
