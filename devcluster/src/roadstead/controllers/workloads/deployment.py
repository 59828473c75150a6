"""Rolls out Deployments: one ReplicaSet for each template, of which the newest replaces the others.

One reconcile finds or creates the newest ReplicaSet, numbers it, scales (by ``rolling_update``), cleans up
and writes the status (by ``deployment_status``); it repeats until nothing changes.

Source: kubernetes v1.36 ``pkg/controller/deployment``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.controllers.ownership import Owners, key_of
from roadstead.controllers.pod_state import is_finished, is_terminating
from roadstead.controllers.workloads import deployment_status, rolling_update
from roadstead.controllers.workloads.revisions import POD_TEMPLATE_HASH, template_hash
from roadstead.values.copies import copied
from roadstead.values.status_errors import StatusError

if TYPE_CHECKING:
    from roadstead.controllers.context import Context
    from roadstead.values.resources import Obj

RESOURCE = "deployments.apps"
REPLICA_SETS = "replicasets.apps"
COMPONENT = "deployment-controller"
REVISION = "deployment.kubernetes.io/revision"
REVISION_HISTORY = "deployment.kubernetes.io/revision-history"
DESIRED_REPLICAS = "deployment.kubernetes.io/desired-replicas"
MAX_REPLICAS = "deployment.kubernetes.io/max-replicas"
_NOT_COPIED = (
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED_REPLICAS,
    MAX_REPLICAS,
)


class DeploymentController:
    """Rolls Deployments out."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._owners = Owners(RESOURCE, "apps/v1", "Deployment", self._enqueue)

    def start(self) -> None:
        """Subscribe to Deployments and their ReplicaSets."""
        self._context.ownership.follow(REPLICA_SETS, self._owners)
        self._context.enqueue_all(RESOURCE, self.reconcile)

    def reconcile(self, key: str) -> None:
        """Perform the next step of a Deployment."""
        deployment = self._context.find(RESOURCE, key)
        if deployment is None:
            return
        sets = self._context.ownership.claim(REPLICA_SETS, self._owners, deployment)
        sets.sort(key=lambda one: (one["metadata"]["creationTimestamp"], one["metadata"]["name"]))
        if is_terminating(deployment):
            new = _newest(deployment, sets)
            self._write_status(deployment, new, sets, progress=False)
            return
        deployment = self._note_pause(deployment)
        step = self._scale if self._only_scales(deployment, sets) else self._roll_out
        step(deployment, sets)

    def _enqueue(self, key: str) -> None:
        self._context.queue.add(self.reconcile, key)

    def _only_scales(self, deployment: Obj, sets: list[Obj]) -> bool:
        """Whether the Deployment is paused, or its size has changed since its sets were last scaled."""
        if deployment["spec"].get("paused"):
            return True
        desired = str(deployment["spec"]["replicas"])
        text = [_annotations(one).get(DESIRED_REPLICAS) for one in sets if rolling_update.size(one)]
        return any(one is not None and one != desired for one in text)

    def _scale(self, deployment: Obj, sets: list[Obj]) -> None:
        """Scale the sets to a changed size without progress of a rollout."""
        new = self._number(deployment, _newest(deployment, sets), sets)
        deployment = self._context.find(RESOURCE, key_of(deployment)) or deployment
        replicas = deployment["spec"]["replicas"]
        old = [one for one in sets if not _same(one, new)]
        active = [one for one in sets if rolling_update.size(one)]
        latest = active[0] if len(active) == 1 else new or (sets[-1] if sets else None)
        if len(active) <= 1:
            if latest is not None:
                self._resize(deployment, latest, replicas)
        elif new and _is_saturated(deployment, new):
            for one in old:
                if rolling_update.size(one):
                    self._resize(deployment, one, 0)
        elif rolling_update.is_rolling(deployment):
            annotated = {one["metadata"]["name"]: _number_in(one, MAX_REPLICAS) for one in active}
            wanted = rolling_update.proportional_sizes(deployment, active, annotated)
            for one in active:
                self._resize(deployment, one, wanted[one["metadata"]["name"]])
        if deployment["spec"].get("paused"):
            self._clean_up(deployment, old)
        self._write_status(deployment, new, sets, progress=False)

    def _roll_out(self, deployment: Obj, sets: list[Obj]) -> None:
        """Move some pods to the newest set."""
        new = _newest(deployment, sets)
        old = [one for one in sets if not _same(one, new)]
        if new is None and not rolling_update.is_rolling(deployment) and self._retire(deployment, old):
            self._write_status(deployment, None, sets)
            return
        if new is None:
            new = self._make(deployment, sets)
            sets = [*sets, new]
        new = self._number(deployment, new, sets) or new
        deployment = self._context.find(RESOURCE, key_of(deployment)) or deployment
        if not rolling_update.is_rolling(deployment) and self._retire(deployment, old):
            self._write_status(deployment, new, sets)
            return
        grown = self._resize(deployment, new, rolling_update.new_size(deployment, new, sets))
        if not grown and rolling_update.is_rolling(deployment):
            active = [one for one in old if rolling_update.size(one)]
            shrunk = rolling_update.old_sizes(deployment, new, active) if active else {}
            for one in active:
                if one["metadata"]["name"] in shrunk:
                    self._resize(deployment, one, shrunk[one["metadata"]["name"]])
        if deployment_status.is_complete(deployment, deployment.get("status") or {}):
            self._clean_up(deployment, old)
        self._write_status(deployment, new, sets)

    def _retire(self, deployment: Obj, old: list[Obj]) -> bool:
        """Scale the old sets to 0 for the strategy Recreate; True while any of their pods is left."""
        for one in old:
            if rolling_update.size(one):
                self._resize(deployment, one, 0)
        pods = (pod for one in old for pod in self._context.ownership.dependents("pods", one))
        return any(not is_finished(pod) for pod in pods)

    def _make(self, deployment: Obj, sets: list[Obj]) -> Obj:
        """Create the ReplicaSet of the current template.

        Raises:
            StatusError: the API rejected it, or its name exists; the next attempt uses another name.
        """
        spec, metadata = deployment["spec"], deployment["metadata"]
        collisions = (deployment.get("status") or {}).get("collisionCount", 0)
        digest = template_hash(spec["template"], collisions)
        template = copied(spec["template"])
        labels = {**(template.get("metadata") or {}).get("labels", {}), POD_TEMPLATE_HASH: digest}
        template["metadata"] = {**template.get("metadata", {}), "labels": labels}
        selector = copied(spec["selector"])
        selector["matchLabels"] = {**selector.get("matchLabels", {}), POD_TEMPLATE_HASH: digest}
        replicas = rolling_update.new_size(deployment, None, sets)
        name = f"{metadata['name']}-{digest}"
        annotations = {
            **_copied_annotations(deployment),
            REVISION: str(1 + max((_number_in(one, REVISION) for one in sets), default=0)),
            DESIRED_REPLICAS: str(spec["replicas"]),
            MAX_REPLICAS: str(spec["replicas"] + rolling_update.max_surge(deployment)),
        }
        replica_set: Obj = {
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": metadata["namespace"],
                "labels": dict(labels),
                "annotations": annotations,
                "ownerReferences": [self._owners.reference_to(deployment)],
            },
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        }
        if spec.get("minReadySeconds"):
            replica_set["spec"]["minReadySeconds"] = spec["minReadySeconds"]
        try:
            created = self._context.api.create(REPLICA_SETS, replica_set)
        except StatusError as error:
            self._cannot_make(deployment, name, error)
            raise
        if replicas:
            self._tell_scaled(deployment, name, 0, replicas)
        self._note_progress(deployment, "NewReplicaSetCreated", f'Created new replica set "{name}"')
        return created

    def _cannot_make(self, deployment: Obj, name: str, error: StatusError) -> None:
        """Write the reason why the newest set could not be created."""
        now = self._context.now
        status = dict(deployment.get("status") or {})
        if error.reason == "AlreadyExists":
            status["collisionCount"] = status.get("collisionCount", 0) + 1
        else:
            message = f'Failed to create new replica set "{name}": {error.message}'
            self._context.events.record(COMPONENT, deployment, "ReplicaSetCreateError", message, "Warning")
            status["conditions"] = deployment_status.with_progress(
                deployment, "False", "ReplicaSetCreateError", message, now
            )
        self._context.write_status(RESOURCE, deployment, status)

    def _number(self, deployment: Obj, new: Obj | None, sets: list[Obj]) -> Obj | None:
        """Set the highest revision, the Deployment's annotations and minReadySeconds on the newest set."""
        if new is None:
            return None
        others = [one for one in sets if not _same(one, new)]
        highest = 1 + max((_number_in(one, REVISION) for one in others), default=0)
        before = _annotations(new)
        annotations = {**before, **_copied_annotations(deployment)}
        own = _number_in(new, REVISION)
        if own < highest:
            annotations[REVISION] = str(highest)
            if own:
                history = [*filter(None, before.get(REVISION_HISTORY, "").split(",")), str(own)]
                annotations[REVISION_HISTORY] = ",".join(history)
        min_ready_s = deployment["spec"].get("minReadySeconds", 0)
        if annotations != before or new["spec"].get("minReadySeconds", 0) != min_ready_s:
            changed = copied(new)
            changed["metadata"]["annotations"] = annotations
            changed["spec"].pop("minReadySeconds", None)
            if min_ready_s:
                changed["spec"]["minReadySeconds"] = min_ready_s
            new = self._context.api.update(REPLICA_SETS, changed)
        if _annotations(deployment).get(REVISION) != annotations.get(REVISION):
            # Written with the object in place of the status, the annotation would increment the generation.
            self._note_progress(
                deployment, "FoundNewReplicaSet", f'Found new replica set "{new["metadata"]["name"]}"', new
            )
        return new

    def _note_progress(self, deployment: Obj, reason: str, message: str, new: Obj | None = None) -> None:
        """Write the newest set's revision, and Progressing if it is missing or the set is new."""
        latest = self._context.find(RESOURCE, key_of(deployment)) or deployment
        status = dict(latest.get("status") or {})
        known = any(one["type"] == "Progressing" for one in status.get("conditions") or ())
        if deployment_status.has_deadline(latest) and (new is None or not known):
            status["conditions"] = deployment_status.with_progress(
                latest, "True", reason, message, self._context.now
            )
        if new is not None:
            annotations = {**_annotations(latest), REVISION: _annotations(new)[REVISION]}
            latest = {**latest, "metadata": {**latest["metadata"], "annotations": annotations}}
        self._context.api.update_status(RESOURCE, {**latest, "status": status})

    def _note_pause(self, deployment: Obj) -> Obj:
        """Write in a condition that the Deployment was paused or resumed."""
        if not deployment_status.has_deadline(deployment):
            return deployment
        conditions = deployment_status.with_pause(deployment, self._context.now)
        if conditions is None:
            return deployment
        status = {**(deployment.get("status") or {}), "conditions": conditions}
        return self._context.write_status(RESOURCE, deployment, status)

    def _resize(self, deployment: Obj, replica_set: Obj, replicas: int) -> bool:
        """Scale a ReplicaSet and annotate it with the Deployment's size; True if it was scaled."""
        replica_set = self._context.find(REPLICA_SETS, key_of(replica_set)) or replica_set
        desired = deployment["spec"]["replicas"]
        before = rolling_update.size(replica_set)
        annotations = {
            **_annotations(replica_set),
            DESIRED_REPLICAS: str(desired),
            MAX_REPLICAS: str(desired + rolling_update.max_surge(deployment)),
        }
        if before == replicas and annotations == _annotations(replica_set):
            return False
        changed = copied(replica_set)
        changed["metadata"]["annotations"] = annotations
        changed["spec"]["replicas"] = replicas
        self._context.api.update(REPLICA_SETS, changed)
        if before != replicas:
            self._tell_scaled(deployment, replica_set["metadata"]["name"], before, replicas)
        return before != replicas

    def _tell_scaled(self, deployment: Obj, name: str, before: int, now: int) -> None:
        way = "up" if now > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {now}"
        self._context.events.record(COMPONENT, deployment, "ScalingReplicaSet", message)

    def _clean_up(self, deployment: Obj, old: list[Obj]) -> None:
        """Delete the oldest empty sets beyond the history limit."""
        limit = deployment["spec"].get("revisionHistoryLimit", 10)
        kept = [one for one in old if not is_terminating(one)]
        for one in sorted(kept, key=lambda one: _number_in(one, REVISION))[: max(0, len(kept) - limit)]:
            status = one.get("status") or {}
            seen = one["metadata"]["generation"] <= status.get("observedGeneration", 0)
            if not status.get("replicas") and not rolling_update.size(one) and seen:
                metadata = one["metadata"]
                self._context.api.delete(REPLICA_SETS, metadata["namespace"], metadata["name"])

    def _write_status(
        self, deployment: Obj, new: Obj | None, sets: list[Obj], *, progress: bool = True
    ) -> None:
        """Write the counts of the sets, and queue the Deployment for its progress deadline."""
        deployment = self._context.find(RESOURCE, key_of(deployment)) or deployment
        found = (self._context.find(REPLICA_SETS, key_of(one)) for one in sets)
        sets = [one for one in found if one]
        new = next((one for one in sets if _same(one, new)), None)
        now = self._context.now
        status = deployment_status.counted(deployment, new, sets, now)
        if progress:
            deployment_status.progressed(deployment, status, new, sets, now)
        self._context.write_status(RESOURCE, deployment, status)
        if progress and (wait_s := deployment_status.deadline_in_s(deployment, status, now)) is not None:
            self._context.queue.add(self.reconcile, key_of(deployment), wait_s)


