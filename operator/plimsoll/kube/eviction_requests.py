"""Creates and reads EvictionRequests (lifecycle.k8s.io/v1alpha1).

Each requester creates its own request. The server's controller combines all requests for a pod into one
Eviction and labels it with the participants.

Source: k8s.io/api after v0.37.0-beta.0 ``lifecycle/v1alpha1/types.go``; KEP-4563.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Annotated, Any
from urllib.parse import quote

import msgspec

from plimsoll.cluster.watched_resources import WatchedResource
from plimsoll.kube.reflector import Reflector
from plimsoll.kube.session.discovery import offered
from plimsoll.kube.session.errors import APIError, Conflict, answer_of
from plimsoll.kube.session.session import Session
from plimsoll.model.decoding import DecodeError, convert
from plimsoll.model.kinds.metadata import ObjectMeta
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.watch_event import (
    ObjectAdded,
    ObjectDeleted,
    ObjectUpdated,
    Synced,
    WatchEvent,
)
from plimsoll.ports.clock import Clock, Randomness
from plimsoll.ports.eviction_requests import EvictionRequest
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome, WriteResult

GROUP = "/apis/lifecycle.k8s.io/v1alpha1"

#: Our name as a requester in the protocol; also the key of a label.
REQUESTER = "plimsoll.dev/rebalancing"

#: The label of our requests.
OURS = ("app.kubernetes.io/managed-by", "plimsoll")

_NEEDED = ("evictionrequests", "evictions")
_EVICTION, _WITHDRAWN = "Eviction", "Withdrawn"
_NOT_FOUND = 404


class _PodTarget(msgspec.Struct, frozen=True, kw_only=True):
    uid: str = ""


class _Target(msgspec.Struct, frozen=True, kw_only=True):
    pod: _PodTarget | None = None


class _Spec(msgspec.Struct, frozen=True, kw_only=True):
    target: _Target = _Target()
    requester: str = ""
    intent: str = ""


class _Condition(msgspec.Struct, frozen=True, kw_only=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _Turn(msgspec.Struct, frozen=True, kw_only=True):
    name: str = ""
    state: str = ""


class _Responder(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    name: str = ""
    message: str = ""
    expected_completion_time: Annotated[datetime, msgspec.Meta(tz=True)] | None = None


class _Status(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    observed_generation: int | None = None
    conditions: tuple[_Condition, ...] = ()
    target_responders: tuple[_Turn, ...] = ()
    responders: tuple[_Responder, ...] = ()


class _Document(msgspec.Struct, frozen=True, kw_only=True):
    metadata: ObjectMeta = ObjectMeta()
    spec: _Spec = _Spec()
    status: _Status = _Status()


class EvictionRequestObject(_Document, frozen=True):
    """An EvictionRequest as the API serves it."""


class LifecycleEviction(_Document, frozen=True):
    """The server's Eviction (lifecycle.k8s.io), which combines all requests for one pod."""


