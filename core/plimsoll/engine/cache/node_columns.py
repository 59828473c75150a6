"""Shares results of plugins that read nodes only among templates of equal signature.

Thousands of different pods tolerate the same taints and run the same image. A plugin's ``signature`` names
the part of a template that it reads. The plugin runs once per signature, until a node changes.

Axis letter: N nodes.
"""

from collections.abc import Callable, Hashable

import numpy as np
from msgspec import Struct

from plimsoll.engine.kernel.library import KERNEL, ColumnAddresses, Kernel
from plimsoll.engine.plugin_calls import called
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    CycleState,
    FilterPlugin,
    IntArray,
    PluginError,
    PodInfo,
    ScorePlugin,
    Snapshot,
)
from plimsoll.framework.plugin_answers import checked, named
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import RowArray

#: Approximate maximum memory for columns, per profile.
COLUMN_BYTES = 64 * 2**20

#: Bytes of a column besides its values, and of its key for each byte of the template's deciding fields.
BESIDES, A_BYTE = 512, 6


class NodeColumn(Struct):
    """Codes or raw scores of all nodes.

    Attributes:
        values: Shape (N,), read-only.
        points: The normalized points if all raw scores are equal, once computed.
    """

    values: IntArray
    lowest: int
    highest: int
    points: int | None = None


class NodeColumns:
    """Columns by plugin, purpose and signature, for the present nodes.

    Attributes:
        addresses: Addresses of the cluster's own columns, for the kernel.
    """

    def __init__(self, cluster: Cluster, profile: Profile, kernel: Kernel | None = KERNEL) -> None:
        self._cluster = cluster
        self.addresses = ColumnAddresses(cluster, kernel)
        self._signed = profile.capabilities.signed
        self._columns: dict[Hashable, NodeColumn] = {}
        self._bytes = 0  #: of these, approximately
        self._clocks: tuple[int, int, int] | None = None
        self._rows: RowArray = np.empty(0, dtype=np.intp)

    def rows(self) -> RowArray:
        """All rows, ascending, read-only."""
        if len(self._rows) != len(self._cluster):
            self._rows = np.arange(len(self._cluster), dtype=np.intp)
            self._rows.flags.writeable = False
        return self._rows

    def column(self, key: Hashable, build: Callable[[], IntArray], key_bytes: int = 0) -> NodeColumn:
        """The column with that key, built if it is missing for the present nodes and objects.

        Args:
            key: What it depends on.
            build: Returns the values, shape (N,).
            key_bytes: Approximate memory of the key, which may hold most of a pod.
        """
        cluster = self._cluster
        clocks = cluster.node_tick, cluster.epoch, cluster.objects.version
        if clocks != self._clocks or self._bytes > COLUMN_BYTES:
            self._columns.clear()
            self._clocks, self._bytes = clocks, 0
        found = self._columns.get(key)
        if found is None:
            values = build().copy()
            values.flags.writeable = False
            found = self._columns[key] = NodeColumn(
                values, int(values.min(initial=2**62)), int(values.max(initial=-(2**62)))
            )
            self._bytes += 8 * len(cluster) + BESIDES + key_bytes
            # Building may have added axes to the cluster, but never changed a node.
            self._clocks = cluster.node_tick, cluster.epoch, cluster.objects.version
        return found

    def signed(
        self,
        plugin: FilterPlugin | ScorePlugin,
        point: str,
        answer: Callable[[CycleState, PodInfo, Snapshot], IntArray],
        *,
        state: CycleState,
        pod: PodInfo,
        snapshot: Snapshot,
    ) -> NodeColumn | None:
        """The result of a signed plugin that reads nodes only; None for other plugins and heavy templates.

        Raises:
            PluginError: The plugin raised.
        """
        signer = self._signed.get(plugin.name)
        if signer is None or pod.template.is_heavy:
            return None
        try:
            signature = signer.signature(pod.template)
        except PluginError:
            raise
        except BaseException as exc:
            raise named(plugin.name, point, exc) from exc
        if signature is None:
            return None

        def build() -> IntArray:
            values = called(plugin.name, point, answer, state, pod, snapshot)
            return checked(values, len(snapshot), plugin.name, point)

        return self.column((plugin.name, point, signature), build, A_BYTE * pod.template.size)
