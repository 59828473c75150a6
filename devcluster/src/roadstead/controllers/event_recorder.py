"""Records the Events of controllers and kubelets, which ``kubectl describe`` shows.

As upstream, equal events of one object increment the count of one Event, and a token bucket limits the
events of each object, so a ReplicaSet of a thousand pods does not write a thousand Events.

Source: client-go v1.36 ``tools/record/events_cache.go`` (burst 25, one more every five minutes).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.schemas.timestamps import to_timestamp
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

BURST = 25
REFILL_S = 300.0
_REMEMBERED = 4096


class EventRecorder:
    """Writes Events.

    Args:
        api: the API that stores them.
        clock: the time in seconds since the epoch.
    """

    def __init__(self, api: Api, clock: Callable[[], float]) -> None:
        self._api = api
        self._clock = clock
        self._counted: dict[tuple[str, str, str, str], str] = {}
        self._tokens: dict[tuple[str, str], tuple[float, float]] = {}
        self._written = 0

    def record(self, component: str, obj: Obj, reason: str, message: str, kind: str = "Normal") -> None:
        """Record an event about an object; as upstream, an event that cannot be written is lost.

        It asks no webhooks: the reconcile that records it would be repeated for it.

        Args:
            component: its source, such as "deployment-controller".
            obj: its subject, with ``kind`` and ``apiVersion``.
            reason: one word.
            message: for people.
            kind: Normal or Warning.
        """
        with self._api.trying(None):
            self._record(component, obj, reason, message, kind)

    def _record(self, component: str, obj: Obj, reason: str, message: str, kind: str) -> None:
        metadata = obj["metadata"]
        uid = metadata.get("uid", "")
        if not self._take_token((component, uid)):
            return
        now = to_timestamp(self._clock())
        namespace = metadata.get("namespace") or "default"
        same = (component, uid, reason, message)
        try:
            if (name := self._counted.get(same)) and self._count_again(namespace, name, now):
                return
            self._written += 1
            name = f"{metadata['name']}.{int(self._clock() * 1e6):x}{self._written & 0xFFFF:04x}"
            self._api.create(
                "events",
                {
                    "apiVersion": "v1",
                    "kind": "Event",
                    "metadata": {"name": name, "namespace": namespace},
                    "involvedObject": {
                        "kind": obj.get("kind", ""),
                        "namespace": metadata.get("namespace", ""),
                        "name": metadata["name"],
                        "uid": uid,
                        "apiVersion": obj.get("apiVersion", ""),
                        "resourceVersion": metadata.get("resourceVersion", ""),
                    },
                    "reason": reason,
                    "message": message,
                    "source": {"component": component},
                    "firstTimestamp": now,
                    "lastTimestamp": now,
                    "count": 1,
                    "type": kind,
                    "eventTime": None,
                    "reportingComponent": component,
                    "reportingInstance": "",
                },
            )
        except StatusError:
            return
        if len(self._counted) >= _REMEMBERED:
            del self._counted[next(iter(self._counted))]
        self._counted[same] = name

    def _count_again(self, namespace: str, name: str, now: str) -> bool:
        """Increment the count of an earlier Event; False if it was deleted."""
        try:
            event = self._api.get("events", namespace, name)
            again = {"count": event.get("count", 1) + 1, "lastTimestamp": now}
            self._api.patch("events", namespace, name, again)
        except StatusError:
            return False
        return True

    def _take_token(self, source: tuple[str, str]) -> bool:
        """Whether the token bucket of an object allows one more event."""
        now = self._clock()
        tokens, since = self._tokens.pop(source, (float(BURST), now))
        tokens = min(float(BURST), tokens + (now - since) / REFILL_S)
        if len(self._tokens) >= _REMEMBERED:
            del self._tokens[next(iter(self._tokens))]
        self._tokens[source] = (tokens - 1 if tokens >= 1 else tokens, now)
        return tokens >= 1
