"""Implements the subresources binding, eviction, scale and finalize.

Source: Kubernetes v1.36 ``pkg/registry/core/pod/storage`` (storage.go, eviction.go), ``pkg/registry/apps``,
``pkg/registry/core/namespace/storage``.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from roadstead.kinds.checks.fields import not_negative
from roadstead.values.copies import copied
from roadstead.values.selectors import matches_labels, selector_requirements
from roadstead.values.status_errors import (
    MODIFIED,
    Cause,
    StatusError,
    bad_request,
    conflict,
    invalid,
    not_found,
    too_many_requests,
)

if TYPE_CHECKING:
    from roadstead.kinds.kind import ScalePaths
    from roadstead.store.api import Api, Write
    from roadstead.store.deletion import DeleteOptions
    from roadstead.store.store import Entry, Key
    from roadstead.values.resources import Obj, Resource

_ZONES = ("topology.kubernetes.io/zone", "topology.kubernetes.io/region")


def _wrong_body(kind: str, api_version: str, obj: Obj) -> StatusError:
    given = f"{obj.get('apiVersion', '')}, Kind={obj.get('kind', '')}"
    return bad_request(
        f"the object provided is unrecognized: expected {api_version}, Kind={kind}, got {given}"
    )


def _check_kind(obj: Obj, kind: str, api_version: str) -> None:
    if (obj.get("kind", kind), obj.get("apiVersion", api_version)) != (kind, api_version):
        raise _wrong_body(kind, api_version, obj)


def set_condition(status: Obj, condition: Obj, now: str) -> Obj:
    """A status with a condition set; the transition time changes with the condition's status."""
    conditions = list(status.get("conditions") or ())
    for index, one in enumerate(conditions):
        if one.get("type") == condition["type"]:
            same = one.get("status") == condition["status"] and one.get("lastTransitionTime")
            conditions[index] = {
                **condition,
                "lastTransitionTime": one["lastTransitionTime"] if same else now,
            }
            break
    else:
        conditions.append({**condition, "lastTransitionTime": now})
    return {**status, "conditions": conditions}


# -- binding -------------------------------------------------------------------------------------------------


def bind(api: Api, key: Key, binding: Obj, how: Write, *, labelled: bool) -> None:
    """Assign a pod to a node.

    Args:
        api: where.
        key: namespace and name of the pod.
        binding: the Binding, which names the node.
        how: options of the write.
        labelled: whether the pod gets its node's zone and region (False for the older path).

    Raises:
        StatusError: 400, 404; 409 if the pod is assigned already, gated, being deleted or has another uid.
    """
    namespace, name = key
    _check_kind(binding, "Binding", "v1")
    meta = binding.get("metadata") or {}
    if meta.get("name") != name:
        raise bad_request("name in URL does not match name in Binding object")
    target = binding.get("target") or {}
    causes = []
    if target.get("kind") not in (None, "", "Node"):
        message = f'Unsupported value: "{target["kind"]}": supported values: "Node", "<empty>"'
        causes.append(Cause("target.kind", message, "FieldValueNotSupported"))
    if not target.get("name"):
        causes.append(Cause("target.name", "Required value", "FieldValueRequired"))
    pods = api.resource("pods")
    if causes:
        raise invalid(replace(pods, kind="Binding"), name, causes)
    if labelled:
        binding = api.admitted(pods, key, binding, how, subresource="binding")
        meta, target = binding.get("metadata") or {}, binding.get("target") or {}
    entry = api.store.collection("pods").entries.get((namespace, name))
    if entry is None:
        raise not_found(pods, name)
    pod = entry.obj
    _same_pod(pods, pod, meta)
    why = ""
    if pod["metadata"].get("deletionTimestamp"):
        why = f"pod {name} is being deleted, cannot be assigned to a host"
    elif pod["spec"].get("nodeName"):
        why = f'pod {name} is already assigned to node "{pod["spec"]["nodeName"]}"'
    elif pod["spec"].get("schedulingGates"):
        why = f"pod {name} has non-empty .spec.schedulingGates"
    if why:
        raise conflict(replace(pods, plural="pods/binding"), name, why)
    bound = {
        **pod,
        "metadata": dict(pod["metadata"]),
        "spec": {**pod["spec"], "nodeName": target["name"]},
        "status": dict(pod.get("status") or {}),
    }
    _label(api, bound, meta, target["name"] if labelled else "")
    bound["status"].pop("nominatedNodeName", None)
    scheduled = {"type": "PodScheduled", "status": "True"}
    bound["status"] = set_condition(bound["status"], scheduled, api.now())
    api.replace(pods, (namespace, name), bound, entry, how)


