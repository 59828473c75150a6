"""VolumeBinding: which nodes can have the pod's volumes, and which volumes these would be."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, PluginError, Snapshot, unresolvable
from plimsoll.framework.volumes import migrated_affinity
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.selectors import NodeSelector
from plimsoll.plugins.volume_binding import (  # type: ignore[attr-defined] # known to exist in this test
    AFFINITY,
    NO_SPACE,
    NOTHING_TO_BIND,
    REASONS,
    VOLUME_MISSING,
    VolumeBinding,
    VolumeBindingArgs,
)
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance
from plugins.stored import (
    ZONE,
    a_capacity,
    a_claim,
    a_class,
    a_csi_node,
    a_driver,
    a_volume,
    mounting,
    stored,
)

PLUGIN = VolumeBinding(VolumeBindingArgs())
OPEN = 0


@pytest.fixture
def cluster() -> Cluster:
    """A node in zone a and one in zone b; class ``slow`` waits for its first consumer."""
    made = a_cluster([a_node("na", labels={ZONE: "a"}), a_node("nb", labels={ZONE: "b"})])
    a_class(made)
    return made


def decided(cluster: Cluster, *claims: str, **pod: Any) -> Any:
    """PreFilter's status and, if it agreed, the codes, and what the claims get on each feasible node."""
    state, snapshot = CycleState(), Snapshot(cluster)
    info = cluster.templates.info(a_pod(volumes=pod.pop("volumes", mounting(*claims)), **pod))
    status = PLUGIN.pre_filter(state, info, snapshot)
    if not status.is_success:
        return status
    codes = PLUGIN.filter(state, info, snapshot).tolist()
    return codes, {
        cluster.nodes[row].name: PLUGIN.volumes_on(state, snapshot, row)
        for row, code in enumerate(codes)
        if code == OPEN
    }


def test_a_bound_volume_must_be_reachable(cluster: Cluster) -> None:
    """Its node affinity decides; claims that are bound leave nothing to decide."""
    a_claim(cluster, volume="pv")
    a_volume(cluster, "pv", zones="a")

    assert decided(cluster, "data") == ([OPEN, AFFINITY], {"na": {}})


def test_a_bound_volume_that_is_missing_rules_out_every_node(cluster: Cluster) -> None:
    """No node can reach it."""
    a_claim(cluster, volume="gone")

    assert decided(cluster, "data") == ([VOLUME_MISSING] * 2, {})


def test_a_migrated_in_tree_volume_is_looked_for_under_its_drivers_key(cluster: Cluster) -> None:
    """Where the kubelet serves EBS by CSI, the zone stands under the driver's own topology key."""
    cluster.set_node(a_node("nb", labels={ZONE: "b", "topology.ebs.csi.aws.com/zone": "a"}))
    a_csi_node(cluster, "nb", migrated="kubernetes.io/aws-ebs")
    a_claim(cluster, volume="pv")
    a_volume(cluster, "pv", labels={ZONE: "a"}, zones="a", awsElasticBlockStore={"volumeID": "v"})
    assert decided(cluster, "data")[0] == [OPEN, OPEN]

    a_csi_node(cluster, "na", migrated="kubernetes.io/aws-ebs")
    assert decided(cluster, "data")[0] == [AFFINITY, OPEN]


def term(*expressions: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "matchExpressions": [
            dict(zip(("key", "operator", "values"), each, strict=False)) for each in expressions
        ]
    }


EBS_ZONE = "topology.ebs.csi.aws.com/zone"
BETA = "failure-domain.beta.kubernetes.io"


