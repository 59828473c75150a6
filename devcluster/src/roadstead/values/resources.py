"""Lists the served resources: built-in ones and those of custom resource definitions.

A resource is one plural in one group version. Its ``key`` ("pods", "deployments.apps") is shared by all
versions of it and names the collection in the store; objects are stored in one version and converted when
served.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

Obj = dict[str, Any]

ALL_VERBS = ("create", "delete", "deletecollection", "get", "list", "patch", "update", "watch")
STATUS_VERBS = ("get", "patch", "update")


@dataclass(frozen=True, slots=True)
class Subresource:
    """A subresource such as ``status``; group, version, kind: those of responses ("": the parent's)."""

    name: str
    verbs: tuple[str, ...] = STATUS_VERBS
    kind: str = ""
    group: str = ""
    version: str = ""


STATUS = Subresource("status")
SCALE = Subresource("scale", kind="Scale", group="autoscaling", version="v1")


@dataclass(frozen=True, slots=True)
class Resource:
    """One plural of one group version.

    Attributes:
        storage_version: the version in which objects are kept ("" where it is this one).
        storage_key: the collection in the store, where it is not ``key`` (events have two groups, one store).
        ephemeral: processed without being stored (reviews, bindings).
        custom: defined by a CustomResourceDefinition.
        warning: sent with every response, as for a deprecated version.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    verbs: tuple[str, ...] = ALL_VERBS
    subresources: tuple[Subresource, ...] = ()
    list_kind: str = ""
    storage_version: str = ""
    storage_key: str = ""
    ephemeral: bool = False
    custom: bool = False
    warning: str = ""

    @property
    def api_version(self) -> str:
        """As in ``apiVersion``."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def key(self) -> str:
        """Plural and group, as in "deployments.apps"; only the plural in the core group."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def collection(self) -> str:
        """The name of the collection in the store."""
        return self.storage_key or self.key

    @property
    def stored_api_version(self) -> str:
        """The ``apiVersion`` of stored objects."""
        if self.storage_key == "events":
            return "v1"
        version = self.storage_version or self.version
        return f"{self.group}/{version}" if self.group else version

    @property
    def error_group(self) -> str:
        """The group in errors: that of the stored kind."""
        return "" if self.storage_key else self.group

    @property
    def error_key(self) -> str:
        """The key in errors."""
        return self.plural if self.storage_key else self.key

    @property
    def group_kind(self) -> str:
        """The kind in messages: "Deployment.apps", "Pod"."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    def subresource(self, name: str) -> Subresource | None:
        """The subresource of that name."""
        return next((sub for sub in self.subresources if sub.name == name), None)


class Registry:
    """The resources that are served now; definitions add and remove resources."""

    def __init__(self, resources: Iterable[Resource]) -> None:
        self._paths: dict[tuple[str, str, str], Resource] = {}
        self._keys: dict[str, Resource] = {}
        self._kinds: dict[tuple[str, str, str], Resource] = {}
        self._collections: dict[str, list[Resource]] = {}
        for resource in resources:
            self.add(resource)

    def add(self, resource: Resource, *, preferred: bool = True) -> None:
        """Serve a resource; ``preferred`` makes this version the one of the bare key."""
        self._collections.clear()
        self._paths[resource.group, resource.version, resource.plural] = resource
        self._kinds[resource.group, resource.version, resource.kind] = resource
        if preferred or resource.key not in self._keys:
            self._keys[resource.key] = resource

    def remove(self, key: str) -> None:
        """Stop serving all versions of a resource."""
        self._collections.clear()
        for path in [path for path, resource in self._paths.items() if resource.key == key]:
            resource = self._paths.pop(path)
            self._kinds.pop((resource.group, resource.version, resource.kind), None)
        self._keys.pop(key, None)

    def at(self, group: str, version: str, plural: str) -> Resource | None:
        """The resource at a path."""
        return self._paths.get((group, version, plural))

    def keyed(self, key: str) -> Resource | None:
        """The resource of a key such as "deployments.apps", in its preferred version."""
        return self._keys.get(key)

    def of_collection(self, collection: str) -> list[Resource]:
        """The resources whose objects are kept in a collection: versions of one."""
        if not self._collections:
            for each in self._paths.values():
                self._collections.setdefault(each.collection, []).append(each)
        return self._collections.get(collection, [])

    def of_kind(self, api_version: str, kind: str) -> Resource | None:
        """The resource whose objects are of a kind."""
        group, _, version = api_version.rpartition("/")
        return self._kinds.get((group, version, kind))

    def serves(self, group: str, version: str = "") -> bool:
        """Whether anything is served in a group, or in one version of it."""
        return any(path[0] == group and version in ("", path[1]) for path in self._paths)

    def __iter__(self) -> Iterator[Resource]:
        return iter(list(self._paths.values()))


def _resource(
    group_version: str,
    kind: str,
    plural: str,
    *short_names: str,
    namespaced: bool = True,
    **more: Any,
) -> Resource:
    group, _, version = group_version.rpartition("/")
    return Resource(group, version, kind, plural, kind.lower(), namespaced, short_names, **more)


def _review(group: str, kind: str, *, namespaced: bool = False) -> Resource:
    plural = f"{kind.lower()}s"
    return _resource(f"{group}/v1", kind, plural, namespaced=namespaced, verbs=("create",), ephemeral=True)


_ADMISSION = "admissionregistration.k8s.io"
_ALL = ("all",)
_WITHOUT_COLLECTION = tuple(verb for verb in ALL_VERBS if verb != "deletecollection")

BUILT_IN: tuple[Resource, ...] = (
    _resource("v1", "Binding", "bindings", verbs=("create",), ephemeral=True),
    _resource("v1", "ConfigMap", "configmaps", "cm"),
    _resource("v1", "Endpoints", "endpoints", "ep"),
    _resource("v1", "Event", "events", "ev"),
    _resource("v1", "LimitRange", "limitranges", "limits"),
    _resource(
        "v1",
        "Namespace",
        "namespaces",
        "ns",
        namespaced=False,
        verbs=_WITHOUT_COLLECTION,
        subresources=(Subresource("finalize", ("update",)), STATUS),
    ),
    _resource("v1", "Node", "nodes", "no", namespaced=False, subresources=(STATUS,)),
    _resource("v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", subresources=(STATUS,)),
    _resource("v1", "PersistentVolume", "persistentvolumes", "pv", namespaced=False, subresources=(STATUS,)),
    _resource(
        "v1",
        "Pod",
        "pods",
        "po",
        categories=_ALL,
        subresources=(
            Subresource("binding", ("create",), kind="Binding"),
            Subresource("ephemeralcontainers"),
            Subresource("eviction", ("create",), kind="Eviction", group="policy", version="v1"),
            Subresource("exec", ("create", "get"), kind="PodExecOptions"),
            Subresource("log", ("get",)),
            Subresource("resize"),
            STATUS,
        ),
    ),
    _resource("v1", "PodTemplate", "podtemplates"),
    _resource(
        "v1",
        "ReplicationController",
        "replicationcontrollers",
        "rc",
        categories=_ALL,
        subresources=(SCALE, STATUS),
    ),
    _resource("v1", "ResourceQuota", "resourcequotas", "quota", subresources=(STATUS,)),
    _resource("v1", "Secret", "secrets"),
    _resource(
        "v1",
        "ServiceAccount",
        "serviceaccounts",
        "sa",
        subresources=(
            Subresource(
                "token", ("create",), kind="TokenRequest", group="authentication.k8s.io", version="v1"
            ),
        ),
    ),
    _resource("v1", "Service", "services", "svc", categories=_ALL, subresources=(STATUS,)),
    _resource("apps/v1", "ControllerRevision", "controllerrevisions"),
    _resource("apps/v1", "DaemonSet", "daemonsets", "ds", categories=_ALL, subresources=(STATUS,)),
    _resource(
        "apps/v1", "Deployment", "deployments", "deploy", categories=_ALL, subresources=(SCALE, STATUS)
    ),
    _resource("apps/v1", "ReplicaSet", "replicasets", "rs", categories=_ALL, subresources=(SCALE, STATUS)),
    _resource("apps/v1", "StatefulSet", "statefulsets", "sts", categories=_ALL, subresources=(SCALE, STATUS)),
    _resource("events.k8s.io/v1", "Event", "events", "ev", storage_key="events"),
    _review("authentication.k8s.io", "SelfSubjectReview"),
    _review("authentication.k8s.io", "TokenReview"),
    _review("authorization.k8s.io", "LocalSubjectAccessReview", namespaced=True),
    _review("authorization.k8s.io", "SelfSubjectAccessReview"),
    _review("authorization.k8s.io", "SelfSubjectRulesReview"),
    _review("authorization.k8s.io", "SubjectAccessReview"),
    _resource(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        "horizontalpodautoscalers",
        "hpa",
        categories=_ALL,
        subresources=(STATUS,),
    ),
    _resource("batch/v1", "CronJob", "cronjobs", "cj", categories=_ALL, subresources=(STATUS,)),
    _resource("batch/v1", "Job", "jobs", categories=_ALL, subresources=(STATUS,)),
    _resource(
        "certificates.k8s.io/v1",
        "CertificateSigningRequest",
        "certificatesigningrequests",
        "csr",
        namespaced=False,
        subresources=(Subresource("approval"), STATUS),
    ),
    _resource("networking.k8s.io/v1", "IngressClass", "ingressclasses", namespaced=False),
    _resource("networking.k8s.io/v1", "Ingress", "ingresses", "ing", subresources=(STATUS,)),
    _resource("networking.k8s.io/v1", "NetworkPolicy", "networkpolicies", "netpol"),
    _resource("policy/v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", subresources=(STATUS,)),
    _resource("rbac.authorization.k8s.io/v1", "ClusterRoleBinding", "clusterrolebindings", namespaced=False),
    _resource("rbac.authorization.k8s.io/v1", "ClusterRole", "clusterroles", namespaced=False),
    _resource("rbac.authorization.k8s.io/v1", "RoleBinding", "rolebindings"),
    _resource("rbac.authorization.k8s.io/v1", "Role", "roles"),
    _resource("resource.k8s.io/v1", "DeviceClass", "deviceclasses", namespaced=False),
    _resource("resource.k8s.io/v1", "ResourceClaim", "resourceclaims", subresources=(STATUS,)),
    _resource("resource.k8s.io/v1", "ResourceClaimTemplate", "resourceclaimtemplates"),
    _resource("resource.k8s.io/v1", "ResourceSlice", "resourceslices", namespaced=False),
    _resource("storage.k8s.io/v1", "CSIDriver", "csidrivers", namespaced=False),
    _resource("storage.k8s.io/v1", "CSINode", "csinodes", namespaced=False),
    _resource("storage.k8s.io/v1", "CSIStorageCapacity", "csistoragecapacities"),
    _resource("storage.k8s.io/v1", "StorageClass", "storageclasses", "sc", namespaced=False),
    _resource(
        "storage.k8s.io/v1", "VolumeAttachment", "volumeattachments", namespaced=False, subresources=(STATUS,)
    ),
    _resource(
        f"{_ADMISSION}/v1",
        "ValidatingAdmissionPolicy",
        "validatingadmissionpolicies",
        namespaced=False,
        subresources=(STATUS,),
    ),
    _resource(
        f"{_ADMISSION}/v1",
        "ValidatingAdmissionPolicyBinding",
        "validatingadmissionpolicybindings",
        namespaced=False,
    ),
    _resource(f"{_ADMISSION}/v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies", namespaced=False),
    _resource(
        f"{_ADMISSION}/v1",
        "MutatingAdmissionPolicyBinding",
        "mutatingadmissionpolicybindings",
        namespaced=False,
    ),
    _resource(
        f"{_ADMISSION}/v1",
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        f"{_ADMISSION}/v1",
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        namespaced=False,
        categories=("api-extensions",),
    ),
    _resource(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "crd",
        "crds",
        namespaced=False,
        categories=("api-extensions",),
        subresources=(STATUS,),
    ),
    _resource("scheduling.k8s.io/v1", "PriorityClass", "priorityclasses", "pc", namespaced=False),
    _resource("coordination.k8s.io/v1", "Lease", "leases"),
    _resource("discovery.k8s.io/v1", "EndpointSlice", "endpointslices"),
    _resource("node.k8s.io/v1", "RuntimeClass", "runtimeclasses", namespaced=False),
)


def built_in_registry() -> Registry:
    """A registry of the built-in resources."""
    # Endpoints is plural in the singular, too.
    singulars = (
        replace(resource, singular="endpoints") if resource.plural == "endpoints" else resource
        for resource in BUILT_IN
    )
    return Registry(singulars)
