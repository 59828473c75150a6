"""NodeVolumeLimits: limits of drivers on each node."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, NoArgs, Snapshot, unresolvable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins.node_volume_limits import TOO_MANY, NodeVolumeLimits
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance
from plugins.stored import a_claim, a_class, a_csi_node, a_volume, an_attachment, mounting, stored

PLUGIN = NodeVolumeLimits(NoArgs())
OPEN, FULL, MISSING = 0, 1, 2


@pytest.fixture
def cluster() -> Cluster:
    """Node ``few`` takes two volumes of the driver, ``any`` says nothing, ``bare`` has no CSINode."""
    made = a_cluster([a_node("few"), a_node("any"), a_node("bare")])
    a_csi_node(made, "few", csi_example_com=2)
    a_csi_node(made, "any")
    a_class(made)
    for number in range(4):
        a_claim(made, f"c{number}", volume=f"pv{number}")
        a_volume(made, f"pv{number}", csi={"driver": "csi.example.com", "volumeHandle": f"h{number}"})
    return made


def codes(cluster: Cluster, *claims: str, **pod: Any) -> Any:
    state, snapshot = CycleState(), Snapshot(cluster)
    info = cluster.templates.info(a_pod(volumes=pod.pop("volumes", mounting(*claims)), **pod))
    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    return PLUGIN.filter(state, info, snapshot).tolist()


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [
        pytest.param((), ("c0", "c1"), OPEN, id="fills-it"),
        pytest.param((), ("c0", "c1", "c2"), FULL, id="too-many-of-its-own"),
        pytest.param(("c0", "c1"), ("c2",), FULL, id="full"),
        pytest.param(("c0", "c1"), ("c1",), OPEN, id="shared-volumes-count-once"),
        pytest.param(("c0",), ("c1",), OPEN, id="one-left"),
    ],
)
def test_volumes_are_counted_by_driver(
    cluster: Cluster, held: tuple[str, ...], wanted: tuple[str, ...], expected: int
) -> None:
    """Nodes without a limit take everything."""
    cluster.place(cluster.templates.info(a_pod("holder", volumes=mounting(*held))), "few")

    assert codes(cluster, *wanted) == [expected, OPEN, OPEN]


def test_attachments_count_in_addition_to_the_pods_volumes(cluster: Cluster) -> None:
    """One that the pod wants and no pod on the node uses yet counts twice, as upstream counts it."""
    an_attachment(cluster, "a", volume="pv0", node="few")
    assert codes(cluster, "c1") == [OPEN] * 3
    assert codes(cluster, "c1", "c2") == [FULL, OPEN, OPEN]
    assert codes(cluster, "c0") == [OPEN] * 3
    assert codes(cluster, "c0", "c1") == [FULL, OPEN, OPEN]


def test_claims_without_a_volume_count_for_the_driver_of_their_class(cluster: Cluster) -> None:
    """Each under its own name."""
    for number in range(3):
        a_claim(cluster, f"new{number}")

    assert codes(cluster, "new0", "new1") == [OPEN] * 3
    assert codes(cluster, "new0", "new1", "new2") == [FULL, OPEN, OPEN]


def test_in_tree_disks_count_for_the_driver_that_took_over(cluster: Cluster) -> None:
    """Wherever there is a CSINode; the zone in an EBS volume's name is no part of it."""
    a_csi_node(cluster, "few", ebs_csi_aws_com=1)
    a_csi_node(cluster, "any", pd_csi_storage_gke_io=0)
    disks = [{"name": "d", "awsElasticBlockStore": {"volumeID": "aws://zone/v1"}}]
    cluster.place(cluster.templates.info(a_pod("holder", volumes=disks)), "few")

    assert codes(cluster, volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "v1"}}]) == [OPEN] * 3
    assert codes(cluster, volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "v2"}}]) == [
        FULL,
        OPEN,
        OPEN,
    ]
    assert codes(cluster, volumes=[{"name": "d", "gcePersistentDisk": {"pdName": "p"}}]) == [OPEN, FULL, OPEN]


def test_a_missing_claim_is_named(cluster: Cluster) -> None:
    """The lookup's sentence; other plugins usually say it before."""
    state, snapshot = CycleState(), Snapshot(cluster)
    info = cluster.templates.info(a_pod(volumes=mounting("gone")))

    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    assert PLUGIN.filter(state, info, snapshot).tolist() == [MISSING] * 3
    assert PLUGIN.refusal(MISSING, state, info) == unresolvable(
        'looking up PVC default/gone: persistentvolumeclaim "gone" not found'
    )
    assert PLUGIN.refusal(FULL, state, info) == TOO_MANY


def test_pods_without_such_volumes_are_skipped(cluster: Cluster) -> None:
    """Directories attach nothing, and neither does a Ceph image."""
    for volume in ({"emptyDir": {}}, {"rbd": {"monitors": ["m"], "image": "i"}}):  # type: ignore[var-annotated] # known in this test
        info = cluster.templates.info(a_pod(volumes=[{"name": "v", **volume}]))
        assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) == SKIP


def one_fits(cluster: Cluster) -> None:
    a_csi_node(cluster, "n0", csi_example_com=1)
    for number in range(2):
        a_claim(cluster, f"c{number}", volume=f"pv{number}")
        a_volume(cluster, f"pv{number}", csi={"driver": "csi.example.com", "volumeHandle": f"h{number}"})


class TestConformance(FilterPluginConformance):
    """The laws of filter plugins; a node without a CSINode limits nothing, and its CSINode comes soon."""

    plugin = PLUGIN
    pods = tuple({"namespace": "default", "volumes": mounting(f"c{number}")} for number in range(2))
    objects = stored(one_fits)
    test_what_helps_a_rejected_pod_requeues_it = None  # type: ignore[assignment] # left out


def test_a_claim_behind_other_volumes_counts(cluster: Cluster) -> None:
    """Whatever stands before it."""
    claim = {"name": "c", "persistentVolumeClaim": {"claimName": "gone"}}
    volumes: Any = [{"name": "tmp", "emptyDir": {}}, claim]
    for listed in (volumes, volumes[::-1]):
        pod = cluster.templates.info(a_pod(volumes=listed))
        answer = NodeVolumeLimits(NoArgs()).pre_filter(CycleState(), pod, Snapshot(cluster))
        assert answer is SUCCESS
