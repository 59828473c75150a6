"""Compares a watch with a dictionary: objects made again, repeated, late, and no longer readable."""

from typing import Any, cast

import orjson
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.cluster.watch_events import PodAdded, PodDeleted, PodUpdated
from plimsoll.testing.fakes import FakeClock, FakeRandomness, RememberingObserver
from plimsoll.watches.reflector import Reflector
from watches.test_reflector import PODS, wire

#: What is unreadable differs: only the specification, or the status next to it.
BROKEN: tuple[dict[str, Any], ...] = (
    {"spec": {"containers": 7}},
    {"spec": {"priority": "high"}},
    {"status": {"phase": "Running"}, "spec": []},
)

lines = st.lists(
    st.tuples(
        st.sampled_from(("ADDED", "MODIFIED", "MODIFIED", "DELETED")),
        st.sampled_from("ab"),
        st.sampled_from(("u1", "u2")),
        st.integers(1, 3),
        st.sampled_from((None, None, *BROKEN)),
    ),
    max_size=12,
)


@settings(max_examples=100)
@given(story=lines, cut=st.integers(0, 12))
def test_subscribers_know_what_is_readable_and_nothing_else(story: Any, cut: int) -> None:
    """In one batch or two: each event fits to what they knew, and each object is the server's latest one."""
    reflector = Reflector(
        cast("Any", None),
        PODS,
        lambda _: None,
        clock=FakeClock(),
        randomness=FakeRandomness(),
        observer=RememberingObserver(),
    )
    sent = [
        orjson.dumps({"type": kind, "object": wire(name, version, uid, **(broken or {}))})
        for kind, name, uid, version, broken in story
    ]
    known: dict[str, tuple[str, str]] = {}
    for some in (sent[:cut], sent[cut:]):
        for event in reflector._decoded(some):
            match event:
                case PodAdded(pod):
                    assert pod.name not in known
                    known[pod.name] = (pod.uid, pod.metadata.resource_version)
                case PodUpdated(old, pod):
                    assert known[old.name][0] == old.uid == pod.uid
                    known[pod.name] = (pod.uid, pod.metadata.resource_version)
                case PodDeleted(pod):
                    assert known.pop(pod.name)
                case _:
                    raise AssertionError(event)

    expected: dict[str, tuple[str, str]] = {}
    for kind, name, uid, version, broken in story:
        expected.pop(name, None)
        if kind != "DELETED" and broken is None:
            expected[name] = (uid, str(version))
    assert known == expected