def _same_pod(pods: Resource, pod: Obj, meta: Obj) -> None:
    now = pod["metadata"]
    if meta.get("uid") and meta["uid"] != now["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {now['uid']}"
        raise conflict(pods, now["name"], why)
    version = meta.get("resourceVersion")
    if version and version != now["resourceVersion"]:
        why = (
            f"Precondition failed: ResourceVersion in precondition: {version}, "
            f"ResourceVersion in object meta: {now['resourceVersion']}"
        )
        raise conflict(pods, now["name"], why)


def _label(api: Api, pod: Obj, meta: Obj, node_name: str) -> None:
    """Labels and annotations of the binding, and the node's zone and region."""
    node = api.find("nodes", None, node_name)
    labels = ((node or {}).get("metadata") or {}).get("labels") or {}
    topology = {key: labels[key] for key in _ZONES if key in labels}
    for key, more in (
        ("labels", {**topology, **(meta.get("labels") or {})}),
        ("annotations", meta.get("annotations")),
    ):
        if more:
            pod["metadata"][key] = {**(pod["metadata"].get(key) or {}), **more}


# -- eviction ------------------------------------------------------------------------------------------------

_VIOLATES = "Cannot evict pod as it would violate the pod's disruption budget."
_DISRUPTED = {
    "type": "DisruptionTarget",
    "status": "True",
    "reason": "EvictionByEvictionAPI",
    "message": "Eviction API: evicting",
}
#: Seconds after which to retry if the budget's status is out of date.
_RETRY_SECONDS = 10


def evict(api: Api, key: Key, eviction: Obj, how: Write, options: DeleteOptions) -> None:
    """Delete a pod if its budget allows it.

    Raises:
        StatusError: 400, 404, 409; 429 if the budget forbids it; 500 if several budgets select the pod.
    """
    namespace, name = key
    _check_kind(eviction, "Eviction", "policy/v1")
    if (eviction.get("metadata") or {}).get("name") != name:
        raise bad_request("name in URL does not match name in Eviction object")
    pods = api.resource("pods")
    api.admitted(pods, key, eviction, how, subresource="eviction")
    entry = api.store.collection("pods").entries.get((namespace, name))
    if entry is None:
        raise not_found(pods, name)
    pod = entry.obj
    if options.uid and options.uid != pod["metadata"]["uid"]:
        why = (
            f"Precondition failed: UID in precondition: {options.uid}, "
            f"UID in object meta: {pod['metadata']['uid']}"
        )
        refused = conflict(pods, name, why)
        refused.details["kind"] = "Pod"
        raise refused
    version = pod["metadata"]["resourceVersion"]
    if options.resource_version and options.resource_version != version:
        why = (
            f"the ResourceVersion in the precondition ({options.resource_version}) does not match the "
            f"ResourceVersion in record ({version}). The object might have been modified"
        )
        raise conflict(replace(pods, plural="Pod"), name, why)
    if not _needs_no_budget(pod):
        _take_from_budget(api, pod, how)
    if how.dry_run:
        return
    marked = {**pod, "metadata": dict(pod["metadata"])}
    marked["status"] = set_condition(pod.get("status") or {}, _DISRUPTED, api.now())
    api.replace(pods, (namespace, name), marked, entry, how)
    if options.resource_version:  # the condition above has changed it
        now = api.store.collection("pods").entries[namespace, name].obj["metadata"]["resourceVersion"]
        options = replace(options, resource_version=now)
    api.remove(pods, namespace, name, options, judged=False)


def _needs_no_budget(pod: Obj) -> bool:
    phase = (pod.get("status") or {}).get("phase")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


def _is_ready(pod: Obj) -> bool:
    conditions = (pod.get("status") or {}).get("conditions") or ()
    return any(one.get("type") == "Ready" and one.get("status") == "True" for one in conditions)


def budgets_of(api: Api, pod: Obj) -> list[Entry]:
    """The budgets that select a pod."""
    labels = pod["metadata"].get("labels") or {}
    collection = api.store.collection("poddisruptionbudgets.policy")
    found = []
    for key in collection.ordered(pod["metadata"]["namespace"]):
        requirements = selector_requirements((collection.entries[key].obj.get("spec") or {}).get("selector"))
        if requirements is not None and matches_labels(requirements, labels):
            found.append(collection.entries[key])
    return found


def _take_from_budget(api: Api, pod: Obj, how: Write) -> None:
    """Count a pod against its budget.

    Raises:
        StatusError: 429, 500.
    """
    found = budgets_of(api, pod)
    if not found:
        return
    if len(found) > 1:
        message = (
            "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
        )
        raise StatusError(500, "", message)
    budget, status = found[0].obj, found[0].obj.get("status") or {}
    desired, healthy = status.get("desiredHealthy", 0), status.get("currentHealthy", 0)
    if not _is_ready(pod):
        policy = (budget.get("spec") or {}).get("unhealthyPodEvictionPolicy", "IfHealthyBudget")
        if policy == "AlwaysAllow" or (healthy >= desired > 0):
            return
    name = budget["metadata"]["name"]
    if status.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        text = f"The disruption budget {name} is still being processed by the server."
        raise _refused(text, retry_after=_RETRY_SECONDS)
    if status.get("disruptionsAllowed", 0) < 0:
        raise StatusError(403, "Forbidden", "pdb disruptions allowed is negative")
    if len(status.get("disruptedPods") or {}) > 2000:
        raise StatusError(
            403, "Forbidden", "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if status.get("disruptionsAllowed", 0) == 0 and healthy > desired:
        raise _refused(f"The disruption budget {name} does not allow evicting pods currently")
    if status.get("disruptionsAllowed", 0) == 0:
        raise _refused(
            f"The disruption budget {name} needs {desired} healthy pods and has {healthy} currently"
        )
    if how.dry_run:
        return
    _keep_books(api, found[0], pod, how)


def _refused(message: str, retry_after: int | None = None) -> StatusError:
    error = too_many_requests(_VIOLATES, causes=[{"reason": "DisruptionBudget", "message": message}])
    if retry_after is not None:
        error.details["retryAfterSeconds"] = retry_after
    return error


def _keep_books(api: Api, entry: Entry, pod: Obj, how: Write) -> None:
    budget = copied(entry.obj)
    status: dict[str, Any] = budget["status"]
    status["disruptionsAllowed"] -= 1
    status["disruptedPods"] = {**(status.get("disruptedPods") or {}), pod["metadata"]["name"]: api.now()}
    if status["disruptionsAllowed"] == 0:
        insufficient = {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "observedGeneration": budget["metadata"].get("generation", 0),
        }
        budget["status"] = set_condition(status, insufficient, api.now())
    resource = api.resource("poddisruptionbudgets.policy")
    key = (budget["metadata"]["namespace"], budget["metadata"]["name"])
    api.replace(resource, key, budget, entry, how)


# -- scale ---------------------------------------------------------------------------------------------------


def _at(obj: Obj, path: tuple[str, ...]) -> Any:
    value: Any = obj
    for step in path:
        value = value.get(step) if isinstance(value, dict) else None
    return value


def selector_text(selector: Any) -> str:
    """A label selector in the form of a query string; a string is returned unchanged."""
    if not isinstance(selector, dict):
        return selector or ""
    if "matchLabels" not in selector and "matchExpressions" not in selector:
        return ",".join(f"{key}={value}" for key, value in sorted(selector.items()))
    parts = [(key, f"{key}={value}") for key, value in (selector.get("matchLabels") or {}).items()]
    for one in selector.get("matchExpressions") or ():
        key, values = one["key"], ",".join(sorted(one.get("values") or ()))
        text = {
            "In": f"{key} in ({values})",
            "NotIn": f"{key} notin ({values})",
            "Exists": key,
            "DoesNotExist": f"!{key}",
        }
        parts.append((key, text.get(one["operator"], key)))
    return ",".join(text for _, text in sorted(parts))


def scale_of(obj: Obj, paths: ScalePaths) -> Obj:
    """An object's ``autoscaling/v1`` Scale."""
    meta = obj["metadata"]
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    replicas = _at(obj, paths.spec) or 0
    status: Obj = {"replicas": _at(obj, paths.status) or 0}
    if paths.selector and (selector := selector_text(_at(obj, paths.selector))):
        status["selector"] = selector
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {key: meta[key] for key in kept if key in meta},
        "spec": {"replicas": replicas} if replicas else {},
        "status": status,
    }


def rescale(api: Api, resource: Resource, entry: Entry, scale: Obj, how: Write) -> Obj:
    """Write the replicas of a Scale into its object; returns the new Scale.

    Raises:
        StatusError: 409, if the Scale is stale; 422.
    """
    obj = api.served(resource, entry).obj
    paths = api.kind(resource).scale_paths(resource)
    name = obj["metadata"]["name"]
    key = (obj["metadata"].get("namespace") or "", name)
    scale = api.admitted(resource, key, scale, how, subresource="scale", old=scale_of(obj, paths))
    replicas = (scale.get("spec") or {}).get("replicas") or 0
    causes = not_negative("spec.replicas", replicas)
    if causes:
        raise invalid(replace(resource, kind="Scale", group="autoscaling"), name, causes)
    version = (scale.get("metadata") or {}).get("resourceVersion")
    if version and version != obj["metadata"]["resourceVersion"]:
        raise conflict(resource, name, MODIFIED)
    new = copied(obj)
    holder: Obj = new
    for step in paths.spec[:-1]:
        holder = holder.setdefault(step, {})
    holder[paths.spec[-1]] = replicas
    return scale_of(api.update_owned(resource, new, replace(how, judged=False)).obj, paths)


# -- finalize ------------------------------------------------------------------------------------------------


def finalize(api: Api, name: str, namespace: Obj, how: Write) -> Entry:
    """Replace the finalizers of a namespace's spec; without any, a terminating namespace is removed.

    Raises:
        StatusError: 404, 409.
    """
    resource = api.resource("namespaces")
    entry = api.store.collection("namespaces").entries.get(("", name))
    if entry is None:
        raise not_found(resource, name)
    version = (namespace.get("metadata") or {}).get("resourceVersion")
    if version and version != entry.obj["metadata"]["resourceVersion"]:
        raise conflict(resource, name, MODIFIED)
    new = copied(entry.obj)
    finalizers = (namespace.get("spec") or {}).get("finalizers")
    new["spec"] = {"finalizers": finalizers} if finalizers else {}
    ends = (
        new["metadata"].get("deletionTimestamp") and not finalizers and not new["metadata"].get("finalizers")
    )
    if ends and not how.dry_run:
        return api.commit("namespaces", "DELETED", ("", name), new, entry.managers)
    return api.replace(resource, ("", name), new, entry, how)
