"""Targets of files: manifests, configurations of other schedulers, snapshots, kubeconfigs."""

from __future__ import annotations

import gzip
import io
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import cache, partial
from pathlib import Path

import orjson
import yaml

from fuzzing import specimens
from fuzzing.target import Bound, Broken, Target, kind_of, outcome
from fuzzing.told_session import LOOPS
from plimsoll.cli.clusters import catalogue
from plimsoll.cli.manifests import manifests_of
from plimsoll.commands.errors import UserError
from plimsoll.framework.errors import PlimsollError
from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.inspection.manifests.documents import read_manifests
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.inspection.overview import overview
from plimsoll.inspection.state import ClusterState
from plimsoll.inspection.validation import SubmittedDocument, validated
from plimsoll.kube.session.credentials import Loaded, contexts, loader, present_namespace
from plimsoll.kube.session.errors import APIError
from plimsoll.migration.conversion import convert_documents
from plimsoll.migration.documents import MigrationError, read_documents
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.model.kinds.pod import Pod
from plimsoll.policies.judgement import PolicyChecks
from plimsoll.snapshots import file
from plimsoll.snapshots.content import SnapshotContent
from plimsoll.snapshots.errors import SnapshotError
from plimsoll.snapshots.reader import read

ROOT = Path(__file__).parents[3]
NOW = datetime(2026, 3, 29, 0, 30, tzinfo=UTC)


@cache
def _catalogue() -> Catalogue:
    return catalogue()


@contextmanager
def _held(data: bytes) -> Iterator[Path]:
    """A file with this content, in memory."""
    descriptor = os.memfd_create("input")
    try:
        os.write(descriptor, data)
        yield Path(f"/proc/self/fd/{descriptor}")
    finally:
        os.close(descriptor)


def manifests(data: bytes) -> object:
    """Files of -f, read for validate, fit, what-if and plan."""
    with _held(data) as path:
        found, kind = outcome(lambda: manifests_of(path), UserError)
    if found is None:
        return kind
    contents = [each.content for each in found]
    submitted = [SubmittedDocument("f", number, each) for number, each in enumerate(contents, 1)]
    answer = validated(submitted, _catalogue(), NOW)
    kinds = [each.verdict + kind_of(each.message, needed=False) for each in answer.documents[:3]]
    answer.model_dump_json()
    return (*kinds, outcome(lambda: read_manifests(contents, "default", ClusterObjects()), ManifestError)[1])


def convert(data: bytes) -> object:
    """Configurations of descheduler and kube-scheduler; what comes out is accepted."""
    documents, kind = outcome(lambda: read_documents("f", data), MigrationError)
    if documents is None:
        return kind
    known = _catalogue()
    checks = PolicyChecks(SchedulingJudge(known), RebalancingJudge(known, ClusterObjects(), NOW))
    kinds = []
    for keep in (False, True):
        conversion = partial(convert_documents, documents, checks, set(known.plugins), keep_behaviour=keep)
        made, kind = outcome(conversion, PlimsollError)
        kinds.append(kind)
        for policy in made.policies if made else ():
            if (verdict := checks.judge(policy)).policy is None:
                raise Broken(f"it makes a policy that is not accepted: {verdict.sentence}"[:600])
            yaml.safe_dump(dict(policy))
    return tuple(kinds)


def snapshot(data: bytes) -> object:
    """Snapshot files and dumps of kubectl from standard input, and the state that is made of them."""
    content, kind = outcome(lambda: read(["-"], io.BytesIO(data), largest=2**22), SnapshotError)
    if content is None:
        return kind
    _check_state(content)
    target = io.BytesIO()
    outcome(lambda: file.write(content, target), SnapshotError)
    again, kind = outcome(lambda: read(["-"], io.BytesIO(target.getvalue())), SnapshotError)
    if again is None:
        raise Broken(f"what was saved cannot be read: {kind}")
    return kind, tuple(sorted(content.objects)), len(content.missing)


def _check_state(content: SnapshotContent) -> None:
    state, _ = outcome(lambda: ClusterState.of(content, None, _catalogue()), PlimsollError)
    if state is None:
        return
    for each in state.objects.skipped[:5]:
        kind_of(each.problem)
        if not each.resource:
            raise Broken(f"an object breaks the mirror: {each.name}: {each.problem}"[:600])
    overview(state).model_dump_json()


async def _loaded(path: Path) -> Loaded:
    return await loader(path)()


def kubeconfig(data: bytes) -> object:
    """A kubeconfig."""
    with _held(data) as path:
        contexts(path)
        namespace = present_namespace(path)
        try:
            loaded = LOOPS.run(_loaded(path))
        except APIError as exc:
            return kind_of(str(exc))
        return bool(loaded.authorization), type(namespace).__name__


def _files(*patterns: str) -> Callable[[], list[bytes]]:
    def seeds() -> list[bytes]:
        return [path.read_bytes() for pattern in patterns for path in sorted(ROOT.glob(pattern))]

    return seeds


