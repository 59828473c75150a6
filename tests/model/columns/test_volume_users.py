"""Tells pods with volumes that decisions read from the others."""

import itertools
from typing import Any

import pytest

from plimsoll.model.columns.volume_users import has_volumes, mounted_claims
from plimsoll.testing.builders import a_cluster, a_node, a_pod

READ: dict[str, dict[str, Any]] = {
    "a claim": {"persistentVolumeClaim": {"claimName": "data"}},
    "a claim of its own": {"ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
    "a disk of GCE": {"gcePersistentDisk": {"pdName": "d"}},
    "a disk of AWS": {"awsElasticBlockStore": {"volumeID": "d"}},
    "a disk of iSCSI": {"iscsi": {"targetPortal": "t", "iqn": "i", "lun": 0}},
    "a disk of Ceph": {"rbd": {"monitors": ["m"], "image": "d"}},
}
UNREAD: dict[str, dict[str, Any]] = {
    "a folder": {"emptyDir": {}},
    "a ConfigMap": {"configMap": {"name": "c"}},
}


@pytest.mark.parametrize(
    "names", [(), *itertools.product(UNREAD, [*READ, *UNREAD]), *itertools.product(READ, UNREAD)]
)
def test_one_volume_that_is_read_is_enough(names: tuple[str, ...]) -> None:
    """In whatever place; directories and images are no reason."""
    volumes = [{"name": f"v{at}", **(READ | UNREAD)[name]} for at, name in enumerate(names)]
    (pod,) = a_cluster([a_node("n")], [a_pod("p", node="n", volumes=volumes)]).pods.values()

    assert has_volumes(pod) is any(name in READ for name in names)
    assert mounted_claims(pod) == ["data"] * names.count("a claim")
