"""Lets kubernetes-asyncio's typed APIs send their requests through a Session.

The session's credentials, fence, permissions, deadlines and errors thus apply to them, too. Typed APIs serve
the cold paths; docs/adr/0001 gives their cost.
"""

from collections.abc import Awaitable
from typing import Any

from kubernetes_asyncio import client
from kubernetes_asyncio.client.exceptions import ApiException
from msgspec import Struct

from plimsoll.kube.session.errors import Unavailable
from plimsoll.kube.session.session import JSON, MERGE_PATCH, REQUEST_TIMEOUT_S, Session


class TypedAnswer(Struct):
    """The parts of a response that a typed API reads; refusals are raised earlier."""

    attempt: str
    data: bytes
    status: int = 200

    def getheader(self, _name: str) -> None:
        """Nothing: no header is needed, all responses are JSON in UTF-8."""

    def getheaders(self) -> dict[str, str]:
        """None."""
        return {}


class TypedClient(client.ApiClient):
    """An ApiClient without connections of its own.

    Raises:
        APIError: From each call of a typed API, as from :meth:`Session.request`.
    """

    def __init__(self, session: Session) -> None:  # the base class would open connections
        self._session = session
        self.configuration = session.configuration
        self.default_headers = {}
        self.cookie = ""
        self.client_side_validation = False

    async def request(
        self,
        method: str,
        url: str,
        query_params: Any | None = None,
        headers: dict[str, str] | None = None,  # noqa: ARG002 - the session has its own
        post_params: dict[str, Any] | None = None,  # noqa: ARG002 - for forms, unused by the API server
        body: Any | None = None,
        _preload_content: bool = True,
        _request_timeout: Any | None = None,
    ) -> TypedAnswer:
        """Send one request; every patch is a merge patch."""
        path = url.removeprefix(self.configuration.host or "")
        content = await self._session.request(
            method,
            path,
            body,
            content_type=MERGE_PATCH if method == "PATCH" else JSON,
            params=dict(query_params or ()),
            timeout_s=_request_timeout or REQUEST_TIMEOUT_S,
        )
        try:
            content.decode()
        except UnicodeDecodeError as exc:  # the base class would raise it
            raise Unavailable(f"{method} {path}", message="the answer cannot be read: no UTF-8") from exc
        return TypedAnswer(f"{method} {path}", content)

    def deserialize(self, response: Any, response_type: Any) -> Any:
        """A model; anything but an object is an error, where the base class returns an empty model."""
        try:
            if not response.data.startswith("{"):
                raise ValueError(response.data[:200])  # noqa: TRY301 - as for invalid fields
            return super().deserialize(response, response_type)
        except (ApiException, AttributeError, TypeError, ValueError) as exc:
            raise Unavailable(response.attempt, message=f"the answer cannot be read: {exc}") from exc


async def content_of(call: Awaitable[object]) -> bytes:
    """The bytes that a typed API received when it was called with ``_preload_content=False``."""
    answer = await call
    assert isinstance(answer, TypedAnswer)
    return answer.data
