"""A cluster with one of everything that an answer can be about; each name says what it is there for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspection.contents import a_node_document, a_pod_document, a_policy_document

if TYPE_CHECKING:
    from inspection.contents import Document

VERSIONS = {
    "CSINode": "storage.k8s.io/v1",
    "Deployment": "apps/v1",
    "DeviceClass": "resource.k8s.io/v1",
    "Eviction": "plimsoll.dev/v1alpha1",
    "PodDisruptionBudget": "policy/v1",
    "PodGroup": "plimsoll.dev/v1alpha1",
    "PriorityClass": "scheduling.k8s.io/v1",
    "ReplicaSet": "apps/v1",
    "ResourceClaim": "resource.k8s.io/v1",
    "ResourceSlice": "resource.k8s.io/v1",
    "SchedulingPolicy": "plimsoll.dev/v1alpha1",
    "StatefulSet": "apps/v1",
    "StorageClass": "storage.k8s.io/v1",
}
ZONE, HOST = "topology.kubernetes.io/zone", "kubernetes.io/hostname"


def items() -> list[Document]:
    """All objects, as ``kubectl get`` prints them."""
    found = [*nodes(), *placed(), *waiting(), *others(), *policies(), *readings()]
    return [{"apiVersion": VERSIONS.get(each["kind"], "v1"), **each} for each in found]


def a_node(
    name: str, zone: str = "", *, cpu: str = "4", labels: Document | None = None, **spec: Any
) -> Document:
    node = a_node_document(name, cpu=cpu, **spec)
    node["metadata"]["labels"] |= ({ZONE: zone} if zone else {}) | (labels or {})
    return node


def nodes() -> list[Document]:
    """Ten nodes in three zones and in none."""
    old = {"key": "old", "value": "", "effect": "NoExecute"}
    gpu = {"key": "dedicated", "value": "gpu", "effect": "NoSchedule"}
    soft = {"key": "spot", "value": "yes", "effect": "PreferNoSchedule"}
    cordon = {"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}
    full = a_node("a-few-pods", "a")
    full["status"]["allocatable"]["pods"] = "2"
    accelerated = a_node("c-gpu", "c", taints=[gpu], labels={"disk": "nvme", "generation": "7"})
    accelerated["status"]["allocatable"] |= {"example.com/gpu": "4", "hugepages-2Mi": "64Mi"}
    down = a_node("c-down", "c")
    down["status"]["conditions"][0]["status"] = "False"
    return [
        a_node("a-busy", "a", labels={"disk": "ssd", "generation": "3"}),
        a_node("a-half", "a", labels={"disk": "ssd"}),
        full,
        a_node("b-busy", "b", labels={"disk": "hdd"}),
        a_node("b-cordoned", "b", unschedulable=True, taints=[cordon, old]),
        a_node("b-tainted", "b", taints=[soft, gpu, old]),
        accelerated,
        down,
        a_node("no-zone", cpu="2"),
        a_node("no-room", cpu="0"),
    ]


def a_pod(
    name: str,
    node: str = "",
    *,
    labels: Document | None = None,
    status: Document | None = None,
    kind: str = "",
    **more: Any,
) -> Document:
    pod = a_pod_document(name, node, **more)
    pod["metadata"]["uid"] = f"{pod['metadata']['namespace']}-{name}"
    pod["metadata"]["labels"] |= labels or {}
    pod["status"] |= status or {}
    if kind == "none":
        del pod["metadata"]["ownerReferences"]
    elif kind:
        pod["metadata"]["ownerReferences"][0]["kind"] = kind
    return pod


def required(kind: str, *terms: Document) -> Document:
    return {"affinity": {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}}


def a_term(app: str, key: str, *namespaces: str) -> Document:
    term: Document = {"labelSelector": {"matchLabels": {"app": app}}, "topologyKey": key}
    return term | ({"namespaces": list(namespaces)} if namespaces else {})


def labelled(app: str, labels: Document) -> Document:
    """A term that means namespaces by their labels."""
    return a_term(app, ZONE if labels else HOST) | {"namespaceSelector": {"matchLabels": labels}}


def expressed(operator: str, *values: str) -> Document:
    """A term by an expression."""
    one = {"key": "app", "operator": operator} | ({"values": list(values)} if values else {})
    return {
        "labelSelector": {"matchExpressions": [one, {"key": "tier", "operator": "DoesNotExist"}]},
        "topologyKey": HOST,
        "namespaces": ["office"],
    }


def numbers(key: str, *bounds: tuple[str, int]) -> list[Document]:
    """Expressions that bound a label."""
    return [{"key": key, "operator": operator, "values": [str(value)]} for operator, value in bounds]


def on_nodes(*expressions: Document, fields: list[Document] | None = None) -> Document:
    terms = [{"matchExpressions": list(expressions), **({"matchFields": fields} if fields else {})}]
    return {
        "affinity": {
            "nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
        }
    }


def spread(app: str, key: str, skew: int = 1, **more: Any) -> Document:
    one = {
        "maxSkew": skew,
        "topologyKey": key,
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": app}},
    }
    return {"topologySpreadConstraints": [one | more]}


def containers(port: int = 0, more: Document | None = None, **requests: str) -> Document:
    main: Document = {"name": "main", "resources": {"requests": requests | (more or {})}}
    return {"containers": [main | ({"ports": [{"containerPort": port, "hostPort": port}]} if port else {})]}


def placed() -> list[Document]:
    """Pods with a node, of three workloads, of another namespace, and of each kind that stays."""
    mirror = a_pod("mirror", "a-busy", cpu="100m", kind="Node")
    mirror["metadata"]["annotations"] = {"kubernetes.io/config.mirror": "x"}
    kept = a_pod("kept", "b-busy", cpu="100m", owner="kept")
    kept["metadata"]["annotations"] = {"cluster-autoscaler.kubernetes.io/safe-to-evict": "false"}
    leaving = a_pod("leaving", "a-half", cpu="400m", owner="leaving")
    leaving["metadata"] |= {"deletionTimestamp": "2026-01-31T11:59:00Z", "deletionGracePeriodSeconds": 30}
    return [
        *(a_pod(f"web-{each}", "a-busy", cpu="900m") for each in (1, 2, 3)),
        a_pod("web-4", "b-busy", cpu="900m"),
        *(
            a_pod(f"db-{each}", node, cpu="1", owner="db", kind="StatefulSet")
            for each, node in enumerate(("a-half", "b-busy", "c-gpu"))
        ),
        a_pod("port", "a-half", owner="port", **containers(8080, cpu="100m")),
        a_pod("port-too", "a-half", owner="port", **containers(8081, cpu="100m")),
        a_pod(
            "alone-by-zone",
            "b-busy",
            owner="hermit",
            cpu="100m",
            **required("podAntiAffinity", a_term("recluse", ZONE, "shop", "bank")),
        ),
        *(a_pod(f"few-{each}", "a-few-pods", cpu="100m", owner="few") for each in (1, 2)),
        a_pod("web-1", "no-zone", namespace="bank", cpu="1500m", owner="web", priority=-10),
        a_pod("teller", "no-zone", namespace="bank", cpu="100m", owner="teller", labels={"app": "teller"}),
        a_pod("on-tainted", "b-tainted", cpu="3", owner="batch", priority=5),
        a_pod("on-cordoned", "b-cordoned", cpu="500m", owner="batch"),
        a_pod("on-down", "c-down", cpu="500m", owner="batch"),
        a_pod("on-removed-node", "gone", cpu="500m", owner="batch"),
        a_pod("of-daemon", "a-busy", cpu="100m", owner="log", kind="DaemonSet"),
        a_pod("of-nothing", "a-half", cpu="100m", kind="none"),
        a_pod("of-local-data", "a-half", cpu="100m", owner="cache", volumes=[{"name": "d", "emptyDir": {}}]),
        a_pod("finished", "a-half", cpu="2", owner="job", kind="Job", status={"phase": "Succeeded"}),
        a_pod(
            "not-ready",
            "b-busy",
            cpu="100m",
            owner="slow",
            status={"conditions": [{"type": "Ready", "status": "False"}]},
        ),
        a_pod("elsewhere-scheduled", "a-half", cpu="100m", owner="legacy", schedulerName="default-scheduler"),
        a_pod("train-0", "a-half", cpu="100m", owner="train", labels={"plimsoll.dev/pod-group": "train"}),
        a_pod("guest", "c-gpu", owner="guest", **containers(0, {"example.com/gpu": "1"}, cpu="100m")),
        a_pod(
            "holds-device", "c-gpu", cpu="100m", resourceClaims=[{"name": "d", "resourceClaimName": "held"}]
        ),
        mirror,
        kept,
        leaving,
    ]


def waiting() -> list[Document]:
    """Pods without a node, one for each reason and for pairs of them."""
    disk = {"key": "disk", "operator": "In", "values": ["tape", "nvme"]}
    tolerating = [{"key": "dedicated", "operator": "Exists"}, {"key": "old", "operator": "Exists"}]
    gpus: Document = {
        "containers": [{"name": "main", "resources": {"requests": {"cpu": "1", "example.com/gpu": "9"}}}]
    }
    huge: Document = {
        "containers": [
            {
                "name": "main",
                "resources": {"requests": {"hugepages-2Mi": "128Mi"}, "limits": {"hugepages-2Mi": "128Mi"}},
            }
        ]
    }
    pods = [
        a_pod("too-large", cpu="9", owner="large"),
        a_pod("larger-than-free", cpu="3500m", owner="large"),
        a_pod("much-memory", owner="large", **containers(memory="7900Mi")),
        a_pod("many-gpus", owner="large", tolerations=tolerating, **gpus),
        a_pod("huge-pages", owner="large", tolerations=tolerating, **huge),
        a_pod("fits", cpu="100m", owner="small"),
        a_pod("tolerates-some", cpu="3800m", owner="small", tolerations=tolerating[:1]),
        a_pod("selects-label", owner="choosy", nodeSelector={"disk": "tape", ZONE: "a"}),
        a_pod("wants-in", owner="choosy", **on_nodes(disk)),
        a_pod(
            "wants-not-in",
            owner="choosy",
            **on_nodes(
                {"key": "disk", "operator": "NotIn", "values": ["ssd", "hdd"]},
                {"key": ZONE, "operator": "Exists"},
            ),
        ),
        a_pod(
            "wants-greater",
            owner="choosy",
            **on_nodes({"key": "generation", "operator": "Gt", "values": ["7"]}),
        ),
        a_pod(
            "wants-less", owner="choosy", **on_nodes({"key": "generation", "operator": "Lt", "values": ["3"]})
        ),
        a_pod(
            "wants-absent", owner="choosy", cpu="3", **on_nodes({"key": "disk", "operator": "DoesNotExist"})
        ),
        a_pod(
            "wants-name",
            owner="choosy",
            **on_nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["a-busy"]}]),
        ),
        a_pod("wants-port", owner="port", nodeSelector={"disk": "ssd"}, **containers(8080, cpu="1")),
        a_pod("near-nobody", owner="social", **required("podAffinity", a_term("missing", ZONE))),
        a_pod("near-teller", owner="social", **required("podAffinity", a_term("teller", ZONE, "bank"))),
        a_pod("near-itself", owner="social", **required("podAffinity", a_term("social", "rack"))),
        a_pod(
            "near-two",
            owner="social",
            **required("podAffinity", a_term("web", ZONE), a_term("nothing", HOST, "bank", "shop")),
        ),
        a_pod(
            "near-labelled", owner="social", **required("podAffinity", labelled("teller", {"team": "bank"}))
        ),
        a_pod(
            "near-unlabelled", owner="social", **required("podAffinity", labelled("teller", {"team": "shop"}))
        ),
        a_pod(
            "near-in-two", owner="social", **required("podAffinity", a_term("clerk", HOST, "shop", "bank"))
        ),
        a_pod("near-expressed", owner="social", **required("podAffinity", expressed("In", "clerk", "maid"))),
        a_pod("near-existing", owner="social", **required("podAffinity", expressed("Exists"))),
        a_pod(
            "apart-labelled",
            owner="shy",
            nodeSelector={"zone": "none"},
            **required("podAntiAffinity", labelled("teller", {"team": "bank"})),
        ),
        a_pod("apart-here", owner="shy", cpu="1900m", **required("podAntiAffinity", labelled("web", {}))),
        a_pod("large-memory", owner="large", **containers(memory="9000Mi")),
        a_pod("odd-memory", owner="large", **containers(memory="9216001Ki", cpu="10")),
        a_pod("bytes", owner="large", **containers(memory="9663676417")),
        a_pod("no-such-resource", owner="large", **containers(0, {"example.com/fpga": "1"})),
        a_pod(
            "impossible-range",
            owner="choosy",
            **on_nodes(*numbers("generation", ("Gt", 5), ("Lt", 9), ("Lt", 6))),
        ),
        a_pod(
            "narrow-range",
            owner="choosy",
            **on_nodes(*numbers("generation", ("Gt", 5), ("Gt", 2), ("Lt", 8))),
        ),
        a_pod(
            "excluded",
            owner="choosy",
            nodeSelector={"disk": "ssd"},
            **on_nodes({"key": "disk", "operator": "NotIn", "values": ["ssd"]}),
        ),
        a_pod(
            "both-ways",
            owner="choosy",
            **on_nodes({"key": "x", "operator": "Exists"}, {"key": "x", "operator": "DoesNotExist"}),
        ),
        a_pod(
            "two-values",
            owner="choosy",
            **on_nodes(
                {"key": "disk", "operator": "In", "values": ["ssd"]},
                {"key": "disk", "operator": "In", "values": ["hdd", "nvme"]},
            ),
        ),
        a_pod("spread-of-others", owner="choosy", **spread("nothing", ZONE)),
        a_pod(
            "tolerates-nothing",
            owner="choosy",
            tolerations=[{"key": "absent", "operator": "Equal", "value": "v", "effect": "NoSchedule"}],
        ),
        a_pod("of-a-class", owner="choosy", cpu="9", priorityClassName="absent"),
        a_pod("apart-from-web", owner="shy", **required("podAntiAffinity", a_term("web", ZONE))),
        a_pod(
            "apart-everywhere",
            owner="shy",
            **required("podAntiAffinity", a_term("web", ZONE), a_term("db", ZONE), a_term("few", HOST)),
        ),
        a_pod("kept-away", owner="recluse", nodeSelector={ZONE: "b"}),
        a_pod("kept-away", owner="recluse", namespace="bank", nodeSelector={ZONE: "b"}),
        a_pod("spread-by-zone", owner="web", **spread("web", ZONE)),
        a_pod("spread-by-rack", owner="web", **spread("web", "rack")),
        a_pod("spread-more", owner="web", cpu="100m", **spread("web", HOST, minDomains=12)),
        a_pod(
            "gated",
            owner="gated",
            schedulingGates=[{"name": "example.com/quota"}, {"name": "example.com/other"}],
        ),
        a_pod("unserved", owner="lost", schedulerName="absent"),
        a_pod("of-default", owner="lost", cpu="9", schedulerName="default-scheduler"),
        a_pod("urgent", owner="urgent", cpu="3500m", priority=1000),
        a_pod("urgent-never", owner="urgent", cpu="3500m", priority=1000, preemptionPolicy="Never"),
        a_pod("nominated", owner="urgent", cpu="1", priority=1000, status={"nominatedNodeName": "no-zone"}),
        a_pod("train-1", owner="train", cpu="100m", labels={"plimsoll.dev/pod-group": "train"}),
        a_pod("train-2", owner="train", cpu="9", labels={"plimsoll.dev/pod-group": "train"}),
        a_pod("of-no-group", owner="train", labels={"plimsoll.dev/pod-group": "unknown"}),
        a_pod("no-claim", owner="claims", volumes=[claim("missing")]),
        a_pod("unbound-claim", owner="claims", volumes=[claim("unbound")]),
        a_pod("late-claim", owner="claims", volumes=[claim("late")]),
        a_pod("fixed-claim", owner="claims", cpu="3500m", volumes=[claim("fixed")]),
        a_pod("no-device", owner="devices", resourceClaims=[{"name": "d", "resourceClaimName": "missing"}]),
        a_pod(
            "held-device", tolerations=tolerating, resourceClaims=[{"name": "d", "resourceClaimName": "one"}]
        ),
        a_pod("large-device", owner="devices", resourceClaims=[{"name": "d", "resourceClaimName": "large"}]),
    ]
    ending = a_pod("ends-waiting", owner="ending")
    ending["metadata"]["deletionTimestamp"] = "2026-01-31T11:59:00Z"
    return [*map(of_its_own, pods), ending]


def of_its_own(pod: Document) -> Document:
    """The pod with an owner of its own, as rules judge one pod of each owner."""
    (owner,) = pod["metadata"]["ownerReferences"]
    if owner["name"] not in ("web", "train", "recluse", "urgent"):
        owner["name"] = owner["uid"] = pod["metadata"]["name"]
    return pod


def claim(name: str) -> Document:
    return {"name": "data", "persistentVolumeClaim": {"claimName": name}}


def named(kind: str, name: str, namespace: str = "", **more: Any) -> Document:
    metadata = {"name": name, "uid": f"{kind}-{name}"} | ({"namespace": namespace} if namespace else {})
    return {"kind": kind, "metadata": metadata, **more}


def a_budget(name: str, app: str, allowed: int, namespace: str = "shop", **spec: Any) -> Document:
    status = {
        "disruptionsAllowed": allowed,
        "currentHealthy": 2 + allowed,
        "desiredHealthy": 2,
        "expectedPods": 3,
        "observedGeneration": 1,
    }
    found = named(
        "PodDisruptionBudget",
        name,
        namespace,
        spec={"selector": {"matchLabels": {"app": app}}, **spec},
        status=status,
    )
    found["metadata"]["generation"] = 1
    return found


def a_claim(name: str, storage: str, volume: str = "") -> Document:
    spec: Document = {
        "storageClassName": storage,
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
    }
    bound = {"volumeName": volume} if volume else {}
    return named(
        "PersistentVolumeClaim",
        name,
        "shop",
        spec=spec | bound,
        status={"phase": "Bound" if volume else "Pending"},
    )


def others() -> list[Document]:
    """Budgets, classes, claims, groups, devices and namespaces."""
    only_b = {
        "required": {
            "nodeSelectorTerms": [{"matchExpressions": [{"key": ZONE, "operator": "In", "values": ["b"]}]}]
        }
    }
    device = {"name": "small", "attributes": {"size": {"int": 1}}, "capacity": {"memory": {"value": "8Gi"}}}
    request = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 3}}
    bank = named("Namespace", "bank")
    bank["metadata"]["labels"] = {"team": "bank"}
    one = {"name": "r", "exactly": {"deviceClassName": "gpu", "count": 1, "allocationMode": "ExactCount"}}
    result = {"request": "r", "driver": "d", "pool": "c", "device": "small"}
    held = {
        "allocation": {"devices": {"results": [result]}},
        "reservedFor": [{"resource": "pods", "name": "holds-device", "uid": "shop-holds-device"}],
    }
    volume = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "now",
        "nodeAffinity": only_b,
    }
    return [
        a_budget("web", "web", 1, minAvailable=2),
        a_budget("db", "db", 0, minAvailable=3),
        a_budget("db-too", "db", 1, maxUnavailable="50%"),
        a_budget("web", "web", 0, "bank", maxUnavailable=0),
        a_budget("of-no-pod", "nothing", 0, minAvailable=1),
        named("Namespace", "shop"),
        bank,
        named("PriorityClass", "high", value=1000),
        named("PriorityClass", "low", value=-10, globalDefault=True),
        named("PodGroup", "train", "shop", spec={"minMember": 3}),
        named("PodGroup", "empty", "shop", spec={"minMember": 2}),
        named("StorageClass", "now", provisioner="p", volumeBindingMode="Immediate"),
        named("StorageClass", "later", provisioner="p", volumeBindingMode="WaitForFirstConsumer"),
        a_claim("unbound", "now"),
        a_claim("late", "later"),
        a_claim("fixed", "now", "in-b"),
        named("PersistentVolume", "in-b", spec=volume, status={"phase": "Bound"}),
        named("DeviceClass", "gpu", spec={}),
        named(
            "ResourceSlice",
            "c",
            spec={
                "driver": "d",
                "nodeName": "c-gpu",
                "pool": {"name": "c", "generation": 1, "resourceSliceCount": 1},
                "devices": [device],
            },
        ),
        named("ResourceClaim", "large", "shop", spec={"devices": {"requests": [request]}}, status={}),
        named("ResourceClaim", "one", "shop", spec={"devices": {"requests": [one]}}, status={}),
        named("ResourceClaim", "held", "shop", spec={"devices": {"requests": [one]}}, status=held),
        named("ReplicaSet", "web", "shop", spec={"replicas": 4, "selector": {"matchLabels": {"app": "web"}}}),
    ]


def policies() -> list[Document]:
    """One that places and tidies, one that balances, one that waits, and each that does not work."""
    low = {"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": 40}, "targetThresholds": {"cpu": 60}}}
    tidy = [
        {"name": each}
        for each in (
            "RemoveDuplicates",
            "RemovePodsViolatingNodeTaints",
            "RemovePodsViolatingTopologySpreadConstraint",
            "RemovePodsViolatingInterPodAntiAffinity",
        )
    ]
    limits = {"total": 2, "perNode": 1}
    return [
        a_policy_document(
            "tidy",
            scheduling={"schedulerName": "plimsoll"},
            rebalancing={"mode": "Enforce", "strategies": tidy, "limits": limits},
        ),
        a_policy_document(
            "balance", created="2026-01-02T00:00:00Z", rebalancing={"mode": "DryRun", "strategies": [low]}
        ),
        a_policy_document(
            "resting",
            created="2026-01-03T00:00:00Z",
            suspend=True,
            rebalancing={"mode": "Enforce", "strategies": [low]},
        ),
        a_policy_document(
            "wrong",
            created="2026-01-04T00:00:00Z",
            rebalancing={"mode": "Enforce", "strategies": [{"name": "RemoveDuplicate"}]},
        ),
        a_policy_document("second", created="2026-01-05T00:00:00Z", scheduling={"schedulerName": "plimsoll"}),
    ]


def readings() -> list[Document]:
    """What the metrics API says: of most nodes, of some pods, one of them stale and one of no pod."""
    now, old = "2026-01-31T11:59:40Z", "2026-01-31T11:40:00Z"
    return [
        *(
            a_reading(name, "", now, cpu, memory)
            for name, cpu, memory in (
                ("a-busy", "3800m", "4Gi"),
                ("a-half", "500m", "2Gi"),
                ("b-busy", "1900m", "1Gi"),
                ("c-gpu", "100m", "7Gi"),
            )
        ),
        a_reading("no-zone", "", old, "1900m", "1Gi"),
        *(a_reading(f"web-{each}", "shop", now, "1200m", "1Gi") for each in (1, 2)),
        a_reading("db-0", "shop", now, "300m", "1536Mi"),
        a_reading("web-4", "shop", old, "300m", "1Gi"),
        a_reading("web-1", "bank", now, "1800m", "512Mi"),
        a_reading("no-such-pod", "shop", now, "1", "1Gi"),
    ]


def a_reading(name: str, namespace: str, taken: str, cpu: str, memory: str) -> Document:
    usage = {"cpu": cpu, "memory": memory}
    return {
        "apiVersion": "metrics.k8s.io/v1beta1",
        "kind": "PodMetrics" if namespace else "NodeMetrics",
        "metadata": {"name": name} | ({"namespace": namespace} if namespace else {}),
        "timestamp": taken,
        "window": "15s",
        **({"containers": [{"name": "main", "usage": usage}]} if namespace else {"usage": usage}),
    }
