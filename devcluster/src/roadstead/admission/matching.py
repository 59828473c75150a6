"""Decides which policies and bindings concern a write, and finds the parameters of a binding.

Source: apiserver v1.36 ``pkg/admission/plugin/policy/{matching,generic}``, ``webhook/predicates``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from roadstead.values.selectors import matches_labels, selector_requirements

if TYPE_CHECKING:
    from collections.abc import Mapping

    from roadstead.store.admission import Attempt
    from roadstead.store.api import Api
    from roadstead.values.resources import Obj

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


def is_excluded(attempt: Attempt) -> bool:
    """Whether no policy may concern a write."""
    resource = attempt.resource
    return resource.ephemeral or (resource.group == GROUP and resource.plural in _EXCLUDED_PLURALS)


def namespace_of(api: Api, attempt: Attempt) -> Obj | None:
    """The namespace of a write: that of the object, or the namespace that is itself written."""
    if attempt.resource.key == "namespaces":
        return attempt.obj or attempt.old
    return api.find("namespaces", None, attempt.namespace) if attempt.namespace else None


def concerns(match: Mapping[str, Any] | None, attempt: Attempt, namespace: Obj | None) -> bool:
    """Whether the rules and selectors of a policy or binding match a write.

    Args:
        match: ``matchConstraints`` or ``matchResources``; None matches everything.
        attempt: the write.
        namespace: its namespace, None for an object of the cluster.
    """
    match = match or {}
    if any(_matches_rule(rule, attempt) for rule in match.get("excludeResourceRules") or ()):
        return False
    given = match.get("resourceRules")
    if given and not any(_matches_rule(rule, attempt) for rule in given):
        return False
    selector = match.get("namespaceSelector")
    if selector and namespace is not None and not _selects(selector, namespace):
        return False
    selector = match.get("objectSelector")
    return not selector or any(
        one is not None and _selects(selector, one) for one in (attempt.obj, attempt.old)
    )


def _selects(selector: Obj, obj: Obj) -> bool:
    return matches_labels(selector_requirements(selector) or (), obj["metadata"].get("labels") or {})


def _matches_rule(rule: Mapping[str, Any], attempt: Attempt) -> bool:
    resource = attempt.resource
    scope = rule.get("scope") or "*"
    names = rule.get("resourceNames") or ()
    return (
        _has(rule.get("operations"), attempt.operation)
        and _has(rule.get("apiGroups"), resource.group)
        and _has(rule.get("apiVersions"), resource.version)
        and any(_names(one, resource.plural, attempt.subresource) for one in rule.get("resources") or ())
        and (scope == "*" or (scope == "Namespaced") is bool(attempt.namespace))
        and (not names or attempt.name in names)
    )


def _names(pattern: str, plural: str, subresource: str) -> bool:
    """Whether a rule's resource, such as "pods", "pods/*" or "*/scale", names one."""
    whole, _, sub = pattern.partition("/")
    return whole in ("*", plural) and (
        sub == subresource or (sub == "*" and (whole == "*" or bool(subresource)))
    )


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


def known_of(attempt: Attempt, namespace: Obj | None) -> Obj:
    """The variables of every expression, but for ``params``."""
    return {
        "object": attempt.obj,
        "oldObject": attempt.old,
        "request": _request_of(attempt),
        "namespaceObject": namespace if attempt.namespace else None,
    }


def details_of(attempt: Attempt, why: str) -> Obj:
    """The details of a refusal, but for the object's name."""
    resource = attempt.resource
    group = {"group": resource.group} if resource.group else {}
    return {**group, "kind": resource.plural, "causes": [{"message": why}]}


def _request_of(attempt: Attempt) -> Obj:
    resource = attempt.resource
    kind = {"group": resource.group, "version": resource.version, "kind": resource.kind}
    plural = {"group": resource.group, "version": resource.version, "resource": resource.plural}
    return {
        "kind": kind,
        "resource": plural,
        "subResource": attempt.subresource,
        "requestKind": kind,
        "requestResource": plural,
        "requestSubResource": attempt.subresource,
        "name": attempt.name,
        "namespace": attempt.namespace,
        "operation": attempt.operation,
        "userInfo": attempt.user,
        "dryRun": attempt.dry_run,
    }
