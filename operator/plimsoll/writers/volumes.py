"""Patches persistentvolumes and claims to choose a claim's volume, or the node to provision it for."""

from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.model.kinds.volume_claims import SELECTED_NODE
from plimsoll.ports.writes import WriteResult

#: The annotation of references that a controller wrote, not a user, so that they may be removed.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class VolumePatcher:
    """Patches volumes and claims; the volume controller and provisioners do the rest."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Annotate this very claim (by uid) with the selected node."""
        meta = claim.metadata
        body = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node}}}
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        return await self._session.merge(path, body)

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Set the volume's claimRef; a volume that has changed since is refused as a conflict."""
        meta = claim.metadata
        body = {
            "metadata": {
                "resourceVersion": volume.metadata.resource_version,
                "annotations": {BOUND_BY_CONTROLLER: "yes"},
            },
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": meta.namespace,
                    "name": meta.name,
                    "uid": meta.uid,
                }
            },
        }
        path = f"/api/v1/persistentvolumes/{volume.metadata.name}"
        return await self._session.merge(path, body)
