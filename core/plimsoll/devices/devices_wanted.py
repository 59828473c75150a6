"""DevicesWanted finds the devices and amounts that a pending pod lacks on nodes.

Axis letters: N nodes, R resources.
"""

import numpy as np

from plimsoll.devices.allocator import first_found
from plimsoll.devices.book import DeviceBook
from plimsoll.devices.device_blocks import open_devices, usable_devices
from plimsoll.devices.pod_devices import PodDevices, pod_devices
from plimsoll.devices.requests import MissingClassError
from plimsoll.devices.search_limits import STEPS_A_SECOND
from plimsoll.devices.selectors import is_selected
from plimsoll.devices.taken import Taken
from plimsoll.framework.descheduling.context import StrategyContext
from plimsoll.model.columns.columns import IntArray
from plimsoll.model.kinds.pod_info import PodInfo

#: Maximum number of nodes to examine for one pod: those that lack the fewest devices.
MOST_NODES = 64

#: The plugin's default arguments.
MOST_STEPS, TIMEOUT_S = 10 * STEPS_A_SECOND, 600.0


class DevicesWanted:
    """The devices and amounts that one pod wants.

    Args:
        pod: The pod.
        devices: Its claims.
        codes: The obstacles of its claims on each node now, shape (N,).
    """

    def __init__(self, pod: PodInfo, devices: PodDevices, codes: IntArray) -> None:
        self._pod = pod
        self._devices = devices
        self._codes = codes

    def rows(self, context: StrategyContext) -> list[int]:
        """Nodes with enough devices in total, those that lack the fewest free ones first."""
        book = context.objects.ledger(DeviceBook)
        found = []
        for name in context.nodes:
            row = context.cluster.rows[name]
            least = sum(each.least for each in self._devices.wanted(row))
            pools = book.slices.pools_of(context.cluster.nodes[row])
            if least and least <= usable_devices(pools):
                missing = max(least - open_devices(pools, book.taken), 0)
                if self._codes[row] or self.deficit(row, context).any():
                    found.append((missing, name, row))
        return [row for _, _, row in sorted(found)[:MOST_NODES]]

    def suffice(self, row: int, context: StrategyContext, taken: Taken) -> bool:
        """Whether a node has devices for all claims if ``taken`` are taken."""
        pools = context.objects.ledger(DeviceBook).slices.pools_of(context.cluster.nodes[row])
        return first_found(self._devices.wanted(row), pools, taken, is_selected) is not None

    def deficit(self, row: int, context: StrategyContext) -> IntArray:
        """Other missing amounts on a node, shape (R,); without extended resources that devices serve."""
        snapshot = context.snapshot
        wanted = snapshot.requests_row(self._pod.requests)
        lacking: IntArray = np.maximum(snapshot.requested[row] + wanted - snapshot.allocatable[row], 0)
        lacking[(wanted == 0) | (snapshot.allocatable[row] == 0)] = 0
        return lacking


def wanted_devices(pod: PodInfo, context: StrategyContext) -> DevicesWanted | None:
    """The devices that a pending pod wants; None if it wants none, or its claims are missing or allocated."""
    book = context.objects.known_ledger(DeviceBook)
    devices = (
        None if book is None or not book.is_served else pod_devices(pod, book, context.objects.pod_groups)
    )
    if devices is None or any(claim.is_allocated for claim in devices.claims):
        return None
    try:
        codes = devices.codes(context.snapshot, MOST_STEPS, TIMEOUT_S)
    except MissingClassError:
        return None
    return DevicesWanted(pod, devices, codes)