@pytest.mark.parametrize(
    ("labels", "terms", "expected"),
    [
        pytest.param({}, [], None, id="says-nothing"),
        pytest.param({ZONE: "b__a"}, [], [term((EBS_ZONE, "In", ["a", "b"]))], id="label"),
        pytest.param(
            {ZONE: "a"},
            [term(("disk", "Exists"))],
            [term(("disk", "Exists"), (EBS_ZONE, "In", ["a"]))],
            id="label-in-every-term",
        ),
        pytest.param(
            {ZONE: "a"},
            [term((ZONE, "Exists"))],
            [term((ZONE, "Exists"), (EBS_ZONE, "In", ["a"]))],
            id="a-zone-without-values-is-no-zone",
        ),
        pytest.param(
            {ZONE: "a"}, [term((f"{BETA}/zone", "Exists"))], None, id="the-affinity-says-which-label-counts"
        ),
        pytest.param(
            {ZONE: "b"},
            [term((f"{BETA}/zone", "In", ["a"]), (f"{BETA}/region", "In", ["r"]))],
            [term((EBS_ZONE, "In", ["a"]), ("topology.kubernetes.io/region", "In", ["r"]))],
            id="old-keys",
        ),
        pytest.param({ZONE: " "}, [], None, id="blank"),
    ],
)
def test_a_migrated_volumes_affinity_is_its_drivers(
    cluster: Cluster,
    labels: dict[str, Any],
    terms: list[dict[str, Any]],
    expected: list[dict[str, Any]] | None,
) -> None:
    """The zone's values are what moves to the driver's key; None: the affinity stays as it was."""
    affinity = {"required": {"nodeSelectorTerms": terms}} if terms else None
    a_volume(cluster, "pv", labels=labels, awsElasticBlockStore={"volumeID": "v"}, nodeAffinity=affinity)
    volume = cluster.objects.volumes["pv"]
    before = volume.spec.node_affinity.required if terms else None

    wanted = before if expected is None else convert(NodeSelector, {"nodeSelectorTerms": expected})
    assert migrated_affinity(volume) == wanted


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param(
            [("large", "20Gi", {}), ("small", "6Gi", {}), ("tiny", "1Gi", {})], "small", id="smallest"
        ),
        pytest.param([("block", "6Gi", {"volumeMode": "Block"})], "", id="other-mode"),
        pytest.param([("other", "6Gi", {"storage_class": "fast"})], "", id="other-class"),
        pytest.param([("many", "6Gi", {"accessModes": ["ReadWriteMany"]})], "", id="lacks-access-mode"),
        pytest.param([("vac", "6Gi", {"volumeAttributesClassName": "x"})], "", id="other-attributes"),
        pytest.param([("used", "6Gi", {"phase": "Released"})], "", id="not-available"),
        pytest.param(
            [("taken", "6Gi", {"claimRef": {"namespace": "default", "name": "else"}}), ("free", "9Gi", {})],
            "free",
            id="taken-by-another",
        ),
        pytest.param(
            [("small", "6Gi", {}), ("mine", "9Gi", {"claimRef": {"namespace": "default", "name": "data"}})],
            "mine",
            id="reserved",
        ),
    ],
)
def test_a_waiting_claim_takes_the_smallest_volume_that_fits(
    cluster: Cluster, volumes: list[tuple[str, str, dict[str, Any]]], expected: str
) -> None:
    """Or, where none fits, one is made: the empty name."""
    a_claim(cluster)
    for name, size, more in volumes:
        a_volume(cluster, name, size=size, **more)

    assert decided(cluster, "data") == (
        [OPEN, OPEN],
        {"na": {"data": expected}, "nb": {"data": expected}},
    )


def test_each_node_takes_what_it_can_reach(cluster: Cluster) -> None:
    """The smaller volume is in zone b; zone a has to take the larger one."""
    a_claim(cluster)
    a_volume(cluster, "small-b", size="6Gi", zones="b")
    a_volume(cluster, "large", size="8Gi")

    assert decided(cluster, "data")[1] == {"na": {"data": "large"}, "nb": {"data": "small-b"}}


def test_a_volume_reserved_for_the_claim_is_taken_or_nothing_is(cluster: Cluster) -> None:
    """Where it cannot be reached no other volume is matched: one would be made."""
    a_claim(cluster)
    a_volume(cluster, "mine", zones="b", claimRef={"namespace": "default", "name": "data"})
    a_volume(cluster, "other", size="6Gi")

    assert decided(cluster, "data")[1] == {"na": {"data": ""}, "nb": {"data": "mine"}}


def test_claims_of_one_pod_take_different_volumes_the_smaller_request_first(cluster: Cluster) -> None:
    """Both would fit the small one."""
    a_claim(cluster, "big", size="5Gi")
    a_claim(cluster, "little", size="2Gi")
    a_volume(cluster, "pv1", size="6Gi")
    a_volume(cluster, "pv2", size="7Gi")

    assert decided(cluster, "big", "little")[1]["na"] == {"little": "pv1", "big": "pv2"}


