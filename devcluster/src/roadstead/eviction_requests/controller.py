"""Creates Evictions for EvictionRequests, and activates their responders one after another.

The first request for a pod creates its Eviction, which all requests for the pod share. Its responders are
those of the pod, by priority, and then the imperative evictor. It ends when the pod no longer exists, when
all requests are withdrawn, or when no responder is left; requests have the same conditions.

Source: Kubernetes pull request 137133 ``pkg/controller/evictionrequest``, as of July 2026.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from roadstead.controllers.ownership import key_of
from roadstead.controllers.pod_state import condition_of, is_finished, with_condition
from roadstead.eviction_requests.kinds import EVICTION_REQUESTS, EVICTIONS
from roadstead.eviction_requests.responders import (
    Situation,
    conditions_of,
    ended,
    has_evicted,
    has_failed,
    next_turn,
    ordered_responders,
    wants_eviction,
)

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

REPORT_S = 5.0
"""Seconds for which a responder may still report after its pod was deleted."""
_MOST_REQUESTERS, _NAME_LENGTH = 100, 253
_AWAITING = "AwaitingEviction"


class EvictionRequestController:
    """Creates Evictions of EvictionRequests, and activates their responders."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._left: dict[str, float] = {}  #: times at which pods of Evictions were first seen deleted, by uid

    def start(self) -> None:
        """Subscribe to requests, evictions and pods."""
        api = self._context.api
        api.subscribe(EVICTION_REQUESTS, self._request_changed)
        api.subscribe(EVICTIONS, self._eviction_changed)
        api.subscribe("pods", self._pod_changed)

    # -- watch events ----------------------------------------------------------------------------------------

    def _request_changed(self, kind: EventType, request: Obj, _old: Obj | None) -> None:
        if kind != "DELETED":
            self._context.queue.add(self.reconcile_request, key_of(request))
        self._enqueue_evictions(request)

    def _eviction_changed(self, kind: EventType, eviction: Obj, _old: Obj | None) -> None:
        if kind != "DELETED":
            self._context.queue.add(self.reconcile_eviction, key_of(eviction))
        else:
            self._left.pop(_uid(eviction), None)
        for request in self._same_target(EVICTION_REQUESTS.key, eviction):
            self._context.queue.add(self.reconcile_request, key_of(request))

    def _pod_changed(self, _kind: EventType, pod: Obj, _old: Obj | None) -> None:
        target = {"spec": {"target": {"pod": {"uid": pod["metadata"]["uid"]}}}, "metadata": pod["metadata"]}
        self._enqueue_evictions(target)

    def _enqueue_evictions(self, like: Obj) -> None:
        for eviction in self._same_target(EVICTIONS.key, like):
            self._context.queue.add(self.reconcile_eviction, key_of(eviction))

    def _same_target(self, resource: str, like: Obj) -> list[Obj]:
        """The objects of a resource with the same target."""
        listed = self._context.api.list(resource, like["metadata"]["namespace"])
        return [each for each in listed if _uid(each) == _uid(like)]

    def _pod_of(self, obj: Obj) -> Obj | None:
        """The pod with the target's name, possibly one with another uid."""
        return self._context.api.find(
            "pods", obj["metadata"]["namespace"], obj["spec"]["target"]["pod"]["name"]
        )

    # -- requests --------------------------------------------------------------------------------------------

    def reconcile_request(self, key: str) -> None:
        """Validate a request, create its Eviction if it is missing, and copy the Eviction's conditions."""
        request = self._context.find(EVICTION_REQUESTS.key, key)
        if request is None or has_evicted(request) or _is_invalid(request):
            return
        pod, evictions = self._pod_of(request), self._same_target(EVICTIONS.key, request)
        problem = _problem(request, pod, has_evictions=bool(evictions))
        if problem:
            self._write(request, _failed("EvictionInvalid", problem))
            return
        relevant = _most_relevant(evictions)
        requests = self._same_target(EVICTION_REQUESTS.key, request)
        shown = []
        for name in ("TargetEvicted", "Failed"):
            found = condition_of(relevant, name) if relevant else None
            text = found or {
                "status": "False",
                "reason": _AWAITING,
                "message": "waiting for an Eviction to report on progress",
            }
            shown.append((name, text["status"], text["reason"], text.get("message", "")))
        if wants_eviction(requests) and (relevant is None or has_failed(relevant)):
            self._open(request)
        self._write(request, shown)

    def _open(self, request: Obj) -> None:
        """Create the Eviction of a request's pod."""
        meta, spec = request["metadata"], request["spec"]
        self._context.api.create(
            EVICTIONS,
            {
                "metadata": {
                    "namespace": meta["namespace"],
                    "name": self._new_name(meta["namespace"], spec["target"]["pod"]["name"]),
                    "labels": {spec["requester"]: "requester"},
                    "ownerReferences": [_owner(request)],
                },
                "spec": {"target": spec["target"]},
            },
        )

    def _new_name(self, namespace: str, pod: str) -> str:
        """``pod-1-name``, with the first unused number."""
        form = re.compile(rf"pod-([0-9]+)-{re.escape(pod)}$")
        names = [each["metadata"]["name"] for each in self._context.api.list(EVICTIONS, namespace)]
        count = max((int(found[1]) for name in names if (found := form.match(name))), default=0)
        return f"pod-{count + 1}-{pod}"[:_NAME_LENGTH]

    def _write(self, obj: Obj, text: list[tuple[str, str, str, str]], **status: object) -> None:
        """Write conditions and further fields of the status."""
        conditions = (obj.get("status") or {}).get("conditions") or []
        for name, value, reason, message in text:
            conditions = with_condition(conditions, name, value, reason, message, now=self._context.now)
        resource = (EVICTION_REQUESTS if obj["kind"] == EVICTION_REQUESTS.kind else EVICTIONS).key
        generation = obj["metadata"].get("generation", 1)
        kept = obj.get("status") or {}
        self._context.write_status(
            resource, obj, {**kept, "observedGeneration": generation, "conditions": conditions, **status}
        )

    # -- evictions -------------------------------------------------------------------------------------------

    def reconcile_eviction(self, key: str) -> None:
        """Write the requesters and responders of an Eviction, and activate the next responder."""
        eviction = self._context.find(EVICTIONS.key, key)
        if eviction is None:
            return
        requests = self._same_target(EVICTION_REQUESTS.key, eviction)
        pod = self._pod_of(eviction)
        if pod is not None and pod["metadata"]["uid"] != _uid(eviction):
            pod = None
        eviction = self._labelled(eviction, requests, pod)
        if ended(eviction):
            return
        relevant = _most_relevant(self._same_target(EVICTIONS.key, eviction))
        is_duplicate = relevant is not None and not ended(relevant) and _name(relevant) != _name(eviction)
        problem = (
            "Active Eviction already exists for the same target." if is_duplicate else _group_problem(pod)
        )
        if problem:
            self._write(eviction, _failed("EvictionInvalid", problem))
            return
        status = eviction.get("status") or {}
        now, has_left = self._context.now, pod is None or is_finished(pod)
        situation = Situation(
            is_gone=pod is None,
            is_terminal=pod is not None and is_finished(pod),
            is_cancelled=not wants_eviction(requests),
            left_at=self._left.setdefault(_uid(eviction), now) if has_left else None,
            now=now,
        )
        turn = next_turn(status, ordered_responders(status, pod), situation, REPORT_S)
        self._write(
            eviction,
            conditions_of(situation, is_waiting=turn.is_waiting, is_done=turn.is_done),
            requesters=_requesters(requests, status.get("requesters") or []),
            targetResponders=turn.targets,
            responders=turn.responders,
        )
        if turn.again_s is not None:
            self._context.queue.add(self.reconcile_eviction, key, turn.again_s)

    def _labelled(self, eviction: Obj, requests: list[Obj], pod: Obj | None) -> Obj:
        """The Eviction with a label for each participant, owned by each request."""
        meta = eviction["metadata"]
        roles = {each["spec"]["requester"]: "requester" for each in requests}
        kept = {key: role for key, role in (meta.get("labels") or {}).items() if role.endswith("responder")}
        responders = [one["name"] for one in ordered_responders({}, pod)] if pod else list(kept)
        for name in responders:
            roles[name] = "requester-responder" if name in roles else "responder"
        owners = list(meta.get("ownerReferences") or [])
        known = {one["uid"] for one in owners}
        owners += [
            _owner(each)
            for each in requests
            if each["metadata"]["uid"] not in known and "deletionTimestamp" not in each["metadata"]
        ]
        if roles == (meta.get("labels") or {}) and owners == (meta.get("ownerReferences") or []):
            return eviction
        if not requests:
            return eviction  # the garbage collector deletes it
        changed = {**eviction, "metadata": {**meta, "labels": roles, "ownerReferences": owners}}
        return self._context.api.update(EVICTIONS, changed)


