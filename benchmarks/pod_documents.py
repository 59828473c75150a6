"""Makes the documents of pods as a real API server sends them, 6 to 9 kB each.

With managedFields, a token volume, probes, variables and the status that a kubelet writes. The document of an
application is made once and cut where its pods differ.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson

SCHEDULER = "plimsoll"
NAMESPACES = 100
MOMENT = "2026-01-01T00:00:00Z"

#: What differs between the pods of one owner, in the JSON of the first.
_NAME, _UID, _VERSION, _NODE, _SUFFIX, _ADDRESS, _RESTARTS = (
    f"@{name}@" for name in ("name", "uid", "version", "node", "suffix", "address", "restarts")
)


def owner_of(app: int) -> tuple[str, str, str]:
    """Kind, name and uid of an application's owner."""
    return "ReplicaSet", f"app-{app:05}-7d4b9c6f5", f"0000{app:04x}-1111-4222-8333-000000000000"


def namespace_of(app: int) -> str:
    """Of an application's pods."""
    return f"team-{app % NAMESPACES:03}"


def _container(name: str, image: str, cpu: str, memory: str) -> dict[str, Any]:
    probe = {
        "httpGet": {"path": "/healthz", "port": "http", "scheme": "HTTP"},
        "initialDelaySeconds": 5,
        "timeoutSeconds": 1,
        "periodSeconds": 10,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    variables: list[dict[str, Any]] = [
        {"name": f"SETTING_{number}", "value": f"value-{number}"} for number in range(8)
    ]
    variables.append(
        {"name": "NODE", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec.nodeName"}}}
    )
    return {
        "name": name,
        "image": image,
        "args": ["--port=8080", "--log-format=json"],
        "ports": [{"name": "http", "containerPort": 8080, "protocol": "TCP"}],
        "env": variables,
        "resources": {"limits": {"memory": memory}, "requests": {"cpu": cpu, "memory": memory}},
        "volumeMounts": [
            {"name": "config", "readOnly": True, "mountPath": "/etc/config"},
            {
                "name": f"kube-api-access-{_SUFFIX}",
                "readOnly": True,
                "mountPath": "/var/run/secrets/kubernetes.io/serviceaccount",
            },
        ],
        "livenessProbe": probe,
        "readinessProbe": probe,
        "terminationMessagePath": "/dev/termination-log",
        "terminationMessagePolicy": "File",
        "imagePullPolicy": "IfNotPresent",
    }


def _volumes() -> list[dict[str, Any]]:
    sources = [
        {"serviceAccountToken": {"expirationSeconds": 3607, "path": "token"}},
        {
            "configMap": {
                "name": "kube-root-ca.crt",
                "items": [{"key": "ca.crt", "path": "ca.crt"}],
            }
        },
        {
            "downwardAPI": {
                "items": [
                    {
                        "path": "namespace",
                        "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                    }
                ]
            }
        },
    ]
    return [
        {"name": "config", "configMap": {"name": "settings", "defaultMode": 420}},
        {
            "name": f"kube-api-access-{_SUFFIX}",
            "projected": {"sources": sources, "defaultMode": 420},
        },
    ]


def _affinity(app: int, labels: dict[str, str], *, daemon: bool) -> dict[str, Any]:
    if daemon:
        fields = [{"key": "metadata.name", "operator": "In", "values": [_NODE or "@node@"]}]
        terms = {"nodeSelectorTerms": [{"matchFields": fields}]}
        return {"affinity": {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}}
    selector = {"labelSelector": {"matchLabels": {"app": labels["app"]}}}
    found: dict[str, Any] = {}
    if app % 3 == 0:
        term = {"podAffinityTerm": {**selector, "topologyKey": "kubernetes.io/hostname"}, "weight": 10}
        anti = {"preferredDuringSchedulingIgnoredDuringExecution": [term]}
        found["affinity"] = {"podAntiAffinity": anti}
    if app % 2 == 0:
        found["topologySpreadConstraints"] = [
            {
                "maxSkew": 5,
                "topologyKey": "topology.kubernetes.io/zone",
                "whenUnsatisfiable": "ScheduleAnyway",
                **selector,
            }
        ]
    return found


def _fields(names: Iterable[str]) -> dict[str, Any]:
    return {f"f:{name}": {} for name in names}


def _managed(labels: dict[str, str]) -> list[dict[str, Any]]:
    """Two entries of managedFields, the controller's and the kubelet's."""
    one = {
        ".": {},
        **_fields(("args", "image", "imagePullPolicy", "name", "terminationMessagePath")),
        "f:env": {
            ".": {},
            **{f'k:{{"name":"SETTING_{n}"}}': {".": {}, **_fields(("name", "value"))} for n in range(8)},
        },
        "f:resources": {".": {}, "f:limits": _fields(("memory",)), "f:requests": _fields(("cpu", "memory"))},
        "f:livenessProbe": {".": {}, **_fields(("failureThreshold", "periodSeconds", "timeoutSeconds"))},
        "f:readinessProbe": {".": {}, **_fields(("failureThreshold", "periodSeconds", "timeoutSeconds"))},
    }
    made = {
        "f:metadata": {
            "f:generateName": {},
            "f:labels": {".": {}, **_fields(labels)},
            "f:ownerReferences": {".": {}},
        },
        "f:spec": {
            "f:containers": {'k:{"name":"main"}': one},
            **_fields(("dnsPolicy", "restartPolicy", "schedulerName", "terminationGracePeriodSeconds")),
        },
    }
    conditions = {
        f'k:{{"type":"{kind}"}}': {".": {}, **_fields(("lastProbeTime", "lastTransitionTime", "status"))}
        for kind in ("ContainersReady", "Initialized", "Ready", "PodReadyToStartContainers")
    }
    status = {
        "f:status": {
            "f:conditions": conditions,
            **_fields(("containerStatuses", "hostIP", "phase", "podIP")),
        }
    }
    about = {"apiVersion": "v1", "fieldsType": "FieldsV1", "operation": "Update", "time": MOMENT}
    return [
        {**about, "manager": "kube-controller-manager", "fieldsV1": made},
        {**about, "manager": "kubelet", "fieldsV1": status, "subresource": "status"},
    ]


def _status(image: str, *, placed: bool) -> dict[str, Any]:
    if not placed:
        return {"phase": "Pending", "qosClass": "Burstable"}
    kinds = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
    about = {"lastProbeTime": None, "lastTransitionTime": MOMENT, "status": "True"}
    containers = [
        {
            "name": name,
            "state": {"running": {"startedAt": MOMENT}},
            "lastState": {},
            "ready": True,
            "restartCount": _RESTARTS,
            "image": image,
            "imageID": f"{image.partition(':')[0]}@sha256:{'0123456789abcdef' * 4}",
            "containerID": f"containerd://{'fedcba9876543210' * 4}",
            "started": True,
        }
        for name in ("main", "proxy")
    ]
    return {
        "observedGeneration": 1,
        "phase": "Running",
        "conditions": [{"type": kind, "observedGeneration": 1, **about} for kind in kinds],
        "hostIP": "10.0.0.1",
        "hostIPs": [{"ip": "10.0.0.1"}],
        "podIP": _ADDRESS,
        "podIPs": [{"ip": _ADDRESS}],
        "startTime": MOMENT,
        "containerStatuses": containers,
        "qosClass": "Burstable",
    }


def pod_document(app: int, *, daemon: bool, placed: bool, ending: bool = False) -> bytes:
    """The JSON of an application's pod, with the places of what differs between its pods."""
    kind, owner, uid = owner_of(app)
    labels = {
        "app": f"app-{app:05}",
        "app.kubernetes.io/part-of": namespace_of(app),
        "pod-template-hash": "7d4b9c6f5",
        "tier": ("web", "worker", "cache")[app % 3],
    }
    image = f"registry.example/team/app-{app % 500:05}:1.4.{app % 10}"
    metadata: dict[str, Any] = {
        "name": _NAME,
        "generateName": f"{owner}-",
        "namespace": namespace_of(app),
        "uid": _UID,
        "resourceVersion": _VERSION,
        "generation": 1,
        "creationTimestamp": MOMENT,
        "labels": labels,
        "annotations": {
            "prometheus.io/scrape": "true",
            "prometheus.io/port": "8080",
            "checksum/config": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        },
        "ownerReferences": [
            {
                "apiVersion": "apps/v1",
                "kind": "DaemonSet" if daemon else kind,
                "name": owner,
                "uid": uid,
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "managedFields": _managed(labels),
    }
    if ending:
        metadata |= {"deletionTimestamp": MOMENT, "deletionGracePeriodSeconds": 30}
    seconds = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 300}
    spec: dict[str, Any] = {
        "volumes": _volumes(),
        "containers": [
            _container("main", image, f"{100 + 50 * (app % 5)}m", f"{128 * (1 + app % 4)}Mi"),
            _container("proxy", "registry.example/proxy:2.1", "10m", "32Mi"),
        ],
        "restartPolicy": "Always",
        "terminationGracePeriodSeconds": 30,
        "dnsPolicy": "ClusterFirst",
        "serviceAccountName": "default",
        "serviceAccount": "default",
        **({"nodeName": _NODE} if placed else {}),
        "securityContext": {},
        **_affinity(app, labels, daemon=daemon),
        "schedulerName": SCHEDULER,
        "tolerations": [
            {"key": "node.kubernetes.io/not-ready", **seconds},
            {"key": "node.kubernetes.io/unreachable", **seconds},
        ],
        "priority": 0,
        "enableServiceLinks": True,
        "preemptionPolicy": "PreemptLowerPriority",
    }
    document = {
        "kind": "Pod",
        "apiVersion": "v1",
        "metadata": metadata,
        "spec": spec,
        "status": _status(image, placed=placed),
    }
    return orjson.dumps(document).replace(b'"@restarts@"', b"@restarts@")


class PodTemplates:
    """The documents of pods, cut where pods of one owner differ."""

    def __init__(self, nodes: list[str]) -> None:
        self._nodes = nodes
        self._cut: dict[tuple[int, bool, bool, bool], list[bytes]] = {}

    def document(self, number: int, app: int, row: int, version: int, state: int) -> bytes:
        """The JSON of a pod.

        Args:
            number: Its own.
            app: Of its application; negative: a DaemonSet.
            row: Of its node; negative: it waits for one.
            version: Its resourceVersion.
            state: Of its containers, restarts; negative: it is being deleted.
        """
        key = (abs(app), app < 0, row >= 0, state < 0)
        cut = self._cut.get(key)
        if cut is None:
            whole = pod_document(abs(app), daemon=app < 0, placed=row >= 0, ending=state < 0)
            cut = self._cut[key] = whole.split(b"@")
        values = {
            b"name": pod_name(number, app).encode(),
            b"uid": b"%08x-2222-4333-8444-%012x" % (number, number),
            b"version": b"%d" % version,
            b"node": self._nodes[row].encode() if row >= 0 else b"",
            b"suffix": b"%05x" % (number % 0xFFFFF),
            b"address": b"10.%d.%d.%d" % (number >> 16 & 255, number >> 8 & 255, number & 255),
            b"restarts": b"%d" % abs(state),
        }
        return b"".join([values.get(part, part) for part in cut])


def pod_name(number: int, app: int) -> str:
    """Of a pod."""
    return f"{owner_of(abs(app))[1]}-{number:07x}"
