"""Each rule of lint finds what it is for, and leaves alone what is right."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from inspection.contents import a_node_document, a_pod_document, a_policy_document, content_of
from plimsoll.inspection.lint.budgets import allowed
from plimsoll.inspection.lint.rules import RULES, lint
from plimsoll.inspection.lint.subjects import LintedBudget, nothing_known, of_cluster, with_manifests
from plimsoll.inspection.state import ClusterState
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.toolkit.descheduling.disruption_signals import LOCAL_VOLUMES, SAFE_TO_EVICT, Reading

Document = dict[str, Any]


def _nodes() -> list[Document]:
    """Three nodes in two zones, one with a taint."""
    nodes = [a_node_document(f"n{number}", cpu="4", memory="8Gi") for number in (1, 2, 3)]
    for node, zone in zip(nodes, "aab", strict=True):
        node["metadata"]["labels"]["zone"] = zone
    nodes[2]["spec"]["taints"] = [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]
    return nodes


def _claim(name: str, phase: str, storage: str = "") -> Document:
    return {
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"storageClassName": storage},
        "status": {"phase": phase},
    }


CLUSTER = of_cluster(
    ClusterState.of(content_of([*_nodes(), a_pod_document("db-1", "n1", owner="db"), a_policy_document()]))
)


def deployment(replicas: int = 2, labels: Any = None, kind: str = "Deployment", **spec: Any) -> Document:
    """A workload in which nothing is wrong."""
    resources = {"requests": {"cpu": "100m", "memory": "64Mi"}}
    return {
        "apiVersion": "apps/v1",
        "kind": kind,
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {
            "replicas": replicas,
            "template": {
                "metadata": {"labels": labels or {"app": "web"}},
                "spec": {"containers": [{"name": "app", "resources": resources}], **spec},
            },
        },
    }


def annotated(volumes: Any = None, **annotations: str) -> Document:
    """A workload whose pods have annotations."""
    made = deployment(**({} if volumes is None else {"volumes": volumes}))
    made["spec"]["template"]["metadata"]["annotations"] = annotations
    return made


def budget(name: str = "web", app: str = "web", **spec: Any) -> Document:
    """A budget over the pods of the workload."""
    return {
        "kind": "PodDisruptionBudget",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"selector": {"matchLabels": {"app": app}}, **spec},
    }


def term(key: str = "zone", app: str = "web") -> Document:
    """A term of pod affinity or anti-affinity."""
    return {"topologyKey": key, "labelSelector": {"matchLabels": {"app": app}}}


def required(kind: str, *terms: Document) -> Document:
    """Required terms."""
    return {kind: {"requiredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def on_nodes(*requirements: tuple[str, str, list[str]]) -> Document:
    """Required node affinity with one term."""
    expressions = [
        {"key": key, "operator": operator, "values": values} for key, operator, values in requirements
    ]
    terms = {"nodeSelectorTerms": [{"matchExpressions": expressions}]}
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def spread(app: str = "web", **more: Any) -> list[Document]:
    """One hard spread constraint."""
    return [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule", **term(app=app), **more}]


def container(**more: Any) -> list[Document]:
    """One container."""
    return [{"name": "app", **more}]


def volume(**source: Any) -> list[Document]:
    """One volume."""
    return [{"name": "data", **source}]


def claimed(name: str) -> list[Document]:
    """A volume of a claim."""
    return volume(persistentVolumeClaim={"claimName": name})


POD = {
    "kind": "Pod",
    "metadata": {"name": "bare", "namespace": "shop"},
    "spec": deployment()["spec"]["template"]["spec"],
}

#: Parts of sentences.
EXCLUDE = "the requirements on the label {} exclude each other"
USABLE = ", of which the nodes that they may use have"
HOLDS = ": each holds 1, so"
SERVED = "(served: default-scheduler, plimsoll)"

#: By rule: documents that it finds, with what it says, and documents in which it finds nothing.
CASES: dict[str, tuple[list[tuple[list[Document], str]], list[list[Document]]]] = {
    "no-requests": (
        [
            ([deployment(containers=container())], "containers request no cpu for app and no memory for app"),
            (
                [deployment(containers=container(resources={"limits": {"cpu": 1}}))],
                "containers request no memory for app",
            ),
        ],
        [
            [deployment()],
            [deployment(containers=container(), resources={"requests": {"cpu": 1, "memory": 1}})],
        ],
    ),
    "request-too-large": (
        [
            (
                [deployment(containers=container(resources={"requests": {"cpu": "4500m"}}))],
                "it requests 4500m cpu, and the largest node has 4",
            ),
            (
                [deployment(containers=container(resources={"requests": {"memory": "16Gi"}}))],
                "it requests 16Gi memory, and the largest node has 8Gi",
            ),
            (
                [deployment(containers=container(resources={"requests": {"example.com/gpu": 1}}))],
                "it requests 1 example.com/gpu, and the largest node has 0",
            ),
        ],
        [[deployment(containers=container(resources={"requests": {"cpu": 4, "memory": "8Gi"}}))]],
    ),
    "node-affinity-unmatched": (
        [
            ([deployment(nodeSelector={"zone": "c"})], "none of 3 nodes matches zone=c"),
            (
                [deployment(affinity=on_nodes(("zone", "NotIn", ["a", "b"])))],
                "none of 3 nodes matches zone NotIn (a, b)",
            ),
        ],
        [[deployment(nodeSelector={"zone": "b"})], [deployment()]],
    ),
    "node-affinity-contradictory": (
        [
            (
                [deployment(nodeSelector={"zone": "a"}, affinity=on_nodes(("zone", "In", ["b"])))],
                f"no node can match zone=a, zone In (b): {EXCLUDE.format('zone')}",
            ),
            (
                [deployment(affinity=on_nodes(("disk", "Exists", []), ("disk", "DoesNotExist", [])))],
                f"no node can match disk Exists and disk DoesNotExist: {EXCLUDE.format('disk')}",
            ),
            (
                [deployment(affinity=on_nodes(("size", "Gt", ["4"]), ("size", "Lt", ["5"])))],
                f"no node can match size Gt (4) and size Lt (5): {EXCLUDE.format('size')}",
            ),
        ],
        [
            [deployment(affinity=on_nodes(("size", "Gt", ["4"]), ("size", "Lt", ["6"])))],
            [deployment(nodeSelector={"zone": "a"}, affinity=on_nodes(("zone", "In", ["a", "b"])))],
        ],
    ),
    "anti-affinity-too-few-domains": (
        [
            (
                [deployment(3, affinity=required("podAntiAffinity", term()))],
                f"3 pods exclude each other by zone{USABLE} 2; 1 cannot be placed",
            )
        ],
        [
            [deployment(2, affinity=required("podAntiAffinity", term()))],
            [deployment(3, affinity=required("podAntiAffinity", term(app="db")))],
            [deployment(3, kind="DaemonSet", affinity=required("podAntiAffinity", term()))],
        ],
    ),
    "affinity-to-no-pod": (
        [
            (
                [deployment(affinity=required("podAffinity", term(app="cache")))],
                "it must be near pods with app=cache, and there is no such pod",
            )
        ],
        [
            [deployment(affinity=required("podAffinity", term(app="db")))],
            [deployment(affinity=required("podAffinity", term()))],
        ],
    ),
    "topology-key-unknown": (
        [
            (
                [deployment(affinity=required("podAffinity", term(key="rack", app="db")))],
                "pod affinity is by the label rack, which no node has",
            ),
            (
                [deployment(topologySpreadConstraints=spread(topologyKey="rack"))],
                "a topology spread constraint is by the label rack, which no node has",
            ),
        ],
        [
            [
                deployment(
                    topologySpreadConstraints=spread(topologyKey="rack", whenUnsatisfiable="ScheduleAnyway")
                )
            ]
        ],
    ),
    "spread-impossible": (
        [
            (
                [deployment(3, topologySpreadConstraints=spread(minDomains=3))],
                f"minDomains 3 of zone is more than the 2 there are{HOLDS} 1 of 3 pods find no place",
            )
        ],
        [
            [deployment(2, topologySpreadConstraints=spread(minDomains=3))],
            [deployment(9, topologySpreadConstraints=spread(minDomains=2))],
        ],
    ),
    "spread-over-others": (
        [
            (
                [deployment(topologySpreadConstraints=spread("db"))],
                "a spread constraint by zone counts pods with app=db, which only other pods have",
            ),
            (
                [deployment(topologySpreadConstraints=spread("wbe"))],
                "a spread constraint by zone counts pods with app=wbe, which no pod has",
            ),
        ],
        [[deployment(topologySpreadConstraints=spread())]],
    ),
    "scheduler-not-served": (
        [
            (
                [deployment(schedulerName="plimsol")],
                f'no policy serves schedulerName "plimsol" {SERVED}; did you mean "plimsoll"?',
            )
        ],
        [
            [deployment(schedulerName="plimsoll")],
            [deployment()],
            [
                deployment(schedulerName="night"),
                a_policy_document("night", scheduling={"schedulerName": "night"}),
            ],
        ],
    ),
    "priority-class-missing": (
        [([deployment(priorityClassName="gold")], 'there is no PriorityClass "gold"')],
        [
            [deployment(priorityClassName="system-node-critical")],
            [deployment(priorityClassName="gold"), {"kind": "PriorityClass", "metadata": {"name": "gold"}}],
        ],
    ),
    "claim-missing": (
        [
            (
                [deployment(volumes=claimed("data"))],
                'there is no PersistentVolumeClaim "data" in the namespace',
            )
        ],
        [[deployment(volumes=claimed("data")), _claim("data", "Bound")]],
    ),
    "claim-unbound": (
        [
            ([deployment(volumes=claimed("data")), _claim("data", "Pending")], 'claim "data" is not bound'),
            (
                [deployment(volumes=claimed("data")), _claim("data", "Lost")],
                'the volume of claim "data" is lost',
            ),
        ],
        [[deployment(volumes=claimed("data")), _claim("data", "Bound")]],
    ),
    "host-port-crowded": (
        [
            (
                [deployment(4, containers=container(ports=[{"containerPort": 80, "hostPort": 80}]))],
                "4 pods want host port 80, and 3 nodes may take them, one each",
            )
        ],
        [
            [deployment(3, containers=container(ports=[{"containerPort": 80, "hostPort": 80}]))],
            [deployment(4, containers=container(ports=[{"containerPort": 80}]))],
        ],
    ),
    "budgets-overlap": (
        [
            (
                [deployment(), budget("one", maxUnavailable=1), budget("two", maxUnavailable=1)],
                "the budgets one, two are about the same pods; the API server evicts none of them",
            )
        ],
        [[deployment(), budget("one", maxUnavailable=1), budget("two", "db", maxUnavailable=1)]],
    ),
    "bare-pod": (
        [([POD], "nothing makes this pod again when it is evicted, so the evictor protects it")],
        [[deployment()]],
    ),
    "long-grace-period": (
        [
            (
                [deployment(terminationGracePeriodSeconds=3601)],
                "its pods may take 3601 seconds to end, and hold their room on both nodes meanwhile",
            )
        ],
        [[deployment(terminationGracePeriodSeconds=3600)]],
    ),
    "local-storage": (
        [
            (
                [deployment(volumes=volume(emptyDir={}))],
                "its pods are not moved because of local storage: data (emptyDir)",
            ),
            (
                [deployment(volumes=volume(hostPath={"path": "/d"}))],
                "its pods are not moved because of local storage: data (hostPath)",
            ),
        ],
        [
            [deployment(volumes=volume(configMap={}))],
            [deployment(kind="DaemonSet", volumes=volume(emptyDir={}))],
            [annotated(volumes=volume(emptyDir={}), **{SAFE_TO_EVICT: "true"})],
            [annotated(volumes=volume(emptyDir={}), **{LOCAL_VOLUMES: "data"})],
        ],
    ),
    "signal-unreadable": (
        [
            (
                [annotated(**{"karpenter.sh/do-not-disrupt": "soon"})],
                (
                    "annotation karpenter.sh/do-not-disrupt: 'soon' cannot be read"
                    f" (allowed are {Reading.TRUE_OR_DURATION.value})"
                ),
            ),
            (
                [deployment(labels={"app": "web", "autoscaling.cast.ai/removal-disabled": "yes"})],
                (
                    "label autoscaling.cast.ai/removal-disabled: 'yes' cannot be read"
                    f" (allowed are {Reading.TRUE.value})"
                ),
            ),
            (
                [annotated(volumes=volume(emptyDir={}), **{LOCAL_VOLUMES: "data, cache"})],
                (
                    f"annotation {LOCAL_VOLUMES} names volumes that the pod does not have: ' cache'"
                    " (no spaces between names)"
                ),
            ),
        ],
        [
            [annotated(**{"karpenter.sh/do-not-disrupt": "1h30m"})],
            [annotated(**{"karpenter.sh/do-not-disrupt": "false"})],
            [annotated(**{"example.com/other": "soon"})],
        ],
    ),
    "key-unknown": (
        [
            (
                [annotated(**{"plimsoll.dev/evit": "false"})],
                "plimsoll.dev/evit has no meaning; did you mean plimsoll.dev/evict?",
            ),
            (
                [deployment(labels={"app": "web", "plimsoll.dev/gang": "a"})],
                "plimsoll.dev/gang has no meaning",
            ),
        ],
        [[annotated(**{"plimsoll.dev/evict": "false"})], [annotated(**{"other.dev/evit": "false"})]],
    ),
    "single-replica": (
        [([deployment(1)], "it has one pod, which the evictor protects (minReplicas 2)")],
        [[deployment()], [deployment(1, kind="Job")]],
    ),
    "toleration-unused": (
        [
            (
                [deployment(tolerations=[{"key": "gpu", "value": "no", "effect": "NoSchedule"}])],
                "no node has the taint gpu=no:NoSchedule that it tolerates",
            )
        ],
        [
            [deployment(tolerations=[{"key": "gpu", "operator": "Exists"}])],
            [deployment(tolerations=[{"operator": "Exists"}])],
            [deployment(tolerations=[{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}])],
        ],
    ),
    "budget-blocks-all": (
        [
            (
                [deployment(), budget(maxUnavailable=0)],
                "maxUnavailable 0 of 2 pods allows no eviction, even if all are healthy",
            ),
            (
                [deployment(3), budget(minAvailable="67%")],
                "minAvailable 67% of 3 pods allows no eviction, even if all are healthy",
            ),
        ],
        [
            [deployment(), budget(maxUnavailable="1%")],
            [deployment(3), budget(minAvailable="66%")],
            [deployment(), budget(minAvailable=1)],
        ],
    ),
    "budget-blocks-only-pod": (
        [
            (
                [deployment(1), budget(minAvailable=1)],
                "minAvailable 1 of the only pod allows no eviction; draining its node blocks for ever",
            )
        ],
        [[deployment(1), budget(maxUnavailable=1)], [deployment(2), budget(minAvailable=2)]],
    ),
    "budget-matches-nothing": (
        [([deployment(), budget(app="cart", maxUnavailable=1)], "its selector matches no pod")],
        [[deployment(), budget(maxUnavailable=1)], [budget(app="db", maxUnavailable=1)]],
    ),
}


def found(rule: str, documents: list[Document], cluster: Any = CLUSTER) -> list[str]:
    """What a rule says of manifests."""
    given = [("file.yaml", copy.deepcopy(each)) for each in documents]
    around = with_manifests(cluster, given, "shop")
    return [each.message for each in lint(around, [rule], lambda subject: bool(subject.source)).findings]


def test_every_rule_has_cases() -> None:
    """In the order of the table."""
    assert set(CASES) == {each.id for each in RULES}


@pytest.mark.parametrize(
    ("rule", "documents", "said"),
    [(rule, documents, said) for rule, (wrong, _) in CASES.items() for documents, said in wrong],
)
def test_it_finds(rule: str, documents: list[Document], said: str) -> None:
    """One sentence for each finding."""
    assert found(rule, documents) == [said]


@pytest.mark.parametrize(
    ("rule", "documents"), [(rule, documents) for rule, (_, right) in CASES.items() for documents in right]
)
def test_it_leaves_alone(rule: str, documents: list[Document]) -> None:
    """What is right."""
    assert found(rule, documents) == []


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.id)
def test_what_is_not_known_is_not_judged(rule: Any) -> None:
    """A rule that needs the cluster says why it was not applied; the others find the same without it."""
    documents, said = CASES[rule.id][0][0]
    around = with_manifests(nothing_known("no cluster"), [("file.yaml", each) for each in documents], "shop")

    answer = lint(around, [rule.id])

    if rule.needs:
        assert [each.why for each in answer.unchecked] == [f"{rule.needs[0]} are not known: no cluster"]
        assert answer.findings == ()
    elif rule.id != "spread-over-others":
        assert [each.message for each in answer.findings] == [said]


def test_nodes_and_namespaces_of_a_cluster_are_judged_by_their_metadata() -> None:
    """A value means what it means on that kind of object: a duration on a node cannot be read."""
    node = a_node_document("n1")
    node["metadata"]["annotations"] = {"karpenter.sh/do-not-disrupt": "30m", "plimsoll.dev/halt": "true"}
    namespace = {
        "kind": "Namespace",
        "metadata": {"name": "shop", "uid": "shop", "annotations": {"plimsoll.dev/evict": "no"}},
    }
    around = of_cluster(ClusterState.of(content_of([node, namespace])))

    answer = lint(around, ["signal-unreadable", "key-unknown"])

    assert [(each.kind, each.name, each.rule) for each in answer.findings] == [
        ("Node", "n1", "key-unknown"),
        ("Node", "n1", "signal-unreadable"),
        ("Namespace", "shop", "signal-unreadable"),
    ]


def test_pods_of_a_cluster_count_as_their_workloads() -> None:
    """Finished and leaving pods do not; a pod without an owner is a workload of its own."""
    bare = a_pod_document("bare", "n1")
    del bare["metadata"]["ownerReferences"]
    done = a_pod_document("done", "n1", owner="job")
    done["status"]["phase"] = "Succeeded"
    pods = [a_pod_document("web-1", "n1"), a_pod_document("web-2"), bare, done]

    around = of_cluster(ClusterState.of(content_of([*_nodes(), *pods])))

    assert {(each.kind, each.name): each.replicas for each in around.workloads} == {
        ("ReplicaSet", "web"): 2,
        ("Pod", "bare"): 1,
    }


@pytest.mark.parametrize(
    ("spec", "pods", "left"),
    [
        ({"maxUnavailable": "50%"}, 3, 2),
        ({"maxUnavailable": 5}, 3, 3),
        ({"minAvailable": "50%"}, 3, 1),
        ({"minAvailable": 5}, 3, 0),
        ({}, 3, None),
        ({"minAvailable": "half"}, 3, None),
    ],
)
def test_what_a_budget_allows(spec: Document, pods: int, left: int | None) -> None:
    """Percentages are rounded up, of what must stay as of what may go."""
    document = convert(PodDisruptionBudget, {"metadata": {"name": "web"}, "spec": spec})

    assert allowed(LintedBudget(document), pods) == left
