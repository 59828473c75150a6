"""Maps built-in resources to their kinds."""

from __future__ import annotations

from typing import TYPE_CHECKING

from roadstead.kinds.admission import (
    MutatingAdmissionPolicies,
    PolicyBindings,
    PolicyFault,
    ValidatingAdmissionPolicies,
)
from roadstead.kinds.autoscalers import HorizontalPodAutoscalers
from roadstead.kinds.batch import CronJobs, Jobs
from roadstead.kinds.cluster import Namespaces, PriorityClasses
from roadstead.kinds.daemon_sets import DaemonSets
from roadstead.kinds.devices.claims import DeviceClasses, ResourceClaims, ResourceClaimTemplates
from roadstead.kinds.devices.slices import ResourceSlices
from roadstead.kinds.events import Events
from roadstead.kinds.ingresses import IngressClasses, Ingresses
from roadstead.kinds.kind import Kind, StatusKind
from roadstead.kinds.nodes import Nodes
from roadstead.kinds.pod_groups import (
    COMPOSITES,
    POD_GROUPS,
    WORKLOADS,
    CompositePodGroups,
    PodGroups,
    Workloads,
)
from roadstead.kinds.pods import Pods
from roadstead.kinds.policies import PodDisruptionBudgets
from roadstead.kinds.quotas import LimitRanges, ResourceQuotas
from roadstead.kinds.rbac import RoleBindings, Roles
from roadstead.kinds.services import Leases, Services
from roadstead.kinds.stateful_sets import StatefulSets
from roadstead.kinds.storage import (
    KeyedData,
    PersistentVolumeClaims,
    PersistentVolumes,
    Secrets,
    StorageClasses,
)
from roadstead.kinds.webhooks import WebhookConfigurations
from roadstead.kinds.workloads import Deployments, ReplicaSets

if TYPE_CHECKING:
    from collections.abc import Callable

    from roadstead.kinds.devices.claim_specs import ExpressionFault


ADMISSION = "admissionregistration.k8s.io"


class Uncounted(StatusKind):
    """A kind with a status and without generations."""

    counts_generation = False


def built_in_kinds(
    expression_fault: ExpressionFault,
    policy_fault: PolicyFault,
    now: Callable[[], str],
    *,
    pod_groups: bool = False,
    composite_groups: bool = False,
) -> dict[str, Kind]:
    """Kinds by the resource's key; objects of other resources are stored unchanged.

    Args:
        expression_fault: of expressions about devices.
        policy_fault: of expressions in admission policies.
        now: the time in the form of metadata.
        pod_groups: whether pods may name PodGroups of scheduling.k8s.io.
        composite_groups: whether these are of the version that has composite groups.
    """
    kinds: dict[str, Kind] = {
        "configmaps": KeyedData(),
        "events": Events(),
        "events.events.k8s.io": Events(new=True),
        "namespaces": Namespaces(),
        "nodes": Nodes(),
        "persistentvolumeclaims": PersistentVolumeClaims(),
        "persistentvolumes": PersistentVolumes(),
        "pods": Pods(),
        "secrets": Secrets(),
        "services": Services(),
        "customresourcedefinitions.apiextensions.k8s.io": StatusKind(),
        "daemonsets.apps": DaemonSets(),
        "deployments.apps": Deployments(),
        "replicasets.apps": ReplicaSets(),
        "statefulsets.apps": StatefulSets(),
        "horizontalpodautoscalers.autoscaling": HorizontalPodAutoscalers(),
        "cronjobs.batch": CronJobs(),
        "jobs.batch": Jobs(),
        "ingressclasses.networking.k8s.io": IngressClasses(),
        "ingresses.networking.k8s.io": Ingresses(),
        "leases.coordination.k8s.io": Leases(),
        "poddisruptionbudgets.policy": PodDisruptionBudgets(),
        "priorityclasses.scheduling.k8s.io": PriorityClasses(),
        "storageclasses.storage.k8s.io": StorageClasses(),
        "deviceclasses.resource.k8s.io": DeviceClasses(expression_fault),
        "resourceclaims.resource.k8s.io": ResourceClaims(expression_fault),
        "resourceclaimtemplates.resource.k8s.io": ResourceClaimTemplates(expression_fault),
        "resourceslices.resource.k8s.io": ResourceSlices(now),
        "clusterrolebindings.rbac.authorization.k8s.io": RoleBindings(namespaced=False),
        "clusterroles.rbac.authorization.k8s.io": Roles(namespaced=False),
        "replicationcontrollers": StatusKind(),
        "limitranges": LimitRanges(),
        "resourcequotas": ResourceQuotas(),
        "rolebindings.rbac.authorization.k8s.io": RoleBindings(namespaced=True),
        "roles.rbac.authorization.k8s.io": Roles(namespaced=True),
        f"mutatingadmissionpolicies.{ADMISSION}": MutatingAdmissionPolicies(policy_fault),
        f"mutatingadmissionpolicybindings.{ADMISSION}": PolicyBindings(validating=False),
        f"validatingadmissionpolicies.{ADMISSION}": ValidatingAdmissionPolicies(policy_fault),
        f"validatingadmissionpolicybindings.{ADMISSION}": PolicyBindings(validating=True),
        f"mutatingwebhookconfigurations.{ADMISSION}": WebhookConfigurations(policy_fault, mutating=True),
        f"validatingwebhookconfigurations.{ADMISSION}": WebhookConfigurations(policy_fault, mutating=False),
        "volumeattachments.storage.k8s.io": Uncounted(),
        POD_GROUPS: PodGroups(composites=composite_groups),
        COMPOSITES: CompositePodGroups(composites=True),
        WORKLOADS: Workloads(),
    }
    for kind in kinds.values():
        kind.keeps_scheduling_group = pod_groups
    return kinds
