"""Serves reviews of the rights of the sender, or of another user.

Source: the shapes are those of ``authentication.k8s.io/v1`` and ``authorization.k8s.io/v1``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Protocol

from roadstead.authorization.rules import Asked
from roadstead.authorization.service_account_tokens import API_AUDIENCE, user_of
from roadstead.store.admission import ADMINISTRATOR
from roadstead.values.status_errors import Cause, invalid

if TYPE_CHECKING:
    from roadstead.authorization.rules import Grant
    from roadstead.values.resources import Obj, Resource


class Authorizer(Protocol):
    """Knows what users may do."""

    def reason(self, user: Obj, asked: Asked) -> str | None:
        """Why a request is allowed; None where it is not."""
        ...

    def grants(self, user: Obj) -> list[Grant]:
        """The rules that are bound to a user."""
        ...


def review(
    resource: Resource,
    obj: Obj,
    token: str,
    user: Obj = ADMINISTRATOR,
    namespace: str | None = None,
    authorizer: Authorizer | None = None,
) -> Obj:
    """The response to a review.

    Args:
        resource: which kind of review.
        obj: the review as it was sent.
        token: the valid one.
        user: the sender.
        namespace: that of the path.
        authorizer: None allows everything.

    Raises:
        StatusError: 422, if the review names no attributes.
    """
    spec = obj.get("spec") or {}
    answered = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    match resource.kind:
        case "SelfSubjectReview":
            answered["status"] = {"userInfo": user}
        case "TokenReview":
            answered["status"] = _recognized(str(spec.get("token") or ""), spec.get("audiences") or [], token)
        case "SelfSubjectRulesReview":
            answered["status"] = _rules(user, spec.get("namespace") or "", authorizer)
        case _:
            asked = [
                one for one in ("resourceAttributes", "nonResourceAttributes") if spec.get(one) is not None
            ]
            if len(asked) != 1:
                message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
                cause = Cause("spec.resourceAttributes", f"Invalid value: null: {message}")
                raise invalid(dataclasses.replace(resource, kind=""), "", [cause])
            whom = user if resource.kind.startswith("Self") else _subject(spec)
            answered["status"] = _verdict(whom, spec, namespace, authorizer)
    return answered


def _subject(spec: Obj) -> Obj:
    return {"username": spec.get("user") or "", "groups": spec.get("groups") or []}


def _verdict(user: Obj, spec: Obj, namespace: str | None, authorizer: Authorizer | None) -> Obj:
    """The status of a review of one request."""
    if authorizer is None:
        return {"allowed": True, "reason": "its one user may do everything"}
    path, given = spec.get("nonResourceAttributes"), spec.get("resourceAttributes") or {}
    if path is not None:
        asked = Asked(path.get("verb") or "", path=path.get("path") or "")
    else:
        resource, sub = given.get("resource") or "", given.get("subresource")
        asked = Asked(
            given.get("verb") or "",
            given.get("group") or "",
            f"{resource}/{sub}" if sub else resource,
            given.get("namespace") or namespace or "",
            given.get("name") or "",
        )
    reason = authorizer.reason(user, asked)
    return {"allowed": reason is not None} | ({"reason": reason} if reason else {})


def _rules(user: Obj, namespace: str, authorizer: Authorizer | None) -> Obj:
    """The status of a SelfSubjectRulesReview."""
    everything = {"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}
    rules: list[Obj] = [everything, {"verbs": ["*"], "nonResourceURLs": ["*"]}]
    if authorizer is not None:
        rules = [one.rule for one in authorizer.grants(user) if one.namespace in ("", namespace)]
    paths = [one for one in rules if one.get("nonResourceURLs")]
    return {
        "resourceRules": [one for one in rules if one.get("resources")],
        "nonResourceRules": [
            {"verbs": one["verbs"], "nonResourceURLs": one["nonResourceURLs"]} for one in paths
        ],
        "incomplete": False,
    }


def _recognized(shown: str, audiences: list[str], token: str) -> Obj:
    """The status of a TokenReview; the administrator's token is for the API server."""
    status: Obj = {"user": {}}
    if shown != token:
        return user_of(shown, audiences, token) or status
    if not audiences:
        return {"authenticated": True, "user": ADMINISTRATOR}
    if API_AUDIENCE in audiences:
        return {"authenticated": True, "user": ADMINISTRATOR, "audiences": [API_AUDIENCE]}
    return status
