"""Writes the tables of kinds and controllers in README.md and KNOWN_DIFFERENCES.md from the code.

``python devcluster/tests/kinds_table.py`` writes them; ``test_kinds_table.py`` compares.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from roadstead.assembly import built_in_api, extended_handler
from roadstead.controllers import ACTS_ON, CONTROLLERS
from roadstead.kinds.builtin import Uncounted
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.server.metrics_api import NODE_METRICS, POD_METRICS

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[1]
PAGES = (ROOT / "README.md", ROOT / "KNOWN_DIFFERENCES.md")
BLOCK = re.compile(r"(?<=<!-- kinds -->\n)(.*?)(?=<!-- end of kinds -->)", re.DOTALL)

#: What kube-apiserver 1.36.2 serves by default: kinds by group.
UPSTREAM = {
    "": (
        "Binding ComponentStatus ConfigMap Endpoints Event LimitRange Namespace Node PersistentVolumeClaim "
        "PersistentVolume Pod PodTemplate ReplicationController ResourceQuota Secret ServiceAccount Service"
    ),
    "admissionregistration.k8s.io": (
        "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding MutatingWebhookConfiguration "
        "ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding ValidatingWebhookConfiguration"
    ),
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "apps": "ControllerRevision DaemonSet Deployment ReplicaSet StatefulSet",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": (
        "LocalSubjectAccessReview SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview"
    ),
    "autoscaling": "HorizontalPodAutoscaler",
    "batch": "CronJob Job",
    "certificates.k8s.io": "CertificateSigningRequest",
    "coordination.k8s.io": "Lease",
    "discovery.k8s.io": "EndpointSlice",
    "events.k8s.io": "Event",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "networking.k8s.io": "IngressClass Ingress IPAddress NetworkPolicy ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "policy": "PodDisruptionBudget",
    "rbac.authorization.k8s.io": "ClusterRoleBinding ClusterRole RoleBinding Role",
    "resource.k8s.io": "DeviceClass ResourceClaim ResourceClaimTemplate ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": (
        "CSIDriver CSINode CSIStorageCapacity StorageClass VolumeAttachment VolumeAttributesClass"
    ),
}

#: What ``kube-controller-manager --help`` of 1.36.2 lists.
_LISTED = """
bootstrap-signer-controller certificatesigningrequest-approving-controller
certificatesigningrequest-cleaner-controller certificatesigningrequest-signing-controller
cloud-node-lifecycle-controller clusterrole-aggregation-controller cronjob-controller
daemonset-controller deployment-controller device-taint-eviction-controller disruption-controller
endpoints-controller endpointslice-controller endpointslice-mirroring-controller
ephemeral-volume-controller garbage-collector-controller horizontal-pod-autoscaler-controller
job-controller kube-apiserver-serving-clustertrustbundle-publisher-controller
legacy-serviceaccount-token-cleaner-controller namespace-controller node-ipam-controller
node-lifecycle-controller node-route-controller persistentvolume-attach-detach-controller
persistentvolume-binder-controller persistentvolume-expander-controller
persistentvolume-protection-controller persistentvolumeclaim-protection-controller
pod-garbage-collector-controller podcertificaterequest-cleaner-controller podgroup-protection-controller
replicaset-controller replicationcontroller-controller resourceclaim-controller
resourcepoolstatusrequest-controller resourcequota-controller root-ca-certificate-publisher-controller
selinux-warning-controller service-ca-certificate-publisher-controller service-cidr-controller
service-lb-controller serviceaccount-controller serviceaccount-token-controller statefulset-controller
storage-version-migrator-controller storageversion-garbage-collector-controller taint-eviction-controller
token-cleaner-controller ttl-after-finished-controller ttl-controller
validatingadmissionpolicy-status-controller volumeattributesclass-protection-controller
"""
UPSTREAM_CONTROLLERS = tuple(_LISTED.split())


def table() -> str:
    """The tables, as Markdown."""
    api = built_in_api()
    extended_handler(api, "")  # adds the checks of definitions
    checked = {key for key, kind in api.kinds.items() if type(kind) not in (Kind, StatusKind, Uncounted)}
    acting = {key for keys in ACTS_ON.values() for key in keys}
    kinds: dict[str, set[str]] = {}
    served: set[tuple[str, str]] = set()
    for one in [*api.registry, NODE_METRICS, POD_METRICS]:
        served.add((one.group, one.kind))
        if not one.collection or one in (NODE_METRICS, POD_METRICS):
            state = "computed"
        elif one.ephemeral:
            state = "answered"
        elif one.key in acting:
            state = "acting" if one.key in checked else "acting, content not checked"
        else:
            state = "checked" if one.key in checked else "stored"
        kinds.setdefault(state, set()).add(one.kind)
    missing = {
        kind for group, names in UPSTREAM.items() for kind in names.split() if (group, kind) not in served
    }
    rows = [
        ("Checked as a real server checks them, and a controller acts on them", kinds["acting"]),
        (
            "Stored with checks of types only, and a controller acts on them",
            kinds["acting, content not checked"],
        ),
        ("Checked as a real server checks them", kinds["checked"]),
        ("Stored: types are checked, and nothing else", kinds["stored"]),
        ("Answered, not stored", kinds["answered"]),
        ("Computed for each request", kinds["computed"]),
        ("Defined by you", {"every CustomResourceDefinition's kinds, with their schemas and CEL rules"}),
        ("Not served", missing),
    ]
    lines = ["| Kinds | |", "|---|---|"]
    lines += [f"| {name} | {_words(found)} |" for name, found in rows if found]
    lines += ["", "| Controllers, as `--controllers` names them | |", "|---|---|"]
    lines += [
        f"| Acting | {_words(f'`{name}`' for name in CONTROLLERS)} |",
        f"| Missing | {_words(f'`{name}`' for name in UPSTREAM_CONTROLLERS if name not in CONTROLLERS)} |",
    ]
    return "\n".join(lines) + "\n"


def _words(names: Iterable[str]) -> str:
    return ", ".join(sorted(names))


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(BLOCK.sub(lambda _: table(), page.read_text(encoding="utf-8")), encoding="utf-8")
