"""PATCH persistentvolumes and persistentvolumeclaims: which volume a claim gets, or where it is made."""

from plimsoll.kube.session.session import Session
from plimsoll.model.kinds.storage import PersistentVolume, PersistentVolumeClaim
from plimsoll.model.kinds.volume_claims import SELECTED_NODE
from plimsoll.ports.writes import WriteResult

#: Says that the reference was not written by the user, so that it may be taken back.
BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"


class VolumePatcher:
    """Writes through the API server; the volume controller and provisioners do the rest."""

    def __init__(self, session: Session) -> None:
        self._session = session

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> WriteResult:
        """Annotate this very claim (by uid)."""
        meta = claim.metadata
        body = {"metadata": {"uid": meta.uid, "annotations": {SELECTED_NODE: node}}}
        path = f"/api/v1/namespaces/{meta.namespace}/persistentvolumeclaims/{meta.name}"
        return await self._session.merge(path, body)

    async def reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> WriteResult:
        """Refer to the claim; a volume that has changed since is refused as a conflict."""
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
