"""Decides by queueing hints of the rejecting plugins whether an event requeues a pod.

Source: kube-scheduler v1.36, ``backend/queue/scheduling_queue.go`` (isPodWorthRequeuing,
getUnschedulablePodsWithCrossTopologyTerm).
"""

from collections.abc import Callable, Collection, Hashable, Iterable, Iterator, Mapping, Sequence
from enum import IntEnum
from typing import TypeAlias

from plimsoll.framework import (
    ActionType,
    ClusterEvent,
    EnqueueExtensions,
    EventResource,
    EventWithHint,
    Hint,
    HintByValue,
    Plugin,
    PodInfo,
    QueueingHint,
)
from plimsoll.framework.capabilities import declares_of
from plimsoll.framework.registry import implements
from plimsoll.model.kinds.pod_terms import TermKind
from plimsoll.scheduling.queue.queued_pod import QueuedPod
from plimsoll.scheduling.queue.unschedulable_pods import Rejection, UnschedulablePods

#: Extension points at which a plugin can reject a pod.
REJECTING = ("preEnqueue", "preFilter", "filter", "reserve", "permit")

#: The events of a plugin that registers nothing.
EVERYTHING = (EventWithHint(EventResource.ANY, ActionType.ALL, by_template=True),)

Ask: TypeAlias = Callable[[str, Hint, PodInfo, ClusterEvent], QueueingHint]
"""Asks a plugin's hint; never raises."""


class QueueingStrategy(IntEnum):
    """What an event means for a pod: no attempt, one after its back-off, or one immediately (upstream)."""

    SKIP = 0
    AFTER_BACKOFF = 1
    IMMEDIATELY = 2


def ask_directly(_plugin: str, hint: Hint, pod: PodInfo, change: ClusterEvent) -> QueueingHint:
    """Call a hint; if it raises, the event may help."""
    try:
        return hint(pod, change)
    except BaseException:  # noqa: BLE001 - to wait on is the worse mistake
        return QueueingHint.QUEUE


class QueueingHints:
    """The registrations of one profile's plugins.

    Args:
        declared: Registrations by plugin name.
        has_undeclared: Whether a plugin or extender without registrations rejects pods too.
        looking: Plugins that read affinity terms, and whether they read the pod's own namespace too.
    """

    def __init__(
        self,
        declared: Mapping[str, Sequence[EventWithHint]],
        *,
        has_undeclared: bool = False,
        looking: Mapping[str, bool] | None = None,
    ) -> None:
        self._looking = frozenset(looking or ())
        self._looking_at_namespace = frozenset(name for name, own in (looking or {}).items() if own)
        self._declared = {plugin: tuple(each) for plugin, each in declared.items()}
        self._has_undeclared = has_undeclared
        self._covering: dict[tuple[str, str, ActionType], tuple[EventWithHint, ...]] = {}

    def covering(self, plugin: str, change: ClusterEvent) -> tuple[EventWithHint, ...]:
        """The registrations of a plugin that match an event."""
        key = (plugin, change.resource, change.action)
        found = self._covering.get(key)
        if found is None:
            arrives = change.resource == EventResource.UNSCHEDULABLE_POD and change.action == ActionType.ADD
            everything = () if arrives else EVERYTHING  # otherwise each new pod would wake all the others
            found = self._covering[key] = tuple(
                each
                for each in self._declared.get(plugin, everything)
                if each.covers(change.resource, change.action)
            )
        return found

    def concerned(self, why: Rejection, change: ClusterEvent) -> frozenset[str]:
        """The plugins that rejected a pod and may be helped by an event.

        A pod that arrives on a node, or changes there, must match a term of the rejected pod.
        """
        looking = why.plugins & self._looking
        if looking and not _is_preselected(why, change, own=bool(looking & self._looking_at_namespace)):
            return why.plugins - looking
        return why.plugins

    def mean(self, change: ClusterEvent) -> bool:
        """Whether an event matches any registration."""
        return self._has_undeclared or any(self.covering(plugin, change) for plugin in self._declared)


#: For an unknown profile: every event may help.
UNKNOWN = QueueingHints({}, has_undeclared=True)


def hints_of(plugins: Iterable[Plugin], *, has_undeclared: bool = False) -> QueueingHints:
    """Collect the registrations of plugins.

    Raises:
        TypeError: A plugin registers something that is no EventWithHint; its own exceptions pass through.
    """
    declared: dict[str, Sequence[EventWithHint]] = {}
    looking: dict[str, bool] = {}
    undeclared = has_undeclared
    for plugin in plugins:
        if (own_namespace := declares_of(plugin).own_namespace) is not None:
            looking[plugin.name] = own_namespace
        if isinstance(plugin, EnqueueExtensions):
            events: Sequence[object] = plugin.events_to_register()
            declared[plugin.name] = tuple(each for each in events if isinstance(each, EventWithHint))
            if len(declared[plugin.name]) < len(events):
                raise TypeError(f"it registers {events!r}; expected EventWithHint and nothing else")
        else:
            undeclared |= can_reject(plugin)
    return QueueingHints(declared, has_undeclared=undeclared, looking=looking)


def can_reject(plugin: Plugin) -> bool:
    """Whether a plugin has an extension point at which it can reject a pod."""
    return any(implements(plugin, point) for point in REJECTING)


