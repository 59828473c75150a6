"""Breaks requests and watches on purpose, as tests of resilience direct.

A test adds faults over HTTP (``roadstead.faults`` is the client); the server asks ``Faults`` about each
request before it serves it. Requests of the test itself, which have the header ``EXEMPT``, are never broken.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from roadstead.faults import EXEMPT
from roadstead.server.lists import flag
from roadstead.server.paths import target
from roadstead.values.status_errors import (
    MODIFIED,
    StatusError,
    bad_request,
    conflict,
    expired,
    forbidden,
    not_found,
    too_many_requests,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from aiohttp import web

    from roadstead.server.paths import Target
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

WATCH = "WATCH"
ACTIONS = ("refuse", "delay", "hang", "drop")

_OTHERS = {
    401: ("Unauthorized", "Unauthorized"),
    500: ("InternalError", "Internal error occurred: etcdserver: request timed out"),
    503: ("ServiceUnavailable", "the server is currently unable to handle the request"),
    504: ("Timeout", "Timeout: request did not complete within the allotted timeout"),
}


@dataclass(slots=True, kw_only=True)
class InjectedFault:
    """What goes wrong with which requests.

    Attributes:
        action: ``refuse`` with a status, ``delay`` by seconds, ``hang`` without an answer until the fault is
            removed, or ``drop`` the connection.
        method: of HTTP, or WATCH; ``*`` for all of these.
        resource: such as ``pods``, ``pods/status``, ``widgets.example.com``; ``*`` for all.
        namespace: of the request; "" for all.
        name: of the object; "" for all.
        client: a part of the header User-Agent; "" for all clients.
        status: the code of a refusal: 401, 403, 404, 409, 410, 429, 500, 503 or 504.
        retry_after_s: the header Retry-After of a refusal.
        seconds: of a delay.
        takes_effect: do it after the request has taken effect, not instead.
        times: the number of requests; None for all.
        hits: the number of requests so far.
        removed: set when the fault no longer counts.
    """

    action: str
    method: str = "*"
    resource: str = "*"
    namespace: str = ""
    name: str = ""
    client: str = ""
    status: int = 500
    retry_after_s: int | None = None
    seconds: float = 0.0
    takes_effect: bool = False
    times: int | None = None
    hits: int = 0
    removed: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        if self.action not in ACTIONS:
            raise bad_request(f"action is {self.action}; allowed are {', '.join(ACTIONS)}")
        if self.action == "refuse":
            refusal_of(self.status, None, self.retry_after_s)

    def concerns(self, method: str, found: Target, client: str) -> bool:
        """Whether a request is broken."""
        return (
            (self.times is None or self.hits < self.times)
            and self.method.upper() in ("*", method)
            and is_named(self.resource, found)
            and self.namespace in ("", found.namespace)
            and self.name in ("", found.name)
            and self.client in client
        )


def is_named(resource: str, found: Target) -> bool:
    """Whether ``pods``, ``pods/status``, ``widgets.example.com`` or ``*`` names the resource of a request."""
    named, _, subresource = resource.partition("/")
    plain = named in (found.resource.plural, found.resource.key)
    return resource == "*" or (plain and subresource == found.subresource)


def refusal_of(status: int, found: Target | None, retry_after_s: int | None) -> StatusError:
    """A refusal in the API server's words.

    Raises:
        StatusError: 400, for a status that has no words here.
    """
    if found is not None and status in (403, 404, 409):
        if status == 404:
            return not_found(found.resource, found.name)
        if status == 403:
            return forbidden(found.resource, found.name, "a fault of the test refuses it")
        return conflict(found.resource, found.name, MODIFIED)
    if status in (403, 404, 409):
        return StatusError(status, "", "")
    if status == 410:
        return expired("The resourceVersion for the provided watch is too old.")
    if status == 429:
        message = "the server has received too many requests and has asked us to try again later"
        return too_many_requests(message, retry_after=1 if retry_after_s is None else retry_after_s)
    if status not in _OTHERS:
        raise bad_request(f"status is {status}; allowed are 401, 403, 404, 409, 410, 429, 500, 503, 504")
    return StatusError(status, *_OTHERS[status], retry_after=retry_after_s)


class Faults:
    """The faults of a server, and its open watches.

    Args:
        api: the API that the server serves.
    """

    def __init__(self, api: Api) -> None:
        self._api = api
        self._faults: dict[int, InjectedFault] = {}
        self._numbers = itertools.count(1)
        self._watches: dict[int, tuple[web.BaseRequest, Target]] = {}  # by identity: requests have no hash
        self.controls: dict[str, Callable[[Obj], Obj]] = {
            "/roadstead/faults/add": self._add,
            "/roadstead/faults/hits": lambda body: {"hits": self._of(body).hits},
            "/roadstead/faults/remove": self._remove,
            "/roadstead/watches/cut": self._cut,
            "/roadstead/versions/expire": self._expire,
        }
        """Functions by the path of a POST, each from the body to the answer."""

    def clear(self) -> None:
        """Remove all faults."""
        for fault in self._faults.values():
            fault.removed.set()
        self._faults.clear()

    def of(self, request: web.BaseRequest) -> InjectedFault | None:
        """The fault that breaks a request now; counts it."""
        if not self._faults or EXEMPT in request.headers:
            return None
        found = target(request.path, self._api.registry)
        if found is None:
            return None
        is_watch = request.method == "GET" and not found.name and flag(request.query.get("watch", "false"))
        return self._counted(WATCH if is_watch else request.method, found, request.headers)

    def _counted(self, method: str, found: Target, headers: Mapping[str, str]) -> InjectedFault | None:
        client = headers.get("User-Agent", "")
        for fault in self._faults.values():
            if fault.concerns(method, found, client):
                fault.hits += 1
                return fault
        return None

    async def strike(self, fault: InjectedFault, request: web.BaseRequest) -> bool:
        """Do what a fault says; True if the connection is gone.

        Raises:
            StatusError: the refusal.
        """
        if fault.action == "refuse":
            raise refusal_of(fault.status, target(request.path, self._api.registry), fault.retry_after_s)
        if fault.action == "delay":
            await asyncio.sleep(fault.seconds)
            return False
        if fault.action == "hang":
            await fault.removed.wait()
        _abort(request)
        return True

    # -- watches ---------------------------------------------------------------------------------------------

    def opened(self, request: web.BaseRequest) -> None:
        """Note a watch."""
        found = target(request.path, self._api.registry)
        if found is not None:
            self._watches[id(request)] = request, found

    def closed(self, request: web.BaseRequest) -> None:
        """Forget a watch."""
        self._watches.pop(id(request), None)

    async def hold(self, request: web.BaseRequest) -> None:
        """Delay the next lines of an open watch, if a fault says so.

        Raises:
            ConnectionError: the connection was dropped.
        """
        noted = self._watches.get(id(request))
        if not self._faults or noted is None or EXEMPT in request.headers:
            return
        fault = self._counted(WATCH, noted[1], request.headers)
        if fault is None:
            return
        if fault.action == "refuse" or await self.strike(fault, request):
            _abort(request)
            raise ConnectionResetError("a fault of the test cut the watch")

    # -- controls --------------------------------------------------------------------------------------------

    def _add(self, body: Obj) -> Obj:
        number = next(self._numbers)
        try:
            self._faults[number] = InjectedFault(**body)
        except TypeError as error:
            raise bad_request(str(error)) from error
        return {"fault": number}

    def _of(self, body: Obj) -> InjectedFault:
        fault = self._faults.get(body.get("fault", 0))
        if fault is None:
            raise StatusError(404, "NotFound", "there is no such fault; a reset removes all")
        return fault

    def _remove(self, body: Obj) -> Obj:
        fault = self._of(body)
        fault.removed.set()
        del self._faults[body["fault"]]
        return {"hits": fault.hits}

    def _cut(self, body: Obj) -> Obj:
        cut = [
            request
            for request, found in self._watches.values()
            if is_named(body.get("resource", "*"), found)
            and EXEMPT not in request.headers
            and request.transport is not None
            and not request.transport.is_closing()
        ]
        for request in cut:
            _abort(request)
        return {"watches": len(cut)}

    def _expire(self, body: Obj) -> Obj:
        """Forget earlier versions of resources and cut their watches, so that resuming is answered by 410."""
        resource = body.get("resource", "*")
        for one in self._api.registry:
            if not one.ephemeral and resource in ("*", one.plural, one.key):
                self._api.store.forget_history(one.collection)
        return self._cut(body)


def _abort(request: web.BaseRequest) -> None:
    """Reset the connection of a request."""
    if request.transport is not None:
        transport: Any = request.transport
        transport.abort()