def _manifest_seeds() -> list[bytes]:
    texts = _files("examples/*.yaml", "tests/cases/*/*-a*.input.yaml")()
    documents = [specimens.document(kind, name="a", namespace="b") for kind in (Pod, Node)]
    typed = [
        orjson.dumps({**orjson.loads(each), "kind": kind, "apiVersion": "v1"})
        for each, kind in zip(documents, ("Pod", "Node"), strict=True)
    ]
    template = orjson.loads(typed[0])
    deployment = {
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "d"},
        "spec": {"replicas": 3, "template": {"metadata": {"labels": {"a": "b"}}, "spec": template["spec"]}},
    }  # fmt: skip
    policies = [
        orjson.dumps(yaml.safe_load(each)) for each in _files("examples/*.yaml")() if each.count(b"---") == 0
    ]
    return [*texts, *typed, *policies, orjson.dumps(deployment), b'{"kind":"List","items":[%b]}' % typed[0]]


def _snapshot_seeds() -> list[bytes]:
    pod, node = (
        orjson.dumps(
            {
                **orjson.loads(specimens.document(kind, name="a", namespace="b")),
                "kind": kind.__name__,
                "apiVersion": "v1",
            }
        )
        for kind in (Pod, Node)
    )
    policy = orjson.dumps(
        {**yaml.safe_load((ROOT / "examples/scheduler.yaml").read_bytes()), "metadata": {"name": "p"}}
    )
    record = orjson.dumps(
        {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "Eviction",
            "metadata": {
                "name": "r",
                "namespace": "b",
                "uid": "u",
                "creationTimestamp": "2026-01-01T00:00:00Z",
            },
            "spec": {
                "pod": {"namespace": "b", "name": "a", "uid": "u"},
                "policy": "p",
                "strategy": "s",
                "mode": "Enforce",
                "planner": "Proven",
                "reason": "r",
                "fromNode": "n",
            },
            "status": {"phase": "Evicting"},
        }
    )
    metrics = (
        b'{"kind":"NodeMetrics","apiVersion":"metrics.k8s.io/v1beta1",'
        b'"metadata":{"name":"n"},"timestamp":"2026-01-01T00:00:00Z","usage":{"cpu":"1","memory":"1Gi"}}'
    )
    found = [
        b'{"kind":"List","apiVersion":"v1","items":[%b]}' % b",".join((pod, node, policy, record, metrics)),
        pod + b"\n" + node,
        b"[%b]" % record,
    ]
    content = read(["-"], io.BytesIO(found[0]))
    target = io.BytesIO()
    file.write(content, target)
    return [
        *found,
        yaml.safe_dump(orjson.loads(pod)).encode(),
        target.getvalue(),
        gzip.decompress(target.getvalue()),
    ]


KUBECONFIG = b"""apiVersion: v1
kind: Config
current-context: c
clusters:
- {name: k, cluster: {server: "https://127.0.0.1:6443", insecure-skip-tls-verify: true, tls-server-name: a}}
contexts: [{name: c, context: {cluster: k, user: u, namespace: n}}]
users: [{name: u, user: {token: abc}}]
"""
#: YAML is read by a parser that builds objects for each event: what a byte may cost is more.
YAML = Bound(seconds=1.0, seconds_each=1e-4, memory=2**24, memory_each=2500.0)

TARGETS = (
    Target(
        "manifests",
        "cli.manifests, inspection.validation, inspection.manifests",
        "files of -f: policies, pods, workloads, budgets",
        manifests,
        _manifest_seeds,
        (
            b"kind: SchedulingPolicy\n",
            b"spec:\n",
            b"scheduling: {}\n",
            b"rebalancing: {}\n",
            b"metadata:\n  name: a\n",
            b"- *a\n",
            b"&a [*a]",
            b"!!set ",
            b"0o17",
            b"1:30",
            b"2026-01-01",
        ),
        YAML,
    ),
    Target(
        "convert",
        "migration",
        "DeschedulerPolicy and KubeSchedulerConfiguration files, ConfigMaps with them",
        convert,
        _files("tests/migration/cases/*.input.yaml"),
        (
            b"pluginConfig:\n",
            b"args:\n",
            b"- name: ",
            b"profiles:\n",
            b"<<: *a\n",
            b"&a ",
            b"thresholds:\n",
            b"DefaultEvictor",
        ),
        YAML,
    ),
    Target(
        "snapshots",
        "snapshots, inspection.mirrored, inspection.state",
        "snapshot files, dumps of kubectl, and the cluster that is made of them",
        snapshot,
        _snapshot_seeds,
        (
            b'"counts":{',
            b'"version":1',
            b'"sha256":',
            b'{"format":"plimsoll-snapshot"',
            b'"kind":"PodList"',
            b'"items":[',
        ),
        Bound(seconds=1.0, seconds_each=1e-4, memory=2**25, memory_each=2500.0),
    ),
    Target(
        "kubeconfig",
        "kube.session.credentials",
        "kubeconfigs",
        kubeconfig,
        lambda: [KUBECONFIG],
        (
            b"exec: {}",
            b"auth-provider: {name: oidc}",
            b"client-certificate-data: ",
            b"tokenFile: /nowhere",
            b"username: a",
            b"password: b",
        ),
        YAML,
    ),
)