class HintJudge:
    """Decides which pods an event requeues."""

    def __init__(self, ask: Ask) -> None:
        self.ask = ask
        self._hints: Mapping[str, QueueingHints] = {}

    def use(self, hints: Mapping[str, QueueingHints]) -> None:
        """Use these hints from now on, keyed by scheduler name."""
        self._hints = hints

    def means(self, change: ClusterEvent) -> bool:
        """Whether an event may help any pod."""
        return not self._hints or any(hints.mean(change) for hints in self._hints.values())

    def concerned(self, waiting: UnschedulablePods, change: ClusterEvent) -> list[Rejection]:
        """The groups with a plugin that registered for the event, but for those that its hints leave out."""
        found: dict[Rejection, None] = {}
        for (scheduler, plugin), rejected in waiting.by_plugin.items():
            some: set[Rejection] = set()
            for each in self._hints.get(scheduler, UNKNOWN).covering(plugin, change):
                if not isinstance(each.hint, HintByValue):
                    found.update(dict.fromkeys(rejected.numbers))
                    break
                by_value = rejected.by_value(each.hint.reads)
                some.update(by_value.unread)
                for value in self._helped(plugin, each.hint, by_value.groups, waiting, change):
                    some.update(by_value.groups[value])
            else:
                found.update(dict.fromkeys(sorted(some, key=rejected.numbers.__getitem__)))
        return list(found)

    def _helped(
        self,
        plugin: str,
        hint: HintByValue,
        groups: Mapping[Hashable, Mapping[Rejection, None]],
        waiting: UnschedulablePods,
        change: ClusterEvent,
    ) -> Collection[Hashable]:
        """The values of which a hint says that the event helps; all if it breaks."""
        if not groups:
            return ()
        helped: Collection[Hashable] = groups.keys()

        def all_together(_pod: PodInfo, change: ClusterEvent) -> QueueingHint:
            nonlocal helped
            helped = [each for each in hint.helps(groups.keys(), change) if each in groups]
            return QueueingHint.of(bool(helped))

        why = next(iter(next(iter(groups.values()))))
        self.ask(plugin, all_together, next(iter(waiting.group(why).values())).pod, change)
        return helped

    def of_group(
        self, why: Rejection, group: Mapping[str, QueuedPod], change: ClusterEvent
    ) -> Iterator[tuple[QueuedPod, QueueingStrategy]]:
        """The pods of a group that the event requeues; hints by template are called once."""
        plugins = self._hints.get(why.scheduler, UNKNOWN).concerned(why, change)
        together: list[tuple[str, EventWithHint]] = []
        alone: list[tuple[str, EventWithHint]] = []
        for plugin, each in self._questions(why, plugins, change):
            for_all = each.by_template or each.hint is None or isinstance(each.hint, HintByValue)
            (together if for_all else alone).append((plugin, each))
        sample = next(iter(group.values()))
        strategy = self._answer(together, why, sample.pod, change)
        if strategy is QueueingStrategy.SKIP and not alone:
            return
        for queued in tuple(group.values()):
            own = strategy
            if alone and strategy is not QueueingStrategy.IMMEDIATELY:
                own = max(strategy, self._answer(alone, why, queued.pod, change, strategy))
            if own is not QueueingStrategy.SKIP:
                yield queued, own

    def of_pod(self, why: Rejection, pod: PodInfo, change: ClusterEvent) -> QueueingStrategy:
        """What the event means for one pod."""
        return self._answer(self._questions(why, why.plugins, change), why, pod, change)

    def _questions(
        self, why: Rejection, plugins: frozenset[str], change: ClusterEvent
    ) -> list[tuple[str, EventWithHint]]:
        hints = self._hints.get(why.scheduler, UNKNOWN)
        return [(plugin, each) for plugin in plugins for each in hints.covering(plugin, change)]

    def _answer(
        self,
        questions: Sequence[tuple[str, EventWithHint]],
        why: Rejection,
        pod: PodInfo,
        change: ClusterEvent,
        best: QueueingStrategy = QueueingStrategy.SKIP,
    ) -> QueueingStrategy:
        for plugin, each in questions:
            is_pending = plugin in why.pending_on
            if best is QueueingStrategy.AFTER_BACKOFF and not is_pending:
                continue
            if each.hint is None or self.ask(plugin, each.hint, pod, change) is QueueingHint.QUEUE:
                if is_pending:
                    return QueueingStrategy.IMMEDIATELY
                best = QueueingStrategy.AFTER_BACKOFF
        return best


def _is_preselected(why: Rejection, change: ClusterEvent, *, own: bool) -> bool:
    """Whether an added or updated pod concerns the rejected pods; ``own``: any of their namespace does."""
    coming = change.action == ActionType.ADD or (
        change.action & ActionType.UPDATE and change.action != ActionType.UPDATE_POD_SCALE_DOWN
    )
    if change.resource != EventResource.ASSIGNED_POD or not coming:
        return True
    other: PodInfo = change.new
    template = why.template
    if own and template.namespace == other.namespace:
        return True
    namespace = change.objects.namespaces.get(other.namespace)
    labels = {} if namespace is None else namespace.labels
    terms = template.terms_of(TermKind.REQUIRED_AFFINITY)
    if change.old is not None:  # it may have left the pods that a term matches
        terms = (*terms, *template.terms_of(TermKind.REQUIRED_ANTI_AFFINITY))
    seen = [each.labels for each in (change.old, other) if each is not None]
    return any(term.matches(other.namespace, each, labels) for term in terms for each in seen)
