"""Decides which policies, bindings and webhooks concern a write, and finds the parameters of a binding.

Source: apiserver v1.36 ``pkg/admission/plugin/policy/{matching,generic}``, ``webhook/predicates``.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from roadstead.admission.authorizer import authorizer_of
from roadstead.kinds.kind import Kind
from roadstead.values.selectors import matches_labels, selector_requirements
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj, Resource

GROUP = "admissionregistration.k8s.io"
#: What no policy and no webhook may concern, so that a mistake in one can be undone.
_EXCLUDED_PLURALS = frozenset(
    {
        *("validatingadmissionpolicies", "validatingadmissionpolicybindings"),
        *("mutatingadmissionpolicies", "mutatingadmissionpolicybindings"),
        *("validatingwebhookconfigurations", "mutatingwebhookconfigurations"),
    }
)


class ParamsError(Exception):
    """The parameters of a binding cannot be read, or are missing."""


def is_exempt(attempt: Attempt) -> bool:
    """Whether neither policies nor webhooks may concern a write."""
    return attempt.resource.group == GROUP and attempt.resource.plural in _EXCLUDED_PLURALS


def is_excluded(attempt: Attempt) -> bool:
    """Whether no policy may concern a write."""
    return attempt.resource.ephemeral or is_exempt(attempt)


def namespace_of(api: Api, attempt: Attempt) -> Obj | None:
    """The namespace of a write: that of the object, or the namespace that is itself written."""
    if attempt.resource.key == "namespaces":
        return attempt.obj or attempt.old
    return api.find("namespaces", None, attempt.namespace) if attempt.namespace else None


def seen(
    api: Api, match: Mapping[str, Any] | None, attempt: Attempt, namespace: Obj | None
) -> Attempt | None:
    """The write as a policy, binding or webhook sees it; None where its rules and selectors do not match.

    With ``matchPolicy: Equivalent``, which is the default, rules that name another version of the resource
    match, and the objects are converted to that version.

    Args:
        api: knows versions.
        match: ``matchConstraints`` or ``matchResources``; None matches everything.
        attempt: the write.
        namespace: its namespace, None for an object of the cluster.
    """
    match = match or {}
    if any(_matches_rule(rule, attempt) for rule in match.get("excludeResourceRules") or ()):
        return None
    given = match.get("resourceRules")
    found: Attempt | None = attempt
    if given and not any(_matches_rule(rule, attempt) for rule in given):
        found = _equivalent(api, given, attempt) if match.get("matchPolicy") != "Exact" else None
    selector = match.get("namespaceSelector")
    if selector and namespace is not None and not _selects(selector, namespace):
        return None
    selector = match.get("objectSelector")
    if selector and not any(
        one is not None and _selects(selector, one) for one in (attempt.obj, attempt.old)
    ):
        return None
    return found


def _equivalent(api: Api, rules: list[Obj], attempt: Attempt) -> Attempt | None:
    """The write in the first version that a rule names."""
    others = [
        dataclasses.replace(attempt, resource=one)
        for one in api.registry.of_collection(attempt.resource.collection)
        if one != attempt.resource
    ]
    matching = (one.resource for rule in rules for one in others if _matches_rule(rule, one))
    return next((in_version(api, attempt, one) for one in matching), None)


def in_version(api: Api, attempt: Attempt, resource: Resource) -> Attempt:
    """A write in another version of its resource; a Scale, Binding or Eviction has one of its own."""
    if resource == attempt.resource:
        return attempt
    requested = attempt.requested or attempt.resource
    changed = dataclasses.replace(attempt, resource=resource, requested=requested)
    if attempt.kind[2] != attempt.resource.kind:
        return changed

    def converted(obj: Obj | None) -> Obj | None:
        return None if obj is None else api.converted(resource, obj, resource.api_version)

    return dataclasses.replace(changed, obj=converted(attempt.obj), old=converted(attempt.old))


def kind_of(api: Api, attempt: Attempt) -> tuple[Kind, Resource]:
    """The kind of a write's object, and a resource that names it: of a Scale where it is one."""
    resource = attempt.resource
    group, version, name = attempt.kind
    if (group, version, name) == (resource.group, resource.version, resource.kind):
        return api.kind(resource), resource
    return Kind(), dataclasses.replace(resource, group=group, version=version, kind=name)


def internal(why: str) -> StatusError:
    """500, in whose message a reason stands."""
    return StatusError(
        500, "InternalError", f"Internal error occurred: {why}", {"causes": [{"message": why}]}
    )


