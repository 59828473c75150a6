"""Creates pods' and PodGroups' claims on devices from templates, and releases claims no longer used.

A claim is released in two steps: the pod is removed from ``reservedFor``; with the last pod, the allocation
and the finalizer are removed. Claims created for a pod are deleted when it has finished; claims of deleted
pods are garbage. A claim that a pod lists as its PodGroup does is the group's: it is made once for the group,
reserved for it, and released with it.

Source: kubernetes v1.36 ``pkg/controller/resourceclaim/controller.go``, with DRAWorkloadResourceClaims.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import controller_of, key_of
from roadstead.controllers.pod_state import is_finished, is_terminating
from roadstead.kinds.pod_groups import GROUP, POD_GROUPS, group_of
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.store.store import EventType
    from roadstead.values.resources import Obj

CLAIMS = "resourceclaims.resource.k8s.io"
TEMPLATES = "resourceclaimtemplates.resource.k8s.io"
COMPONENT = "resource_claim"
FINALIZER = "resource.kubernetes.io/delete-protection"
POD_CLAIM = "resource.kubernetes.io/pod-claim-name"
"""The annotation of a claim created for a pod: its name in the pod."""
_OF_POD = "pod or group that controls it"
#: The part of a name before the five generated characters.
_LONGEST_BASE = 57


def claim_names(pod: Obj) -> dict[str, str]:
    """The names of a pod's claims by their names in the pod, if known and needed."""
    made = {
        one["name"]: one.get("resourceClaimName", "")
        for one in (pod.get("status") or {}).get("resourceClaimStatuses") or ()
    }
    found = {
        one["name"]: one.get("resourceClaimName") or made.get(one["name"], "")
        for one in pod["spec"].get("resourceClaims") or ()
    }
    return {name: claim for name, claim in found.items() if claim}


def uses_claims(pod: Obj) -> bool:
    """Whether a pod needs devices."""
    extended = (pod.get("status") or {}).get("extendedResourceClaimStatus")
    return bool(pod["spec"].get("resourceClaims") or extended)


def is_reserved_for(claim: Obj, pod: Obj) -> bool:
    """Whether a pod, or the PodGroup that it names, is among the consumers of a claim."""
    consumers = (claim.get("status") or {}).get("reservedFor") or ()
    group = group_of(pod)
    return any(
        one.get("uid") == pod["metadata"]["uid"] or (is_group(one) and one.get("name") == group)
        for one in consumers
    )


def is_done(pod: Obj) -> bool:
    """Whether none of a pod's containers runs or will run."""
    return is_finished(pod) or (is_terminating(pod) and not pod["spec"].get("nodeName"))


