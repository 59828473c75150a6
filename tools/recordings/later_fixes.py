"""Lists fixes of upstream that are later than the recordings, and the recorded cases that therefore differ.

:mod:`recordings.replay` accepts a difference of a named case in the named plugin, and no other; a named case
that does not differ is reported. :mod:`pages.later_fixes` writes the table of docs/later-fixes.md.
"""

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LaterFix:
    """One fix.

    Attributes:
        version: The first release of Kubernetes with it.
        origin: Issues and pull requests of kubernetes/kubernetes.
        about: What is decided differently, for users.
        plugin: The plugin that decides differently.
        field_cases: Files below tests/cases that show it, without their endings.
        recordings: Recorded cases that differ: folder and id, as each folder has ids of its own.
    """

    version: str
    origin: tuple[int, ...]
    about: str
    plugin: str
    field_cases: tuple[str, ...]
    recordings: tuple[str, ...] = ()


LATER_FIXES: Sequence[LaterFix] = (
    LaterFix(
        "1.36, after 1.36.2",
        (141526, 141563),
        "A namespace selector of a pod's own (anti-)affinity terms that a namespace without labels "
        "satisfies, such as `NotIn` or `DoesNotExist`, no longer selects every namespace.",
        "InterPodAffinity",
        ("anti-affinity/namespaces-are-selected-by-their-labels",),
        ("scheduler/edge-dev-0016",),
    ),
    LaterFix(
        "1.36, after 1.36.2",
        (140434, 140435),
        "Shared counters are counted by driver and pool; before, by the pool's name, so that devices of "
        "two drivers with pools of one name were refused together, or given beyond their counters.",
        "DynamicResources",
        ("devices/counters-of-two-drivers",),
    ),
    LaterFix(
        "1.37",
        (139161,),
        "A pod with several required anti-affinity terms is tried again when a pod that one of them "
        "matched, or one of whose terms matched it, goes or is relabelled; before, all of the terms "
        "had to match.",
        "InterPodAffinity",
        ("queueing/one-of-several-anti-affinity-terms",),
    ),
    LaterFix(
        "1.37",
        (138952, 138951),
        "Image volumes count in the limit of ImageLocality as they do in the sum, so that a volume "
        "scores no higher than a container with the same image.",
        "ImageLocality",
        ("image-locality/image-volumes",),
        tuple(f"scheduler/image-locality-dev-00{number:02}" for number in (9, 15, 21, 33, 39, 45, 51, 57)),
    ),
    LaterFix(
        "1.38",
        (141339, 141340),
        "A topology spread constraint with `labelSelector: {}` counts every pod of the namespace; "
        "before, none.",
        "PodTopologySpread",
        ("topology-spread/empty-selector",),
        ("scheduler/edge-dev-0036",),
    ),
    LaterFix(
        "1.38",
        (141339, 141785),
        "Preemption spares pods whose PodDisruptionBudget has `selector: {}`, and pods without labels"
        " that a budget covers; before, it disregarded such budgets.",
        "DefaultPreemption",
        ("disruption-budgets/empty-selector", "disruption-budgets/empty-selector-and-reclaim"),
        tuple(f"scheduler/preemption-dev-00{number:02}" for number in (9, 25, 44)),
    ),
    LaterFix(
        "1.38",
        (140650, 142202),
        "A claim may request a capacity with or without the domain of the driver, however the driver "
        "publishes it, and shares stay taken when the driver changes the spelling; where both are "
        "published, the full name counts, in expressions too.",
        "DynamicResources",
        ("devices/capacity-by-either-name",),
    ),
    LaterFix(
        "1.38",
        (141829, 141898),
        "A request for all devices is refused on a node whose pool is being updated or invalid; before, it "
        "ended the attempt for all nodes with an error. The reasons do not name the pool here, so that "
        "they add up.",
        "DynamicResources",
        ("devices/all-of-an-incomplete-pool",),
        (
            *(f"dra/all-mode-dev-00{number:02}" for number in (15, 19)),
            *(f"dra/mixed-dev-00{number:02}" for number in (18, 19)),
            *(f"dra/pools-dev-00{number:02}" for number in (1, 2, 4, 8, 12, 14, 18, 19)),
        ),
    ),
    LaterFix(
        "1.37 or 1.38",
        (140797, 140798),
        "A device of which some claim has a share is not given to another claim whole, after its slice has "
        "changed so that it is not shared any more.",
        "DynamicResources",
        ("devices/not-shared-any-more",),
    ),
    LaterFix(
        "not yet released",
        (141354, 142103),
        "A pod that matches its own required affinity terms is tried again when the last pod goes, or"
        " is relabelled, that it had to be near.",
        "InterPodAffinity",
        ("queueing/first-of-its-group",),
    ),
    LaterFix(
        "not yet released",
        (141953, 141954),
        "A pod whose terms have a `namespaceSelector` is tried again when a pod comes or goes that they"
        " match, and when the labels of a namespace change; before, after five minutes.",
        "InterPodAffinity",
        ("queueing/namespace-is-relabelled",),
    ),
)

BY_RECORDING = {case: fix for fix in LATER_FIXES for case in fix.recordings}
"""The fix of each recorded case that differs."""
