"""Connects commands to the API server, and explains its errors to users."""

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import TypeVar

from plimsoll.commands.errors import UserError
from plimsoll.commands.options import Options
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized, Unavailable, Unconfigured
from plimsoll.kube.session.session import Session, connected

T = TypeVar("T")

#: An API path of Plimsoll's own kinds.
_OURS = re.compile(r"/apis/(plimsoll\.dev)/[^/]+/(?:namespaces/[^/]+/)?([a-z]+)")


def with_session(options: Options, ask: Callable[[Session], Awaitable[T]]) -> T:
    """Connect, run ``ask``, and close the connection, also after Ctrl-C.

    Raises:
        UserError: There is no usable configuration, no answer, or the server refuses.
    """
    # Not returned by the task: asyncio.run formats the task's result for an error that the signal module of
    # CPython raises and drops when asked for the handler of Ctrl-C: a second of CPU for a whole cluster.
    answer: list[T] = []

    async def run() -> None:
        address = ""
        try:
            async with connected(options.kubeconfig, options.context) as session:
                address = session.address
                answer.append(await ask(session))
        except APIError as exc:
            raise refusal(exc, address) from exc

    asyncio.run(run())
    return answer[0]


def refusal(exc: APIError, address: str) -> UserError:
    """Why the server at an address refuses the request, and the remedy."""
    why = exc.message or exc.reason
    match exc:
        case Unconfigured():
            return UserError(str(exc))
        case Unavailable(status=0):
            return UserError(f"no answer from {address}: {why}; does --context name the right cluster?")
        case Unauthorized(status=401):
            return UserError(
                f"{address} does not accept the credentials: {why}; log in again, or name another --context"
            )
        case Unauthorized():
            return UserError(f"{address}: {why}; grant that right, or use other credentials")
        case NotFound() if (ours := _OURS.search(exc.attempt)) and not exc.details.get("name"):
            return UserError(
                f"{address} does not serve {ours[2]}.{ours[1]}; install the custom resource definitions:"
                " plimsoll crds | kubectl apply --server-side -f -"
            )
    return UserError(f"{address}: {exc}")
