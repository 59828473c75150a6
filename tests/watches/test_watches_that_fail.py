"""Compares a watch that fails in every way, again and again, with a page of rules.

Each watch of a story ends, is refused, says 410 or says nonsense, after it has shown something or not.
The rules say whether the collection is listed again or the watch is resumed, where, and after which pause.
"""

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated, Synced
from plimsoll.kube.session.errors import error_of
from plimsoll.testing.fakes import FakeClock, FakeRandomness, RememberingObserver
from plimsoll.watches.reflector import ABSENT_S, Reflector
from plimsoll.watches.watch_backoff import FIRST_S, FORBIDDEN_LAST_S, LAST_S
from watches.test_reflector import PODS, a_list, line, wire

#: What a server or a load balancer may answer, 0 for no answer.
STATUSES = (0, 400, 401, 403, 404, 405, 406, 410, 429, 500, 502, 503, 504)


class Over(Exception):
    """The story has ended."""


@dataclass(frozen=True)
class Watch:
    """How a watch goes.

    Attributes:
        end: ``ends``, ``gone`` (an event with code 410), ``nonsense``, or a status at its beginning.
        shows: Whether it shows an object before.
        lasts_s: Seconds until it ends.
    """

    end: str | int
    shows: bool = False
    lasts_s: float = 0.0


class Clock(FakeClock):
    """Pauses take no time of the test; they are remembered."""

    def __init__(self) -> None:
        super().__init__()
        self.pauses: list[float] = []

    async def sleep(self, seconds: float) -> None:
        """Remember the pause."""
        self.time += seconds
        self.pauses.append(seconds)


@dataclass
class Server:
    """Tells a story; remembers each request, with the number of pauses before it."""

    story: list[Watch]
    clock: Clock
    version: int = 10
    asked: list[tuple[str, int]] = field(default_factory=list)

    async def request(self, *_: Any, **__: Any) -> bytes:
        """A list."""
        self.asked.append(("list", len(self.clock.pauses)))
        return orjson.dumps(a_list(version=self.version))

    @asynccontextmanager
    async def stream(self, _: str, params: Any, __: float) -> AsyncIterator[Any]:
        """The next watch."""
        if not self.story:
            raise Over
        self.asked.append((f"watch {params['resourceVersion']}", len(self.clock.pauses)))
        watch = self.story.pop(0)
        if isinstance(watch.end, int):
            raise error_of("WATCH", watch.end, {})
        yield self._lines(watch)

    async def _lines(self, watch: Watch) -> AsyncIterator[list[bytes]]:
        if watch.shows:
            self.version += 1
            yield [orjson.dumps(line("ADDED", wire("p", self.version)))]
        self.clock.time += watch.lasts_s
        if watch.end == "gone":
            self.version += 1
            yield [orjson.dumps({"type": "ERROR", "object": {"code": 410, "message": "too old"}})]
        elif watch.end == "nonsense":
            yield [b"<html>"]


@dataclass
class Rules:
    """What a watch does after each end of one.

    Attributes:
        asked: The requests, each with the number of pauses before it.
        version: Where the watch resumes; "" lists again.
        newest: The server's latest version.
    """

    asked: list[tuple[str, int]] = field(default_factory=list)
    pauses: list[float] = field(default_factory=list)
    version: str = ""
    newest: int = 10
    next_s: float = FIRST_S
    was_away: bool = False
    is_heard_of: bool = False
    gone_in_a_row: int = 0

    def pauses_after(self, status: int) -> None:
        """Longer each time, from the beginning once a server that was away answers."""
        if self.is_heard_of and self.was_away:
            self.next_s = FIRST_S
        self.was_away, self.is_heard_of = status == 0, False
        self.pauses.append(0.5 * min(self.next_s, FORBIDDEN_LAST_S if status == 403 else LAST_S))
        self.next_s = min(2 * self.next_s, LAST_S)

    def ask(self) -> None:
        """List if the version is not known."""
        if not self.version:
            self.asked.append(("list", len(self.pauses)))
            self.version, self.is_heard_of = str(self.newest), True

    def go_on(self, watch: Watch) -> None:
        """List if necessary, watch, and take its end."""
        self.ask()
        self.asked.append((f"watch {self.version}", len(self.pauses)))
        if isinstance(watch.end, int):
            self.refused(watch.end)
            return
        self.is_heard_of = True
        if watch.shows:
            self.newest += 1
            self.version = str(self.newest)
        is_useful = watch.shows or watch.lasts_s >= 1
        if watch.end == "gone":
            self.newest += 1
            self.gone(is_useful=watch.shows)
            return
        if is_useful:
            self.next_s = FIRST_S
        if watch.end == "ends" and is_useful:
            self.gone_in_a_row = 0
            return
        if watch.end == "nonsense" and not watch.shows:
            self.version = ""
        self.pauses_after(200)

    def gone(self, *, is_useful: bool) -> None:
        """The first time it lists immediately."""
        self.version = ""
        self.gone_in_a_row += 1
        if self.gone_in_a_row > 1 and not is_useful:
            self.pauses_after(410)

    def refused(self, status: int) -> None:
        """Only some refusals say nothing against the version."""
        if status == 404:
            self.version, self.is_heard_of = "", True
            self.pauses.append(ABSENT_S)
        elif status == 410:
            self.gone(is_useful=False)
        else:
            if status not in (0, 401, 403, 429, 503):
                self.version = ""
            self.pauses_after(status)


async def told(story: list[Watch]) -> tuple[Server, list[Any]]:
    """The server after the story, and what was emitted."""
    clock = Clock()
    events: list[Any] = []
    server = Server(list(story), clock)
    reflector = Reflector(
        cast("Any", server),
        PODS,
        events.extend,
        clock=clock,
        randomness=FakeRandomness(),
        observer=RememberingObserver(),
    )
    with pytest.raises(Over):
        await reflector.run()
    return server, events


@given(seed=st.integers(0, 2**32))
def test_lists_watches_and_pauses_are_those_of_the_rules(seed: int) -> None:
    for number in range(6):
        draw = random.Random(f"{seed} {number}")
        story = [
            Watch(
                draw.choice((draw.choice(STATUSES), 410, "ends", "gone", "gone", "nonsense")),
                shows=draw.random() < 0.4,
                lasts_s=draw.choice((0.0, 0.0, 0.9, 1.0, 60.0)),
            )
            for _ in range(draw.randint(1, 14))
        ]

        server, events = asyncio.run(told(story))

        rules = Rules()
        for watch in story:
            rules.go_on(watch)
        rules.ask()
        assert server.asked == rules.asked, story
        assert server.clock.pauses == rules.pauses, story
        known: set[str] = set()
        for event in events:
            match event:
                case PodAdded(pod):
                    assert pod.name not in known
                    known.add(pod.name)
                case PodDeleted(pod):
                    known.remove(pod.name)
                case PodUpdated(_, pod):
                    assert pod.name in known
                case _:
                    assert isinstance(event, Synced)


@pytest.mark.parametrize("first", [Watch(410), Watch("gone"), Watch("gone", shows=True)])
def test_a_second_410_waits_and_a_third_waits_longer(first: Watch) -> None:
    """A server whose lists are older than its watches allow is not asked without a pause."""
    server, _ = asyncio.run(told([first, Watch(410), Watch(410), Watch("ends", lasts_s=5), Watch(410)]))

    assert server.clock.pauses == [0.5 * FIRST_S, FIRST_S]
    assert [what for what, _ in server.asked].count("list") == 5
