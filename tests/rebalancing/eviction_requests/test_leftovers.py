"""Requests that no move waits for: withdrawn while their pod stands, deleted when responders have seen it."""

from typing import Any

import pytest

from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.rebalancing.eviction_requests.progress import FINAL_S, WITHDRAWN_S, Clearing, clearing


def a_request(**more: Any) -> EvictionRequest:
    return EvictionRequest("default", "web-1-record", "uid-web-1", **more)


@pytest.mark.parametrize(
    ("request_", "pod", "is_recorded", "for_s", "expected"),
    [
        pytest.param(a_request(), "stands", False, 0, Clearing.WITHDRAW, id="stands"),
        pytest.param(a_request(), "stands", True, 0, Clearing.WITHDRAW, id="stands-recorded"),
        pytest.param(a_request(is_withdrawn=True), "stands", False, 59, Clearing.LATER, id="just-withdrawn"),
        pytest.param(
            a_request(is_withdrawn=True), "stands", False, WITHDRAWN_S, Clearing.DELETE, id="withdrawn"
        ),
        pytest.param(a_request(is_evicted=True), "gone", True, 14, Clearing.LATER, id="just-evicted"),
        pytest.param(a_request(is_evicted=True), "gone", True, FINAL_S, Clearing.DELETE, id="evicted"),
        pytest.param(
            a_request(is_withdrawn=True, failure="CanceledDueToNoRequesters"),
            "stands",
            False,
            14,
            Clearing.LATER,
            id="just-canceled",
        ),
        pytest.param(
            a_request(failure="EvictionInvalid"), "stands", False, FINAL_S, Clearing.DELETE, id="failed"
        ),
        pytest.param(a_request(), "leaves", True, 99, Clearing.LATER, id="leaves"),
        pytest.param(a_request(), "leaves", False, 99, Clearing.LATER, id="leaves-unrecorded"),
        pytest.param(a_request(), "gone", True, 99, Clearing.LATER, id="gone-and-record-open"),
        pytest.param(a_request(), "gone", False, 0, Clearing.DELETE, id="gone-and-record-complete"),
        pytest.param(
            a_request(is_withdrawn=True), "gone", False, 0, Clearing.DELETE, id="gone-and-withdrawn"
        ),
    ],
)
def test_what_is_done_with_a_request(
    request_: EvictionRequest, pod: str, is_recorded: bool, for_s: float, expected: Clearing
) -> None:
    """By its own state, its pod's and its record's."""
    found = clearing(
        request_, pod_gone=pod == "gone", pod_leaves=pod == "leaves", is_recorded=is_recorded, for_s=for_s
    )

    assert found is expected
