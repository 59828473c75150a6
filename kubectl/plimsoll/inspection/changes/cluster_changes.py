"""Describes changes of a cluster as plain values, parsed from flags."""

from typing import TypeAlias

from msgspec import Struct

from plimsoll.inspection.manifests.documents import Manifests
from plimsoll.inspection.manifests.pod_defaults import ManifestError
from plimsoll.model.kinds.node import Taint
from plimsoll.model.taints import HARD_EFFECTS, PREFER_NO_SCHEDULE

#: Kinds of workloads that --scale accepts.
SCALED_KINDS = {
    "deployment": "Deployment",
    "deployments": "Deployment",
    "deploy": "Deployment",
    "replicaset": "ReplicaSet",
    "replicasets": "ReplicaSet",
    "rs": "ReplicaSet",
    "statefulset": "StatefulSet",
    "statefulsets": "StatefulSet",
    "sts": "StatefulSet",
}

#: Maximum number of nodes that one --add-nodes adds.
MOST_NODES = 5_000


class AddNode(Struct, frozen=True):
    """Adds a copy of a node; "" copies the most common kind of node."""

    name: str
    like: str = ""


class AddNodes(Struct, frozen=True):
    """Adds copies of a node under new names; "" copies the most common kind of node."""

    count: int
    like: str = ""


class RemoveNodes(Struct, frozen=True):
    """Removes nodes with all their pods."""

    names: tuple[str, ...]


class Drain(Struct, frozen=True):
    """Cordons nodes and evicts their pods as ``kubectl drain`` does."""

    names: tuple[str, ...]


class Cordon(Struct, frozen=True):
    """Cordons or uncordons nodes."""

    names: tuple[str, ...]
    unschedulable: bool = True


class LabelNode(Struct, frozen=True):
    """Sets a label of a node; None removes it."""

    node: str
    key: str
    value: str | None


class TaintNode(Struct, frozen=True):
    """Adds a taint to a node; ``removed`` removes taints with its key and effect."""

    node: str
    taint: Taint
    removed: bool = False


class ScaleWorkload(Struct, frozen=True):
    """Changes the number of pods of a workload that has some."""

    kind: str
    namespace: str
    name: str
    replicas: int

    @property
    def subject(self) -> str:
        """``Kind namespace/name``."""
        return f"{self.kind} {self.namespace}/{self.name}"


class ApplyManifests(Struct, frozen=True):
    """Applies nodes, workloads and other objects of files."""

    manifests: Manifests


ClusterChange: TypeAlias = (
    AddNode | AddNodes | RemoveNodes | Drain | Cordon | LabelNode | TaintNode | ScaleWorkload | ApplyManifests
)


def node_to_add(text: str) -> AddNode:
    """Read ``NAME`` or ``NAME=LIKE_NODE``."""
    name, equals, like = text.partition("=")
    if not name or (equals and not like):
        raise ManifestError(f"--add-node {text}: write NAME, or NAME=NODE to copy that node")
    if name.isdecimal():
        copied = f"{name}={like}" if like else name
        raise ManifestError(
            f"--add-node {text}: a node needs a name, and {name} is a number; for {name} nodes write"
            f" --add-nodes {copied}"
        )
    return AddNode(name, like)


def nodes_to_add(text: str) -> AddNodes:
    """Read ``COUNT`` or ``COUNT=LIKE_NODE``."""
    amount, equals, like = text.partition("=")
    if not amount.isdecimal() or not 1 <= int(amount) <= MOST_NODES or (equals and not like):
        raise ManifestError(
            f"--add-nodes {text}: write how many, 1 to {MOST_NODES}, or COUNT=NODE to copy that node"
        )
    return AddNodes(int(amount), like)


def node_names(text: str, flag: str) -> tuple[str, ...]:
    """Read ``NAME[,NAME…]``; each may begin with ``node/``."""
    names = tuple(each.strip().removeprefix("node/") for each in text.split(","))
    if not all(names):
        raise ManifestError(f"{flag} {text}: write one name of a node, or several with commas between them")
    return names


def label_change(node: str, text: str) -> LabelNode:
    """Read ``[node/]NAME`` and ``key=value``, or ``key-``."""
    name = node.removeprefix("node/")
    if text.endswith("-") and "=" not in text and len(text) > 1:
        return LabelNode(name, text[:-1], None)
    key, equals, value = text.partition("=")
    if not name or not key or not equals:
        raise ManifestError(
            f"--label {node} {text}: write node/NAME KEY=VALUE, or node/NAME KEY- to remove it"
        )
    return LabelNode(name, key, value)


def taint_change(node: str, text: str) -> TaintNode:
    """Read ``[node/]NAME`` and ``key[=value]:Effect``; a final ``-`` removes the taint."""
    name, removed = node.removeprefix("node/"), text.endswith("-")
    pair, _, effect = text.removesuffix("-").rpartition(":")
    key, _, value = pair.partition("=")
    effects = (*sorted(HARD_EFFECTS), PREFER_NO_SCHEDULE)
    if not name or not key or effect not in effects:
        raise ManifestError(
            f"--taint {node} {text}: write node/NAME KEY=VALUE:EFFECT, where EFFECT is one of"
            f" {', '.join(effects)}; a - behind it removes the taint"
        )
    return TaintNode(name, Taint(key=key, value=value, effect=effect), removed)


def scale_change(text: str, namespace: str) -> ScaleWorkload:
    """Read ``[NAMESPACE/]KIND/NAME=N``."""
    target, _, amount = text.rpartition("=")
    parts = target.split("/")
    kind = SCALED_KINDS.get(parts[-2].lower()) if len(parts) in (2, 3) else None
    if kind is None or not all(parts) or not amount.isdecimal():
        raise ManifestError(
            f"--scale {text}: write NAMESPACE/KIND/NAME=N, where KIND is one of"
            f" {', '.join(sorted(set(SCALED_KINDS.values())))} and N is 0 or more"
        )
    return ScaleWorkload(kind, parts[0] if len(parts) == 3 else namespace, parts[-1], int(amount))
