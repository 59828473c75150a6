"""Reads usage of nodes and pods from the metrics API: metrics.k8s.io/v1 where it is served, else v1beta1.

An invalid item (no time, no amount, a negative or an absurd amount) is left out; the others count.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import datetime
from typing import Any

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS
from plimsoll.kube.session.errors import APIError, NotFound, Unauthorized, answer_of, readable
from plimsoll.kube.session.session import Session
from plimsoll.model.quantity import nanos
from plimsoll.ports.observer import Observer
from plimsoll.ports.usage import UsageReading, result_of
from plimsoll.ports.writes import WriteOutcome, WriteResult

GROUP = "/apis/metrics.k8s.io"

#: Supported versions in order of preference; the last one is assumed where discovery is forbidden.
VERSIONS = ("v1", "v1beta1")


class UsageMeter:
    """Reads the metrics API.

    The version is discovered at the first reading, and again after the API was gone.
    """

    def __init__(self, session: Session, observer: Observer | None = None) -> None:
        self._session = session
        self._observer = observer or Observer()
        self._version = ""

    async def nodes(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Each node's usage, keyed by name."""
        return await self._read("nodes", _node_reading)

    async def pods(self) -> tuple[WriteResult, Sequence[UsageReading]]:
        """Each pod's usage, keyed by ``namespace/name``."""
        return await self._read("pods", _pod_reading)

    async def _read(
        self, resource: str, reading: Callable[[Mapping[str, Any]], UsageReading]
    ) -> tuple[WriteResult, Sequence[UsageReading]]:
        answer, readings = await self._listed(resource, reading)
        self._observer.usage_asked(KUBERNETES_METRICS, result_of(answer))
        return answer, readings

    async def _listed(
        self, resource: str, reading: Callable[[Mapping[str, Any]], UsageReading]
    ) -> tuple[WriteResult, Sequence[UsageReading]]:
        try:
            version = self._version or await self._discovered()
            listed = await self._session.object("GET", f"{GROUP}/{version}/{resource}")
        except APIError as exc:
            if isinstance(exc, NotFound):
                self._version = ""
            return answer_of(exc), ()
        self._version = version
        found = []
        items = listed.get("items")
        for item in items if isinstance(items, list) else ():
            with suppress(AttributeError, KeyError, OverflowError, TypeError, ValueError):
                one = reading(item)
                if one.is_sound:
                    found.append(one)
        return WriteResult(WriteOutcome.DONE), found

    async def _discovered(self) -> str:
        """The version to read.

        Raises:
            APIError: The group is not served, or the server did not respond.
        """
        attempt = f"GET {GROUP}"
        try:
            group = await self._session.object("GET", GROUP)
        except Unauthorized as exc:
            if exc.status == 403:
                return VERSIONS[-1]
            raise
        with readable(attempt):
            served = [each["version"] for each in group["versions"]]
        for version in VERSIONS:
            if version in served:
                return version
        raise NotFound(attempt, message="none of its versions is known")


def _node_reading(item: Mapping[str, Any]) -> UsageReading:
    return UsageReading(str(item["metadata"]["name"]), _usage(item["usage"]), _moment(item), _window_s(item))


def _pod_reading(item: Mapping[str, Any]) -> UsageReading:
    total: dict[str, int] = {}
    for container in item["containers"]:
        for name, amount in _usage(container["usage"]).items():
            total[name] = total.get(name, 0) + amount
    meta = item["metadata"]
    return UsageReading(f"{meta['namespace']}/{meta['name']}", total, _moment(item), _window_s(item))


def _usage(given: Mapping[str, Any]) -> dict[str, int]:
    found = {name: nanos(given[name]) for name in ("cpu", "memory")}
    if min(found.values()) < 0:
        raise ValueError("nothing uses less than nothing")
    return found


def _moment(item: Mapping[str, Any]) -> float:
    moment = datetime.fromisoformat(item["timestamp"])
    if moment.tzinfo is None:
        raise ValueError("a time without a zone")
    return moment.timestamp()


def _window_s(item: Mapping[str, Any]) -> float:
    """Seconds over which the usage is averaged; 0 if unknown."""
    try:
        return duration_s(item["window"])
    except (KeyError, OverflowError, TypeError, ValueError):
        return 0.0
