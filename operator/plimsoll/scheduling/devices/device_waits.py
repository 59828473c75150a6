"""Measures how long pods wait for drivers to prepare their devices.

Source: kube-scheduler v1.36, ``dynamicresources.go`` (``PreBind``), ``pkg/scheduler/metrics/metrics.go``.
"""

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from plimsoll.framework import PodInfo
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.ports.clock import Clock
from plimsoll.ports.events import EventNote, EventRecorder
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import pod_reference


class WaitOutcome(StrEnum):
    """How a wait ended."""

    SUCCESS = "success"
    FAILURE = "failure"
    TIMEOUT = "timeout"


class DeviceWait(Struct, frozen=True):
    """The wait of one pod.

    Attributes:
        drivers: The drivers that must prepare devices; empty for most pods.
    """

    profile: str
    drivers: tuple[str, ...]
    began: float


class DeviceWaits:
    """Reports waits for drivers to users and metrics."""

    def __init__(self, recorder: EventRecorder, clock: Clock, observer: Observer) -> None:
        self._recorder = recorder
        self._clock = clock
        self._observer = observer

    def begin(self, pod: PodInfo, node: str, claims: Iterable[ResourceClaim]) -> DeviceWait:
        """Begin to measure; the claims were written."""
        profile = pod.pod.spec.scheduler_name
        drivers = {
            result.driver
            for claim in claims
            if claim.status.allocation is not None
            for result in claim.status.allocation.devices.results
            if result.binding_conditions
        }
        if drivers:
            text = f"waiting for binding conditions for device on node {node}"
            note = EventNote(
                pod_reference(pod.pod), "BindingConditionsPending", "Scheduling", text, reporter=profile
            )
            self._recorder.record(note)
        return DeviceWait(profile, tuple(sorted(drivers)), self._clock.monotonic())

    def end(self, wait: DeviceWait, outcome: WaitOutcome) -> None:
        """End the measurement."""
        for driver in wait.drivers:
            seconds = self._clock.monotonic() - wait.began
            self._observer.devices_awaited(wait.profile, driver, outcome.value, seconds)
