"""The template of a workload's pods.

Source: Kubernetes v1.36 ``pkg/apis/core/validation/validation.go``: ``ValidatePodTemplateSpec``. That causes
leave out ``metadata`` before labels and annotations is upstream's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import forbidden
from roadstead.kinds.checks.metadata import annotation_key_causes, label_causes
from roadstead.kinds.podspec.checks import annotation_causes, spec_causes
from roadstead.kinds.podspec.defaults import default_spec

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause


def default_template(template: Obj) -> None:
    """Fill in what was left out."""
    template.setdefault("metadata", {})
    default_spec(template.setdefault("spec", {}))


def template_causes(template: Obj, at: str) -> list[Cause]:
    """What is wrong with a template."""
    annotations = template["metadata"].get("annotations") or {}
    causes = label_causes(template["metadata"].get("labels"), f"{at}.labels")
    causes += annotation_key_causes(annotations, f"{at}.annotations")
    causes += annotation_causes(annotations, f"{at}.annotations")
    causes += spec_causes(template["spec"], f"{at}.spec")
    if template["spec"].get("ephemeralContainers"):
        told = "ephemeral containers not allowed in pod template"
        causes.append(forbidden(f"{at}.spec.ephemeralContainers", told))
    return causes
