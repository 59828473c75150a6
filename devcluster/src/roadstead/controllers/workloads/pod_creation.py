"""Creates and deletes the pods of workloads, with events.

Source: kubernetes v1.36 ``pkg/controller/controller_utils.go`` (GetPodFromTemplate, and the events that
``RealPodControl`` emits).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj


def pod_from_template(template: Obj, owner: Obj, reference: Obj) -> Obj:
    """A pod of a workload's template, named after the workload; the API server sets the defaults."""
    template_metadata = template.get("metadata") or {}
    metadata: Obj = {
        "generateName": f"{owner['metadata']['name']}-",
        "namespace": owner["metadata"]["namespace"],
        "labels": dict(template_metadata.get("labels") or {}),
        "ownerReferences": [reference],
    }
    if template_metadata.get("annotations"):
        metadata["annotations"] = dict(template_metadata["annotations"])
    if template_metadata.get("finalizers"):
        metadata["finalizers"] = list(template_metadata["finalizers"])
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": copied(template["spec"])}


def create_pod(context: Context, component: str, owner: Obj, pod: Obj) -> Obj:
    """Create a workload's pod and record an event.

    Raises:
        StatusError: the API rejected it; an event is recorded as well.
    """
    try:
        created = context.api.create("pods", pod)
    except StatusError as error:
        causes = error.details.get("causes") or ()
        if not any(cause.get("reason") == "NamespaceTerminating" for cause in causes):
            context.events.record(
                component, owner, "FailedCreate", f"Error creating: {error.message}", "Warning"
            )
        raise
    name = created["metadata"]["name"]
    context.events.record(component, owner, "SuccessfulCreate", f"Created pod: {name}")
    return created


def delete_pod(context: Context, component: str, owner: Obj, pod: Obj) -> None:
    """Delete a workload's pod and record an event; a missing pod is not an error."""
    metadata = pod["metadata"]
    try:
        context.api.delete("pods", metadata["namespace"], metadata["name"], uid=metadata["uid"])
    except StatusError as error:
        if error.code in (404, 409):
            return
        raise
    context.events.record(component, owner, "SuccessfulDelete", f"Deleted pod: {metadata['name']}")
