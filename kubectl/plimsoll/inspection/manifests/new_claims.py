"""Creates volume claims of new pods: those of a StatefulSet's templates and those of ephemeral volumes.

A claim whose class waits for its first consumer is unbound on the fork, and the plugin VolumeBinding decides
where its volume can be. A claim that binds immediately is left out: the place of its volume is not known.
"""

from collections.abc import Iterable

import msgspec

from plimsoll.inspection.manifests.documents import NEW, shelve
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.metadata import ObjectMeta, OwnerReference
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import PersistentVolumeClaimSource, Pod, Volume
from plimsoll.model.kinds.storage import PersistentVolumeClaim, PersistentVolumeClaimSpec, PhaseStatus
from plimsoll.model.kinds.volume_claims import WAIT_FOR_FIRST_CONSUMER, claim_class

_DEFAULT_CLASS = "storageclass.kubernetes.io/is-default-class"


def with_claims(pod: Pod, templates: Iterable[PersistentVolumeClaim], fork: Cluster) -> tuple[Pod, list[str]]:
    """The pod with its own claims, which are added to the fork; and notes about what is unknown."""
    by_volume = {each.name: each for each in templates}
    if not by_volume and not any(each.ephemeral or each.persistent_volume_claim for each in pod.spec.volumes):
        return pod, []
    volumes: list[Volume] = []
    notes: list[str] = []
    for volume in pod.spec.volumes:
        claim, made = _claim_of(volume, pod, by_volume.get(volume.name), fork.objects)
        if claim is None or not _is_new(claim):
            volumes.append(made)
        elif _waits(claim, fork.objects):
            if claim.key not in fork.objects.claims:
                shelve(fork, claim)
            volumes.append(made)
        else:
            volumes.append(Volume(name=volume.name))
            notes.append(
                f"pod {pod.key}: claim {claim.name} binds immediately; where its volume will be is not known,"
                " and it is left out"
            )
    spec = msgspec.structs.replace(pod.spec, volumes=tuple(volumes))
    return msgspec.structs.replace(pod, spec=spec), notes


def copied_claims(pod: Pod, objects: ClusterObjects) -> list[PersistentVolumeClaim]:
    """Templates of the claims that the pod's StatefulSet created for it, recognised by their names."""
    templates = []
    for volume in pod.spec.volumes:
        source = volume.persistent_volume_claim
        if source is None or source.claim_name != f"{volume.name}-{pod.name}":
            continue
        found = objects.claims.get(f"{pod.namespace}/{source.claim_name}")
        if found is not None:
            spec = msgspec.structs.replace(found.spec, volume_name="")
            templates.append(PersistentVolumeClaim(metadata=ObjectMeta(name=volume.name), spec=spec))
    return templates


def _claim_of(
    volume: Volume, pod: Pod, template: PersistentVolumeClaim | None, objects: ClusterObjects
) -> tuple[PersistentVolumeClaim | None, Volume]:
    """The claim of a volume, created if necessary, and the volume for this pod."""
    owners: tuple[OwnerReference, ...] = ()
    if template is not None:
        name, spec = f"{volume.name}-{pod.name}", template.spec
        volume = Volume(
            name=volume.name, persistent_volume_claim=PersistentVolumeClaimSource(claim_name=name)
        )
    elif volume.ephemeral is not None and volume.ephemeral.volume_claim_template is not None:
        name, spec = f"{pod.name}-{volume.name}", volume.ephemeral.volume_claim_template.spec
        owners = (OwnerReference(api_version="v1", kind="Pod", name=pod.name, uid=pod.uid, controller=True),)
    elif volume.persistent_volume_claim is not None:
        return objects.claims.get(f"{pod.namespace}/{volume.persistent_volume_claim.claim_name}"), volume
    else:
        return None, volume
    key = f"{pod.namespace}/{name}"
    return objects.claims.get(key) or _made(name, pod.namespace, spec, owners, objects), volume


def _made(
    name: str,
    namespace: str,
    spec: PersistentVolumeClaimSpec,
    owners: tuple[OwnerReference, ...],
    objects: ClusterObjects,
) -> PersistentVolumeClaim:
    if spec.storage_class_name is None:
        spec = msgspec.structs.replace(spec, storage_class_name=_default_class(objects))
    uid = f"{NEW}PersistentVolumeClaim:{namespace}/{name}"
    metadata = ObjectMeta(name=name, namespace=namespace, uid=uid, owner_references=owners)
    return PersistentVolumeClaim(metadata=metadata, spec=spec, status=PhaseStatus(phase="Pending"))


def _default_class(objects: ClusterObjects) -> str | None:
    marked = [
        each.name
        for each in objects.storage_classes.values()
        if each.metadata.annotations.get(_DEFAULT_CLASS) == "true"
    ]
    return min(marked, default=None)


def _is_new(claim: PersistentVolumeClaim) -> bool:
    return claim.uid.startswith(NEW) and not claim.spec.volume_name


def _waits(claim: PersistentVolumeClaim, objects: ClusterObjects) -> bool:
    found = objects.storage_classes.get(claim_class(claim))
    return found is not None and found.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
