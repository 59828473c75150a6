"""Serves access reviews: a client with the token may do everything.

Source: the shapes are those of ``authentication.k8s.io/v1`` and ``authorization.k8s.io/v1``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from roadstead.server.service_account_tokens import API_AUDIENCE, user_of
from roadstead.store.api import ADMINISTRATOR
from roadstead.values.status_errors import Cause, invalid

if TYPE_CHECKING:
    from roadstead.values.resources import Obj, Resource

USER = ADMINISTRATOR


def review(resource: Resource, obj: Obj, token: str) -> Obj:
    """The response to a review.

    Args:
        resource: which kind of review.
        obj: the review as it was sent.
        token: the valid one.

    Raises:
        StatusError: 422, if the review names no attributes.
    """
    spec = obj.get("spec") or {}
    answered = {**obj, "apiVersion": resource.api_version, "kind": resource.kind}
    match resource.kind:
        case "SelfSubjectReview":
            answered["status"] = {"userInfo": USER}
        case "TokenReview":
            answered["status"] = _recognized(str(spec.get("token") or ""), spec.get("audiences") or [], token)
        case "SelfSubjectRulesReview":
            answered["status"] = {
                "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
                "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
                "incomplete": False,
            }
        case _:
            asked = [
                one for one in ("resourceAttributes", "nonResourceAttributes") if spec.get(one) is not None
            ]
            if len(asked) != 1:
                message = "exactly one of nonResourceAttributes or resourceAttributes must be specified"
                cause = Cause("spec.resourceAttributes", f"Invalid value: null: {message}")
                raise invalid(dataclasses.replace(resource, kind=""), "", [cause])
            answered["status"] = {"allowed": True, "reason": "its one user may do everything"}
    return answered


def _recognized(shown: str, audiences: list[str], token: str) -> Obj:
    """The status of a TokenReview; the administrator's token is for the API server."""
    status: Obj = {"user": {}}
    if shown != token:
        return user_of(shown, audiences, token) or status
    if not audiences:
        return {"authenticated": True, "user": USER}
    if API_AUDIENCE in audiences:
        return {"authenticated": True, "user": USER, "audiences": [API_AUDIENCE]}
    return status
