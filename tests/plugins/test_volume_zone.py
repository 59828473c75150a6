"""VolumeZone: nodes in the zones and regions of the pod's volumes."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, NoArgs, Snapshot, unresolvable
from plimsoll.framework.status import Status
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins.volume_zone import CONFLICT, VolumeZone
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance
from plugins.stored import ZONE, a_claim, a_class, a_volume, mounting, stored

PLUGIN = VolumeZone(NoArgs())
OLD_ZONE = "failure-domain.beta.kubernetes.io/zone"
REGION = "topology.kubernetes.io/region"


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        # Nodes: zone a; zone b; region only; no label at all.
        pytest.param({ZONE: "a"}, [0, 1, 1, 0], id="one-zone"),
        pytest.param({ZONE: "a__b"}, [0, 0, 1, 0], id="several-zones"),
        pytest.param({OLD_ZONE: "a"}, [0, 1, 1, 0], id="old-key-means-the-new-one"),
        pytest.param({REGION: "r"}, [1, 1, 0, 0], id="region"),
        pytest.param({ZONE: "a", REGION: "r"}, [1, 1, 1, 0], id="both-must-hold"),
    ],
)
def test_nodes_must_be_in_the_volumes_zone(labels: dict[str, Any], expected: list[int]) -> None:
    """Nodes without any of the labels pass."""
    cluster = a_cluster(
        [
            a_node("na", labels={ZONE: "a"}),
            a_node("nb", labels={ZONE: "b"}),
            a_node("region", labels={REGION: "r"}),
            a_node("bare"),
        ]
    )
    a_claim(cluster, volume="pv")
    a_volume(cluster, "pv", labels=labels)
    state, snapshot = CycleState(), Snapshot(cluster)
    info = cluster.templates.info(a_pod(volumes=mounting("data")))

    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    assert PLUGIN.filter(state, info, snapshot).tolist() == expected


def status_of(cluster: Cluster, *claims: str) -> Status:
    info = cluster.templates.info(a_pod(volumes=mounting(*claims)))
    return PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster))


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(None, 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            {"storage_class": ""}, "PersistentVolumeClaim had no pv name and storageClass name", id="no-class"
        ),
        pytest.param(
            {"storage_class": "unknown"},
            'storageclass.storage.k8s.io "unknown" not found',
            id="unknown-class",
        ),
        pytest.param(
            {"storage_class": "odd"}, 'VolumeBindingMode not set for StorageClass "odd"', id="no-mode"
        ),
        pytest.param({"storage_class": "now"}, "PersistentVolume had no name", id="immediate"),
        pytest.param({"volume": "gone"}, 'persistentvolume "gone" not found', id="missing-volume"),
    ],
)
def test_claims_that_can_have_no_volume_reject_the_pod(claim: dict[str, Any] | None, reason: str) -> None:
    """Everywhere, with upstream's sentence."""
    cluster = a_cluster([a_node("n1")])
    a_class(cluster, "odd", mode=None)
    a_class(cluster, "now", mode="Immediate")
    if claim is not None:
        a_claim(cluster, **claim)

    assert status_of(cluster, "data") == unresolvable(reason, no_node_helps=True)


def test_a_claim_without_a_name_rejects_the_pod() -> None:
    """The API does not allow it, upstream answers it nevertheless."""
    assert status_of(a_cluster([a_node("n1")]), "") == unresolvable(
        "PersistentVolumeClaim had no name", no_node_helps=True
    )


def test_volumes_without_zones_and_claims_that_wait_are_skipped() -> None:
    """Neither says where the pod must go; a malformed list of zones says nothing either."""
    cluster = a_cluster([a_node("n1")])
    a_class(cluster)
    a_claim(cluster, "waits")
    a_claim(cluster, "bound", volume="pv")
    a_volume(cluster, "pv", labels={ZONE: "a____b"})

    assert status_of(cluster, "waits", "bound") == SKIP
    assert status_of(cluster) == SKIP


def test_the_refusal_is_worded_as_upstream_words_it() -> None:
    """Removing pods moves no volume."""
    info = a_cluster().templates.info(a_pod())

    assert PLUGIN.refusal(1, CycleState(), info) == CONFLICT


def in_zone_a(cluster: Cluster) -> None:
    a_claim(cluster, volume="pv")
    a_volume(cluster, "pv", labels={ZONE: "a"})


class TestConformance(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = PLUGIN
    pods = ({"namespace": "default", "volumes": mounting("data")},)
    objects = stored(in_zone_a)
