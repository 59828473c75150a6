"""States of containers as reported by the kubelet, for strategies about lifetimes.

Source: descheduler v0.36, ``podlifetime``, ``removefailedpods`` and ``removepodshavingtoomanyrestarts``.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime

from plimsoll.model.kinds.pod import ContainerStatus, Pod


def statuses_of(pod: Pod, *, init: bool = False, ephemeral: bool = False) -> Iterator[ContainerStatus]:
    """Statuses of the pod's containers, and of init and ephemeral ones on request."""
    yield from pod.status.container_statuses
    if init:
        yield from pod.status.init_container_statuses
    if ephemeral:
        yield from pod.status.ephemeral_container_statuses


def waiting_reasons(statuses: Iterable[ContainerStatus]) -> Iterator[str]:
    """The reasons why containers have not started."""
    return (each.state.waiting.reason for each in statuses if each.state.waiting is not None)


def terminated_reasons(statuses: Iterable[ContainerStatus]) -> Iterator[str]:
    """The reasons why containers have ended (and were not restarted)."""
    return (each.state.terminated.reason for each in statuses if each.state.terminated is not None)


def exit_codes(statuses: Iterable[ContainerStatus]) -> Iterator[int]:
    """The exit codes of containers that have ended."""
    return (each.state.terminated.exit_code for each in statuses if each.state.terminated is not None)


def age_s(since: datetime | None, now: datetime) -> float:
    """Seconds since a time, negative for a future time; infinite for a missing one."""
    return float("inf") if since is None else (now - since).total_seconds()
