"""NodeName: place a pod with ``spec.nodeName`` on that node only.

Formula: a node is refused when ``spec.nodeName`` is set and is not the node's name.
Units: none.
Edges: a pod with ``spec.nodeName`` is normally assigned already and never scheduled; simulations filter it.
Source: kube-scheduler v1.36, ``nodename/node_name.go``.
Differs: not at all.
"""

from collections.abc import Hashable
from typing import ClassVar

import numpy as np

from plimsoll import framework as fwk

OTHER_NODE = "node(s) didn't match the requested node name"


class NodeName(fwk.FilterPlugin, fwk.EnqueueExtensions):
    """Refuse every node except the one that the pod names."""

    name: ClassVar = "NodeName"
    declares: ClassVar = fwk.Declares(reads=fwk.Reads.NODE, only_constraints=True)

    def filter(self, state: fwk.CycleState, pod: fwk.PodInfo, snapshot: fwk.Snapshot) -> fwk.IntArray:
        """1 where the pod names another node, shape (N,)."""
        wanted = pod.pod.spec.node_name
        if not wanted:
            return fwk.all_feasible(snapshot)
        row = snapshot.row_of(wanted)
        codes: fwk.IntArray = (snapshot.rows != (-1 if row is None else row)).astype(np.int64)
        return codes

    def signature(self, template: fwk.PodTemplate) -> Hashable:
        """Empty: the named node is not part of the template, and results about it are not shared."""
        return ()

    def refusal(self, code: int, state: fwk.CycleState, pod: fwk.PodInfo) -> fwk.Status:
        """The only refusal of this plugin."""
        return fwk.unresolvable(OTHER_NODE)

    def events_to_register(self) -> tuple[fwk.EventWithHint, ...]:
        """New nodes."""
        return (fwk.EventWithHint(fwk.EventResource.NODE, fwk.ActionType.ADD),)
