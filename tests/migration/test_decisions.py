"""Policies of ``--keep-behaviour`` evict the pods that descheduler evicts, in its order; others do not.

Each case is decided twice: as descheduler decides it, from the file, and by the converted policy, through the
parts of the operator (``make vectors`` does the same with recordings of a real descheduler).
"""

from __future__ import annotations

import textwrap
from typing import Any

import pytest
import yaml

from recordings.descheduler import Decided, decide

LOADS = {"n1": ["a1", "a2", "b1"], "n2": ["a3"], "n3": []}


def a_node(name: str) -> dict[str, Any]:
    taints = [{"key": "old", "effect": "NoSchedule"}] if name == "n1" else []
    return {
        "metadata": {"name": name, "labels": {"kubernetes.io/hostname": name, "pool": name}},
        "spec": {"taints": taints},
        "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "10"}},
    }


def a_pod(name: str, node: str) -> dict[str, Any]:
    """A pod of the ReplicaSet that its name begins with; those of b have a volume claim and high priority."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": name[0], "uid": f"u-{name[0]}"}
    is_b = name[0] == "b"
    claim = {"name": "v", "persistentVolumeClaim": {"claimName": "c"}}
    local = {"name": "v", "emptyDir": {}}
    return {
        "metadata": {"name": name, "namespace": "shop", "uid": name, "ownerReferences": [owner]},
        "spec": {
            "nodeName": node,
            "priority": 5000 if is_b else 0,
            "volumes": [claim if is_b else local],
            "containers": [{"name": "c", "image": name[0], "resources": {"requests": {"cpu": "1"}}}],
        },
        "status": {"phase": "Running", "startTime": "2026-01-01T00:00:00Z"},
    }


def decided(text: str) -> Decided:
    """What comes of a policy on three nodes."""
    policy = yaml.safe_load(textwrap.dedent(text))
    policy["kind"] = "DeschedulerPolicy"
    policy.setdefault("apiVersion", "descheduler/v1alpha2")
    return decide(
        {
            "now": "2026-01-02T00:00:00Z",
            "nodes": [a_node(name) for name in LOADS],
            "pods": [a_pod(pod, node) for node, pods in LOADS.items() for pod in pods],
            "policy": policy,
        }
    )


@pytest.mark.parametrize(
    ("policy", "evicted"),
    [
        pytest.param(
            """
            profiles:
            - name: p
              pluginConfig:
              - {name: DefaultEvictor, args: {evictLocalStoragePods: true}}
              - {name: RemovePodsViolatingNodeTaints}
              plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
            """,
            ["a1", "a2", "b1"],
            id="no-limit-no-minimum-and-claims-move",
        ),
        pytest.param(
            """
            maxNoOfPodsToEvictPerNode: 1
            profiles:
            - name: p
              pluginConfig:
              - {name: DefaultEvictor, args: {evictLocalStoragePods: true, ignorePvcPods: true}}
              - {name: RemovePodsViolatingNodeTaints}
              plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
            """,
            ["a1"],
            id="claims-stay-and-one-of-a-node",
        ),
        pytest.param(
            """
            profiles:
            - name: p
              pluginConfig:
              - {name: DefaultEvictor, args: {}}
              - {name: RemovePodsViolatingNodeTaints}
              plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
            """,
            ["b1"],
            id="local-storage-stays",
        ),
        pytest.param(
            """
            nodeSelector: pool=n3
            profiles:
            - name: p
              pluginConfig:
              - {name: DefaultEvictor, args: {evictLocalStoragePods: true}}
              - {name: RemovePodsViolatingNodeTaints}
              plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
            """,
            [],
            id="one-node-selected",
        ),
        pytest.param(
            """
            profiles:
            - name: p
              pluginConfig:
              - name: DefaultEvictor
                args: {evictLocalStoragePods: true, priorityThreshold: {value: 1000}, nodeFit: true}
              - {name: RemovePodsViolatingNodeTaints}
              - name: RemovePodsViolatingNodeAffinity
                args: {nodeAffinityType: [requiredDuringSchedulingIgnoredDuringExecution]}
              plugins:
                deschedule: {enabled: [RemovePodsViolatingNodeTaints, RemovePodsViolatingNodeAffinity]}
            """,
            ["a1", "a2"],
            id="two-strategies-with-a-threshold",
        ),
        pytest.param(
            """
            profiles:
            - name: p
              pluginConfig:
              - {name: DefaultEvictor, args: {podProtections: {defaultDisabled: [PodsWithLocalStorage]}}}
              - name: LowNodeUtilization
                args: {thresholds: {cpu: 10}, targetThresholds: {cpu: 50}}
              - {name: PodLifeTime, args: {maxPodLifeTimeSeconds: 600, labelSelector: {matchLabels: {x: y}}}}
              plugins:
                balance: {enabled: [LowNodeUtilization]}
                deschedule: {enabled: [PodLifeTime]}
            """,
            ["a1"],
            id="utilisation",
        ),
        pytest.param(
            """
            maxNoOfPodsToEvictTotal: 0
            profiles:
            - name: p
              pluginConfig: [{name: RemovePodsViolatingNodeTaints}]
              plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
            """,
            [],
            id="nothing-may-be-evicted",
        ),
    ],
)
def test_the_converted_policy_evicts_the_same_pods_in_the_same_order(policy: str, evicted: list[str]) -> None:
    """One policy for each, since their evictors agree."""
    found = decided(policy)

    assert [each.pod.pod.metadata.name for each in found.outcome.evictions] == evicted
    assert [name for *_, name in found.by_policy or ()] == evicted


@pytest.mark.parametrize(
    ("limits", "evicted"),
    [
        pytest.param("", ["b1", "a1", "a2"], id="no-limit"),
        pytest.param("maxNoOfPodsToEvictPerNode: 2", ["b1", "a1"], id="a-limit-common-to-both"),
    ],
)
def test_profiles_with_different_evictors_decide_as_before(limits: str, evicted: list[str]) -> None:
    """One policy, in which the same strategy occurs twice, each time with the evictor of its profile."""
    found = decided(
        f"""
        {limits}
        profiles:
        - name: one
          pluginConfig: [{{name: RemovePodsViolatingNodeTaints}}]
          plugins: {{deschedule: {{enabled: [RemovePodsViolatingNodeTaints]}}}}
        - name: two
          pluginConfig:
          - {{name: DefaultEvictor, args: {{evictLocalStoragePods: true, ignorePvcPods: true}}}}
          - {{name: RemovePodsViolatingNodeTaints}}
          plugins: {{deschedule: {{enabled: [RemovePodsViolatingNodeTaints]}}}}
        """
    )

    assert [each.pod.pod.metadata.name for each in found.outcome.evictions] == evicted
    assert [name for *_, name in found.by_policy or ()] == evicted


def test_balance_of_the_first_profile_follows_deschedule_of_the_second() -> None:
    """With the evictors of their profiles: a1 is the first's, whose turn comes after b1 of the second."""
    found = decided(
        """
        profiles:
        - name: one
          pluginConfig:
          - {name: DefaultEvictor, args: {evictLocalStoragePods: true, ignorePvcPods: true}}
          - name: LowNodeUtilization
            args: {thresholds: {cpu: 10}, targetThresholds: {cpu: 30}}
          plugins: {balance: {enabled: [LowNodeUtilization]}}
        - name: two
          pluginConfig: [{name: RemovePodsViolatingNodeTaints}]
          plugins: {deschedule: {enabled: [RemovePodsViolatingNodeTaints]}}
        """
    )

    assert [name for *_, name in found.by_policy or ()] == ["b1", "a1"]
    assert [each.profile for each in found.outcome.evictions] == ["two", "one"]
