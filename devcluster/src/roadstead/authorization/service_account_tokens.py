"""Tokens of service accounts for audiences: issued by the subresource ``token``, recognized by TokenReview.

A token is a claim and its signature; nothing is stored. Source: ``authentication.k8s.io/v1`` and
``pkg/registry/core/serviceaccount/storage/token.go`` of Kubernetes v1.36.
"""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import time
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.values.resources import Resource
from roadstead.values.status_errors import Cause, invalid

if TYPE_CHECKING:
    from roadstead.values.resources import Obj

#: The audience of tokens for the API server itself.
API_AUDIENCE = "https://kubernetes.default.svc.cluster.local"

_DEFAULT_S, _LEAST_S, _MOST_S = 3600, 600, 1 << 32
_PREFIX = "roadstead-account"
_KIND = Resource(
    "authentication.k8s.io", "v1", "TokenRequest", "tokenrequests", "tokenrequest", namespaced=True
)


def issued(account: Obj, request: Obj, secret: str) -> Obj:
    """The response to a TokenRequest.

    Args:
        account: the service account.
        request: the TokenRequest as it was sent.
        secret: signs the token.

    Raises:
        StatusError: 422, if the lifetime is out of bounds.
    """
    meta, spec = account["metadata"], request.get("spec") or {}
    given = spec.get("expirationSeconds")
    seconds = _DEFAULT_S if given is None else given
    wrong = ""
    if seconds < _LEAST_S:
        wrong = "may not specify a duration less than 10 minutes"
    elif seconds > _MOST_S:
        wrong = "may not specify a duration larger than 2^32 seconds"
    if wrong:
        cause = Cause("spec.expirationSeconds", f"Invalid value: {seconds}: {wrong}")
        raise invalid(_KIND, meta["name"], [cause])
    audiences = spec.get("audiences") or [API_AUDIENCE]
    expires = int(time.time()) + seconds
    claim = {
        "namespace": meta["namespace"],
        "name": meta["name"],
        "uid": meta["uid"],
        "audiences": audiences,
        "expires": expires,
    }
    body = base64.urlsafe_b64encode(orjson.dumps(claim)).decode().rstrip("=")
    moment = dt.datetime.fromtimestamp(expires, dt.UTC)
    return {
        "kind": "TokenRequest",
        "apiVersion": "authentication.k8s.io/v1",
        "metadata": {"name": meta["name"], "namespace": meta["namespace"]},
        "spec": {**spec, "audiences": audiences, "expirationSeconds": seconds},
        "status": {
            "token": f"{_PREFIX}.{body}.{_signature(body, secret)}",
            "expirationTimestamp": moment.strftime("%Y-%m-%dT%H:%M:%SZ"),
        },
    }


def user_of(token: str, audiences: list[str], secret: str) -> Obj | None:
    """The status of a TokenReview; None if the token is not valid for any of the audiences."""
    prefix, _, rest = token.partition(".")
    body, _, signature = rest.partition(".")
    if prefix != _PREFIX or not hmac.compare_digest(signature.encode(), _signature(body, secret).encode()):
        return None
    claim: dict[str, Any] = orjson.loads(base64.urlsafe_b64decode(body + "=" * (-len(body) % 4)))
    common = [each for each in audiences or [API_AUDIENCE] if each in claim["audiences"]]
    if not common or time.time() >= claim["expires"]:
        return None
    groups = [
        "system:serviceaccounts",
        f"system:serviceaccounts:{claim['namespace']}",
        "system:authenticated",
    ]
    user = {
        "username": f"system:serviceaccount:{claim['namespace']}:{claim['name']}",
        "uid": claim["uid"],
        "groups": groups,
    }
    return {"authenticated": True, "user": user, "audiences": common}


def _signature(body: str, secret: str) -> str:
    return hmac.new(secret.encode(), body.encode(), hashlib.sha256).hexdigest()
