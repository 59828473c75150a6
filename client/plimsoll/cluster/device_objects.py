"""Applies watched objects of resource.k8s.io to the book of devices."""

from plimsoll.devices.book import DeviceBook
from plimsoll.framework import ClusterObjects
from plimsoll.model.kinds.resource_claim import ResourceClaim
from plimsoll.model.kinds.resource_slice import DeviceClass, ResourceSlice

#: Kinds in the book.
DEVICE_KINDS = (ResourceClaim, ResourceSlice, DeviceClass)

DeviceObject = ResourceClaim | ResourceSlice | DeviceClass


def apply_device_object(objects: ClusterObjects, old: DeviceObject | None, new: DeviceObject | None) -> None:
    """Apply the change of an object from ``old`` to ``new``; one of them may be None.

    NodeResourcesFit reads classes too, for extended resources that they serve.
    """
    book = objects.ledger(DeviceBook)
    match new if new is not None else old:
        case ResourceClaim() as claim if new is not None:
            book.set_claim(claim)
        case ResourceClaim() as claim:
            book.remove_claim(claim.key)
        case ResourceSlice() as each if new is not None:
            book.set_slice(each)
        case ResourceSlice() as each:
            book.remove_slice(each.name)
        case DeviceClass() as each:
            if new is not None:
                book.set_class(each)
            else:
                book.remove_class(each.name)
            objects.changed()
