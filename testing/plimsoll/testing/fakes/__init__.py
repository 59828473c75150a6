"""Fakes of the ports in :mod:`plimsoll.ports`: time that a test controls, an API server that complies.

A fake behaves like a well-behaved dependency and records its calls; a test sets the results.
"""

from plimsoll.testing.fakes.clock import FakeClock, FakeRandomness, InlineComputer, settled
from plimsoll.testing.fakes.evictions import (
    FakeCosts,
    FakeEvictor,
    FakeNodeCloser,
    FakeRecords,
    FakeRollouts,
)
from plimsoll.testing.fakes.observer import FakeRecorder, RememberingObserver, a_book
from plimsoll.testing.fakes.pod_writes import (
    DONE,
    FakeBinder,
    FakePods,
    FakePreemptor,
    FakeStatuses,
    FakeVolumes,
)
from plimsoll.testing.fakes.resource_claims import FakeClaims
from plimsoll.testing.fakes.services import (
    FakeAccessReviewer,
    FakeExtenders,
    FakeLeases,
    FakeMeter,
    FakeNamespacedStatuses,
    FakePolicyStatuses,
)

__all__ = [
    "DONE",
    "FakeAccessReviewer",
    "FakeBinder",
    "FakeClaims",
    "FakeClock",
    "FakeCosts",
    "FakeEvictor",
    "FakeExtenders",
    "FakeLeases",
    "FakeMeter",
    "FakeNamespacedStatuses",
    "FakeNodeCloser",
    "FakePods",
    "FakePolicyStatuses",
    "FakePreemptor",
    "FakeRandomness",
    "FakeRecorder",
    "FakeRecords",
    "FakeRollouts",
    "FakeStatuses",
    "FakeVolumes",
    "InlineComputer",
    "RememberingObserver",
    "a_book",
    "settled",
]
