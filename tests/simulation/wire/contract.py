"""A JudgedTransport is a transport whose errors are those that its port promises; any other is noted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager

from plimsoll.kube.session.transport import Transport, no_answer


class JudgedTransport:
    """Passes everything on: a :class:`plimsoll.kube.session.transport.Transport`.

    Args:
        problems: Where errors are noted that callers do not expect.
    """

    def __init__(self, inner: Transport, problems: list[BaseException]) -> None:
        self._inner = inner
        self._problems = problems
        self._is_closed = False
        self.address, self.configuration, self.pipelines = inner.address, inner.configuration, inner.pipelines

    async def exchange(
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
        """Status and body of one answer."""
        with self._judged():
            return await self._inner.exchange(
                method, path, content, headers, params=params, timeout_s=timeout_s, gate=gate
            )

    async def exchanges(
        self,
        method: str,
        writes: Sequence[tuple[str, bytes]],
        headers: Mapping[str, str],
        *,
        timeout_s: float,
        gate: Callable[[], None],
    ) -> list[tuple[int, bytes]]:
        """The answers to requests that are sent together: one at least, and no more than requests."""
        with self._judged():
            answers = await self._inner.exchanges(method, writes, headers, timeout_s=timeout_s, gate=gate)
        if not 1 <= len(answers) <= len(writes):
            self._problems.append(AssertionError(f"{len(answers)} answers to {len(writes)} requests"))
        return answers

    @asynccontextmanager
    async def watch(
        self, path: str, headers: Mapping[str, str], params: Mapping[str, str], silence_s: float
    ) -> AsyncIterator[tuple[int, AsyncIterator[bytes]]]:
        """Status and body of an answer without end."""
        with self._judged():
            opening = self._inner.watch(path, headers, params, silence_s)
            status, parts = await opening.__aenter__()
        try:
            yield status, self._parts(parts)
        finally:
            await opening.__aexit__(None, None, None)

    async def close(self) -> None:
        """End it; what tasks still ask while their process ends is refused in the library's own way."""
        self._is_closed = True
        await self._inner.close()

    async def _parts(self, parts: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        with self._judged():
            async for part in parts:
                yield part

    @contextmanager
    def _judged(self) -> Iterator[None]:
        try:
            yield
        except no_answer():
            raise
        except Exception as exc:
            if not self._is_closed:
                self._problems.append(exc)
            raise
