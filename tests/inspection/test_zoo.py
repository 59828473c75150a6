"""Each command answers about a cluster with one of everything, value by value.

Each file has a line for each value of an answer, so that a change shows what it concerns; columns and colours
are the subject of tests/cli. PLIMSOLL_WRITE_GOLDEN=1 writes the files.
"""

from __future__ import annotations

import gc
import json
import os
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from cli.commands import say
from cli.golden_files import check, shown, text_of
from cli.planning_scenes import past
from cli.refusing_server import kubeconfig_of
from inspection.contents import NOW, a_policy_document
from inspection.zoo import (
    HOST,
    a_budget,
    a_claim,
    a_node,
    a_pod,
    a_term,
    claim,
    items,
    named,
    on_nodes,
    placed,
    required,
    spread,
    waiting,
)
from plimsoll.cli.clusters import catalogue
from plimsoll.inspection.explanations.node import explain_node
from plimsoll.inspection.explanations.pod import explain_pod
from plimsoll.inspection.load import node_loads
from plimsoll.inspection.overview import overview
from plimsoll.inspection.picture import picture_of
from plimsoll.inspection.state import ClusterState
from plimsoll.snapshots.content import UsageContent
from plimsoll.snapshots.reader import read

#: Lines about a pod's third node and later ones, in the order of their scores.
LATER_SCORES = re.compile(r"\.placed\.scores\[(?:[2-9]|\d{2,})\]")


