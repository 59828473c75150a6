"""A session with one API server: kubernetes-asyncio provides address, TLS and credentials, a transport sends.

The generated client reads kubeconfigs and tokens; its models would take 0.27 ms per pod (docs/adr/0001).
"""

import copy
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Self

import orjson

from plimsoll.kube.session.answer_bodies import lines, parsed
from plimsoll.kube.session.credentials import Credentials, loader
from plimsoll.kube.session.errors import (
    APIError,
    Fenced,
    Unauthorized,
    Unavailable,
    answer_of,
    error_of,
)
from plimsoll.kube.session.http_transport import HTTPTransport
from plimsoll.kube.session.transport import Transport, no_answer
from plimsoll.kube.session.write_gate import Gate, WriteFence, no_gate
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult

JSON = "application/json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"

#: Timeout of an ordinary request in seconds; watches have their own limits.
REQUEST_TIMEOUT_S = 30.0

#: Leading bytes of a response that show whether it is JSON.
PEEK = 80

#: The failure of a write that a closed fence stopped.
NOT_SENT = "not sent: this process does not lead"

#: Returns why a request is not sent, "" if it may be (:func:`plimsoll.kube.access_reviews.permissions`).
Permissions = Callable[[str, str], str]


class Session:
    """Sends requests; raises :mod:`plimsoll.kube.session.errors`.

    Args:
        transport: Carries the requests.
        monotonic: Seconds that never go back.
    """

    def __init__(
        self,
        transport: Transport,
        credentials: Credentials,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.credentials = credentials
        self._transport = transport
        self._monotonic = monotonic
        self._fence: WriteFence | None = None
        self._observer: Observer | None = None
        self._permissions: Permissions | None = None
        self.configuration = transport.configuration  #: also for clients with their own connections (kopf)
        self.address = transport.address

    def fenced(self, fence: WriteFence) -> Self:
        """The same session, with writes that pass a fence."""
        behind = copy.copy(self)
        behind._fence = fence  # noqa: SLF001 - our own
        return behind

    def observed(self, observer: Observer) -> Self:
        """The same session, with its exchanges reported to the observer."""
        observed = copy.copy(self)
        observed._observer = observer  # noqa: SLF001 - our own
        return observed

    def permitted(self, permissions: Permissions) -> Self:
        """The same session, which does not send requests that are known to be refused."""
        careful = copy.copy(self)
        careful._permissions = permissions  # noqa: SLF001 - our own
        return careful

    async def request(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        content_type: str = JSON,
        params: Mapping[str, str] | None = None,
        timeout_s: float = REQUEST_TIMEOUT_S,
    ) -> bytes:
        """Send a request; returns the body of a successful response.

        Raises:
            APIError: The server refused the request or did not respond in time, or the fence is closed.
        """
        denial = "" if self._permissions is None else self._permissions(method, path)
        if denial:
            raise Unauthorized(f"{method} {path}", 403, "Forbidden", denial)
        fence, content = self._fence, None if body is None else orjson.dumps(body)
        if fence is None or method == "GET":
            return await self._exchange(
                method, path, content, content_type, params=params, timeout_s=timeout_s
            )
        left_s = fence.seconds_left()
        if left_s <= 0:
            raise _fenced(method, path)
        gate = Gate(fence)
        answered = False
        fence.begin()
        try:
            answer = await self._exchange(
                method,
                path,
                content,
                content_type,
                params=params,
                timeout_s=min(timeout_s, left_s),
                gate=gate,
            )
            answered = True
        except APIError as exc:
            if gate.was_closed:
                answered = True
                raise _fenced(method, path) from exc
            answered = exc.verdict is not WriteOutcome.UNKNOWN  # after a 504 it may still take effect
            raise
        finally:
            fence.end(answered=answered)
        return answer

    async def _exchange(
        self,
        method: str,
        path: str,
        content: bytes | None,
        content_type: str,
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None] = no_gate,
    ) -> bytes:
        """Send a request and read its response; repeat it once if stale credentials were refused."""
        began = self._monotonic()
        for is_last in (False, True):
            headers = await self._headers(content_type)
            status, answer = await self._sent(
                method,
                path,
                content,
                headers,
                params=params,
                timeout_s=max(0.001, timeout_s - (self._monotonic() - began)),
                gate=gate,
            )
            if is_last or status != 401 or not await self._is_renewed(headers):
                break
        if problem := self._problem(f"{method} {path}", status, answer):
            raise problem
        return answer

    def _problem(self, attempt: str, status: int, answer: bytes) -> APIError | None:
        """The error of a response, None for a successful one.

        A proxy in front of the API server may redirect to a login page, or return one.
        """
        if not 200 <= status < 300:
            return self._refusal(attempt, status, answer)
        if answer and not answer[:PEEK].lstrip().startswith(b"{"):
            sentence = " ".join(answer[:PEEK].decode(errors="replace").split())
            return Unavailable(
                attempt, message=f"the answer cannot be read: it is no JSON object: {sentence}"
            )
        return None

    def _refusal(self, attempt: str, status: int, answer: bytes) -> APIError:
        refusal = error_of(attempt, status, parsed(answer))
        if status == 401 and self.credentials.problem:
            refusal.message += f"; reading the credentials again failed: {self.credentials.problem}"
        return refusal

    async def _sent(
        self,
        method: str,
        path: str,
        content: bytes | None,
        headers: Mapping[str, str],
        *,
        params: Mapping[str, str] | None,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> tuple[int, bytes]:
        """Status and body of one response."""
        attempt, began = f"{method} {path}", self._monotonic()
        try:
            status, answer = await self._transport.exchange(
                method, path, content, headers, params=params, timeout_s=timeout_s, gate=gate
            )
        except no_answer() as exc:
            if not (isinstance(gate, Gate) and gate.was_closed):  # an unsent request has no response
                self._report(method, 0, self._monotonic() - began)
            raise Unavailable(attempt, message=f"{type(exc).__name__}: {exc}") from exc
        self._report(method, status, self._monotonic() - began)
        return status, answer

    async def write(self, method: str, path: str, body: Any = None, **options: Any) -> WriteResult:
        """Send a write; returns its outcome instead of the response."""
        try:
            await self.request(method, path, body, **options)
        except APIError as exc:
            return answer_of(exc)
        return DONE

    @property
    def sends_together(self) -> bool:
        """Whether ``write_all`` pipelines its requests, instead of sending them one by one."""
        return self._transport.pipelines

    async def write_all(self, method: str, writes: Sequence[tuple[str, bytes]]) -> list[WriteResult]:
        """Write several JSON objects to their paths, pipelined; returns one outcome each.

        UNKNOWN means that no response arrived: the server may have carried the request out, or never read it.
        """
        if not self._transport.pipelines or len(writes) == 1:
            return [await self.write(method, path, orjson.Fragment(body)) for path, body in writes]
        if self._permissions is not None:
            denials = [self._permissions(method, path) for path, _ in writes]
            if any(denials):
                refused = iter(
                    [WriteResult(WriteOutcome.REFUSED, denial) if denial else None for denial in denials]
                )
                allowed = [each for each, denial in zip(writes, denials, strict=True) if not denial]
                sent = iter(await self.write_all(method, allowed) if allowed else ())
                return [denied or next(sent) for denied in refused]
        fence, began = self._fence, self._monotonic()
        left_s = REQUEST_TIMEOUT_S if fence is None else min(REQUEST_TIMEOUT_S, fence.seconds_left())
        fenced = WriteResult(WriteOutcome.FENCED, NOT_SENT)
        if left_s <= 0:
            return [fenced] * len(writes)
        headers, answers, why = await self._headers(JSON), [], ""
        gate = None if fence is None else Gate(fence)
        if fence is not None:
            fence.begin()
        try:
            answers = await self._transport.exchanges(
                method, writes, headers, timeout_s=left_s, gate=gate or no_gate
            )
        except no_answer() as exc:
            why = f"{type(exc).__name__}: {exc}"
        finally:
            if fence is not None:
                was_stopped = gate is not None and gate.was_closed
                is_known = len(answers) == len(writes) and all(200 <= code < 500 for code, _ in answers)
                fence.end(answered=was_stopped or is_known)
        if gate is not None and gate.was_closed:
            return [fenced] * len(writes)
        results = []
        for (status, answer), (path, _) in zip(answers, writes, strict=False):
            self._report(method, status, self._monotonic() - began)
            problem = self._problem(f"{method} {path}", status, answer)
            results.append(DONE if problem is None else answer_of(problem))
        if any(status == 401 for status, _ in answers):
            await self._is_renewed(headers)  # for later requests
        lost = WriteResult(WriteOutcome.UNKNOWN, why or "the connection ended before the answer")
        return results + [lost] * (len(writes) - len(results))

    async def merge(self, path: str, body: Any, **options: Any) -> WriteResult:
        """Write a merge patch."""
        return await self.write("PATCH", path, body, content_type=MERGE_PATCH, **options)

    async def object(self, method: str, path: str, body: Any = None, **options: Any) -> dict[str, Any]:
        """Send a request; returns the parsed response."""
        return parsed(await self.request(method, path, body, **options))

    @asynccontextmanager
    async def stream(
        self, path: str, params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[AsyncIterator[list[bytes]]]:
        """The lines of a watch, in batches as they arrive.

        The watch is aborted after ``silence_s`` seconds without a byte.

        Raises:
            APIError: The server refused the watch, or the stream broke.
        """
        attempt, began = f"WATCH {path}", self._monotonic()
        is_reported = False
        try:
            async with AsyncExitStack() as opened:
                for is_last in (False, True):
                    headers = await self._headers(JSON)
                    status, content = await opened.enter_async_context(
                        self._transport.watch(path, headers, params, silence_s)
                    )
                    if is_last or status != 401 or not await self._is_renewed(headers):
                        break
                self._report("WATCH", status, self._monotonic() - began)
                is_reported = True
                if not 200 <= status < 300:
                    raise self._refusal(attempt, status, b"".join([part async for part in content]))
                yield lines(content)
        except no_answer() as exc:
            if not is_reported:
                self._report("WATCH", 0, self._monotonic() - began)
            raise Unavailable(attempt, message=f"{type(exc).__name__}: {exc}") from exc

    def _report(self, method: str, status: int, seconds: float) -> None:
        if self._observer is not None:
            self._observer.request_answered(method, status, seconds)

    async def close(self) -> None:
        """Close the session."""
        await self._transport.close()

    async def _headers(self, content_type: str) -> dict[str, str]:
        headers = {"Accept": JSON, "Content-Type": content_type}
        if shown := await self.credentials.authorization():
            headers["Authorization"] = shown
        return headers

    async def _is_renewed(self, headers: Mapping[str, str]) -> bool:
        return await self.credentials.refused(headers.get("Authorization", ""))


def _fenced(method: str, path: str) -> Fenced:
    return Fenced(f"{method} {path}", message=NOT_SENT)


@asynccontextmanager
async def connected(
    kubeconfig: Path | None = None, context: str = "", *, own_client: bool = True
) -> AsyncIterator[Session]:
    """Open a session from a kubeconfig; without one in-cluster, else from the default kubeconfig.

    ``context`` names one of the kubeconfig's contexts, "" its current one.

    Raises:
        APIError: There is no usable configuration.
    """
    load = loader(kubeconfig, context)
    loaded = await load()
    transport = HTTPTransport(loaded.configuration, own_client=own_client)
    session = Session(transport, Credentials(loaded, load))
    try:
        yield session
    finally:
        await session.close()
