"""Evicts pods through the Eviction API, as the last responder of every Eviction.

Source: Kubernetes pull request 137396 ``pkg/controller/imperativeevictionresponder``, as of July 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import is_finished, is_terminating, phase_of
from roadstead.eviction_requests.kinds import EVICTIONS
from roadstead.eviction_requests.responders import IMPERATIVE
from roadstead.schemas.timestamps import to_seconds, to_timestamp
from roadstead.store.api import DeleteOptions, StatusError, Write
from roadstead.store.subresources import evict

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

FIRST_RETRY_S, LAST_RETRY_S = 5.0, 600.0
HEARTBEAT_S = 180.0
"""Seconds between two heartbeats."""
_ATTEMPTS = re.compile(r"\(attempts=(\d+)\)")


class ImperativeEvictor:
    """Evicts pods whose other responders have finished."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._tried: dict[str, float] = {}

    def start(self) -> None:
        """Subscribe to evictions and pods."""
        self._context.api.subscribe(EVICTIONS, self._eviction_changed)
        self._context.api.subscribe("pods", self._pod_changed)

    def _eviction_changed(self, kind: EventType, eviction: Obj, _old: Obj | None) -> None:
        if kind == "DELETED":
            self._tried.pop(eviction["spec"]["target"]["pod"]["uid"], None)
        else:
            self._context.queue.add(self.reconcile, key_of(eviction))

    def _pod_changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        if kind != "DELETED" and not is_terminating(pod) and not is_finished(pod):
            return
        for eviction in self._context.api.list(EVICTIONS, pod["metadata"]["namespace"]):
            if eviction["spec"]["target"]["pod"]["uid"] == pod["metadata"]["uid"]:
                self._context.queue.add(self.reconcile, key_of(eviction))

    def reconcile(self, key: str) -> None:
        """Act if this responder is active, and report."""
        eviction = self._context.find(EVICTIONS.key, key)
        if eviction is None:
            return
        status = eviction.get("status") or {}
        targets, reports = status.get("targetResponders") or [], status.get("responders") or []
        mine = next((one for one in targets if one["name"] == IMPERATIVE), None)
        report = next((one for one in reports if one["name"] == IMPERATIVE), None)
        if mine is None or mine["state"] != "Active" or report is None or "completionTime" in report:
            return
        target = eviction["spec"]["target"]["pod"]
        pod = self._context.api.find("pods", eviction["metadata"]["namespace"], target["name"])
        if pod is not None and pod["metadata"]["uid"] != target["uid"]:
            pod = None
        news, again_s = self._act(pod, target["name"], report)
        changed = {**report, **news}
        now = self._context.now
        silent = now - to_seconds(report["heartbeatTime"]) if "heartbeatTime" in report else HEARTBEAT_S
        if changed != report or silent >= HEARTBEAT_S - 1:
            changed["heartbeatTime"] = to_timestamp(now)
            responders = [changed if one["name"] == IMPERATIVE else one for one in reports]
            self._context.write_status(EVICTIONS.key, eviction, {**status, "responders": responders})
        if again_s is not None:
            self._context.queue.add(self.reconcile, key, min(again_s, HEARTBEAT_S))

    def _act(self, pod: Obj | None, name: str, report: Obj) -> tuple[Obj, float | None]:
        """Evict the pod unless it is being deleted; the report, and when to reconcile again."""
        now = to_timestamp(self._context.now)
        quoted = f'"{name}" pod'
        if pod is None:
            message = f"{quoted} has been deleted and fully terminated"
            return {"message": message, "completionTime": now, "expectedCompletionTime": now}, None
        if is_finished(pod):
            message = f'{quoted} has been fully terminated (pod phase="{phase_of(pod)}")'
            return {"message": message, "completionTime": now, "expectedCompletionTime": now}, None
        if is_terminating(pod):
            due = max(pod["metadata"]["deletionTimestamp"], now)
            message = f"{quoted} has been been marked for deletion and is being terminated gracefully"
            return {"message": message, "expectedCompletionTime": due}, HEARTBEAT_S
        return self._evict(pod, quoted, report.get("message", ""))

    def _evict(self, pod: Obj, quoted: str, said: str) -> tuple[Obj, float | None]:
        meta = pod["metadata"]
        found = _ATTEMPTS.search(said)
        attempts = int(found[1]) if found else 0
        tried = self._tried.get(meta["uid"])
        if tried is not None:
            left = tried + _backoff(max(attempts - 1, 0)) - self._context.now
            if left > 0:
                return {}, left
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": meta["name"]}}
        try:
            evict(
                self._context.api,
                (meta["namespace"], meta["name"]),
                body,
                Write(manager="imperative-eviction-responder-controller"),
                DeleteOptions(uid=meta["uid"]),
            )
        except StatusError as error:
            self._tried[meta["uid"]] = self._context.now
            message = (
                f"{quoted} deletion via the /eviction subresource failed (attempts={attempts + 1}): {error}"
            )
            return {"message": message[:4000]}, _backoff(attempts)
        self._tried.pop(meta["uid"], None)
        message = f"{quoted} has been been marked for deletion via the /eviction subresource"
        return {"message": f"{message} and will be terminated gracefully"}, None


def _backoff(attempts: int) -> float:
    return min(FIRST_RETRY_S * 2.0 ** min(attempts, 16), LAST_RETRY_S)