def decoded(obj: Any, kind: Kind, resource: Resource) -> tuple[Obj, list[str]]:
    """What admission has made of an object, with its fields decoded, and the paths of unknown ones.

    Raises:
        StatusError: 500, if a value does not fit its field.
    """
    try:
        return kind.decode(obj, resource)
    except StatusError as error:
        raise internal(str(error.__cause__ or error.message)) from error


def _selects(selector: Obj, obj: Obj) -> bool:
    meta = obj.get("metadata")  # options of a connection have none, and no selector selects them
    return meta is not None and matches_labels(
        selector_requirements(selector) or (), meta.get("labels") or {}
    )


def _matches_rule(rule: Mapping[str, Any], attempt: Attempt) -> bool:
    resource = attempt.resource
    scope = rule.get("scope") or "*"
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("operations"), attempt.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and any(_names(one, resource.plural, attempt.subresource) for one in rule.get("resources") or ())
        and (scope == "*" or (scope == "Namespaced") is resource.namespaced)
        and (not names or attempt.name in names)
    )


def _names(pattern: str, plural: str, subresource: str) -> bool:
    """Whether a rule's resource names one: "pods", "pods/*" (pods themselves, too), "*/scale"."""
    whole, _, sub = pattern.partition("/")
    return whole in ("*", plural) and sub in ("*", subresource)


def _has(allowed: list[str] | None, value: str) -> bool:
    return "*" in (allowed or ()) or value in (allowed or ())


def parameters(api: Api, policy: Obj, binding: Obj, attempt: Attempt) -> list[Obj | None]:
    """The objects with which a policy is evaluated for a binding: each once, None without parameters.

    Raises:
        ParamsError: they are missing, and that denies the write; or they cannot be read.
    """
    kind, ref = policy["spec"].get("paramKind"), binding["spec"].get("paramRef")
    if not kind or not ref:
        return [None]
    resource = api.registry.of_kind(kind["apiVersion"], kind["kind"])
    if resource is None:
        raise ParamsError(
            f'failed to find resource referenced by paramKind: "{kind["apiVersion"]}, Kind={kind["kind"]}"'
        )
    namespace = None
    if resource.namespaced:
        namespace = ref.get("namespace") or attempt.namespace
        if not namespace:
            raise ParamsError(
                "cannot use namespaced paramRef in policy binding that matches cluster-scoped resources"
            )
    elif ref.get("namespace"):
        raise ParamsError("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")
    if ref.get("name"):
        one = api.find(resource, namespace, ref["name"])
        found = [] if one is None else [one]
    else:
        wanted = selector_requirements(ref.get("selector") or {}) or ()
        found = [
            one
            for one in api.list(resource, namespace)
            if matches_labels(wanted, one["metadata"].get("labels") or {})
        ]
    if not found and ref.get("parameterNotFoundAction", "Deny") == "Deny":
        raise ParamsError("no params found for policy binding with `Deny` parameterNotFoundAction")
    return [*found]


def known_of(api: Api, attempt: Attempt, namespace: Obj | None) -> Obj:
    """The variables of every expression, but for ``params``."""
    return {
        "object": attempt.obj,
        "oldObject": attempt.old,
        "request": request_of(attempt),
        "namespaceObject": namespace if attempt.namespace else None,
        "authorizer": authorizer_of(api, attempt),
    }


def details_of(attempt: Attempt, why: str) -> Obj:
    """The details of a refusal, but for the object's name."""
    resource = attempt.resource
    group = {"group": resource.group} if resource.group else {}
    return {**group, "kind": resource.plural, "causes": [{"message": why}]}


def request_of(attempt: Attempt) -> Obj:
    """The write as ``request`` in expressions, and as an AdmissionRequest without uid and objects."""
    resource, requested = attempt.resource, attempt.requested or attempt.resource
    asked = attempt if attempt.requested is None else dataclasses.replace(attempt, resource=requested)
    return {
        "kind": dict(zip(("group", "version", "kind"), attempt.kind, strict=True)),
        "resource": {"group": resource.group, "version": resource.version, "resource": resource.plural},
        "subResource": attempt.subresource,
        "requestKind": dict(zip(("group", "version", "kind"), asked.kind, strict=True)),
        "requestResource": {
            "group": requested.group,
            "version": requested.version,
            "resource": requested.plural,
        },
        "requestSubResource": attempt.subresource,
        "name": attempt.name,
        "namespace": attempt.name if resource.key == "namespaces" else attempt.namespace,
        "operation": attempt.operation,
        "userInfo": attempt.user,
        "dryRun": attempt.dry_run,
        "options": None if attempt.operation == "CONNECT" else attempt.options,
    }
