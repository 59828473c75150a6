"""Makes the demo's GPUs and their users, and says from API objects which workload has which GPU; no I/O."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .inventory import NAMESPACE, SCHEDULER, Manifest, budget_manifest

#: The driver of the development cluster, which is also the name of its class.
CLASS = "gpu.example.com"

#: GPUs of a node, and how many of them are linked fast.
GPUS, LINKED = 8, 4

#: The Job that needs all GPUs of a node.
TRAINING = "training"

Device = tuple[str, str]  #: node and name


@dataclass(frozen=True, slots=True)
class Service:
    """A Deployment whose pods have GPUs.

    Attributes:
        name: Of the Deployment.
        replicas: Its pods.
        gpus: Of each pod; several are linked with each other.
    """

    name: str
    replicas: int
    gpus: int


#: They fill three eighths of four nodes, a little of each, as the scheduler spreads them.
SERVICES = (Service("chat", 4, 1), Service("search", 4, 2))


def template_manifest(name: str, gpus: int) -> Manifest:
    """A ResourceClaimTemplate; two GPUs and more, but not all of a node, are of one link."""
    devices: Manifest = {"requests": [{"name": "gpu", "exactly": {"deviceClassName": CLASS, "count": gpus}}]}
    if 1 < gpus <= LINKED:
        devices["constraints"] = [{"matchAttribute": f"{CLASS}/link"}]
    return {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "ResourceClaimTemplate",
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"spec": {"devices": devices}},
    }


def _pod_spec(template: str) -> Manifest:
    return {
        "schedulerName": SCHEDULER,
        "terminationGracePeriodSeconds": 1,
        "resourceClaims": [{"name": "gpu", "resourceClaimTemplateName": template}],
        "containers": [
            {
                "name": "main",
                "image": "example.com/workload:1",
                "resources": {"requests": {"cpu": "1", "memory": "4Gi"}, "claims": [{"name": "gpu"}]},
            }
        ],
    }


def service_manifests(service: Service) -> Sequence[Manifest]:
    """A service's template of claims, its Deployment, and a budget that lets one pod go at a time."""
    labels = {"app": service.name}
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": service.name, "namespace": NAMESPACE},
        "spec": {
            "replicas": service.replicas,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": _pod_spec(service.name)},
        },
    }
    return (
        template_manifest(service.name, service.gpus),
        deployment,
        budget_manifest(service.name, service.replicas),
    )


def training_manifests() -> Sequence[Manifest]:
    """The Job, and the template of its claim on all GPUs of a node."""
    spec = {**_pod_spec(TRAINING), "restartPolicy": "Never"}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": TRAINING, "namespace": NAMESPACE},
        "spec": {"template": {"metadata": {"labels": {"app": TRAINING}}, "spec": spec}},
    }
    return template_manifest(TRAINING, GPUS), job


def holders(claims: Iterable[Mapping[str, Any]]) -> dict[Device, list[str]]:
    """The claims that hold each GPU, as their statuses say; more than one is a fault."""
    found: dict[Device, list[str]] = defaultdict(list)
    for claim in claims:
        allocation = claim.get("status", {}).get("allocation") or {}
        for result in allocation.get("devices", {}).get("results", []):
            found[result["pool"], result["device"]].append(claim["metadata"]["name"])
    return dict(found)


def twice(claims: Iterable[Mapping[str, Any]]) -> list[str]:
    """One sentence for each GPU that several claims hold."""
    return [
        f"{device} of {node} is held by {' and '.join(names)}"
        for (node, device), names in sorted(holders(claims).items())
        if len(names) > 1
    ]


@dataclass(frozen=True, slots=True)
class NodeGpus:
    """The GPUs of a node.

    Attributes:
        node: Its name.
        users: The workload of each GPU, "" where it is free.
    """

    node: str
    users: tuple[str, ...]

    @property
    def free(self) -> int:
        """GPUs that no claim holds."""
        return self.users.count("")


def gpus_by_node(
    slices: Iterable[Mapping[str, Any]], claims: Sequence[Mapping[str, Any]]
) -> tuple[NodeGpus, ...]:
    """Which workload has which GPU, node by node."""
    owners = {claim["metadata"]["name"]: _workload(claim) for claim in claims}
    held = holders(claims)
    return tuple(
        NodeGpus(
            spec["nodeName"],
            tuple(
                owners[held[spec["nodeName"], device["name"]][0]]
                if (spec["nodeName"], device["name"]) in held
                else ""
                for device in spec["devices"]
            ),
        )
        for spec in sorted((each["spec"] for each in slices), key=lambda spec: str(spec["nodeName"]))
    )


def _workload(claim: Mapping[str, Any]) -> str:
    """The workload of the pod for which a claim was made: pods are named after it."""
    owners = claim["metadata"].get("ownerReferences") or [{"name": claim["metadata"]["name"]}]
    return str(owners[0]["name"]).partition("-")[0]