def _uid(obj: Obj) -> str:
    uid: str = obj["spec"]["target"]["pod"]["uid"]
    return uid


def _name(obj: Obj) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _owner(request: Obj) -> Obj:
    meta = request["metadata"]
    return {
        "apiVersion": EVICTION_REQUESTS.api_version,
        "kind": EVICTION_REQUESTS.kind,
        "name": meta["name"],
        "uid": meta["uid"],
    }


def _failed(reason: str, message: str) -> list[tuple[str, str, str, str]]:
    return [("Failed", "True", reason, message), ("TargetEvicted", "False", "EvictionFailed", "")]


def _is_invalid(request: Obj) -> bool:
    failed = condition_of(request, "Failed") or {}
    return failed.get("status") == "True" and failed.get("reason") == "EvictionInvalid"


def _problem(request: Obj, pod: Obj | None, *, has_evictions: bool) -> str:
    """The reason why a request is invalid, "" if it is valid."""
    uid = _uid(request)
    if pod is None:
        return "" if has_evictions else "Target pod not found."
    found = pod["metadata"]["uid"]
    if found != uid and not has_evictions:
        return f"Target pod UID mismatch: expected {uid}, got {found}."
    return _group_problem(pod)


def _group_problem(pod: Obj | None) -> str:
    """Pods of a PodGroup are not evicted one by one."""
    if pod is None or not pod["spec"].get("schedulingGroup"):
        return ""
    return "Target pod references a SchedulingGroup. Eviction is currently not supported."


def _most_relevant(evictions: list[Obj]) -> Obj | None:
    """The Eviction that has evicted, else the oldest active one, else the last failed one."""
    by_age = sorted(evictions, key=lambda one: (one["metadata"]["creationTimestamp"], _name(one)))
    evicted = [each for each in by_age if has_evicted(each)]
    active = [each for each in by_age if not ended(each)]
    return next(iter(evicted[-1:] or active[:1] or by_age[-1:]), None)


def _requesters(requests: list[Obj], before: list[Obj]) -> list[Obj]:
    """The requesters of the Eviction; those that have not withdrawn come first."""
    present = sorted(
        requests,
        key=lambda one: (
            "deletionTimestamp" in one["metadata"],
            one["spec"]["intent"] != "Eviction",
            one["metadata"]["creationTimestamp"],
            one["spec"]["requester"],
        ),
    )
    merged: dict[str, str] = {}
    for one in present:
        intent = "Withdrawn" if "deletionTimestamp" in one["metadata"] else one["spec"]["intent"]
        merged.setdefault(one["spec"]["requester"], intent)
    for old in before:
        merged.setdefault(old["name"], "Withdrawn")
    return [{"name": name, "intent": intent} for name, intent in merged.items()][:_MOST_REQUESTERS]
