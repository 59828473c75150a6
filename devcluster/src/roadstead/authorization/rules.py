"""Judges requests by roles and their bindings, as plain objects.

Source: Kubernetes v1.36 ``plugin/pkg/auth/authorizer/rbac``, ``pkg/apis/rbac/v1/evaluation_helpers.go`` and
``k8s.io/component-helpers/auth/rbac/validation``.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Obj = dict[str, Any]
ACCOUNTS = "system:serviceaccounts"
AUTHENTICATED = "system:authenticated"


@dataclass(frozen=True, slots=True)
class Asked:
    """What a request asks for.

    Attributes:
        verb: such as "get".
        group: of the resource.
        resource: with its subresource behind a slash; "" for a path that names no resource.
        namespace: "" for all, and for what has none.
        name: "" for a collection.
        path: the path, where there is no resource.
    """

    verb: str
    group: str = ""
    resource: str = ""
    namespace: str = ""
    name: str = ""
    path: str = ""


@dataclass(frozen=True, slots=True)
class Grant:
    """A rule that is bound to a user.

    Attributes:
        rule: a PolicyRule.
        namespace: where it holds; "" for everywhere.
        reason: which binding and role it comes from.
    """

    rule: Obj
    namespace: str
    reason: str


def account_user(namespace: str, name: str, **more: str) -> Obj:
    """A service account as a user."""
    groups = [ACCOUNTS, f"{ACCOUNTS}:{namespace}", AUTHENTICATED]
    return {"username": f"system:serviceaccount:{namespace}:{name}", **more, "groups": groups}


def grants(user: Obj, objects: Iterable[Obj]) -> Iterator[Grant]:
    """The rules that are bound to a user.

    Args:
        user: as in ``userInfo``.
        objects: roles and bindings, each with its ``kind``.
    """
    known = list(objects)
    roles = {_key(one): one for one in known if not one["kind"].endswith("Binding")}
    for binding in known:
        if not binding["kind"].endswith("Binding"):
            continue
        subject = next((one for one in binding.get("subjects") or () if _is_meant(one, user, binding)), None)
        if subject is None:
            continue
        wanted, within = binding["roleRef"], binding["metadata"].get("namespace", "")
        place = "" if wanted["kind"] == "ClusterRole" else within
        role = roles.get((wanted["kind"], place, wanted["name"]))
        reason = _reason(binding, subject)
        for rule in (role or {}).get("rules") or ():
            yield Grant(rule, within, reason)


def _key(role: Obj) -> tuple[str, str, str]:
    return role["kind"], role["metadata"].get("namespace", ""), role["metadata"]["name"]


def _is_meant(subject: Obj, user: Obj, binding: Obj) -> bool:
    match subject["kind"]:
        case "ServiceAccount":
            within = subject.get("namespace") or binding["metadata"].get("namespace")
            return bool(user["username"] == f"system:serviceaccount:{within}:{subject['name']}")
        case "Group":
            return subject["name"] in (user.get("groups") or ())
        case "User":
            return bool(subject["name"] == user["username"])
    return False


def _reason(binding: Obj, subject: Obj) -> str:
    meta, role = binding["metadata"], binding["roleRef"]
    named = f"{meta['name']}/{meta['namespace']}" if meta.get("namespace") else meta["name"]
    who = subject["name"]
    if subject["kind"] == "ServiceAccount":
        who = f"{who}/{subject.get('namespace') or meta.get('namespace', '')}"
    return (
        f'RBAC: allowed by {binding["kind"]} "{named}" of {role["kind"]} "{role["name"]}" '
        f'to {subject["kind"]} "{who}"'
    )


def allows(rule: Obj, asked: Asked) -> bool:
    """Whether a rule allows a request."""
    if not {"*", asked.verb} & set(rule.get("verbs") or ()):
        return False
    if not asked.resource:
        return any(_matches_path(one, asked.path) for one in rule.get("nonResourceURLs") or ())
    names, resources = rule.get("resourceNames") or (), rule.get("resources") or ()
    _, _, sub = asked.resource.partition("/")
    return (
        bool({"*", asked.group} & set(rule.get("apiGroups") or ()))
        and (asked.resource in resources or "*" in resources or (bool(sub) and f"*/{sub}" in resources))
        and (not names or asked.name in names)
    )


def _matches_path(pattern: str, path: str) -> bool:
    return pattern in ("*", path) or (pattern.endswith("*") and path.startswith(pattern.rstrip("*")))


def uncovered(wanted: Iterable[Obj], held: Iterable[Obj]) -> list[Obj]:
    """The parts of rules that no held rule covers, each with one verb and one resource."""
    owned = list(held)
    return [part for rule in wanted for part in _parts(rule) if not any(_covers(one, part) for one in owned)]


def _parts(rule: Obj) -> Iterator[Obj]:
    verbs = rule.get("verbs") or ()
    for group, resource, verb in itertools.product(
        rule.get("apiGroups") or (), rule.get("resources") or (), verbs
    ):
        part = {"apiGroups": [group], "resources": [resource], "verbs": [verb]}
        names = rule.get("resourceNames") or ()
        yield from ({**part, "resourceNames": [name]} for name in names) if names else (part,)
    for path, verb in itertools.product(rule.get("nonResourceURLs") or (), verbs):
        yield {"nonResourceURLs": [path], "verbs": [verb]}


def _covers(owner: Obj, part: Obj) -> bool:
    if not {"*", part["verbs"][0]} & set(owner.get("verbs") or ()):
        return False
    if "nonResourceURLs" in part:
        path = part["nonResourceURLs"][0]
        return any(_matches_path(one, path) for one in owner.get("nonResourceURLs") or ())
    names, resource = owner.get("resourceNames") or (), part["resources"][0]
    resources = set(owner.get("resources") or ())
    _, slash, sub = resource.partition("/")
    return (
        bool({"*", part["apiGroups"][0]} & set(owner.get("apiGroups") or ()))
        and bool({"*", resource, *([f"*/{sub}"] if slash else [])} & resources)
        and (not names or set(part.get("resourceNames") or [None]) <= set(names))
    )


def aggregated(role: Obj, others: Iterable[Obj], matches: Any) -> list[Obj]:
    """The rules of an aggregated ClusterRole: those of all that its selectors match, each once.

    Args:
        role: with an ``aggregationRule``.
        others: all ClusterRoles.
        matches: whether a selector matches an object.
    """
    selectors = role["aggregationRule"].get("clusterRoleSelectors") or ()
    found: list[Obj] = []
    for other in sorted(others, key=lambda one: str(one["metadata"]["name"])):
        if other["metadata"]["name"] == role["metadata"]["name"]:
            continue
        if any(matches(selector, other) for selector in selectors):
            found += [rule for rule in other.get("rules") or () if rule not in found]
    return found
