"""Sets defaults of StatefulSets and checks them.

Source: Kubernetes v1.36 ``pkg/apis/apps``: ``v1/defaults.go``, ``validation``; ``pkg/registry/apps``.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.checks.fields import (
    forbidden,
    invalid,
    label_name,
    not_negative,
    one_of,
)
from roadstead.kinds.storage import claim_causes
from roadstead.kinds.workloads import DEFAULT_HISTORY, Workload

if TYPE_CHECKING:
    from roadstead.values.resources import Obj
    from roadstead.values.status_errors import Cause


class StatefulSets(Workload):
    """StatefulSets."""

    error_kind = "statefulset"
    error_template_kind = "StatefulSet"
    bad_selector = ""
    counts = ("replicas", "readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    parts = ("readyReplicas", "currentReplicas", "updatedReplicas", "availableReplicas")
    ready_count_path = "status.readyReplicas"
    always = ("replicas", "availableReplicas")

    _CHANGEABLE = (
        "replicas",
        "template",
        "updateStrategy",
        "persistentVolumeClaimRetentionPolicy",
        "minReadySeconds",
        "ordinals",
        "revisionHistoryLimit",
    )

    def default(self, obj: Obj) -> None:
        """Set defaults."""
        super().default(obj)
        spec = obj["spec"]
        spec.setdefault("serviceName", "")
        spec.setdefault("podManagementPolicy", "OrderedReady")
        strategy = spec.setdefault("updateStrategy", {})
        if not strategy.get("type"):
            strategy["type"] = "RollingUpdate"
            strategy.setdefault("rollingUpdate", {})
        if strategy["type"] == "RollingUpdate" and "rollingUpdate" in strategy:
            strategy["rollingUpdate"].setdefault("partition", 0)
            strategy["rollingUpdate"].pop("maxUnavailable", None)  # the feature gate is disabled
        retention = spec.setdefault("persistentVolumeClaimRetentionPolicy", {})
        retention.setdefault("whenDeleted", "Retain")
        retention.setdefault("whenScaled", "Retain")
        spec.setdefault("revisionHistoryLimit", DEFAULT_HISTORY)
        if "ordinals" in spec:
            spec["ordinals"].setdefault("start", 0)
        for claim in spec.get("volumeClaimTemplates") or ():
            claim["apiVersion"], claim["kind"] = "v1", "PersistentVolumeClaim"
            claim.setdefault("spec", {}).setdefault("volumeMode", "Filesystem")
            claim.setdefault("status", {}).setdefault("phase", "Pending")

    def prepare_create(self, obj: Obj) -> None:
        """A new one has no replicas."""
        obj["status"] = dict.fromkeys(self.always, 0)

    def validate_create(self, obj: Obj) -> list[Cause]:
        """Faults of a new object; fields that cannot change are checked only here."""
        spec, causes = obj["spec"], super().validate_create(obj)
        for index, claim in enumerate(spec.get("volumeClaimTemplates") or ()):
            causes += claim_causes(claim["spec"], f"spec.volumeClaimTemplates[{index}].spec")
        if spec["serviceName"]:
            causes += label_name("spec.serviceName", spec["serviceName"])
        return causes

    def validate_update(self, new: Obj, old: Obj) -> list[Cause]:
        """Few fields of the spec may change."""
        causes = self.spec_causes(new["spec"])

        def fixed(spec: Obj) -> Obj:
            return {key: value for key, value in spec.items() if key not in self._CHANGEABLE}

        if fixed(new["spec"]) != fixed(old["spec"]):
            message = (
                "updates to statefulset spec for fields other than 'replicas', 'ordinals', 'template', "
                "'updateStrategy', 'revisionHistoryLimit', 'persistentVolumeClaimRetentionPolicy' "
                "and 'minReadySeconds' are forbidden"
            )
            causes.append(forbidden("spec", message))
        return causes

    def spec_causes(self, spec: Obj) -> list[Cause]:
        """Faults of a spec."""
        causes: list[Cause] = []
        policy = spec["podManagementPolicy"]
        if policy not in ("OrderedReady", "Parallel"):
            causes.append(invalid("spec.podManagementPolicy", policy, "must be 'OrderedReady' or 'Parallel'"))
        strategy, at = spec["updateStrategy"], "spec.updateStrategy"
        rolling = strategy.get("rollingUpdate")
        if strategy["type"] == "RollingUpdate":
            causes += not_negative(f"{at}.rollingUpdate.partition", (rolling or {}).get("partition"))
        elif strategy["type"] != "OnDelete":
            causes.append(invalid(at, strategy, "must be 'RollingUpdate' or 'OnDelete'"))
        elif rolling is not None:
            message = "only allowed for updateStrategy 'RollingUpdate'"
            causes.append(invalid(f"{at}.rollingUpdate", rolling, message))
        for field, value in spec["persistentVolumeClaimRetentionPolicy"].items():
            here = f"spec.persistentVolumeClaimRetentionPolicy.{field}"
            causes += one_of(here, value, ("Retain", "Delete"))
        causes += not_negative("spec.ordinals.start", (spec.get("ordinals") or {}).get("start"))
        return causes + super().spec_causes(spec)

    def checked_template(self, spec: Obj) -> Obj:
        """The template with the volumes that the controller adds, and without the names that it sets."""
        template = spec["template"]
        claims = {one.get("metadata", {}).get("name", "") for one in spec.get("volumeClaimTemplates") or ()}
        pod = {key: value for key, value in template["spec"].items() if key not in ("subdomain", "hostname")}
        added = [
            {"name": name, "persistentVolumeClaim": {"claimName": name or "x"}} for name in sorted(claims)
        ]
        kept = [one for one in pod.get("volumes") or () if one.get("name", "") not in claims]
        return {**template, "spec": {**pod, "volumes": [*added, *kept]}}
