"""Storage kinds decode from what the API serves, odd capitals and shapes included."""

from collections.abc import Callable
from typing import Any

import pytest

from plimsoll.model.decoding import decode
from plimsoll.model.kinds.storage import (
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    VolumeAttachment,
)


@pytest.mark.parametrize(
    ("kind", "document", "path", "expected"),
    [
        (
            CSINode,
            (
                b'{"metadata":{"name":"n1"},"spec":{"drivers":[{"name":"d","nodeID":"i-1","topologyKeys":null,'
                b'"allocatable":{"count":25}}]}}'
            ),
            lambda o: (o.name, o.spec.drivers[0].name, o.spec.drivers[0].allocatable.count),
            ("n1", "d", 25),
        ),
        (
            PersistentVolume,
            (
                b'{"metadata":{"name":"pv"},"spec":{"capacity":{"storage":"1Gi"},"claimRef":{"namespace":"a",'
                b'"name":"c","uid":"u"},"csi":{"driver":"d","volumeHandle":"h"}},"status":{"phase":"Bound"}}'
            ),
            lambda o: (o.name, o.spec.claim_ref.name, o.spec.csi.volume_handle, o.status.phase),
            ("pv", "c", "h", "Bound"),
        ),
        (
            PersistentVolumeClaim,
            b'{"metadata":{"name":"c","namespace":"a"},"spec":{"storageClassName":"","volumeName":"pv"}}',
            lambda o: (o.key, o.spec.storage_class_name, o.spec.volume_name, o.spec.volume_mode),
            ("a/c", "", "pv", "Filesystem"),
        ),
        (
            StorageClass,
            (
                b'{"metadata":{"name":"s"},"provisioner":"p","volumeBindingMode":"WaitForFirstConsumer",'
                b'"allowedTopologies":[{"matchLabelExpressions":[{"key":"zone","values":["a"]}]}]}'
            ),
            lambda o: (o.name, o.allowed_topologies[0].match_label_expressions[0].values),
            ("s", ("a",)),
        ),
        (
            CSIStorageCapacity,
            b'{"metadata":{"name":"x"},"storageClassName":"s","nodeTopology":{},"capacity":"1Gi"}',
            lambda o: (o.storage_class_name, o.node_topology is None, o.capacity, o.maximum_volume_size),
            ("s", False, "1Gi", None),
        ),
        (
            VolumeAttachment,
            b'{"spec":{"attacher":"d","nodeName":"n1","source":{"persistentVolumeName":"pv"}}}',
            lambda o: (o.spec.attacher, o.spec.node_name, o.spec.source.persistent_volume_name),
            ("d", "n1", "pv"),
        ),
    ],
)
def test_storage_kinds_decode(
    kind: Any, document: bytes, path: Callable[..., Any], expected: tuple[Any, ...]
) -> None:
    """The fields that volume plugins read arrive under their names."""
    assert path(decode(kind, document)) == expected
