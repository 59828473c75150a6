"""The world of chaos on the development cluster has every feature, and knows which object is whose."""

from __future__ import annotations

from collections import Counter

from chaos.features import EXTENDERS, FEATURE, FEATURES, Features
from chaos.lively_cluster import LivelyDevCluster, World
from chaos.sightings import Sighting
from chaos.world import NAMESPACE, OURS, SCHEDULER, SERVES
from roadstead.kubelets.nodes import make_node
from simulation.cluster import POLICIES, definitions, policy


async def test_each_feature_has_objects_of_its_own() -> None:
    world = World(1, list(FEATURES))
    async with LivelyDevCluster(world) as cluster:
        api = cluster.api
        for definition in definitions():
            api.create("customresourcedefinitions.apiextensions.k8s.io", definition)
        api.create("namespaces", {"metadata": {"name": NAMESPACE}})
        for number in range(3):
            node = make_node(f"node-{number}", cpu="4", memory="16Gi", pods=20, zone="a", labels=OURS)
            api.create("nodes", node)
        api.create(POLICIES, policy(SERVES, scheduling={"schedulerName": SCHEDULER}))
        world.actions["/chaos/begin"]()
        for feature in FEATURES:
            world.actions[f"/chaos/act/{feature}"]()
        found = Counter(
            (each["metadata"].get("labels") or {}).get(FEATURE)
            for resource in ("deployments.apps", "statefulsets.apps", "pods")
            for each in api.list(resource)
        )
        served, extended = (
            api.get(POLICIES, None, name)["spec"]["scheduling"] for name in (SERVES, "extended")
        )
        world.actions["/chaos/end"]()
        world.actions["/chaos/late"]()

    assert found.keys() - {None} == set(FEATURES)
    assert served["preemption"] == {"viaEviction": True}
    assert all(each["urlPrefix"].startswith("http://127.0.0.1:") for each in extended["extenders"])


def test_a_feature_is_under_way_for_five_seconds_after_a_write() -> None:
    at = [10.0]
    features = Features(["gangs", EXTENDERS], None, lambda: at[0])  # type: ignore[arg-type] # nothing is drawn
    meta = {"name": "a", "namespace": "here", "resourceVersion": "1", "labels": {FEATURE: "gangs"}}
    features.see(Sighting.of("pods", "ADDED", {"metadata": meta, "spec": {}}, 10.0))

    assert features.under_way() == ["gangs"]
    assert features.about("/api/v1/namespaces/here/pods/a/binding") == ["gangs"]
    for other in ("/api/v1/namespaces/here/pods/b/status", "/api/v1/pods", "/apis", "/version"):
        assert features.about(other) == []
    at[0] = 15.1
    assert features.under_way() == []
