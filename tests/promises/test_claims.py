"""Claims that are ready, and nodes that reach their volumes and may attach them."""

from __future__ import annotations

from typing import Any

import pytest

from promises.claims import CLASSES, ClaimedVolumes
from promises.commits import Commit, Obj
from promises.view import View
from promises.volumes import CLAIMS, CSI_NODES, VOLUMES

IN_A = {
    "required": {
        "nodeSelectorTerms": [{"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}]
    }
}


def pod(name: str, *claims: str, on: str = "", volumes: tuple[Obj, ...] = ()) -> Obj:
    """A pod with these claims."""
    named = [{"name": each, "persistentVolumeClaim": {"claimName": each}} for each in claims]
    return {
        "metadata": {"name": name, "namespace": "default", "uid": name},
        "spec": {"nodeName": on, "volumes": [*named, *volumes]},
    }


def claim(name: str = "data", volume: str = "", **more: Any) -> Obj:
    """A claim; one with a volume is bound."""
    meta = {"name": name, "namespace": "default", **more.pop("metadata", {})}
    spec = {"accessModes": ["ReadWriteOnce"], "storageClassName": "late", "volumeName": volume, **more}
    return {"metadata": meta, "spec": spec, "status": {"phase": "Bound" if volume else "Pending"}}


def storage_class(name: str = "late", **more: Any) -> Obj:
    """A class whose volumes are made where the pod goes."""
    return {
        "metadata": {"name": name},
        "volumeBindingMode": "WaitForFirstConsumer",
        "provisioner": "csi.test",
        **more,
    }


def volume(name: str = "disk", **spec: Any) -> Obj:
    """A volume."""
    return {"metadata": {"name": name}, "spec": spec}


def claimed(
    *objects: tuple[str, Obj], placed: tuple[Obj, ...] = (), unplaced: tuple[Obj, ...] = ()
) -> ClaimedVolumes:
    """The claims of a cluster with these objects and pods."""
    view = View()
    for collection, each in (*objects, *(("pods", one) for one in (*placed, *unplaced))):
        view.see(Commit(collection, "ADDED", each))
    return ClaimedVolumes(view, placed)


DISK = (VOLUMES, volume())
LATE = (CLASSES, storage_class())
LEAVING = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("objects", "expected"),
    [
        pytest.param([], False, id="no claim"),
        pytest.param([(CLAIMS, claim(volume="disk")), DISK], True, id="bound"),
        pytest.param([(CLAIMS, claim(volume="disk")), LATE], False, id="bound to a volume that is gone"),
        pytest.param([(CLAIMS, claim(volume="disk", metadata=LEAVING)), DISK], False, id="on its way out"),
        pytest.param([(CLAIMS, claim()), LATE], True, id="to be made where the pod goes"),
        pytest.param([(CLAIMS, claim())], False, id="of no class"),
        pytest.param(
            [(CLAIMS, claim(storageClassName="other")), LATE], False, id="of a class that is not there"
        ),
        pytest.param(
            [(CLAIMS, claim()), (CLASSES, storage_class(volumeBindingMode="Immediate"))],
            False,
            id="immediate",
        ),
        pytest.param(
            [(CLAIMS, claim()), (CLASSES, storage_class(provisioner="kubernetes.io/no-provisioner"))],
            False,
            id="without a provisioner",
        ),
        pytest.param(
            [(CLAIMS, claim()), (CLASSES, storage_class(allowedTopologies=[]))],
            False,
            id="made in some places",
        ),
        pytest.param(
            [(CLAIMS, {"metadata": claim()["metadata"], "spec": claim()["spec"]}), LATE],
            True,
            id="without a status",
        ),
    ],
)
def test_a_claim_is_ready(objects: list[tuple[str, Obj]], expected: bool) -> None:
    """It is bound to a volume that exists, or a volume is made for it wherever the pod goes."""
    wanted = pod("new", "data")

    assert claimed(*objects, unplaced=(wanted,)).are_evaluated(wanted) is expected


@pytest.mark.parametrize(
    ("volumes", "expected"),
    [
        pytest.param(({"name": "tmp", "emptyDir": {}},), True, id="everywhere"),
        pytest.param(({"name": "tmp"},), True, id="only a name"),
        pytest.param(({"name": "disk", "awsElasticBlockStore": {}},), False, id="a disk of a cloud"),
        pytest.param(
            ({"name": "all", **dict.fromkeys(("emptyDir", "configMap", "secret"))},), True, id="several"
        ),
        pytest.param(
            (dict.fromkeys(("name", "emptyDir", "configMap", "secret", "downwardAPI", "projected")),),
            True,
            id="all",
        ),
    ],
)
def test_other_volumes(volumes: tuple[Obj, ...], expected: bool) -> None:
    """Each kind that is not known to be everywhere is not evaluated, next to a ready claim as well."""
    plain, mixed = pod("new", volumes=volumes), pod("new", "data", volumes=volumes)

    assert claimed().are_evaluated(plain) is expected
    assert claimed((CLAIMS, claim(volume="disk")), DISK).are_evaluated(mixed) is expected
    assert claimed().are_evaluated(mixed) is False


@pytest.mark.parametrize(
    ("others", "expected"),
    [
        pytest.param((), True, id="alone"),
        pytest.param((pod("other", "else"),), True, id="another claim"),
        pytest.param((pod("other", "data"),), False, id="another pod has it"),
    ],
)
def test_a_claim_of_one_pod(others: tuple[Obj, ...], expected: bool) -> None:
    """ReadWriteOncePod is for one pod, and the pod itself does not count."""
    wanted = pod("new", "data")
    mine = claim(volume="disk", accessModes=["ReadWriteOncePod"])

    assert claimed((CLAIMS, mine), DISK, unplaced=(wanted, *others)).are_evaluated(wanted) is expected
    assert claimed((CLAIMS, claim(volume="disk")), DISK, unplaced=(wanted, *others)).are_evaluated(wanted)


def node(zone: str = "a") -> Obj:
    """A node."""
    return {"metadata": {"name": "x", "labels": {"zone": zone}}}


@pytest.mark.parametrize(
    ("objects", "zone", "expected"),
    [
        pytest.param(
            [(CLAIMS, claim(volume="disk")), (VOLUMES, volume(nodeAffinity=IN_A))], "a", True, id="there"
        ),
        pytest.param(
            [(CLAIMS, claim(volume="disk")), (VOLUMES, volume(nodeAffinity=IN_A))], "b", False, id="not there"
        ),
        pytest.param([(CLAIMS, claim(volume="disk")), DISK], "b", True, id="anywhere"),
        pytest.param([(CLAIMS, claim()), LATE], "b", True, id="not made yet"),
        pytest.param([], "b", True, id="not known"),
    ],
)
def test_a_node_reaches_a_volume(objects: list[tuple[str, Obj]], zone: str, expected: bool) -> None:
    """By the volume's node affinity."""
    assert claimed(*objects).reach(pod("new", "data"), node(zone)) is expected


LIMIT: tuple[str, Obj] = (
    CSI_NODES,
    {"metadata": {"name": "x"}, "spec": {"drivers": [{"name": "csi.test", "allocatable": {"count": 1}}]}},
)
TWO_LIMITS = (
    CSI_NODES,
    {
        "metadata": {"name": "x"},
        "spec": {"drivers": [*LIMIT[1]["spec"]["drivers"], {"name": "b", "allocatable": {"count": 9}}]},
    },
)


@pytest.mark.parametrize(
    ("wanted", "there", "expected"),
    [
        pytest.param(pod("new", "data"), (), True, id="as many as may be"),
        pytest.param(pod("new", "data", "more"), (), False, id="more than may be"),
        pytest.param(pod("new", "data"), (pod("old", "more", on="x"),), False, id="one is there"),
        pytest.param(pod("new", "data"), (pod("old", "data", on="x"),), True, id="the same is there"),
        pytest.param(pod("new", "data"), (pod("old", "more", on="y"),), True, id="one is elsewhere"),
        pytest.param(pod("new"), (pod("old", "data", "more", on="x"),), True, id="it wants none"),
    ],
)
def test_a_node_attaches_so_many(wanted: Obj, there: tuple[Obj, ...], expected: bool) -> None:
    """Each claim once, whatever its driver."""
    objects = [(CLAIMS, claim(name, volume="disk")) for name in ("data", "more")]

    assert claimed(*objects, DISK, LIMIT, placed=there).reach(wanted, node()) is expected
    assert claimed(*objects, DISK, TWO_LIMITS, placed=there).reach(wanted, node()) is expected
    assert claimed(*objects, DISK, placed=there).reach(wanted, node()) is True
