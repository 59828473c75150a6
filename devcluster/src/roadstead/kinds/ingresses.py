"""Sets defaults of Ingresses and checks them.

Source: Kubernetes v1.36 ``pkg/apis/networking/validation``,
``plugin/pkg/admission/network/defaultingressclass``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import invalid, one_of, required
from roadstead.kinds.kind import Kind, StatusKind

if TYPE_CHECKING:
    from roadstead.kinds.kind import Objects
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause

_CLASSES = "ingressclasses.networking.k8s.io"
_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_OLD_CLASS = "kubernetes.io/ingress.class"
_PATH_TYPES = ("Exact", "ImplementationSpecific", "Prefix")


class IngressClasses(Kind):
    """IngressClasses."""

    counts_generation = True
    returns_deleted = False


class Ingresses(StatusKind):
    """Ingresses; no controller gives them an address."""

    def prepare_create(self, obj: Obj) -> None:
        """A new Ingress has no address."""
        obj["status"] = {"loadBalancer": {}}

    def admit_create(self, obj: Obj, objects: Objects) -> None:
        """An Ingress without class gets the default one."""
        spec = obj.setdefault("spec", {})
        if spec.get("ingressClassName") or _OLD_CLASS in (obj["metadata"].get("annotations") or {}):
            return
        marked = [
            one["metadata"]["name"]
            for one in objects.list(_CLASSES)
            if (one["metadata"].get("annotations") or {}).get(_DEFAULT_CLASS) == "true"
        ]
        if marked:
            spec["ingressClassName"] = marked[0]

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of rules and backends."""
        spec = obj.get("spec") or {}
        causes: list[Cause] = []
        if not spec.get("rules") and spec.get("defaultBackend") is None:
            causes.append(invalid("spec", None, "either `defaultBackend` or `rules` must be specified"))
        if spec.get("defaultBackend") is not None:
            causes += _backend_causes(spec["defaultBackend"], "spec.defaultBackend")
        for number, rule in enumerate(spec.get("rules") or ()):
            paths = (rule.get("http") or {}).get("paths")
            if "http" in rule and not paths:
                causes.append(required(f"spec.rules[{number}].http.paths"))
            for index, path in enumerate(paths or ()):
                causes += _path_causes(path, f"spec.rules[{number}].http.paths[{index}]")
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """As at creation."""
        del old
        return self.validate_create(new)


def _path_causes(path: Obj, at: str) -> list[Cause]:
    kind, text = path.get("pathType"), path.get("path", "")
    if kind is None:
        return [required(f"{at}.pathType", "pathType must be specified")]
    causes = one_of(f"{at}.pathType", kind, _PATH_TYPES)
    if not text.startswith("/") and not (kind == "ImplementationSpecific" and not text):
        causes.append(invalid(f"{at}.path", text, "must be an absolute path"))
    return causes + _backend_causes(path.get("backend") or {}, f"{at}.backend")


def _backend_causes(backend: Obj, at: str) -> list[Cause]:
    service = backend.get("service")
    if service is None:
        return [] if backend.get("resource") else [required(at, "port name or number is required")]
    causes = [] if service.get("name") else [required(f"{at}.service.name")]
    port = service.get("port") or {}
    if not port.get("name") and not port.get("number"):
        causes.append(required(at, "port name or number is required"))
    return causes
