"""VolumeRestrictions: disks and claims that cannot be shared."""

from typing import Any

import pytest

from plimsoll.framework import SKIP, SUCCESS, CycleState, NoArgs, Snapshot, unresolvable
from plimsoll.model.columns.cluster import Cluster
from plimsoll.plugins.volume_restrictions import CLAIM_IN_USE, DISK_CONFLICT, VolumeRestrictions
from plimsoll.testing.builders import a_cluster, a_node, a_pod
from plimsoll.testing.conformance import FilterPluginConformance
from plugins.stored import a_claim, mounting

PLUGIN = VolumeRestrictions(NoArgs())
OPEN, DISK, CLAIM = 0, 1, 2


def gce(name: str = "d", **more: Any) -> dict[str, Any]:
    return {"gcePersistentDisk": {"pdName": name, **more}}


def ebs(name: str = "v", **more: Any) -> dict[str, Any]:
    return {"awsElasticBlockStore": {"volumeID": name, **more}}


def iscsi(name: str = "iqn", **more: Any) -> dict[str, Any]:
    return {"iscsi": {"iqn": name, **more}}


def rbd(*monitors: str, image: str = "i", **more: Any) -> dict[str, Any]:
    return {"rbd": {"monitors": list(monitors), "image": image, **more}}


def disks(*sources: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"name": f"v{number}", **source} for number, source in enumerate(sources)]


def codes(cluster: Cluster, **pod: Any) -> Any:
    state, info, snapshot = CycleState(), cluster.templates.info(a_pod(**pod)), Snapshot(cluster)
    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    return PLUGIN.filter(state, info, snapshot).tolist()


@pytest.mark.parametrize(
    ("held", "wanted", "expected"),
    [
        pytest.param(gce(), gce(), DISK, id="gce"),
        pytest.param(gce(readOnly=True), gce(readOnly=True), OPEN, id="gce-both-read"),
        pytest.param(gce(readOnly=True), gce(), DISK, id="gce-one-writes"),
        pytest.param(gce("x"), gce(), OPEN, id="gce-other"),
        pytest.param(ebs(readOnly=True), ebs(readOnly=True), DISK, id="ebs-even-both-read"),
        pytest.param(ebs("x"), ebs(), OPEN, id="ebs-other"),
        pytest.param(iscsi(), iscsi(), DISK, id="iscsi"),
        pytest.param(iscsi(readOnly=True), iscsi(readOnly=True), OPEN, id="iscsi-both-read"),
        pytest.param(rbd("a", "b"), rbd("b", "c"), DISK, id="rbd-shared-monitor"),
        pytest.param(rbd("a"), rbd("b"), OPEN, id="rbd-other-monitors"),
        pytest.param(rbd("a", image="x"), rbd("a"), OPEN, id="rbd-other-image"),
        pytest.param(rbd("a", pool="x"), rbd("a"), OPEN, id="rbd-other-pool"),
        pytest.param(rbd("a", readOnly=True), rbd("a", readOnly=True), OPEN, id="rbd-both-read"),
        pytest.param(ebs(), gce(), OPEN, id="different-kinds"),
    ],
)
def test_disks_conflict_on_one_node(held: dict[str, Any], wanted: dict[str, Any], expected: int) -> None:
    """The other node is free in any case."""
    holder = a_pod("holder", node="n1", volumes=disks(held))
    cluster = a_cluster([a_node("n1"), a_node("n2")], [holder])

    assert codes(cluster, volumes=disks(wanted)) == [expected, OPEN]


def test_a_claim_for_one_pod_is_in_use_everywhere_or_nowhere() -> None:
    """Wherever its user is, the claim rules out all nodes: preempting the user helps."""
    cluster = a_cluster([a_node("n1"), a_node("n2")])
    a_claim(cluster, "mine", accessModes=["ReadWriteOncePod"])
    pod = {"volumes": mounting("mine")}
    info = cluster.templates.info(a_pod(**pod))  # type: ignore[arg-type] # fields as in the API
    assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) == SKIP

    user = cluster.templates.info(a_pod("user", volumes=mounting("mine")))
    cluster.place(user, "n1")
    assert codes(cluster, **pod) == [CLAIM, CLAIM]

    cluster.displace(user.uid)
    assert PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster)) == SKIP


def test_simulated_users_are_counted_by_claim_name() -> None:
    """As upstream does, whatever their namespace; a copy of the state is independent."""
    cluster = a_cluster([a_node("n1")], [a_pod("user", node="n1", volumes=mounting("mine"))])
    a_claim(cluster, "mine", accessModes=["ReadWriteOncePod"])
    state, snapshot = CycleState(), Snapshot(cluster)
    info = cluster.templates.info(a_pod(volumes=mounting("mine")))
    assert PLUGIN.pre_filter(state, info, snapshot) == SUCCESS
    copy = state.clone()
    other = cluster.templates.info(a_pod("other", namespace="elsewhere", volumes=mounting("mine")))

    PLUGIN.remove_pod(state, info, other, 0, snapshot)
    freed = PLUGIN.filter(state, info, snapshot).tolist()
    PLUGIN.add_pod(state, info, other, 0, snapshot)

    assert freed == [OPEN]
    assert PLUGIN.filter(state, info, snapshot).tolist() == [CLAIM]
    assert PLUGIN.filter(copy, info, snapshot).tolist() == [CLAIM]


def test_a_missing_claim_rejects_the_pod() -> None:
    """With upstream's sentence."""
    cluster = a_cluster([a_node("n1")])
    info = cluster.templates.info(a_pod(volumes=mounting("gone")))

    status = PLUGIN.pre_filter(CycleState(), info, Snapshot(cluster))

    assert status == unresolvable('persistentvolumeclaim "gone" not found', no_node_helps=True)


def test_refusals_are_worded_as_upstream_words_them() -> None:
    """Disk and claim."""
    info = a_cluster().templates.info(a_pod())

    assert PLUGIN.refusal(DISK, CycleState(), info) == DISK_CONFLICT
    assert PLUGIN.refusal(CLAIM, CycleState(), info) == CLAIM_IN_USE


class TestConformance(FilterPluginConformance):
    """The laws of filter plugins."""

    plugin = PLUGIN
    pods = ({}, {"volumes": disks(ebs())}, {"volumes": disks(gce())})