def test_the_claims_selector_must_match_the_volumes_labels(cluster: Cluster) -> None:
    """Larger but labelled right."""
    a_claim(cluster, selector={"matchLabels": {"tier": "gold"}})
    a_volume(cluster, "plain", size="6Gi")
    a_volume(cluster, "gold", size="9Gi", labels={"tier": "gold"})

    assert decided(cluster, "data")[1]["na"] == {"data": "gold"}


def test_a_claim_that_names_a_node_is_provisioned_there_or_nowhere(cluster: Cluster) -> None:
    """Available volumes are not looked at any more."""
    a_claim(cluster, annotations={"volume.kubernetes.io/selected-node": "nb"})
    a_volume(cluster, "pv")

    assert decided(cluster, "data") == ([NOTHING_TO_BIND, OPEN], {"nb": {"data": ""}})


@pytest.mark.parametrize("provisioner", ["", "kubernetes.io/no-provisioner"])
def test_without_a_provisioner_a_volume_must_exist(cluster: Cluster, provisioner: str) -> None:
    """Static volumes only."""
    a_class(cluster, provisioner=provisioner)
    a_claim(cluster)
    a_volume(cluster, "pv", zones="a")

    assert decided(cluster, "data") == ([OPEN, NOTHING_TO_BIND], {"na": {"data": "pv"}})


def test_the_class_says_where_volumes_are_made(cluster: Cluster) -> None:
    """Terms are alternatives."""
    a_class(
        cluster,
        allowedTopologies=[
            {"matchLabelExpressions": [{"key": ZONE, "values": ["b", "c"]}]},
            {"matchLabelExpressions": []},
        ],
    )
    a_claim(cluster)

    assert decided(cluster, "data")[0] == [NOTHING_TO_BIND, OPEN]


@pytest.mark.parametrize(
    ("capacities", "expected"),
    [
        pytest.param([], [NO_SPACE, NO_SPACE], id="none-published"),
        pytest.param([{"zone": "a", "capacity": "5Gi"}], [OPEN, NO_SPACE], id="just-enough"),
        pytest.param([{"zone": "a", "capacity": "4Gi"}], [NO_SPACE, NO_SPACE], id="too-little"),
        pytest.param(
            [{"zone": "a", "capacity": "9Gi", "maximumVolumeSize": "1Gi"}],
            [NO_SPACE, NO_SPACE],
            id="no-volume-that-large",
        ),
        pytest.param([{"capacity": "9Gi"}], [NO_SPACE, NO_SPACE], id="of-no-node"),
        pytest.param([{"zone": "a"}], [NO_SPACE, NO_SPACE], id="unknown-amount"),
    ],
)
def test_published_capacity_must_suffice(
    cluster: Cluster, capacities: list[dict[str, Any]], expected: list[int]
) -> None:
    """Only for drivers that publish it."""
    a_claim(cluster)
    for number, capacity in enumerate(capacities):
        a_capacity(cluster, f"c{number}", **capacity)
    assert decided(cluster, "data")[0] == [OPEN, OPEN]

    a_driver(cluster)
    assert decided(cluster, "data")[0] == expected

    a_driver(cluster, storage_capacity=False)
    assert decided(cluster, "data")[0] == [OPEN, OPEN]


@pytest.mark.parametrize(
    ("claim", "reason"),
    [
        pytest.param(None, 'persistentvolumeclaim "data" not found', id="missing"),
        pytest.param(
            {"volume": "pv", "phase": "Lost"},
            'persistentvolumeclaim "data" bound to non-existent persistentvolume "pv"',
            id="lost",
        ),
        pytest.param(
            {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}},
            'persistentvolumeclaim "data" is being deleted',
            id="going",
        ),
        pytest.param(
            {"storage_class": "now"}, "pod has unbound immediate PersistentVolumeClaims", id="immediate"
        ),
        pytest.param(
            {"storage_class": "unknown"},
            "pod has unbound immediate PersistentVolumeClaims",
            id="unknown-class",
        ),
        pytest.param(
            {"volumeName": "pv"}, "pod has unbound immediate PersistentVolumeClaims", id="names-a-volume"
        ),
    ],
)
def test_claims_that_can_have_no_volume_reject_the_pod(
    cluster: Cluster, claim: dict[str, Any] | None, reason: str
) -> None:
    """Everywhere, with upstream's sentence and, where a claim is being deleted, its reason."""
    a_class(cluster, "now", mode="Immediate")
    if claim is not None:
        a_claim(cluster, **claim)

    is_leaving = reason.endswith("is being deleted")
    assert decided(cluster, "data") == unresolvable(reason, no_node_helps=not is_leaving)


