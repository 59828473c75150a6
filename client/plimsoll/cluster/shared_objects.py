"""Stores parts that pods or nodes have in common once.

The pods of one owner differ in name, uid, node, versions and times. Their labels, annotations, owners and
specs are equal, and so are most statuses of their containers. Nodes have the same images. When a document is
read, equal parts become one object, which lives while some object has it.
:class:`plimsoll.model.kinds.pod_info.Templates` then finds a template by the identity of the parts.
docs/scale.md states how much memory a pod takes.
"""

from sys import intern

from msgspec.structs import replace

from plimsoll.cluster.equal_parts import EqualParts
from plimsoll.model.kinds.metadata import ObjectMeta, OwnerReference
from plimsoll.model.kinds.node import ContainerImage, Node, NodeCondition
from plimsoll.model.kinds.pod import ContainerStatus, Pod, PodCondition, PodSpec, PodStatus
from plimsoll.model.kinds.pod_info import deciding_volumes
from plimsoll.model.read_only_dict import ReadOnlyDict, sealed


class SharedPods:
    """Makes pods share their equal parts."""

    def __init__(self) -> None:
        self._maps: EqualParts[dict[str, str]] = EqualParts()
        self._owners: EqualParts[tuple[OwnerReference, ...]] = EqualParts()
        self._specs: EqualParts[PodSpec] = EqualParts()
        self._containers: EqualParts[tuple[ContainerStatus, ...]] = EqualParts()
        self._last, self._last_shape = Pod(), PodSpec()

    @property
    def kept(self) -> dict[str, int]:
        """The number of kept parts, by kind."""
        return {
            "maps": len(self._maps),
            "owners": len(self._owners),
            "specs": len(self._specs),
            "containers": len(self._containers),
        }

    def gone(self, pod: Pod) -> None:  # noqa: ARG002 - it has one part of each kind
        """Note that a pod was deleted."""
        return

    def let_go(self) -> None:
        """Drop large parts that no pod has any more, one of each kind at each call."""
        for parts in (self._maps, self._owners, self._specs, self._containers):
            parts.let_go()

    def sharing(self, pod: Pod, old: Pod | None = None) -> Pod:
        """The same pod with shared parts, without volumes that no decision reads.

        Args:
            pod: The decoded pod.
            old: An earlier state of it, with shared parts.
        """
        meta, spec = pod.metadata, pod.spec
        like = self._last if old is None else old  # in a list, siblings follow one another
        near, node, volumes = like.metadata, intern(spec.node_name), deciding_volumes(spec)
        shape = replace(spec, node_name="", volumes=volumes)
        like_shape = self._last_shape if old is None else replace(old.spec, node_name="")
        if shape == like_shape:
            spec, shape = like.spec, like_shape
        else:
            spec = shape = self._specs.shared(shape, shape.containers)
        shared = Pod(
            metadata=replace(
                meta,
                namespace=intern(meta.namespace),
                labels=near.labels if meta.labels == near.labels else self._maps.shared(meta.labels),
                annotations=(
                    near.annotations
                    if meta.annotations == near.annotations
                    else self._maps.shared(meta.annotations)
                ),
                owner_references=(
                    near.owner_references
                    if meta.owner_references == near.owner_references
                    else self._owners.shared(meta.owner_references)
                ),
            ),
            spec=spec if spec.node_name == node else replace(spec, node_name=node),
            status=self._status(pod.status, meta, like.status),
        )
        self._last, self._last_shape = shared, shape
        return shared

    def _status(self, status: PodStatus, meta: ObjectMeta, near: PodStatus) -> PodStatus:
        """Share the status; ``near`` has similar parts, and times are few, as conditions change together."""
        time = meta.creation_timestamp
        conditions = []
        for each in status.conditions:
            if each.last_transition_time != time:
                time = each.last_transition_time
            conditions.append(
                PodCondition(
                    type=intern(each.type),
                    status=intern(each.status),
                    reason=intern(each.reason),
                    message=each.message,
                    observed_generation=each.observed_generation,
                    last_transition_time=time,
                )
            )
        containers, init_containers = status.container_statuses, status.init_container_statuses
        if containers == near.container_statuses:
            containers = near.container_statuses
        elif containers:
            containers = self._containers.shared(containers)
        if status.resources is not None or status.allocated_resources:
            status = sealed(status)
        return replace(
            status,
            phase=intern(status.phase),
            qos_class=intern(status.qos_class),
            conditions=tuple(conditions),
            container_statuses=containers,
            init_container_statuses=self._containers.shared(init_containers) if init_containers else (),
        )


class SharedNodes:
    """Makes nodes share their equal parts."""

    def __init__(self) -> None:
        self._images: EqualParts[ContainerImage] = EqualParts()
        self._amounts: EqualParts[dict[str, str | int | float]] = EqualParts()

    def gone(self, node: Node) -> None:
        """Note that a node was deleted."""
        self._images.left(len(node.status.images))

    def let_go(self) -> None:
        """Drop large parts, and many small ones, that no node has any more; some at each call."""
        self._images.let_go()
        self._amounts.let_go()

    def sharing(self, node: Node, old: Node | None = None) -> Node:
        """The same node with shared parts.

        Args:
            node: The decoded node.
            old: An earlier state of it, with shared parts.
        """
        meta, status = node.metadata, node.status
        near, known = (old.metadata, old.status.images) if old is not None else (ObjectMeta(), ())
        if status.images == known:
            images = known
        else:
            images = tuple(map(self._images.shared, status.images))
            self._images.left(len(known))
        return replace(
            node,
            metadata=replace(
                meta,
                labels=near.labels if meta.labels == near.labels else _interned(meta.labels),
                annotations=(
                    near.annotations if meta.annotations == near.annotations else _interned(meta.annotations)
                ),
            ),
            status=replace(
                status,
                allocatable=self._amounts.shared(status.allocatable),
                capacity=self._amounts.shared(status.capacity),
                conditions=tuple([_condition(each) for each in status.conditions]),
                images=images,
            ),
        )


def _interned(labels: dict[str, str]) -> ReadOnlyDict[str, str]:
    return ReadOnlyDict({intern(key): intern(value) for key, value in labels.items()})


def _condition(condition: NodeCondition) -> NodeCondition:
    return replace(
        condition,
        type=intern(condition.type),
        status=intern(condition.status),
        reason=intern(condition.reason),
        message=intern(condition.message),
    )
