"""Implements the variable ``authorizer`` of admission expressions, which asks for the rights of a user.

Each value is a map of texts, as of ``definitions.cel_library``: the evaluator cannot carry Python objects. An
API is named by a number in it.

Source: apiserver v1.36 ``pkg/cel/library/authz.go``, ``pkg/admission/plugin/cel``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakValueDictionary

import orjson
from cel_expr_python import cel

from roadstead.authorization.rules import Asked, account_user
from roadstead.definitions.cel_library import Function
from roadstead.kinds.checks.metadata import label_faults, subdomain_faults

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api

_Opaque = dict[str, str]
_AUTHORIZER, _PATH, _GROUP, _RESOURCE, _DECISION = (
    cel.Type.AbstractType(f"kubernetes.authorization.{name}")
    for name in ("Authorizer", "PathCheck", "GroupCheck", "ResourceCheck", "Decision")
)
_STRING, _BOOL = cel.Type.STRING, cel.Type.BOOL
_ASKABLE: WeakValueDictionary[str, Api] = WeakValueDictionary()
#: What the checker knows: these are two variables, as upstream.
TYPES = {"authorizer": _AUTHORIZER, "authorizer.requestResource": _RESOURCE}


def authorizer_of(api: Api, attempt: Attempt) -> dict[str, str | _Opaque]:
    """The value of ``authorizer`` for a write."""
    key = str(id(api))
    _ASKABLE[key] = api
    sender = {"api": key, "user": orjson.dumps(attempt.user).decode()}
    of = attempt.resource
    resource = {"group": of.group, "resource": of.plural, "subresource": attempt.subresource}
    place = {"namespace": attempt.namespace, "name": attempt.name}
    return {**sender, "requestResource": {**sender, **resource, **place}}


def _sender(authorizer: _Opaque) -> _Opaque:
    return {"api": authorizer["api"], "user": authorizer["user"]}


def _path(authorizer: _Opaque, path: str) -> _Opaque:
    if not path.strip():
        raise ValueError("path must not be empty")
    return {**_sender(authorizer), "path": path}


def _service_account(authorizer: _Opaque, namespace: str, name: str) -> _Opaque:
    if subdomain_faults(name):
        raise ValueError("Invalid service account name")
    if label_faults(namespace):
        raise ValueError("Invalid service account namespace")
    return {"api": authorizer["api"], "user": orjson.dumps(account_user(namespace, name)).decode()}


def _resource(group: _Opaque, resource: str) -> _Opaque:
    if not resource.strip():
        raise ValueError("resource must not be empty")
    return {**group, "resource": resource}


def _setting(field: str) -> Callable[[_Opaque, str], _Opaque]:
    return lambda check, value: {**check, field: value}


def _check(check: _Opaque, verb: str) -> _Opaque:
    api = _ASKABLE[check["api"]]
    if api.authorize is None:
        return {"allowed": "true", "reason": ""}
    resource, sub = check.get("resource", ""), check.get("subresource", "")
    asked = Asked(
        verb,
        check.get("group", ""),
        f"{resource}/{sub}" if sub else resource,
        check.get("namespace", ""),
        check.get("name", ""),
        check.get("path", ""),
    )
    reason = api.authorize(orjson.loads(check["user"]), asked)
    return {"allowed": "" if reason is None else "true", "reason": reason or ""}


FUNCTIONS = (
    Function("path", _PATH, (_AUTHORIZER, _STRING), _path),
    Function("group", _GROUP, (_AUTHORIZER, _STRING), lambda of, group: {**_sender(of), "group": group}),
    Function("serviceAccount", _AUTHORIZER, (_AUTHORIZER, _STRING, _STRING), _service_account),
    Function("resource", _RESOURCE, (_GROUP, _STRING), _resource),
    *(
        Function(name, _RESOURCE, (_RESOURCE, _STRING), _setting(name))
        # No role grants by a selector.
        for name in ("subresource", "namespace", "name", "fieldSelector", "labelSelector")
    ),
    Function("check", _DECISION, (_PATH, _STRING), _check),
    Function("check", _DECISION, (_RESOURCE, _STRING), _check),
    Function("allowed", _BOOL, (_DECISION,), lambda decision: decision["allowed"] != ""),
    Function("reason", _STRING, (_DECISION,), lambda decision: decision["reason"]),
    Function("errored", _BOOL, (_DECISION,), lambda _: False),
    Function("error", _STRING, (_DECISION,), lambda _: ""),
)
