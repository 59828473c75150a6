"""ClaimedVolumes tells which nodes reach the volumes of a pod, and have room to attach them."""

from __future__ import annotations

from collections.abc import Sequence

from promises.affinities import reaches
from promises.commits import Obj
from promises.pods import is_leaving, node_of
from promises.view import View
from promises.volumes import CLAIMS, VOLUMES, attach_limits

CLASSES = "storageclasses.storage.k8s.io"

#: Volumes that every node has.
EVERYWHERE = frozenset(("name", "emptyDir", "configMap", "secret", "downwardAPI", "projected"))

NO_PROVISIONER = "kubernetes.io/no-provisioner"


class ClaimedVolumes:
    """Claims and volumes of a cluster that stands still."""

    def __init__(self, view: View, placed: Sequence[Obj]) -> None:
        self._view = view
        self._placed = placed

    def are_evaluated(self, pod: Obj) -> bool:
        """Whether each volume is one that every node has, a bound claim, or one to be provisioned."""
        given = pod["spec"].get("volumes") or ()
        return all(set(each) <= EVERYWHERE for each in given if "persistentVolumeClaim" not in each) and all(
            self._is_ready(pod, claim) for claim in claim_names(pod)
        )

    def _is_ready(self, pod: Obj, name: str) -> bool:
        claim = self._view.find(CLAIMS, pod["metadata"]["namespace"], name)
        if claim is None or is_leaving(claim):
            return False
        if "ReadWriteOncePod" in claim["spec"]["accessModes"] and any(
            name in claim_names(other)
            for other in self._view.objects("pods")
            if other["metadata"]["uid"] != pod["metadata"]["uid"]
        ):
            return False
        if (claim.get("status") or {}).get("phase") == "Bound":
            return self._view.find(VOLUMES, "", claim["spec"]["volumeName"]) is not None
        storage_class = self._view.find(CLASSES, "", claim["spec"].get("storageClassName") or "")
        return (
            storage_class is not None
            and storage_class["volumeBindingMode"] == "WaitForFirstConsumer"
            and storage_class["provisioner"] != NO_PROVISIONER
            and "allowedTopologies" not in storage_class
        )

    def reach(self, pod: Obj, node: Obj) -> bool:
        """Whether a node reaches the volumes that exist, and may attach them in addition to its own."""
        namespace, names = pod["metadata"]["namespace"], claim_names(pod)
        for name in names:
            claim = self._view.find(CLAIMS, namespace, name) or {}
            volume = self._view.find(VOLUMES, "", (claim.get("spec") or {}).get("volumeName") or "")
            required = ((volume or {}).get("spec", {}).get("nodeAffinity") or {}).get("required")
            if not reaches(required, node):
                return False
        here = {
            (other["metadata"]["namespace"], claim)
            for other in self._placed
            if node_of(other) == node["metadata"]["name"]
            for claim in claim_names(other)
        }
        taken = here | {(namespace, name) for name in names}
        limits = attach_limits(node["metadata"]["name"], self._view)
        return not names or len(taken) <= min(limits.values(), default=len(taken))


def claim_names(pod: Obj) -> list[str]:
    """The claims that a pod names."""
    volumes = pod["spec"].get("volumes") or ()
    return [each["persistentVolumeClaim"]["claimName"] for each in volumes if "persistentVolumeClaim" in each]