class PodEvictionRequester:
    """Creates, withdraws, lists, watches and deletes our EvictionRequests.

    Args:
        observer: Notified of watches that fail and of objects that cannot be read.
    """

    def __init__(self, session: Session, clock: Clock, randomness: Randomness, observer: Observer) -> None:
        self._session = session
        self._clock = clock
        self._randomness = randomness
        self._observer = observer

    async def offered(self) -> WriteResult:
        """Whether discovery lists the API."""
        return await offered(self._session, GROUP, _NEEDED)

    async def request(self, pod: Pod, name: str) -> WriteResult:
        """Create the request; an existing one with an equal spec is ours."""
        body = {
            "apiVersion": "lifecycle.k8s.io/v1alpha1",
            "kind": "EvictionRequest",
            "metadata": {"name": name, "namespace": pod.namespace, "labels": dict([OURS])},
            "spec": {
                "target": {"pod": {"name": pod.name, "uid": pod.uid}},
                "requester": REQUESTER,
                "intent": _EVICTION,
            },
        }
        path = f"{GROUP}/namespaces/{pod.namespace}/evictionrequests"
        try:
            await self._session.request("POST", path, body)
        except Conflict as exc:
            answer, ours = await self.list()
            made = EvictionRequest(pod.namespace, name, pod.uid)
            if any((each.key, each.pod_uid) == (made.key, made.pod_uid) for each in ours):
                return WriteResult(WriteOutcome.DONE)
            return answer_of(exc) if answer.is_done else answer
        except APIError as exc:
            return answer_of(exc)
        return WriteResult(WriteOutcome.DONE)

    async def withdraw(self, request: EvictionRequest) -> WriteResult:
        """Set the intent to Withdrawn."""
        body = {"spec": {"intent": _WITHDRAWN}}
        return await self._session.merge(_path(request), body)

    async def drop(self, request: EvictionRequest) -> WriteResult:
        """Delete the request."""
        return await self._session.write("DELETE", _path(request))

    async def list(self) -> tuple[WriteResult, Sequence[EvictionRequest]]:
        """Our requests, each with the state of its Eviction."""
        try:
            requests = [each for each in await self._listed(REQUESTS) if _is_ours(each)]
            evictions = await self._listed(EVICTIONS) if requests else []
        except APIError as exc:
            return answer_of(exc), ()
        by_uid = _under_way(evictions)
        return WriteResult(WriteOutcome.DONE), [_read(each, by_uid) for each in requests]

    async def _listed(self, resource: WatchedResource) -> Sequence[Any]:
        body = await self._session.object(
            "GET", f"{resource.path}?labelSelector={quote(resource.selector, safe='')}"
        )
        items = body.get("items")
        found: list[Any] = []
        for each in items if isinstance(items, list) else ():
            try:
                found.append(convert(resource.kind, each))
            except DecodeError as exc:
                self._observer.object_skipped(resource.name, "", str(exc))
        return found

    async def watch(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> WriteResult:
        """Mirror our requests and their Evictions until the server stops serving the API."""
        mirror = _Mirror(changed)
        observer = _MirrorObserver(self._observer)
        reflectors = [
            Reflector(
                self._session,
                resource,
                mirror.take,
                clock=self._clock,
                randomness=self._randomness,
                observer=observer,
            )
            for resource in (REQUESTS, EVICTIONS)
        ]
        tasks: Sequence[asyncio.Future[Any]] = [
            asyncio.create_task(each.run(), name=f"watch {each.resource.name}") for each in reflectors
        ]
        try:
            await asyncio.wait([*tasks, observer.absent], return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()  # it ends only when cancelled or by an error
            return WriteResult(WriteOutcome.GONE, observer.absent.result())
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)


class _MirrorObserver(Observer):
    """Forwards hooks of the watches, and detects that the API is no longer served."""

    def __init__(self, observer: Observer) -> None:
        self.absent: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._observer = observer
        self._failing: set[str] = set()

    def watch_failed(self, resource: str, problem: str, status: int = 0) -> None:
        """A list or watch broke."""
        if status == _NOT_FOUND:
            if not self.absent.done():
                self.absent.set_result(problem)
            return
        self._failing.add(resource)
        self._observer.watch_failed(resource, problem, status)

    def watch_listed(self, resource: str, objects: int) -> None:
        """A list is complete."""
        self._observer.watch_listed(resource, objects)

    def watch_heard(self, resource: str, now: float) -> None:  # noqa: ARG002 - the hook's signature
        """Nothing: these watches are short-lived, so that their times are not recorded."""
        if resource in self._failing:
            self._failing.discard(resource)
            self._observer.watch_recovered(resource)

    def object_skipped(self, resource: str, name: str, problem: str) -> None:
        """Forward an object that cannot be read."""
        self._observer.object_skipped(resource, name, problem)


class _Mirror:
    """Mirrors our requests from the events of two watches."""

    def __init__(self, changed: Callable[[Mapping[str, EvictionRequest | None]], None]) -> None:
        self._changed = changed
        self._requests: dict[str, Any] = {}
        self._evictions: dict[str, Any] = {}
        self._reported: dict[str, EvictionRequest] = {}
        self._listed: set[str] = set()

    def take(self, events: Sequence[WatchEvent]) -> None:
        """Report changes once both resources are listed."""
        for event in events:
            match event:
                case Synced(resource):
                    self._listed.add(resource)
                case ObjectAdded(found) | ObjectUpdated(_, found):
                    self._kept(found)[_key(found)] = found
                case ObjectDeleted(found):
                    self._kept(found).pop(_key(found), None)
                case _:
                    continue
        if len(self._listed) < len((REQUESTS, EVICTIONS)):
            return
        by_uid = _under_way(self._evictions.values())
        present = {key: _read(each, by_uid) for key, each in self._requests.items() if _is_ours(each)}
        changes: dict[str, EvictionRequest | None] = {
            key: each for key, each in present.items() if self._reported.get(key) != each
        }
        changes.update(dict.fromkeys(self._reported.keys() - present.keys()))
        self._reported = present
        if changes:
            self._changed(changes)

    def _kept(self, found: object) -> dict[str, Any]:
        return self._evictions if isinstance(found, LifecycleEviction) else self._requests


def _path(request: EvictionRequest) -> str:
    return f"{GROUP}/namespaces/{request.namespace}/evictionrequests/{request.name}"


def _key(found: Any) -> str:
    return f"{found.metadata.namespace}/{found.metadata.name}"


def _is_ours(request: EvictionRequestObject) -> bool:
    """Whether we are the requester, according to the spec; any client could set a label."""
    return request.spec.requester == REQUESTER


def _uid(found: _Document) -> str:
    pod = found.spec.target.pod
    return pod.uid if pod is not None else ""


def _conditions(found: _Document) -> dict[str, _Condition]:
    """The conditions that are true, by type."""
    return {each.type: each for each in found.status.conditions if each.status == "True"}


def _under_way(evictions: Iterable[LifecycleEviction]) -> dict[str, LifecycleEviction]:
    """The Evictions that have not ended, by the pod's uid."""
    return {_uid(each): each for each in evictions if not _conditions(each)}


def _read(request: EvictionRequestObject, evictions: Mapping[str, LifecycleEviction]) -> EvictionRequest:
    """A request with the progress of its Eviction."""
    held, uid = _conditions(request), _uid(request)
    eviction = evictions.get(uid)
    status = _Status() if eviction is None else eviction.status
    active = next((each.name for each in status.target_responders if each.state == "Active"), "")
    report = {each.name: each for each in status.responders}.get(active, _Responder())
    expected = report.expected_completion_time
    failed = held.get("Failed")
    return EvictionRequest(
        namespace=request.metadata.namespace,
        name=request.metadata.name,
        pod_uid=uid,
        is_withdrawn=request.spec.intent != _EVICTION,
        is_observed=request.status.observed_generation is not None,
        is_evicted="TargetEvicted" in held,
        failure=(failed.reason or "Failed") if failed else "",
        message=failed.message if failed else "",
        responder=active,
        said=report.message,
        expected=expected.timestamp() if expected else None,
    )


REQUESTS = WatchedResource(
    "evictionrequests", f"{GROUP}/evictionrequests", EvictionRequestObject, "=".join(OURS)
)
EVICTIONS = WatchedResource("evictions.lifecycle.k8s.io", f"{GROUP}/evictions", LifecycleEviction, REQUESTER)