def base_name(pod: str, claim: str) -> str:
    """The prefix of a claim's name; if it is too long, both parts are shortened in proportion."""
    base = f"{pod}-{claim}-"
    if len(base) <= _LONGEST_BASE:
        return base
    parts = (one[: len(one) * _LONGEST_BASE // len(base)] for one in (pod, claim))
    return "-".join(parts)


class ResourceClaimController:
    """Creates, reserves and releases claims on devices."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._users: dict[str, dict[str, None]] = {}
        self._has_groups = False

    def start(self) -> None:
        """Subscribe to claims and pods."""
        api = self._context.api
        api.store.collection(CLAIMS).add_index(_OF_POD, _controlling_user)
        api.subscribe("pods", self._pod_changed)
        api.subscribe(CLAIMS, self._claim_changed)
        api.subscribe(TEMPLATES, self._template_changed)
        self._has_groups = api.registry.keyed(POD_GROUPS) is not None
        if self._has_groups:
            api.subscribe(POD_GROUPS, self._group_changed)
            for group in api.list(POD_GROUPS):
                self._group_changed("ADDED", group, None)
        for pod in api.list("pods"):
            self._pod_changed("ADDED", pod, None)
        for claim in api.list(CLAIMS):
            self._claim_changed("ADDED", claim, None)

    def _pod_changed(self, kind: EventType, pod: Obj, _old: Obj | None) -> None:
        """Queue a pod that needs claims, and the claims of a pod that no longer needs them."""
        if not uses_claims(pod):
            return
        key, namespace = key_of(pod), pod["metadata"]["namespace"]
        names = set(claim_names(pod).values())
        extended = (pod.get("status") or {}).get("extendedResourceClaimStatus") or {}
        names |= {extended["resourceClaimName"]} if extended.get("resourceClaimName") else set()
        gone = kind == "DELETED"
        for name in sorted(names):
            claim = f"{namespace}/{name}"
            if gone:
                self._forget(claim, key)
            else:
                self._users.setdefault(claim, {})[key] = None
            if gone or is_done(pod):
                self._context.queue.add(self.reconcile_claim, claim)
        if not gone and not is_done(pod):
            self._context.queue.add(self.reconcile_pod, key)

    def _forget(self, claim: str, pod: str) -> None:
        users = self._users.get(claim, {})
        users.pop(pod, None)
        if not users:
            self._users.pop(claim, None)

    def _claim_changed(self, kind: EventType, claim: Obj, _old: Obj | None) -> None:
        """Queue a claim and the pods that use it: it may have been deleted, or allocated for a bound pod."""
        key = key_of(claim)
        if kind != "DELETED":
            self._context.queue.add(self.reconcile_claim, key)
        for pod in self._users.get(key, ()):
            self._context.queue.add(self.reconcile_pod, pod)

    def _template_changed(self, kind: EventType, template: Obj, _old: Obj | None) -> None:
        """Queue the pods that waited for a template."""
        if kind != "ADDED":
            return
        meta = template["metadata"]
        for pod in self._context.api.list("pods", meta["namespace"]):
            claims = pod["spec"].get("resourceClaims") or ()
            if any(one.get("resourceClaimTemplateName") == meta["name"] for one in claims):
                self._context.queue.add(self.reconcile_pod, key_of(pod))
        for group in self._context.api.list(POD_GROUPS, meta["namespace"]) if self._has_groups else ():
            claims = group["spec"].get("resourceClaims") or ()
            if any(one.get("resourceClaimTemplateName") == meta["name"] for one in claims):
                self._context.queue.add(self.reconcile_group, key_of(group))

    def _group_changed(self, kind: EventType, group: Obj, _old: Obj | None) -> None:
        """Queue a group that has claims with its pods, and the claims that are reserved for a gone one."""
        meta = group["metadata"]
        if kind == "DELETED":
            for claim in self._context.api.list(CLAIMS, meta["namespace"]):
                consumers = (claim.get("status") or {}).get("reservedFor") or ()
                if any(one.get("uid") == meta["uid"] for one in consumers):
                    self._context.queue.add(self.reconcile_claim, key_of(claim))
            return
        self._context.queue.add(self.reconcile_group, key_of(group))
        for pod in self._context.api.list("pods", meta["namespace"]):
            if group_of(pod) == meta["name"] and uses_claims(pod) and not is_done(pod):
                self._context.queue.add(self.reconcile_pod, key_of(pod))

    # -- groups ----------------------------------------------------------------------------------------------

    def reconcile_group(self, key: str) -> None:
        """Create the claims of a group.

        Raises:
            StatusError: a template is missing, or a claim is rejected; the group is retried.
        """
        group = self._context.find(POD_GROUPS, key)
        if group is None or is_terminating(group):
            return
        self._make_all(POD_GROUPS, group, "PodGroupResourceClaim")

    def _awaits_group(self, pod: Obj) -> bool:
        """Whether the PodGroup that a pod names does not exist: it might list the pod's claims."""
        name = group_of(pod) if self._has_groups else ""
        return bool(name) and self._context.find(POD_GROUPS, f"{pod['metadata']['namespace']}/{name}") is None

    def _group_that_lists(self, pod: Obj, wanted: Obj) -> Obj | None:
        """The PodGroup of a pod, if it lists a claim exactly as the pod does."""
        name = group_of(pod) if self._has_groups else ""
        group = self._context.find(POD_GROUPS, f"{pod['metadata']['namespace']}/{name}") if name else None
        if group is None or wanted not in (group["spec"].get("resourceClaims") or ()):
            return None
        return group

    # -- pods ------------------------------------------------------------------------------------------------

    def reconcile_pod(self, key: str) -> None:
        """Create the claims of a pod, and reserve allocated claims for a pod bound without reservations.

        Raises:
            StatusError: a template is missing, or a claim is rejected; the pod is retried.
        """
        pod = self._context.find("pods", key)
        if pod is None or is_terminating(pod) or is_finished(pod) or self._awaits_group(pod):
            return
        self._make_all("pods", pod, "PodResourceClaim")
        if pod["spec"].get("nodeName"):
            self._reserve(key)

    def _make_all(self, resource: str, owner: Obj, called: str) -> None:
        """Create the claims of a pod or group that are missing, and report those made, also if one fails."""
        known = _made_claims(owner)
        made: dict[str, Obj] = {}
        try:
            for one in owner["spec"].get("resourceClaims") or ():
                if name := self._made(owner, one, known.get(one["name"])):
                    made[one["name"]] = {"name": one["name"], "resourceClaimName": name}
        except StatusError as error:
            message = f"{called} {one['name']}: {error}"
            self._context.events.record(COMPONENT, owner, "FailedResourceClaimCreation", message, "Warning")
            raise
        finally:
            if made:
                self._report(resource, owner, {**known, **made})

    def _made(self, owner: Obj, wanted: Obj, known: Obj | None) -> str:
        """The name of a claim that is missing in the status of a pod or group, "" if nothing is to do."""
        template_name = wanted.get("resourceClaimTemplateName")
        if not template_name:
            return ""
        namespace = owner["metadata"]["namespace"]
        if known is not None:
            if not known.get("resourceClaimName"):
                return ""
            claim = self._context.find(CLAIMS, f"{namespace}/{known['resourceClaimName']}")
            if claim is not None and (_is_for(claim, owner) or _is_for_group(claim, owner)):
                return ""
        group = self._group_that_lists(owner, wanted)
        made = self._made_before(owner if group is None else group, wanted["name"])
        if made is not None:
            return str(made["metadata"]["name"])
        if group is not None:
            return ""  # it is made for the group; then the pod comes again
        template = self._context.find(TEMPLATES, f"{namespace}/{template_name}")
        if template is None:
            missing = f'resourceclaimtemplate.resource.k8s.io "{template_name}" not found'
            raise StatusError(404, "NotFound", f'resource claim template "{template_name}": {missing}')
        return str(
            self._context.api.create(CLAIMS, _claim_of(owner, wanted["name"], template))["metadata"]["name"]
        )

    def _made_before(self, owner: Obj, name: str) -> Obj | None:
        """A claim created for a pod or group that is not in its status yet."""
        entries = self._context.api.store.collection(CLAIMS).indexed(_OF_POD, owner["metadata"]["uid"])
        for entry in entries:
            if (entry.obj["metadata"].get("annotations") or {}).get(POD_CLAIM) == name:
                return entry.obj
        return None

    def _report(self, resource: str, owner: Obj, claims: dict[str, Obj]) -> None:
        """Write the names of the claims of a pod or group into its status."""
        meta = owner["metadata"]
        patch = {
            "metadata": {"uid": meta["uid"]},
            "status": {"resourceClaimStatuses": [claims[name] for name in sorted(claims)]},
        }
        self._context.api.patch(resource, meta["namespace"], meta["name"], patch, subresource="status")

    def _reserve(self, key: str) -> None:
        """Reserve the allocated claims of a pod that was bound without the scheduler."""
        pod = self._context.find("pods", key)
        if pod is None:
            return
        templates = {
            one["name"]
            for one in pod["spec"].get("resourceClaims") or ()
            if one.get("resourceClaimTemplateName")
        }
        for name, claim_name in claim_names(pod).items():
            claim = self._context.find(CLAIMS, f"{pod['metadata']['namespace']}/{claim_name}")
            if claim is None or (
                name in templates and not (_is_for(claim, pod) or _is_for_group(claim, pod))
            ):
                continue
            status = claim.get("status") or {}
            if status.get("allocation") is None or is_reserved_for(claim, pod) or is_terminating(claim):
                continue
            wanted = next(one for one in pod["spec"]["resourceClaims"] if one["name"] == name)
            group = self._group_that_lists(pod, wanted)
            user = pod["metadata"] if group is None else group["metadata"]
            kind = {"resource": "pods"} if group is None else {"apiGroup": GROUP, "resource": "podgroups"}
            consumer = {**kind, "name": user["name"], "uid": user["uid"]}
            consumers = [*(status.get("reservedFor") or ()), consumer]
            self._context.write_status(CLAIMS, claim, {**status, "reservedFor": consumers})

    # -- claims ----------------------------------------------------------------------------------------------

    def reconcile_claim(self, key: str) -> None:
        """Remove finished pods and gone groups from a claim, and its allocation with the last one."""
        claim = self._context.find(CLAIMS, key)
        if claim is None:
            return
        status = claim.get("status") or {}
        consumers: list[Obj] = status.get("reservedFor") or []
        namespace = claim["metadata"]["namespace"]
        kept = [one for one in consumers if self._is_used_by(namespace, one)]
        is_held = FINALIZER in (claim["metadata"].get("finalizers") or ())
        if len(kept) < len(consumers):
            left = {**status, "reservedFor": kept}
            if not kept:
                left.pop("reservedFor")
                if is_held:
                    left.pop("allocation", None)
            claim = self._context.write_status(CLAIMS, claim, left)
            if is_held and "allocation" not in (claim.get("status") or {}):
                claim = self._let_go(claim)
        elif is_held and is_terminating(claim) and not kept:
            left = {name: value for name, value in status.items() if name != "allocation"}
            claim = self._let_go(self._context.write_status(CLAIMS, claim, left))
        if not kept:
            self._delete_of_finished(claim)

    def _is_used_by(self, namespace: str, consumer: Obj) -> bool:
        if is_group(consumer) and self._has_groups:
            group = self._context.find(POD_GROUPS, f"{namespace}/{consumer['name']}")
            return group is not None and group["metadata"]["uid"] == consumer["uid"]
        if not _is_pod(consumer):
            return True
        pod = self._context.find("pods", f"{namespace}/{consumer['name']}")
        return pod is not None and pod["metadata"]["uid"] == consumer["uid"] and not is_done(pod)

    def _let_go(self, claim: Obj) -> Obj:
        """Remove the finalizer."""
        changed = copied(claim)
        kept = [one for one in changed["metadata"].pop("finalizers") if one != FINALIZER]
        if kept:
            changed["metadata"]["finalizers"] = kept
        return self._context.api.update(CLAIMS, changed)

    def _delete_of_finished(self, claim: Obj) -> None:
        """Delete a claim created for a pod that has finished or was replaced."""
        meta = claim["metadata"]
        reference = controller_of(claim)
        for uid in _controlling(claim, "Pod"):
            pod = self._context.find("pods", f"{meta['namespace']}/{(reference or {}).get('name')}")
            if pod is None or is_terminating(claim):
                continue
            if pod["metadata"]["uid"] != uid or is_done(pod):
                self._context.api.delete(CLAIMS, meta["namespace"], meta["name"], uid=meta["uid"])


def _controlling_user(claim: Obj) -> list[str]:
    """The uid of the pod or group for which a claim was created."""
    return _controlling(claim, "Pod") + _controlling(claim, "PodGroup")


def _controlling(claim: Obj, kind: str) -> list[str]:
    """The uid of the owner for which a claim was created, if it is of this kind."""
    reference = controller_of(claim)
    group = "" if kind == "Pod" else GROUP
    if reference is None or reference["kind"] != kind or reference["apiVersion"].rpartition("/")[0] != group:
        return []
    return [reference["uid"]]


def _is_for(claim: Obj, owner: Obj) -> bool:
    return owner["metadata"]["uid"] in _controlling_user(claim)


def _is_for_group(claim: Obj, pod: Obj) -> bool:
    """Whether a claim was created for a PodGroup of the name that the pod has."""
    name = group_of(pod)
    return bool(name and _controlling(claim, "PodGroup") and (controller_of(claim) or {})["name"] == name)


def _made_claims(owner: Obj) -> dict[str, Obj]:
    """The claims in the status of a pod or group, by the owner's name for them."""
    return {one["name"]: one for one in (owner.get("status") or {}).get("resourceClaimStatuses") or ()}


def is_group(consumer: Obj) -> bool:
    """Whether a consumer of a claim is a PodGroup."""
    return (consumer.get("apiGroup"), consumer.get("resource")) == (GROUP, "podgroups")


def _is_pod(consumer: Obj) -> bool:
    return consumer.get("resource") == "pods" and not consumer.get("apiGroup")


def _claim_of(holder: Obj, name: str, template: Obj) -> Obj:
    """A claim created from a template for a pod or group."""
    spec, meta = template["spec"], holder["metadata"]
    is_group = "schedulingPolicy" in holder["spec"]
    given = spec.get("metadata") or {}
    owner = {
        "apiVersion": holder["apiVersion"],
        "kind": "PodGroup" if is_group else "Pod",
        "name": meta["name"],
        "uid": meta["uid"],
        "controller": True,
    }
    metadata: Obj = {
        "generateName": base_name(meta["name"], name),
        "namespace": meta["namespace"],
        "annotations": {**(given.get("annotations") or {}), POD_CLAIM: name},
        "ownerReferences": [owner],
    }
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    return {"metadata": metadata, "spec": spec["spec"]}
