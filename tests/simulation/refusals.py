"""Refusals are answers that the API server, or a proxy before it, gives without carrying a request out."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from random import Random
from typing import Any

import orjson

from roadstead.server.request_handler import Request
from roadstead.values.status_errors import StatusError
from simulation.exchanges import Answer
from simulation.faults import FaultKind

#: Statuses that the API server answers without carrying a request out.
STATUSES = {
    FaultKind.CONFLICT: (409, "Conflict"),
    FaultKind.INVALID: (422, "Invalid"),
    FaultKind.TOO_MANY_REQUESTS: (429, "TooManyRequests"),
    FaultKind.TOO_MANY_WITH_DELAY: (429, "TooManyRequests"),
    FaultKind.INTERNAL_ERROR: (500, "InternalError"),
    FaultKind.UNAVAILABLE: (503, "ServiceUnavailable"),
    FaultKind.TIMEOUT: (504, "Timeout"),
    FaultKind.UNAUTHORIZED: (401, "Unauthorized"),
}

#: What a proxy shows to browsers.
PAGE = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head><body>{}</body></html>\n"

_VERBS = {"POST": "create", "PUT": "update", "PATCH": "patch", "DELETE": "delete"}
_PATH = re.compile(
    r"/(?:api/v1|apis/(?P<group>[^/]+)/[^/]+)(?:/namespaces/[^/]+(?=/))?"
    r"/(?P<resource>[^/]+)(?:/(?P<name>[^/]+))?(?:/(?P<sub>[^/]+))?"
)
_REVIEWS = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

#: Verb, group, and resource with subresource.
Right = tuple[str, str, str]


def refused(fault: FaultKind) -> Answer:
    """The answer with the status of a fault."""
    code, reason = STATUSES[fault]
    details = {"retryAfterSeconds": 1} if fault is FaultKind.TOO_MANY_WITH_DELAY else None
    return code, status(code, reason, f"simulated: {fault}", details)


def status(code: int, reason: str, message: str, details: dict[str, Any] | None = None) -> bytes:
    """A Status of the API server."""
    return orjson.dumps(StatusError(code, reason, message, details).status)


def spoiled(fault: FaultKind, answer: Answer, random: Random) -> Answer:
    """What a proxy makes of an answer."""
    if fault is FaultKind.TRUNCATED:
        return answer[0], answer[1][: random.randrange(max(1, len(answer[1])))]
    return 502, PAGE


def right_of(method: str, path: str) -> Right | None:
    """The right that a request uses; None for a path that is no resource."""
    found = _PATH.fullmatch(path)
    if found is None:
        return None
    resource, sub = found["resource"], found["sub"]
    verb = _VERBS.get(method) or ("get" if found["name"] else "list")
    return verb, found["group"] or "", f"{resource}/{sub}" if sub else resource


@dataclass(slots=True)
class Rights:
    """Which rights the operator does not have.

    Attributes:
        denied: These; an empty verb means all.
    """

    denied: set[Right] = field(default_factory=set)

    def are_denied(self, verb: str, group: str, resource: str) -> bool:
        """Whether somebody has taken this one away."""
        return bool(self.denied) and bool({(verb, group, resource), ("", group, resource)} & self.denied)

    def answer(self, request: Request) -> Answer | None:
        """The refusal of a request, or the answer to a question about a right that is not there."""
        if not self.denied:
            return None
        if request.path == _REVIEWS:
            return self._reviewed(request)
        right = right_of(request.method, request.path)
        if right is None or not self.are_denied(*right):
            return None
        verb, group, resource = right
        message = f'{resource} is forbidden: User "operator" cannot {verb} {resource} in API group "{group}"'
        return 403, status(403, "Forbidden", message)

    def _reviewed(self, request: Request) -> Answer | None:
        review = orjson.loads(request.body)
        asked = review["spec"].get("resourceAttributes") or {}
        resource, sub = asked.get("resource") or "", asked.get("subresource")
        whole = f"{resource}/{sub}" if sub else resource
        if not self.are_denied(asked.get("verb") or "", asked.get("group") or "", whole):
            return None
        answered = {"allowed": False, "reason": "somebody took it away"}
        return 201, orjson.dumps({**review, "status": answered})

    def take(self, rights: Collection[Right]) -> None:
        """Take rights away."""
        self.denied |= set(rights)

    def give_back(self, rights: Collection[Right]) -> None:
        """Give them back."""
        self.denied -= set(rights)
