"""Says what admission will make of a replacement: webhooks, LimitRanges, VerticalPodAutoscalers.

The pod template of a workload does not show what a replacement will request: a webhook may raise it. What the
owner's newest pods request does, and so do the defaults of LimitRanges
(:mod:`plimsoll.model.autoscalers.limit_ranges`) and the recommendation of a VerticalPodAutoscaler
(:mod:`plimsoll.model.autoscalers.recommended_requests`). None needs a right to create pods.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Self

import msgspec
from msgspec import Struct

from plimsoll.model.amounts import amount_text
from plimsoll.model.autoscalers.limit_ranges import ANNOTATION, ranges_of, refusal, with_defaults
from plimsoll.model.autoscalers.recommended_requests import recommended
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.columns.columns import PodIndex
from plimsoll.model.kinds.pod_info import PodInfo, PodTemplate

Amounts = tuple[tuple[str, int], ...]


class _Shape(Struct, frozen=True):
    """The pods of an owner with equal requests.

    Attributes:
        template: Of the newest one.
        newest: When it was created.
    """

    amounts: Amounts
    template: PodTemplate
    newest: datetime
    count: int


class AdmittedShapes(PodIndex):
    """The requests of each owner's placed pods, with those of the newest: a pod index.

    See ``Cluster.index``. A time is kept while any pod with these requests is placed: what was admitted then
    may be admitted again.
    """

    def __init__(self, _cluster: object = None) -> None:
        self.shapes: dict[tuple[str, str], tuple[_Shape, ...]] = {}

    def larger(self, pod: PodInfo) -> PodTemplate | None:
        """The template of the owner's newest pod, if that requests more of anything than this pod."""
        shapes = self.shapes.get(_owner(pod), ())
        if not shapes or (len(shapes) == 1 and shapes[0].amounts == _amounts(pod.template)):
            return None
        newest = max(shapes, key=lambda each: (each.newest, each.amounts))  # of one age, the larger
        own = pod.template.requests
        is_larger = any(amount > own.get(name, 0) for name, amount in newest.amounts)
        return newest.template if is_larger else None

    def add(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - for indexes that know rows
        """Count a placed pod; stand-ins show nothing."""
        created = pod.pod.metadata.creation_timestamp
        key = _owner(pod)
        if created is None or not key[1] or pod.stands_in_for is not None:
            return
        self._count(key, _Shape(_amounts(pod.template), pod.template, created, 1))

    def add_all(self, placed: Iterable[tuple[PodInfo, int]]) -> None:
        """Count placed pods: those of an owner with one template together."""
        found: dict[tuple[str, str, PodTemplate], tuple[datetime, int, int]] = {}
        for place, (pod, _) in enumerate(placed):
            metadata = pod.pod.metadata
            created, owner = metadata.creation_timestamp, metadata.owner
            if created is None or owner is None or not owner.uid or pod.stands_in_for is not None:
                continue
            key = metadata.namespace, owner.uid, pod.template
            newest, last, count = found.get(key, (created, place, 0))
            if created >= newest:
                newest, last = created, place
            found[key] = newest, last, count + 1
        # In the order of their newest pods: of two of one age the later one counts, as one by one.
        for (namespace, uid, template), (newest, _, count) in sorted(
            found.items(), key=lambda each: each[1][1]
        ):
            self._count((namespace, uid), _Shape(_amounts(template), template, newest, count))

    def _count(self, owner: tuple[str, str], come: _Shape) -> None:
        """Count pods of an owner that have equal requests."""
        found = self.shapes.get(owner, ())
        known = next((each for each in found if each.amounts == come.amounts), None)
        if known is not None:
            newer = come if come.newest >= known.newest else known
            come = _Shape(come.amounts, newer.template, newer.newest, known.count + come.count)
        self.shapes[owner] = (*(each for each in found if each is not known), come)

    def remove(self, pod: PodInfo, row: int) -> None:  # noqa: ARG002 - likewise
        """Remove a pod."""
        if pod.pod.metadata.creation_timestamp is None or pod.stands_in_for is not None:
            return
        key, amounts = _owner(pod), _amounts(pod.template)
        left = []
        for each in self.shapes.get(key, ()):
            if each.amounts != amounts:
                left.append(each)
            elif each.count > 1:
                left.append(_Shape(amounts, each.template, each.newest, each.count - 1))
        if left:
            self.shapes[key] = tuple(left)
        else:
            self.shapes.pop(key, None)

    def fork(self) -> Self:
        """An independent copy."""
        twin = type(self)()
        twin.shapes = dict(self.shapes)
        return twin


def as_admitted(pod: PodInfo, cluster: Cluster) -> PodInfo:
    """The pod with the containers that its replacement will have.

    They are those of the owner's newest pod, if that requests more of anything, with the defaults that
    LimitRanges set now and the requests that a VerticalPodAutoscaler recommends now. The recommendation comes
    last because admission applies it to each new pod, whatever earlier ones were created with.
    """
    larger = cluster.index(AdmittedShapes).larger(pod)
    spec = pod.pod.spec
    if larger is not None:
        shown = larger.sample.spec
        spec = msgspec.structs.replace(
            spec,
            containers=shown.containers,
            init_containers=shown.init_containers,
            resources=shown.resources,
            overhead=shown.overhead,
        )
    ranges = ranges_of(pod.namespace, cluster.objects)
    if larger is None and (ranges or ANNOTATION in pod.pod.metadata.annotations):
        spec = with_defaults(pod.pod, ranges).spec
    containers = recommended(pod.pod, spec.containers, cluster.objects)
    if containers is not spec.containers:
        spec = msgspec.structs.replace(spec, containers=containers)
    if spec is pod.pod.spec:
        return pod
    return cluster.templates.info(msgspec.structs.replace(pod.pod, spec=spec), pod.stands_in_for)


def inadmissible(pod: PodInfo, cluster: Cluster) -> str:
    """Why the API server would refuse the pod's replacement, as a clause; "" if it would not."""
    if not ranges_of(pod.namespace, cluster.objects):
        return ""
    return refusal(as_admitted(pod, cluster).pod, cluster.objects)


def difference(pod: PodInfo, cluster: Cluster) -> str:
    """What the replacement requests otherwise than the pod, such as "cpu 2 (now 500m)"; "" for nothing."""
    new, old = as_admitted(pod, cluster).template.requests, pod.template.requests
    changed = sorted(name for name in {**new, **old} if new.get(name, 0) != old.get(name, 0))
    return ", ".join(
        f"{name} {amount_text(name, new.get(name, 0))} (now {amount_text(name, old.get(name, 0))})"
        for name in changed
    )


def _owner(pod: PodInfo) -> tuple[str, str]:
    owner = pod.pod.metadata.owner
    return pod.namespace, "" if owner is None else owner.uid


def _amounts(template: PodTemplate) -> Amounts:
    return template.memo("admitted amounts", lambda: tuple(sorted(template.requests.items())))
