"""Checks roles and their bindings; :mod:`roadstead.authorization` decides by them.

Source: Kubernetes v1.36 ``pkg/apis/rbac/{validation,v1/defaults.go}``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    invalid,
    label_selector,
    not_among,
    one_of,
    required,
    subdomain_name,
)
from roadstead.kinds.checks.metadata import path_segment_faults
from roadstead.kinds.kind import Kind

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_GROUP = "rbac.authorization.k8s.io"


class _Granting(Kind):
    """A kind of a namespace or of the cluster."""

    def __init__(self, *, namespaced: bool) -> None:
        self._namespaced = namespaced

    def name_faults(self, name: str) -> list[str]:
        """Any path segment is a name, such as "system:node"."""
        return path_segment_faults(name)


class Roles(_Granting):
    """Roles of a namespace or of the cluster."""

    def default(self, obj: Obj) -> None:
        """Rules are always present, possibly empty."""
        obj.setdefault("rules", None)
        for rule in obj["rules"] or ():
            rule.setdefault("verbs", None)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new one."""
        causes: list[Cause] = []
        for index, rule in enumerate(obj["rules"] or ()):
            causes += self._rule_causes(rule, f"rules[{index}]")
        aggregated, at = obj.get("aggregationRule"), "aggregationRule.clusterRoleSelectors"
        if self._namespaced or aggregated is None:
            return causes
        selectors = aggregated.get("clusterRoleSelectors") or []
        if not selectors:
            message = "at least one clusterRoleSelector required if aggregationRule is non-nil"
            causes.append(required(at, message))
        for index, selector in enumerate(selectors):
            faults = label_selector(selector, f"{at}[{index}]")
            causes += [*faults, invalid(f"{at}[{index}]", None, "invalid label selector.")] if faults else []
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)

    def _rule_causes(self, rule: Obj, at: str) -> list[Cause]:
        causes = []
        if not rule.get("verbs"):
            causes.append(required(f"{at}.verbs", "verbs must contain at least one value"))
        urls = rule.get("nonResourceURLs")
        if urls:
            here = f"{at}.nonResourceURLs"
            if self._namespaced:
                causes.append(invalid(here, urls, "namespaced rules cannot apply to non-resource URLs"))
            if any(rule.get(field) for field in ("apiGroups", "resources", "resourceNames")):
                message = "rules cannot apply to both regular resources and non-resource URLs"
                causes.append(invalid(here, urls, message))
            return causes
        for field, word in (("apiGroups", "api group"), ("resources", "resource")):
            if not rule.get(field):
                causes.append(required(f"{at}.{field}", f"resource rules must supply at least one {word}"))
        return causes


class RoleBindings(_Granting):
    """Bindings of roles in a namespace or in the cluster."""

    def default(self, obj: Obj) -> None:
        """The API group of roles, users and groups."""
        role = obj.setdefault("roleRef", {})
        if not role.get("apiGroup"):
            role["apiGroup"] = _GROUP
        role.setdefault("kind", "")
        role.setdefault("name", "")
        for subject in obj.get("subjects") or ():
            if not subject.get("apiGroup") and subject.get("kind") in ("User", "Group"):
                subject["apiGroup"] = _GROUP

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new one."""
        role = obj["roleRef"]
        kinds = ("Role", "ClusterRole") if self._namespaced else ("ClusterRole",)
        causes = one_of("roleRef.apiGroup", role["apiGroup"], (_GROUP,))
        causes += one_of("roleRef.kind", role["kind"], kinds)
        if not role["name"]:
            causes.append(required("roleRef.name"))
        causes += [
            invalid("roleRef.name", role["name"], fault) for fault in path_segment_faults(role["name"])
        ]
        for index, subject in enumerate(obj.get("subjects") or ()):
            causes += self._subject_causes(subject, f"subjects[{index}]")
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """The role cannot change."""
        causes = self.validate_create(new)
        if new["roleRef"] != old["roleRef"]:
            shown = {key.capitalize().replace("g", "G"): value for key, value in new["roleRef"].items()}
            causes.append(invalid("roleRef", shown, "cannot change roleRef"))
        return causes

    def _subject_causes(self, subject: Obj, at: str) -> list[Cause]:
        kind, name, group = (subject.get(field, "") for field in ("kind", "name", "apiGroup"))
        causes = [] if name else [required(f"{at}.name")]
        if kind in ("User", "Group"):
            return causes + one_of(f"{at}.apiGroup", group, (_GROUP,))
        if kind != "ServiceAccount":
            return [*causes, not_among(f"{at}.kind", kind, ("ServiceAccount", "User", "Group"))]
        if name:
            causes += subdomain_name(f"{at}.name", name)
        causes += one_of(f"{at}.apiGroup", group, ("",))
        if not self._namespaced and not subject.get("namespace"):
            causes.append(required(f"{at}.namespace"))
        return causes
