"""DeviceUse reports the percentage of a node's devices of a class that are in use."""

from plimsoll.devices.book import DeviceBook
from plimsoll.devices.pools import DeviceID, PooledDevice
from plimsoll.devices.requests import Expression
from plimsoll.devices.search_limits import STEPS_A_SECOND, AllocationError, StepLimit
from plimsoll.devices.selectors import is_selected
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.resource_slice import DeviceClass


class DeviceUse:
    """The use of one class of devices, by node; slices and classes must not change.

    Devices that several nodes reach are left out, because they belong to no single node.

    Args:
        book: The allocated devices, also later ones.
        device_class: The name of the class; a class that does not exist has no devices.
    """

    def __init__(self, book: DeviceBook, device_class: str) -> None:
        self._book = book
        self._class = book.classes.get(device_class)
        self._known: dict[str, tuple[DeviceID, ...]] = {}

    def percent(self, node: Node) -> float:
        """Percent of the node's devices in use; 0 without any devices."""
        known = self._known.get(node.name)
        if known is None:
            known = self._known[node.name] = self._found(node)
        used = sum(self._book.taken.is_consumed(each) for each in known)
        return 100.0 * used / len(known) if known else 0.0

    def _found(self, node: Node) -> tuple[DeviceID, ...]:
        if self._class is None:
            return ()
        return tuple(
            each.id
            for pool in self._book.slices.pools_of(node)
            for each in pool.devices
            if node.name in (each.slice.spec.node_name, each.device.node_name) and _is_of(each, self._class)
        )


def _is_of(device: PooledDevice, served: DeviceClass) -> bool:
    steps = StepLimit(STEPS_A_SECOND)
    try:
        return all(
            is_selected(
                Expression("" if each.cel is None else each.cel.expression, served.name), device, steps
            )
            for each in served.spec.selectors
        )
    except AllocationError:
        return False
