"""Defines the status of a plugin, and folds the statuses of all nodes into one message.

An expected outcome is a value: "this node does not fit" is a :class:`Status`, never an exception.
Source: kube-scheduler v1.36, ``framework/interface.go`` and ``framework/types.go`` (FitError).
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from enum import StrEnum

from msgspec import Struct, field
from msgspec.structs import replace


class Code(StrEnum):
    """Determines what the framework does next with the pod; the words are kube-scheduler's."""

    SUCCESS = "Success"
    ERROR = "Error"  #: internal or transient; the cycle ends, the pod is retried after error back-off
    UNSCHEDULABLE = "Unschedulable"  #: rejected; removing pods from this node might help
    UNRESOLVABLE = "UnschedulableAndUnresolvable"  #: rejected; preemption on this node cannot help
    WAIT = "Wait"  #: Permit only
    SKIP = "Skip"  #: this plugin has nothing to do for this pod
    PENDING = "Pending"  #: rejected until an external component acts; its event skips the back-off


REJECTED = frozenset({Code.UNSCHEDULABLE, Code.UNRESOLVABLE, Code.PENDING})


class Status(Struct, frozen=True):
    """One result of one plugin for one pod, and one node or all of them.

    Attributes:
        code: What the framework does next.
        reasons: In kube-scheduler's words: users search for the sentence.
        plugin: The author.
        no_node_helps: Whether PreFilter rejects the pod whatever nodes there are: autoscalers need not act.
    """

    code: Code = Code.SUCCESS
    reasons: tuple[str, ...] = ()
    plugin: str = ""
    no_node_helps: bool = False

    @property
    def is_success(self) -> bool:
        """Whether the plugin accepted the pod."""
        return self.code is Code.SUCCESS

    @property
    def is_skip(self) -> bool:
        """Whether the plugin has nothing to do for this pod."""
        return self.code is Code.SKIP

    @property
    def is_rejected(self) -> bool:
        """Whether the pod is unschedulable for now, as opposed to an error."""
        return self.code in REJECTED

    @property
    def message(self) -> str:
        """The reasons as one text."""
        return ", ".join(self.reasons)

    def by(self, plugin: str) -> "Status":
        """The same status with ``plugin`` as its author, unless it is a success or has an author."""
        if self.plugin or self.code in {Code.SUCCESS, Code.SKIP}:
            return self
        return replace(self, plugin=plugin)


SUCCESS = Status()
SKIP = Status(Code.SKIP)


def unschedulable(*reasons: str) -> Status:
    """Reject; removing pods might help."""
    return Status(Code.UNSCHEDULABLE, reasons)


def unresolvable(*reasons: str, no_node_helps: bool = False) -> Status:
    """Reject; removing pods cannot help, nor, in PreFilter, another node if ``no_node_helps``."""
    return Status(Code.UNRESOLVABLE, reasons, no_node_helps=no_node_helps)


def error(*reasons: str) -> Status:
    """End the cycle because of an error, not for lack of room."""
    return Status(Code.ERROR, reasons)


class Diagnosis(Struct, frozen=True):
    """Why no node was feasible, in counts; the value behind kube-scheduler's FitError.

    Attributes:
        node_count: Nodes in the snapshot.
        reasons: Reason to number of nodes that gave it; a node may give several.
        plugins: Plugins that rejected the pod; they decide which events requeue it.
        pre_filter_message: Set when PreFilter rejected the pod for all nodes; replaces the counts.
        post_filter_message: PostFilter's addition, normally preemption's part.
        no_node_helps: Whether PreFilter rejected the pod whatever nodes there are, or named nodes that do
            not exist.
    """

    node_count: int
    reasons: Mapping[str, int] = field(default_factory=dict)
    plugins: frozenset[str] = frozenset()
    pre_filter_message: str = ""
    post_filter_message: str = ""
    no_node_helps: bool = False

    def __str__(self) -> str:
        """Compose the message of the ``PodScheduled=False`` condition, word for word as upstream.

        Counts are sorted as texts: ``10 x`` comes before ``2 y``.
        """
        text = f"0/{self.node_count} nodes are available:"
        if self.pre_filter_message:
            text += f" {self.pre_filter_message}."
        elif self.reasons:
            text += (
                " " + ", ".join(sorted(f"{count} {reason}" for reason, count in self.reasons.items())) + "."
            )
        if self.post_filter_message:
            text += f" {self.post_filter_message}"
        return text


def count_reasons(statuses: Iterable[tuple[Status, int]]) -> dict[str, int]:
    """Add up reasons over ``(status, number of nodes with it)``."""
    counted: Counter[str] = Counter()
    for status, nodes in statuses:
        for reason in status.reasons:
            counted[reason] += nodes
    return dict(counted)
