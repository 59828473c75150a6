"""Kinds that many clusters lack are watched once the server has them and the operator may read them."""

from typing import Any

import pytest

from plimsoll.access.rights import READ_AUTOSCALERS, Access
from plimsoll.app.optional_kinds.unwatched import ASK_S, RETRY_S, unwatched
from plimsoll.ports.writes import DONE, WriteOutcome, WriteResult
from plimsoll.testing.fakes import FakeAccessReviewer, FakeClock, RememberingObserver

GONE = WriteResult(WriteOutcome.GONE, "/apis/autoscaling.k8s.io/v1 does not serve verticalpodautoscalers")
LATE = WriteResult(WriteOutcome.UNKNOWN, "no response")
MISSING = (
    "the operator may not list verticalpodautoscalers.autoscaling.k8s.io or watch"
    " verticalpodautoscalers.autoscaling.k8s.io; apply deploy/components/vertical-pod-autoscalers"
    " (chart: verticalPodAutoscalers: true)"
)


@pytest.mark.parametrize(
    ("offered", "denied", "expected"),
    [
        pytest.param(GONE, set(READ_AUTOSCALERS), ("", ASK_S), id="not served: no action, no words"),
        pytest.param(LATE, set(), ("no response", RETRY_S), id="no response: soon again"),
        pytest.param(DONE, set(READ_AUTOSCALERS), (MISSING, ASK_S), id="not allowed: what to apply"),
        pytest.param(DONE, set(), None, id="served and allowed"),
    ],
)
async def test_why_kinds_are_not_watched(offered: WriteResult, denied: Any, expected: Any) -> None:
    """With a sentence if anyone can do something about it."""
    reviewer = FakeAccessReviewer()
    reviewer.denied |= denied
    access = Access(reviewer, FakeClock(), RememberingObserver())

    found = await unwatched(offered, READ_AUTOSCALERS, access)
    assert (found and (found.problem, found.pause_s)) == expected
