"""Compares what an operator believes of its rights, and when it asks, with the list of what was answered.

Rights come and go in all namespaces and in one, answers stay out and take their time, requests are refused,
and policies change, also while a review is under way.
"""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.access.rights import (
    BIND,
    EVICT,
    MISSING_S,
    POD_STATUS,
    PROMPT_S,
    REVIEW_S,
    SPACING_S,
    TAINT,
    Access,
    Right,
)
from plimsoll.ports.observer import Observer
from plimsoll.testing.fakes import FakeClock, settled

#: Those that come and go; the others are always granted.
RIGHTS = (BIND, EVICT, TAINT[1])
PLACES = ("", "a", "b")
#: The last one has no namespaces: a right there is one for nothing.
CLUSTER_WIDE = TAINT[1]

steps = st.one_of(
    st.tuples(
        st.just("server"),
        st.sampled_from(RIGHTS),
        st.sampled_from(PLACES),
        st.sampled_from((True, False, False, None)),
    ),
    st.tuples(st.just("needs"), st.sampled_from(RIGHTS), st.sampled_from(PLACES)),
    st.tuples(st.sampled_from(("refused", "policy"))),
    st.tuples(st.just("waits"), st.sampled_from((0.5, 1.0, 3.0, 14.0, 20.0, 31.0, 1800.0, REVIEW_S))),
)


class Server:
    """Answers reviews as it was when it was asked, and keeps what it said."""

    def __init__(self, clock: FakeClock, takes_s: float) -> None:
        self.clock, self.takes_s, self.began = clock, takes_s, clock.time
        self.answers: dict[tuple[Right, str], bool | None] = {}
        self.changed: dict[tuple[Right, str], float] = {}
        self.full: list[float] = []  #: when all rights were asked for
        self.said: list[tuple[Right, str, bool | None]] = []

    async def review(self, right: Right, namespace: str) -> bool | None:
        """Whether a right is granted."""
        answer = self.answers.get((right, namespace), not namespace)
        if right == POD_STATUS:
            self.full.append(self.clock.time)
        if self.takes_s:
            await self.clock.sleep(self.takes_s)
        self.said.append((right, namespace, answer))
        return answer

    def settled(self, granted_s: float, denied_s: float) -> list[tuple[Right, bool]]:
        """Its answers about rights in all namespaces that are older than that."""
        found = []
        for right in RIGHTS:
            answer, since = self.answers.get((right, ""), True), self.changed.get((right, ""), self.began)
            if answer is not None and self.clock.time - since > (granted_s if answer else denied_s):
                found.append((right, answer))
        return found


class Believed:
    """What the answers say in order: a missing answer changes nothing, a right for all ends those for one."""

    def __init__(self) -> None:
        self.denied: set[Right] = set()
        self.within: dict[tuple[Right, str], bool] = {}
        self.granted = 0.0
        self.changes = self.read = 0

    def take(self, said: list[tuple[Right, str, bool | None]], now: float) -> None:
        """Read what a review has added."""
        before = set(self.denied), dict(self.within)
        for right, namespace, answer in said[self.read :]:
            if answer is None:
                continue
            if namespace:
                self.granted = now if answer and not self.within.get((right, namespace)) else self.granted
                self.within[right, namespace] = answer
            elif answer:
                self.granted = now if right in self.denied else self.granted
                self.denied.discard(right)
                self.within = {key: each for key, each in self.within.items() if key[0] != right}
            else:
                self.denied.add(right)
        self.read = len(said)
        self.changes += before != (self.denied, self.within)

    def allows(self, right: Right, namespace: str) -> bool:
        """Whether a right may be used."""
        is_within = bool(namespace) and right != CLUSTER_WIDE and self.within.get((right, namespace), False)
        return right not in self.denied or is_within


def check_in_time(server: Server, believed: Believed, asked: list[tuple[float, float]]) -> None:
    """Compare when all were reviewed with when that was due, and lasting answers with what is believed."""
    slack_s = 4 * server.takes_s  # two reviews of two steps each
    for since, until in asked:
        is_early = server.clock.time <= until + slack_s
        assert is_early or any(since <= each <= until + slack_s for each in server.full)
    for right, answer in server.settled(MISSING_S + slack_s, REVIEW_S + slack_s):
        assert (right in believed.denied) is not answer


async def told(story: list[Any], takes_s: float) -> None:
    """Play a story of steps, and compare after each."""
    clock = FakeClock()
    server, believed = Server(clock, takes_s), Believed()
    access = Access(server, clock, Observer())
    review = access.review

    async def noted(**given: bool) -> None:
        await review(**given)
        believed.take(server.said, clock.now())

    access.review = noted  # type: ignore[method-assign] # the same, and noted
    asked: list[tuple[float, float]] = []  #: when all rights were to be reviewed, and by when
    causes, wanted = 1, set[tuple[Right, str]]()
    task = asyncio.create_task(access.run())
    await clock.advance(2 * takes_s)
    for kind, *what in [*story, ("waits", 40.0)]:
        now = clock.time
        match kind:
            case "server":
                right, place, server.answers[right, place] = what
                server.changed[right, place] = now
            case "needs":
                right, place = what
                if place and right in believed.denied - {CLUSTER_WIDE} and (right, place) not in wanted:
                    wanted.add((right, place))
                    causes += 1
                    asked.append((now, now))
                assert access.allows(right, place) == believed.allows(right, place)
            case "refused":
                causes += 1
                asked.append((now, now + SPACING_S + takes_s))
                access.request_answered("POST", 409, 0.1)
                access.request_answered("POST", 403, 0.1)
            case "policy":
                causes += 1
                asked.append((now, now + PROMPT_S))
                access.look_again()
            case "waits":
                await clock.advance(what[0])
        await settled()

        for right in RIGHTS:
            assert access.allows(right) == believed.allows(right, "")
        for right, place in wanted:
            assert access.allows(right, place) == believed.allows(right, place)
        assert access.is_complete == (not believed.denied)
        assert (access.granted, access.changed.count) == (believed.granted, believed.changes)

        check_in_time(server, believed, asked)
        # Each review of all has a cause.
        silent = sum(answer is None for *_, answer in server.said)
        assert len(server.full) <= causes + silent + (clock.time - server.began) // REVIEW_S
    task.cancel()


#: A refusal soon after a review, while a right is missing; and a policy that changes during a review.
REFUSED_SOON = [("server", EVICT, "", False), ("policy",), ("waits", 3.0), ("refused",)]
CHANGED_MEANWHILE = [("policy",), ("waits", 1.0), ("waits", 0.5), ("policy",)]


@settings(max_examples=60)
@example(REFUSED_SOON, 0.0)
@example(CHANGED_MEANWHILE, 2.0)
@given(st.lists(steps, max_size=12), st.sampled_from((0.0, 0.0, 2.0)))
def test_rights_are_those_of_the_last_answers_and_are_asked_for_in_time(
    story: list[Any], takes_s: float
) -> None:
    asyncio.run(told(story, takes_s))
