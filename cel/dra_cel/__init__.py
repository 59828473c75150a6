"""Evaluates selectors of devices: CEL expressions in DeviceClasses and ResourceClaims of Kubernetes.

``selector(expression)`` compiles an expression; ``Selector.matches(device)`` decides about a ``DeviceView``.
A ``SelectorError`` is what kube-scheduler would report. An evaluation may cost ``COST_LIMIT`` units.

Source: Kubernetes v1.36, ``dynamic-resource-allocation/cel``.
"""

from dra_cel.device_view import AttributeValue, DeviceView, Version
from dra_cel.reads import KnownReads, ReadNames
from dra_cel.selectors import Selector, SelectorError, is_compiled, selector
from dra_cel.values import COST_LIMIT

__all__ = [
    "COST_LIMIT",
    "AttributeValue",
    "DeviceView",
    "KnownReads",
    "ReadNames",
    "Selector",
    "SelectorError",
    "Version",
    "is_compiled",
    "selector",
]
