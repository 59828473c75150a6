"""Runs PreFilter for one template, and keeps what its plugins returned as long as that holds."""

from plimsoll.engine.cache.changes import ClusterChanges
from plimsoll.engine.cache.versions import TemplateVersions
from plimsoll.engine.plugin_calls import called
from plimsoll.engine.profile import Profile
from plimsoll.framework import (
    SKIP,
    SUCCESS,
    Code,
    CycleState,
    PluginError,
    PodInfo,
    PreFilterPlugin,
    PreFilterResult,
    Snapshot,
    Status,
    unresolvable,
)
from plimsoll.framework.plugin_answers import pre_filter_answer


class PreFilterResults:
    """What PreFilter returned for a template.

    Attributes:
        state: The cycle state that the plugins wrote; valid for the template's pods.
        rejected: The status by which a plugin rejected the pod for all nodes; success if none did.
        allowed: Names of the nodes to which plugins restricted the pod; None: all nodes.
        narrowing: The plugins that restricted the nodes.
        absent: The status of the other nodes.
        skipped: Plugins that returned SKIP: their filters take no part.
        are_plain: Whether every plugin succeeded or skipped: no node is left out.
    """

    def __init__(self, profile: Profile) -> None:
        self._plugins = profile.pre_filter
        self._stages = profile.stages
        self.state = CycleState()
        self.rejected: Status = SUCCESS
        self.allowed: frozenset[str] | None = None
        self.narrowing: frozenset[str] = frozenset()
        self.absent: Status = SUCCESS
        self.skipped: frozenset[str] = frozenset()
        self._local: dict[str, Status | PreFilterResult] = {}  #: what local plugins returned
        self._local_skipped: frozenset[str] = frozenset()
        self._global_skipped: list[str] = []
        self.are_plain = False

    def renew(self, pod: PodInfo, changes: ClusterChanges, versions: TemplateVersions) -> None:
        """Run the plugins whose results may have changed; PluginError."""
        if changes.in_nodes:
            self._local.clear()
        if self.are_plain and self._local and self._still_plain(pod, changes.all, versions.holding):
            return
        self.are_plain = False
        self._run(pod, changes.all)
        if self.rejected.is_success and self.allowed is None:
            self.are_plain = True
            self._local_skipped = self.skipped & self._stages.local_pre_filter
            others = self._stages.global_pre_filter
            self._global_skipped = [plugin.name for plugin in others if plugin.name in self.skipped]

    def _still_plain(self, pod: PodInfo, snapshot: Snapshot, holding: frozenset[str]) -> bool:
        """Run only the global plugins; returns whether each of them succeeds or skips."""
        skipped = []
        for plugin in self._stages.global_pre_filter:
            if plugin.name in holding:
                answer: Status | PreFilterResult = SKIP if plugin.name in self.skipped else SUCCESS
            else:
                answer = self._answer(plugin, pod, snapshot)
            if answer is SUCCESS:
                continue
            if isinstance(answer, PreFilterResult) or answer.code not in (Code.SKIP, Code.SUCCESS):
                return False
            if answer.code is Code.SKIP:
                skipped.append(plugin.name)
        if skipped != self._global_skipped:
            self._global_skipped = skipped
            self.skipped = self._local_skipped.union(skipped)
        return True

    def _answer(self, plugin: PreFilterPlugin, pod: PodInfo, snapshot: Snapshot) -> Status | PreFilterResult:
        answer = called(plugin.name, "preFilter", plugin.pre_filter, self.state, pod, snapshot)
        return answer if answer is SUCCESS or answer is SKIP else pre_filter_answer(plugin.name, answer)

    def _run(self, pod: PodInfo, snapshot: Snapshot) -> None:
        """Run every plugin in order, except for local ones whose result is kept."""
        self.rejected, self.allowed = SUCCESS, None
        skipped, narrowing = set[str](), set[str]()
        for plugin in self._plugins:
            answer = self._local.get(plugin.name)
            if answer is None:
                answer = self._answer(plugin, pod, snapshot)
                if plugin.name in self._stages.local_pre_filter:
                    self._local[plugin.name] = answer
            if isinstance(answer, PreFilterResult):
                self.allowed = answer.nodes if self.allowed is None else self.allowed & answer.nodes
                narrowing.add(plugin.name)
            elif answer.code is Code.SKIP:
                skipped.add(plugin.name)
            elif answer.code is Code.UNRESOLVABLE:
                self.rejected = answer
                # The later plugins have not run, so their writes for an earlier attempt are void.
                self.state = CycleState()
                self._local.clear()
                break
            elif answer.code is Code.UNSCHEDULABLE:
                self.rejected = answer
            elif not answer.is_success:
                raise PluginError(plugin.name, "preFilter", answer.message or answer.code.value)
        self.skipped, self.narrowing = frozenset(skipped), frozenset(narrowing)
        if self.rejected.is_success and self.allowed is not None:
            names = " ".join(sorted(narrowing))
            self.absent = unresolvable(f"node(s) didn't satisfy plugin(s) [{names}]")
            if not self.allowed:
                several = f"plugin(s) [{names}] simultaneously" if len(narrowing) > 1 else f"plugin {names}"
                self.rejected = unresolvable(f"node(s) didn't satisfy {several}")
        if not self.rejected.is_success:
            self.absent = self.rejected