def _annotations(obj: Obj) -> dict[str, str]:
    annotations: dict[str, str] = obj["metadata"].get("annotations") or {}
    return annotations


def _copied_annotations(deployment: Obj) -> dict[str, str]:
    """The annotations that are copied to ReplicaSets."""
    return {key: value for key, value in _annotations(deployment).items() if key not in _NOT_COPIED}


def _number_in(obj: Obj, annotation: str) -> int:
    """The number in an annotation; 0 without one."""
    text = _annotations(obj).get(annotation, "")
    return int(text) if text.isdecimal() else 0


def _same(one: Obj, other: Obj | None) -> bool:
    return other is not None and one["metadata"]["uid"] == other["metadata"]["uid"]


def _newest(deployment: Obj, sets: list[Obj]) -> Obj | None:
    """The oldest ReplicaSet with the Deployment's current template."""
    template = deployment["spec"]["template"]
    return next(
        (one for one in sets if _without_hash(one["spec"]["template"]) == _without_hash(template)), None
    )


def _without_hash(template: Obj) -> Obj:
    """A template without the label of its ReplicaSet and without an empty map of labels."""
    metadata = template.get("metadata") or {}
    labels = {key: value for key, value in (metadata.get("labels") or {}).items() if key != POD_TEMPLATE_HASH}
    kept = {key: value for key, value in metadata.items() if value}
    return {**template, "metadata": {**kept, "labels": labels}}


def _is_saturated(deployment: Obj, replica_set: Obj) -> bool:
    """Whether a ReplicaSet has, and should have, all the Deployment's pods."""
    desired = deployment["spec"]["replicas"]
    return (
        rolling_update.size(replica_set) == desired
        and _annotations(replica_set).get(DESIRED_REPLICAS) == str(desired)
        and rolling_update.available(replica_set) == desired
    )