@pytest.fixture(scope="module")
def dump(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The cluster as a file."""
    file = tmp_path_factory.mktemp("zoo") / "zoo.json"
    records = [{"apiVersion": "plimsoll.dev/v1alpha1", **each} for each in past()]
    file.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": [*items(), *records]}))
    os.utime(file, (NOW.timestamp(), NOW.timestamp()))
    return str(file)


@pytest.fixture(scope="module")
def state(dump: str) -> ClusterState:
    """The cluster as commands see it."""
    return ClusterState.of(read([dump]), None, catalogue())


def test_pods_are_explained(state: ClusterState) -> None:
    keys = [(each["metadata"]["namespace"], each["metadata"]["name"]) for each in (*placed(), *waiting())]
    answers = [("/".join(each), explain_pod(state, *each).document()) for each in keys]
    said: list[Any] = []
    for _, each in answers:  # what is not known is the same for nearly all: once is enough
        said, each["unknown"] = each["unknown"], [] if each["unknown"] == said else each["unknown"]
    # The best two nodes of each: how points are made is the plugins' subject.
    lines = text_of(*answers).splitlines(keepends=True)
    check("zoo", "explain-pod", "text", "".join(each for each in lines if not LATER_SCORES.match(each)))


def test_nodes_are_explained(state: ClusterState) -> None:
    names = [each.name for each in state.cluster.nodes]
    check(
        "zoo",
        "explain-node",
        "text",
        text_of(*((each, explain_node(state, each).document()) for each in names)),
    )


def test_the_cluster_is_pictured(state: ClusterState) -> None:
    check("zoo", "picture", "text", text_of(("cluster", picture_of(state).document())))


#: Questions about the whole cluster, and what the exit code of each is.
WHOLE = {
    "plan": ("plan",),
    "plan-of-one": ("plan", "balance"),
    "top-nodes": ("top", "nodes"),
    "top-pods": ("top", "pods", "-A"),
    "history": ("history", "-A"),
    "history-of-a-while": ("history", "-A", "--since", "2h", "--until", "30m", "--again-within", "10m"),
    "whatif-drain": ("whatif", "--drain", "a-half"),
    "whatif-drain-two": ("whatif", "--drain", "b-busy,a-busy"),
    "whatif-remove": ("whatif", "--remove-node", "no-zone"),
    "whatif-add": ("whatif", "--add-node", "new", "--add-node", "more=c-gpu"),
    "whatif-cordon": ("whatif", "--cordon", "a-half", "--uncordon", "b-cordoned"),
    "whatif-label": ("whatif", "--label", "a-half", "disk=tape", "--label", "a-busy", "disk-"),
    "whatif-taint": (
        "whatif",
        "--taint",
        "b-tainted",
        "dedicated:NoSchedule-",
        "--taint",
        "a-half",
        "x=y:NoExecute",
    ),
    "whatif-fewer": ("whatif", "--scale", "shop/rs/web=1"),
    "whatif-more": ("whatif", "--scale", "shop/replicaset/web=9", "--scale", "shop/sts/db=5"),
}


def asked(dump: str, *words: str) -> tuple[str, Any]:
    """The exit code and the answer."""
    said = say(*words, "--from", dump, "-o", "json")
    return f"exit code {said.code}{said.err and ', ' + said.err.strip()}", json.loads(
        said.out.replace(dump, "FILE") or "{}"
    )


@pytest.mark.parametrize("question", WHOLE)
def test_questions_about_the_cluster_are_answered(dump: str, question: str) -> None:
    check("zoo", question, "text", text_of(asked(dump, *WHOLE[question])))


@pytest.mark.parametrize(
    ("words", "key"),
    [
        (("web-1", "-n", "bank"), "bank/web-1"),
        (("bank/web-1",), "bank/web-1"),
        (("bank/web-1", "-n", "bank"), "bank/web-1"),
        (("shop/web-1",), "shop/web-1"),
    ],
)
def test_a_pod_is_meant_by_its_namespace(dump: str, words: tuple[str, ...], key: str) -> None:
    answer = json.loads(say("explain", "pod", *words, "--from", dump, "-o", "json").out)
    assert f"{answer['namespace']}/{answer['name']}" == key


def test_a_pod_without_a_namespace_is_that_of_the_default_one(dump: str) -> None:
    said = say("explain", "pod", "web-1", "--from", dump)
    assert said.code == 1
    assert "default/web-1" in said.err or "namespace default" in said.err


@pytest.mark.parametrize("subject", ["a/b/c", "/web-1", "shop/", "/"])
def test_what_is_no_name_of_a_pod_is_said_so(dump: str, subject: str) -> None:
    said = say("explain", "pod", subject, "--from", dump)
    assert (said.code, said.out) == (1, "")
    assert f'"{subject}" is no pod; write NAME' in said.err


#: Commands that are about one namespace unless -A is given.
NAMESPACED = [
    ("top", "pods"),
    ("explain", "pod", "web-1"),
    ("history",),
    ("fit", "-f", "x.yaml"),
    ("whatif", "-f", "x.yaml"),
]


@pytest.mark.parametrize("words", NAMESPACED, ids=lambda words: "-".join(words[:2]))
def test_a_live_cluster_is_read_in_the_namespace_of_the_context(
    dump: str, words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a snapshot of it is with -n; -n and -A change that as they do there."""
    monkeypatch.chdir(tmp_path)
    workload = a_workload("Deployment", "web", a_pod("x", cpu="500m"), 2)
    del workload["metadata"]["namespace"]
    Path("x.yaml").write_text(yaml.safe_dump(workload))
    kubeconfig = kubeconfig_of(tmp_path / "config", "http://127.0.0.1:1", namespace="bank")
    content = read([dump])
    # Whether the pod still exists is asked before the cluster is read.
    monkeypatch.setattr(
        "plimsoll.cli.connection.with_session",
        lambda _, ask: content if ask.__name__ == "<lambda>" else None,
    )
    live = ("--kubeconfig", str(kubeconfig), *(("--operator", "none") if words[0] == "explain" else ()))
    form = ("-o", "json")

    for given, meant in (((), ("-n", "bank")), (("-n", "shop"), ("-n", "shop"))):
        assert say(*words, *live, *given, *form).out == say(*words, *meant, "--from", dump, *form).out
    if words[0] in ("top", "history"):
        assert say(*words, *live, "-A", *form).out == say(*words, "-A", "--from", dump, *form).out


#: Commands whose answer is a page, too.
PAGES = {
    "plan": ("plan", "--against", "FILE"),
    "drain": ("whatif", "--drain", "a-half", "--remove-node", "no-zone"),
    "history": ("history", "-A"),
}


@pytest.mark.parametrize("page", PAGES)
def test_pages_say_what_commands_say(
    dump: str, page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Their parts, of explanations the first lines; tests/web_pages has their looks."""
    written: list[Any] = []
    monkeypatch.setattr("plimsoll.cli.reports.write_report", lambda _, report: written.append(report))
    monkeypatch.setattr("sys.argv", ["plimsoll", page])
    file = tmp_path / "policies.yaml"
    file.write_text(yaml.safe_dump(a_policy_document("tidy")))
    words = [str(file) if each == "FILE" else each for each in PAGES[page]]
    say(*words, "--from", dump, "--report", "page.html")
    lines = [
        each.partition("\n")[0] if each.startswith(".explanations[") else each
        for each in shown(written[0])
        if not each.startswith(".pods")
    ]
    check(
        "zoo",
        f"page-{page}",
        "text",
        "\n".join(lines).replace(dump, "FILE").replace(str(tmp_path), "FOLDER") + "\n",
    )


def test_a_cluster_without_readings_is_explained_by_requests(dump: str) -> None:
    """No sentence about load, and says why it is not known."""
    content = read([dump])
    without = msgspec.structs.replace(content, usage=UsageContent(problem="the metrics API is off"))
    state = ClusterState.of(without, None, catalogue())
    answers = [("shop/web-1", explain_pod(state, "shop", "web-1").document())]
    answers += [("loads", node_loads(state).document()), ("overview", overview(state).document())]
    check("zoo", "without-readings", "text", text_of(*answers).replace(dump, "FILE"))


@pytest.mark.parametrize(
    "words", [("explain", "pod", "shop/web-1"), ("top", "nodes"), ("top", "nodes", "--nonsense")]
)
def test_garbage_is_collected_again_after_a_command(dump: str, words: tuple[str, ...]) -> None:
    say(*words, "--from", dump)
    assert gc.isenabled()


def a_workload(kind: str, name: str, pod: Any, replicas: int = 2, **more: Any) -> dict[str, Any]:
    version = "batch/v1" if kind in ("Job", "CronJob") else "apps/v1"
    template = {"metadata": {"labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
    spec: dict[str, Any] = {"template": template, "selector": {"matchLabels": pod["metadata"]["labels"]}}
    if kind == "Job":
        spec = {"parallelism": replicas, "completions": 7, "template": template}
    elif kind == "CronJob":
        spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": {"template": template}}}
    elif kind != "DaemonSet":
        spec["replicas"] = replicas
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "namespace": "shop"},
        "spec": spec | more,
    }


def a_list(*documents: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": [*documents]}


def limits(*items: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", **named("LimitRange", "limits", "shop"), "spec": {"limits": [*items]}}


def bare(cpu: str, limit: str) -> dict[str, Any]:
    """A container that requests this and is limited to that, and one that says nothing."""
    resources = ({"requests": {"cpu": cpu}} if cpu else {}) | ({"limits": {"cpu": limit}} if limit else {})
    return {"containers": [{"name": "main", "resources": resources}, {"name": "side"}]}


def ephemeral(storage: str) -> dict[str, Any]:
    spec = a_claim("x", storage)["spec"]
    return {"name": storage, "ephemeral": {"volumeClaimTemplate": {"spec": spec}}}


#: Workloads to be applied, one of each kind.
MANIFESTS = {
    "deployment": a_workload("Deployment", "new", a_pod("x", cpu="1", owner="new", **spread("new", HOST))),
    "of-known": a_workload("Deployment", "web", a_pod("x", cpu="500m"), 6),
    "stateful": a_workload(
        "StatefulSet",
        "new",
        a_pod("x", cpu="1", owner="new", **required("podAntiAffinity", a_term("new", HOST))),
    ),
    "daemon": a_workload("DaemonSet", "agent", a_pod("x", cpu="1", owner="agent")),
    "job": a_workload("Job", "once", a_pod("x", cpu="2", owner="once", restartPolicy="Never")),
    "cron": a_workload("CronJob", "often", a_pod("x", cpu="2", owner="often", restartPolicy="Never")),
    "urgent": a_workload("Deployment", "now", a_pod("x", cpu="3", owner="now", priorityClassName="high")),
    "no-class": a_workload("Deployment", "now", a_pod("x", cpu="3", owner="now", priorityClassName="absent")),
    "pod": {"apiVersion": "v1", **a_pod("x", cpu="1", owner="own", kind="none")},
    "with-limits": a_list(
        limits(
            {"type": "Pod", "max": {"cpu": "9"}},
            {"type": "Container", "default": {"cpu": "2"}, "defaultRequest": {"memory": "1Gi"}},
        ),
        {
            "apiVersion": "node.k8s.io/v1",
            **named("RuntimeClass", "boxed"),
            "overhead": {"podFixed": {"cpu": "1"}},
        },
        a_workload(
            "ReplicaSet", "new", a_pod("x", owner="new", runtimeClassName="boxed", **bare("1500m", ""))
        ),
        a_workload(
            "Deployment", "other", a_pod("x", owner="other", runtimeClassName="absent", **bare("", "3"))
        ),
    ),
    "without-limits": a_workload("Deployment", "new", a_pod("x", owner="new", **bare("", ""))),
    "pod-level": a_workload(
        "Deployment",
        "new",
        a_pod("x", owner="new", resources={"limits": {"cpu": "2", "memory": "1Gi"}}, **bare("", "500m")),
    ),
    "with-claims": a_list(
        a_workload(
            "StatefulSet",
            "new",
            a_pod("x", owner="new", volumes=[{"name": "tmp", "emptyDir": {}}]),
            3,
            volumeClaimTemplates=[{"metadata": {"name": "data"}, "spec": a_claim("x", "later")["spec"]}],
        ),
        a_workload(
            "Deployment", "ephemeral", a_pod("x", owner="e", volumes=[ephemeral("now"), claim("fixed")])
        ),
        a_workload("Deployment", "late", a_pod("x", owner="l", volumes=[ephemeral("later"), claim("late")])),
    ),
    "gang": a_list(
        {"apiVersion": "plimsoll.dev/v1alpha1", **named("PodGroup", "crew", "shop", spec={"minMember": 3})},
        a_workload("Job", "crew", a_pod("x", cpu="3", labels={"plimsoll.dev/pod-group": "crew"}), 3),
        {"apiVersion": "policy/v1", **a_budget("crew", "web", 0)},
        {"apiVersion": "v1", **named("ConfigMap", "left-out", "shop"), "data": {}},
    ),
    "daemon-on-some": a_workload(
        "DaemonSet",
        "agent",
        a_pod(
            "x",
            cpu="1",
            owner="agent",
            tolerations=[{"operator": "Exists"}],
            **on_nodes(
                {"key": "disk", "operator": "Exists"},
                fields=[{"key": "metadata.name", "operator": "NotIn", "values": ["a-half"]}],
            ),
        ),
    ),
    "node": {"apiVersion": "v1", **a_node("more", "b", cpu="16")},
    "policy": a_policy_document("tidy", scheduling={"schedulerName": "absent"}),
}


#: Those whose changes are shown, and those that are tried in other ways, too: as many as there are ways.
CHANGING = {"daemon", "gang", "job", "node", "of-known", "pod", "policy", "with-claims", "with-limits"}
AT_MOST = {"daemon-on-some", "deployment", "gang", "stateful", "urgent"}


@pytest.mark.parametrize("manifest", MANIFESTS)
def test_manifests_are_tried(dump: str, manifest: str, tmp_path: Path) -> None:
    """Whether they fit, alone and at most, what they change, and what is wrong with them."""
    file = tmp_path / "manifest.yaml"
    file.write_text(yaml.safe_dump(MANIFESTS[manifest]))
    words: list[tuple[str, ...]] = []
    if manifest in CHANGING:
        words += [("whatif", "-f")]
    if manifest not in ("node", "policy"):
        words += [("fit", "-f")]
    if manifest in AT_MOST:
        words += [
            ("fit", "--max", "--alone", "-f"),
            ("fit", "--preempt", "--replicas", "9", "-f"),
        ]
    answers = [(f"{' '.join(each)}", asked(dump, *each, str(file))) for each in words]
    text = text_of(*((f"{name}: {code}", answer) for name, (code, answer) in answers))
    check("zoo", f"manifest-{manifest}", "text", text.replace(str(tmp_path), "FOLDER"))