def test_ephemeral_volumes_have_a_claim_named_after_the_pod(cluster: Cluster) -> None:
    """It must exist and belong to the pod."""
    ephemeral = {"volumes": [{"name": "tmp", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}}]}
    assert decided(cluster, **ephemeral) == unresolvable(
        'waiting for ephemeral volume controller to create the persistentvolumeclaim "pod-tmp"',
        no_node_helps=True,
    )

    a_claim(cluster, "pod-tmp")
    refusal = unresolvable(
        "PVC default/pod-tmp was not created for pod default/pod (pod is not owner)", no_node_helps=True
    )
    assert decided(cluster, **ephemeral) == refusal

    owner = {"kind": "Pod", "name": "pod", "uid": "of an earlier pod", "controller": True}
    a_claim(cluster, "pod-tmp", metadata={"ownerReferences": [owner]})
    assert decided(cluster, **ephemeral) == refusal

    a_claim(cluster, "pod-tmp", metadata={"ownerReferences": [owner | {"uid": "uid-default-pod"}]})
    assert decided(cluster, **ephemeral)[0] == [OPEN, OPEN]


def test_pods_without_claims_are_skipped(cluster: Cluster) -> None:
    """Directories and secrets are no claims, and neither are disks."""
    assert decided(cluster, volumes=[{"name": "d", "emptyDir": {}}]) == SKIP
    assert decided(cluster, volumes=[{"name": "d", "awsElasticBlockStore": {"volumeID": "v"}}]) == SKIP


def test_a_class_without_a_binding_mode_is_broken(cluster: Cluster) -> None:
    """An error of the cycle, not a verdict on nodes."""
    a_class(cluster, mode=None)
    a_claim(cluster)

    with pytest.raises(PluginError, match="VolumeBindingMode not set"):
        decided(cluster, "data")


def test_refusals_list_all_reasons_in_upstreams_order(cluster: Cluster) -> None:
    """One node may have several."""
    info = cluster.templates.info(a_pod())

    status = PLUGIN.refusal(AFFINITY | NOTHING_TO_BIND, CycleState(), info)

    assert status == unresolvable(REASONS[AFFINITY], REASONS[NOTHING_TO_BIND])
    assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) != SUCCESS


def in_zone_a(cluster: Cluster) -> None:
    a_claim(cluster, volume="pv")
    a_volume(cluster, "pv", zones="a")


class TestConformance(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = PLUGIN
    pods = ({"namespace": "default", "volumes": mounting("data")},)
    objects = stored(in_zone_a)


@pytest.mark.parametrize(
    ("reserved", "code"),
    [
        pytest.param({"name": "data", "namespace": "default", "uid": "mine"}, OPEN, id="for-the-claim"),
        pytest.param({"name": "data", "namespace": "default"}, OPEN, id="for-its-name"),
        pytest.param(
            {"name": "data", "namespace": "default", "uid": "earlier"}, NOTHING_TO_BIND, id="earlier"
        ),
        pytest.param({"name": "data", "namespace": "far", "uid": "mine"}, NOTHING_TO_BIND, id="elsewhere"),
        pytest.param({"name": "other", "namespace": "default"}, NOTHING_TO_BIND, id="for-another"),
    ],
)
def test_a_volume_that_is_reserved_is_for_that_claim_only(reserved: dict[str, str], code: int) -> None:
    """Made again under its name, a claim does not get the volume of the one before it."""
    cluster = a_cluster([a_node("n1")])
    a_class(cluster, provisioner="kubernetes.io/no-provisioner")
    a_volume(cluster, "v", claimRef=reserved)
    a_claim(cluster, metadata={"uid": "mine"})

    codes, volumes = decided(cluster, "data")

    assert codes == [code]
    assert bool(volumes) is (code == OPEN)


def test_a_claim_that_asks_for_no_storage_needs_no_published_capacity(cluster: Cluster) -> None:
    """As upstream: there is nothing to compare with."""
    a_driver(cluster)
    a_claim(cluster, resources={"requests": {}})

    assert decided(cluster, "data")[0] == [OPEN, OPEN]
