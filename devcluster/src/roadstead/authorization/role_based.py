"""Authorizes requests by the roles of a cluster, and keeps those roles: bootstrap, aggregation, escalation.

Source: Kubernetes v1.36 ``plugin/pkg/auth/authorizer/rbac``, ``pkg/registry/rbac/*/policybased``,
``pkg/controller/clusterroleaggregation`` and ``apiserver/pkg/endpoints/handlers/responsewriters``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib.resources import files
from typing import TYPE_CHECKING, Any

import orjson

from roadstead.authorization.rules import Asked, Grant, aggregated, allows, grants, uncovered
from roadstead.values.copies import copied
from roadstead.values.selectors import matches_labels, selector_requirements
from roadstead.values.status_errors import StatusError, forbidden

if TYPE_CHECKING:
    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

_GROUP = "rbac.authorization.k8s.io"
_ROLES, _CLUSTER_ROLES = f"roles.{_GROUP}", f"clusterroles.{_GROUP}"
_KEYS = (_CLUSTER_ROLES, _ROLES, f"clusterrolebindings.{_GROUP}", f"rolebindings.{_GROUP}")
_MASTERS = "system:masters"


def refused(user: Obj, asked: Asked, why: str = "") -> StatusError:
    """403 in the words of an API server."""
    who = f'User "{user["username"]}" cannot {asked.verb}'
    if not asked.resource:
        return StatusError(403, "Forbidden", f'forbidden: {who} path "{asked.path}"', {})
    where = f'in the namespace "{asked.namespace}"' if asked.namespace else "at the cluster scope"
    sentence = f'{who} resource "{asked.resource}" in API group "{asked.group}" {where}'
    plural = asked.resource.partition("/")[0]
    key = f"{plural}.{asked.group}" if asked.group else plural
    named = f'{key} "{asked.name}"' if asked.name else key
    name = {"name": asked.name} if asked.name else {}
    group = {"group": asked.group} if asked.group else {}
    message = f"{named} is forbidden: {sentence}{f': {why}' if why else ''}"
    return StatusError(403, "Forbidden", message, {**name, **group, "kind": plural})


@dataclass(slots=True)
class RoleBased:
    """The authorizer of a cluster whose roles are its objects.

    Args:
        api: where roles and bindings are.
    """

    api: Api
    _held: dict[str, list[Grant]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for key in _KEYS:
            self.api.subscribe(key, self._forget)
        self.api.subscribe(_CLUSTER_ROLES, self._aggregate)

    def _forget(self, *_: Any) -> None:
        self._held.clear()

    def grants(self, user: Obj) -> list[Grant]:
        """The rules that are bound to a user."""
        key = orjson.dumps([user["username"], user.get("groups")]).decode()
        if key not in self._held:
            objects = (one for key in _KEYS for one in self.api.list(key))
            self._held[key] = list(grants(user, objects))
        return self._held[key]

    def reason(self, user: Obj, asked: Asked) -> str | None:
        """Why a request is allowed; None where it is not."""
        if _MASTERS in (user.get("groups") or ()):
            return ""
        for grant in self.grants(user):
            if grant.namespace in ("", asked.namespace) and allows(grant.rule, asked):
                return grant.reason
        return None

    def check(self, user: Obj, asked: Asked) -> None:
        """Reject a request that is not allowed.

        Raises:
            StatusError: 403.
        """
        if self.reason(user, asked) is None:
            raise refused(user, asked)

    def validated(self, attempt: Attempt) -> None:
        """Reject a role, or the binding of one, that grants more than its writer has.

        Raises:
            StatusError: 403; 404, if the bound role does not exist.
        """
        resource, obj, user = attempt.resource, attempt.obj, attempt.user
        if resource.group != _GROUP or obj is None or _MASTERS in (user.get("groups") or ()):
            return
        old = attempt.old or {}
        if resource.plural.endswith("roles"):
            exempt = Asked("escalate", _GROUP, resource.plural, attempt.namespace, attempt.name)
            wanted = [] if old and old.get("rules") == obj.get("rules") else obj.get("rules") or []
        else:
            ref = obj["roleRef"]
            plural = "clusterroles" if ref["kind"] == "ClusterRole" else "roles"
            exempt = Asked("bind", _GROUP, plural, attempt.namespace, ref["name"])
            wanted = [] if old and old.get("subjects") == obj.get("subjects") else self._rules(exempt)
        if self.reason(user, exempt) is None:
            held = [one.rule for one in self.grants(user) if one.namespace in ("", attempt.namespace)]
            if missing := uncovered(wanted, held):
                raise forbidden(resource, attempt.name, _escalation(user, missing))

    def _rules(self, role: Asked) -> list[Obj]:
        """The rules of a role that is bound.

        Raises:
            StatusError: 404.
        """
        within = None if role.resource == "clusterroles" else role.namespace
        return self.api.get(f"{role.resource}.{_GROUP}", within, role.name).get("rules") or []

    def _aggregate(self, *_: Any) -> None:
        """Write the rules of aggregated roles that have changed."""
        roles = self.api.list(_CLUSTER_ROLES)
        for role in roles:
            if role.get("aggregationRule"):
                rules = aggregated(role, roles, _selects)
                if rules != (role.get("rules") or []):
                    self.api.update(_CLUSTER_ROLES, {**copied(role), "rules": copied(rules)})
                    return  # the write calls this again

    def create_bootstrap_roles(self) -> None:
        """Create the roles and bindings that every cluster with these roles has, unless they exist."""
        text = (files(__package__) / "bootstrap_roles.json").read_bytes()
        for obj in orjson.loads(text):
            resource = self.api.registry.of_kind(obj["apiVersion"], obj["kind"])
            assert resource is not None
            meta = obj["metadata"]
            if self.api.find(resource, meta.get("namespace"), meta["name"]) is None:
                self.api.create(resource, obj)


def _selects(selector: Obj, obj: Obj) -> bool:
    return matches_labels(selector_requirements(selector) or (), obj["metadata"].get("labels") or {})


def _escalation(user: Obj, missing: list[Obj]) -> str:
    groups = f" (groups={orjson.dumps(user.get('groups') or []).decode()})".replace('","', '" "')
    lines = "\n".join(_rule_text(one) for one in _compact(missing))
    who = f'user "{user["username"]}"{groups}'
    return f"{who} is attempting to grant RBAC permissions not currently held:\n{lines}"


def _compact(parts: list[Obj]) -> list[Obj]:
    """Parts that differ only in the verb, as one rule."""
    found: dict[str, Obj] = {}
    for part in parts:
        key = orjson.dumps({name: value for name, value in part.items() if name != "verbs"}).decode()
        one = found.setdefault(key, {**part, "verbs": []})
        one["verbs"] += [verb for verb in part["verbs"] if verb not in one["verbs"]]
    return [found[key] for key in sorted(found)]


def _rule_text(rule: Obj) -> str:
    names = {
        "apiGroups": "APIGroups",
        "resources": "Resources",
        "resourceNames": "ResourceNames",
        "nonResourceURLs": "NonResourceURLs",
        "verbs": "Verbs",
    }
    parts = (
        f"{shown}:{orjson.dumps(rule[name]).decode()}" for name, shown in names.items() if rule.get(name)
    )
    return "{" + ", ".join(parts).replace('","', '" "') + "}"
