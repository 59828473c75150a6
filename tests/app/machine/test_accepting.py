"""Connections that cannot be accepted, end immediately, or come faster than others can be served."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest
from structlog.testing import capture_logs

from plimsoll.app.machine.connections import BATCH, _accept


class Client:
    """A connection.

    Attributes:
        is_closed: Whether it was closed.
    """

    is_closed = False

    def close(self) -> None:
        """Close it."""
        self.is_closed = True


async def accepted(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> tuple[list[Client], list[int], int]:
    """Accept these, errors among them; those that were served, how often another task ran before each.

    Returns also how often it slept.
    """
    left, served, turns, slept = [*answers], list[Client](), list[int](), list[float]()
    ran, loop, sleep = [0], asyncio.get_running_loop(), asyncio.sleep

    async def accept(_listener: Any) -> tuple[Any, Any]:
        if not left:
            await asyncio.Event().wait()
        found = left.pop(0)
        turns.append(ran[0])
        if isinstance(found, OSError):
            raise found
        return found, None

    async def connect(_factory: Any, client: Client) -> None:
        if client in broken:
            raise OSError("it has ended")
        served.append(client)

    async def other() -> None:
        while True:
            ran[0] += 1
            await sleep(0)

    async def pause(seconds: float) -> None:
        slept.append(seconds)
        await sleep(0)

    broken = [each for each in answers if isinstance(each, Client) and getattr(each, "breaks", False)]
    monkeypatch.setattr(loop, "sock_accept", accept)
    monkeypatch.setattr(loop, "connect_accepted_socket", connect)
    monkeypatch.setattr("plimsoll.app.machine.connections.asyncio.sleep", pause)
    aside = asyncio.create_task(other())
    task = asyncio.create_task(_accept(None, None))  # type: ignore[arg-type] # nothing looks at them
    for _ in range(30):
        await sleep(0)
    for each in (task, aside):
        each.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await each
    return served, turns, sum(each > 0 for each in slept)


async def test_a_connection_that_is_aborted_or_refused_hides_none_after_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The first needs nothing; for the second there is a line in the log, and a pause."""
    first, second, third = Client(), Client(), Client()
    with capture_logs() as logged:
        served, _, pauses = await accepted(
            monkeypatch, first, ConnectionAbortedError(), second, OSError(24, "Too many open files"), third
        )
    assert served == [first, second, third]
    assert pauses == 1
    assert [each["problem"] for each in logged] == ["Too many open files"]


async def test_others_run_between_batches_of_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    served, turns, _ = await accepted(monkeypatch, *(Client() for _ in range(2 * BATCH)))

    assert len(served) == 2 * BATCH
    assert [*dict.fromkeys(turns)] != turns[:1]
    assert turns[:BATCH] == [turns[0]] * BATCH
    assert turns[BATCH] > turns[0]


async def test_a_connection_that_ended_meanwhile_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Client):
        breaks = True

    gone, stays = Broken(), Client()
    served, _, _ = await accepted(monkeypatch, gone, stays)

    assert (served, gone.is_closed, stays.is_closed) == ([stays], True, False)
