"""kubectl's commands against a cluster with roles, one after the other, and their output.

Rows that are refused are what ``KNOWN_DIFFERENCES.md`` says does not work.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from roadstead.clients import RunningCluster
from roadstead.processes import running

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not shutil.which("kubectl") and not (Path(__file__).parents[3] / ".tools/bin/kubectl").exists(),
        reason="kubectl's commands were not run, for kubectl is not installed; "
        "test_server and test_protobuf_bodies send what it sends",
    ),
]

LIST = """\
apiVersion: v1
kind: List
items:
- {apiVersion: v1, kind: ConfigMap, metadata: {name: one}, data: {a: b}}
- {apiVersion: v1, kind: Service, metadata: {name: web}, spec: {selector: {app: d}, ports: [{port: 80}]}}
"""
ON_NODE = '{"spec":{"nodeName":"node-0001","terminationGracePeriodSeconds":0}}'
#: A command, and what its output matches; "!" before it: the command fails, and says so.
COMMANDS: tuple[tuple[str, str], ...] = (
    # create
    ("create namespace n", "namespace/n created"),
    ("create deployment d --image=app:1 --replicas=2", "deployment.apps/d created"),
    ("create job j --image=app:1", "job.batch/j created"),
    ("create cronjob c --image=app:1 --schedule=@daily", "cronjob.batch/c created"),
    ("create job k --from=cronjob/c", "job.batch/k created"),
    ("create configmap cm --from-literal=a=b", "configmap/cm created"),
    ("create secret generic s --from-literal=a=b", "secret/s created"),
    ("create secret docker-registry r --docker-username=a --docker-password=b", "secret/r created"),
    ("create service clusterip sc --tcp=80", "service/sc created"),
    ("create service nodeport sn --tcp=80", "service/sn created"),
    ("create service externalname se --external-name=a.b", "service/se created"),
    ("create service loadbalancer sl --tcp=80", "service/sl created"),
    ("create quota q --hard=cpu=1", "resourcequota/q created"),
    ("delete quota q", 'resourcequota "q" deleted'),
    ("create priorityclass pc --value=1", "priorityclass.scheduling.k8s.io/pc created"),
    ("create poddisruptionbudget b --selector=a=b --min-available=1", "poddisruptionbudget.policy/b created"),
    ("create serviceaccount acc", "serviceaccount/acc created"),
    ("create token acc", r"^roadstead-account\."),
    ("create role r --verb=get,list --resource=pods", "role.rbac.authorization.k8s.io/r created"),
    ("create clusterrole r --verb=get --resource=nodes", "clusterrole.rbac.authorization.k8s.io/r created"),
    ("create rolebinding r --role=r --serviceaccount=default:acc", "rolebinding.*/r created"),
    ("create clusterrolebinding r --clusterrole=r --user=bob", "clusterrolebinding.*/r created"),
    # rights
    ("auth whoami", "roadstead-admin"),
    ("auth can-i list pods --as=system:serviceaccount:default:acc", "^yes"),
    ("auth can-i delete nodes --as=anybody", "!no"),
    ("auth can-i --list --as=system:serviceaccount:default:acc", r"pods +\[\] +\[\] +\[get list\]"),
    (
        "get secrets --as=bob",
        '!secrets is forbidden: User "bob" cannot list resource "secrets" in API group "" in the namespace',
    ),
    ("set subject rolebinding r --user=bob", "subjects updated"),
    # pods
    (f"run p --image=app:1 --labels=app=p --overrides={ON_NODE}", "pod/p created"),
    ("wait pod p --for=condition=Ready --timeout=30s", "condition met"),
    ("debug p --image=app:1 -c dbg --attach=false", ""),
    ("get pod p -o jsonpath={.spec.ephemeralContainers[0].name}", "^dbg$"),
    ("expose pod p --port=80", "service/p exposed"),
    ("describe pod p", "Node: +node-0001"),
    ("top nodes", "node-0001"),
    # get
    ("get pod p -o name", "^pod/p$"),
    ("get pod p -o wide", "node-0001"),
    ("get pod p -o yaml", "kind: Pod"),
    ("get pod p -o json", '"kind": "Pod"'),
    ("get pod p -o custom-columns=N:.metadata.name", "^N\np$"),
    ("get pod p -o go-template={{.metadata.name}}", "^p$"),
    ("get pods --field-selector=metadata.name=p --show-labels", "app=p"),
    ("get pods -A --sort-by=.metadata.name", "NAMESPACE"),
    ("get deployment d --subresource=status", "d "),
    ("get --raw /readyz", "^ok$"),
    # change
    ("scale deployment d --replicas=1", "scaled"),
    ("set image deployment/d app=app:2", "image updated"),
    ("set env deployment/d A=b", "env updated"),
    ("set resources deployment d --requests=cpu=1", "resource requirements updated"),
    ("set serviceaccount deployment d acc", "serviceaccount updated"),
    ("set selector service sc app=x", "selector updated"),
    ("rollout history deployment d", "REVISION"),
    ("rollout undo deployment d", "rolled back"),
    ("rollout restart deployment d", "restarted"),
    ("rollout pause deployment d", "paused"),
    ("rollout resume deployment d", "resumed"),
    ("label pod p x=old", "labeled"),
    ("annotate pod p x=y", "annotated"),
    ("edit pod p", "pod/p edited"),
    ("get pod p -o jsonpath={.metadata.labels.x}", "^edited$"),
    ('patch pod p -p {"metadata":{"labels":{"q":"r"}}}', "patched"),
    ('patch pod p --type=merge -p {"metadata":{"labels":{"q":"s"}}}', "patched"),
    ('patch pod p --type=json -p [{"op":"remove","path":"/metadata/labels/q"}]', "patched"),
    ('patch deployment d --subresource=scale --type=merge -p {"spec":{"replicas":2}}', "patched"),
    # apply
    ("apply -f list.yaml", "configmap/one created\nservice/web created"),
    ("apply -f list.yaml", "configmap/one unchanged\nservice/web unchanged"),
    ("apply -f list.yaml --server-side --force-conflicts", "serverside-applied"),
    ("replace -f list.yaml", "configmap/one replaced"),
    ("diff -f list.yaml", ""),
    ("get configmap,service -o yaml", "kind: List"),
    ("apply -f got.yaml", "configmap/one (configured|unchanged)"),
    # nodes
    ("cordon node-0002", "cordoned"),
    ("uncordon node-0002", "uncordoned"),
    ("taint node node-0002 k=v:NoSchedule", "tainted"),
    ("drain node-0001 --ignore-daemonsets --force --timeout=30s", "drained"),
    # what there is
    ("explain pod.spec.containers", "FIELD: containers"),
    ("api-resources --api-group=apps", "deployments"),
    ("api-versions", "apps/v1"),
    ("version", "Server Version: v1.36.2"),
    ("cluster-info", "Kubernetes control plane"),
    ("events", "SuccessfulCreate"),
    # delete
    ("delete configmap cm --cascade=orphan", "deleted"),
    ("delete secret -l none=x", "No resources found"),
    ("delete service --all", 'service "web" deleted'),
    ("delete deployment d --wait=false", "deleted"),
    ("delete namespace n", "deleted"),
    # what does not work
    ("logs p", "!NotFound"),
    ("exec p -- ls", "!not found|unable to upgrade"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningCluster]:
    """One cluster for all commands."""
    folder = tmp_path_factory.mktemp("kubectl")
    (folder / "list.yaml").write_text(LIST)
    with running(folder, nodes=3, authorization_mode="RBAC") as cluster:
        yield cluster


def said(cluster: RunningCluster, command: str) -> tuple[bool, str]:
    """Whether a command succeeds, and what it prints."""
    folder = cluster.kubeconfig.parent
    tools = Path(__file__).parents[3] / ".tools/bin"
    environment = {
        "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}",
        "KUBECONFIG": str(cluster.kubeconfig),
        "HOME": str(folder),
        "EDITOR": "sed -i s/old$/edited/",
    }
    done = subprocess.run(
        ["kubectl", *command.split(" ")],
        check=False,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    return done.returncode == 0, done.stdout + done.stderr


def test_every_command_says_what_it_should(cluster: RunningCluster) -> None:
    """In their order, since later ones use what earlier ones have made."""
    wrong = []
    for command, expected in COMMANDS:
        succeeds, output = said(cluster, command)
        if command.startswith("get configmap,service"):
            (cluster.kubeconfig.parent / "got.yaml").write_text(output)
        pattern = expected.removeprefix("!")
        if succeeds is expected.startswith("!") or not re.search(pattern, output, re.MULTILINE):
            wrong.append(f"kubectl {command}\n{output}")
    assert not wrong, "\n".join(wrong)
