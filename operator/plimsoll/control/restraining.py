"""What keeps policies from moving pods: the stop button, rest, strategies that fail, a plan that hangs.

A policy rests after fruitless moves, and while pods wait that have lost their places. The button and rest are
ceilings on the evictions of a run, beside the budgets that the policy has itself: what they forbid is refused
with their name, in a plan and right before each eviction.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import replace

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.control.displacing import Displacements
from plimsoll.control.ports import Clock
from plimsoll.control.reporting import sentence_of
from plimsoll.engine.limits import Ceiling
from plimsoll.engine.memory import Memory
from plimsoll.engine.moves import Rebalancing
from plimsoll.framework import PluginError
from plimsoll.framework.observer import Observer
from plimsoll.model.objects import ClusterObjects

#: The annotation of the operator's own namespace that stops all moves while its value is "true".
STOP = "plimsoll.dev/stop"


#: Seconds between two looks at the button.
LOOK_S = 2.0

#: Seconds that a plan may take, beyond the longest search that a policy may ask for. The thread of one that
#: takes longer cannot be ended; the other policies go on without it.
PLANNING_S = 900.0


class StopButton:
    """Stops the moves of all policies, at once.

    Args:
        objects: Where the namespace is looked up; it is watched.
        namespace: The operator's own; "" has no button.
    """

    def __init__(self, objects: ClusterObjects, namespace: str) -> None:
        self._objects = objects
        self._namespace = namespace

    @property
    def is_pressed(self) -> bool:
        """Whether nothing may be moved."""
        namespace = self._objects.namespaces.get(self._namespace)
        return namespace is not None and namespace.metadata.annotations.get(STOP) == "true"

    @property
    def sentence(self) -> str:
        """Why nothing is moved."""
        return f'namespace {self._namespace} is annotated {STOP}="true"; until it is removed no pod is moved'

    def heeded(self, rebalancing: Rebalancing) -> Rebalancing:
        """The same, without any eviction while the button is pressed."""
        return _bounded(rebalancing, STOP, 0) if self.is_pressed else rebalancing


class Troubles:
    """What keeps each policy from moving pods, in sentences for its status.

    Args:
        policies: Those that rebalance, by name, at any moment.
        stop: The button.
        displacements: Pods that have lost their places.
        clock: Time.
        observer: Told when nobody could be told.

    Attributes:
        on_change: Called when what is told of a policy has changed.
    """

    def __init__(
        self,
        policies: Mapping[str, SchedulingPolicy],
        stop: StopButton,
        displacements: Displacements,
        clock: Clock,
        observer: Observer,
    ) -> None:
        self.on_change: Callable[[], Awaitable[None]] = _nobody
        self._policies = policies
        self._stop = stop
        self._displacements = displacements
        self._clock = clock
        self._observer = observer
        self._known: dict[str, dict[str, str]] = {}
        self._hanging: dict[str, SchedulingPolicy] = {}

    def of(self, name: str) -> Mapping[str, str]:
        """Sentences by reason."""
        stopped = {"Stopped": self._stop.sentence} if self._stop.is_pressed and name in self._policies else {}
        return stopped | self._known.get(name, {})

    def forget(self, name: str) -> None:
        """The policy rebalances no more."""
        self._known.pop(name, None)
        self._hanging.pop(name, None)

    def hangs(self, policy: SchedulingPolicy) -> bool:
        """Whether a plan of the policy, as it is, did not end."""
        return self._hanging.get(policy.metadata.name) is policy

    def hung(self, policy: SchedulingPolicy) -> None:
        """A plan of the policy did not end."""
        self._hanging[policy.metadata.name] = policy

    async def look_back(
        self, name: str, memory: Memory, failures: Iterable[PluginError] = (), forbidden: str = ""
    ) -> None:
        """Tell when moves keep coming to nothing or strategies fail, and when they do so no longer.

        Args:
            name: Of the policy.
            memory: What past moves teach.
            failures: Of its strategies.
            forbidden: What right its surges miss, in a sentence.
        """
        found: dict[str, str] = {}
        policy = self._policies.get(name)
        if policy is not None and self.hangs(policy):
            found["Hanging"] = (
                f"a strategy or plugin did not end within {PLANNING_S:.0f} s; the policy does not run again"
                " until it is changed or the operator is restarted"
            )
        resting, _ = memory.rest(name)
        if resting:
            found["Resting"] = resting
        displaced = self._displacements.sentence(name)
        if displaced:
            found["PodsDisplaced"] = displaced
        suspended = memory.suspended(name)
        if suspended:
            found["StrategySuspended"] = "; ".join(suspended)
        failed = {sentence_of(each) for each in failures}
        if failed:
            found["StrategyFailed"] = "; ".join(sorted(failed))
        if forbidden:
            found["SurgeForbidden"] = forbidden
        if found != self._known.get(name, {}):
            self._known[name] = found
            await self.on_change()

    async def watch(self) -> None:
        """Tell when the button is pressed or released, until cancelled."""
        was_pressed = False
        while True:
            await self._clock.sleep(LOOK_S)
            if self._stop.is_pressed != was_pressed:
                was_pressed = self._stop.is_pressed
                try:
                    await self.on_change()
                except Exception as exc:  # noqa: BLE001 - a status that cannot be written stops nothing else
                    self._observer.failed("telling that moves are stopped", repr(exc))


def undisturbed(rebalancing: Rebalancing, displacements: Displacements, name: str) -> Rebalancing:
    """The same, without any eviction while pods wait that have lost their places."""
    return (
        _bounded(rebalancing, "rest until displaced pods have a place", 0)
        if displacements.sentence(name)
        else rebalancing
    )


def barred(rebalancing: Rebalancing, name: str) -> Rebalancing:
    """The same, without any eviction; ``name`` is told as the budget that allows none."""
    return _bounded(rebalancing, name, 0)


def rested(rebalancing: Rebalancing, memory: Memory, name: str) -> Rebalancing:
    """The same for a policy whose moves keep coming to nothing: it moves none for a while, then one."""
    resting, may_try = memory.rest(name)
    return _bounded(rebalancing, "rest after fruitless moves", int(may_try)) if resting else rebalancing


def _bounded(rebalancing: Rebalancing, name: str, most: int) -> Rebalancing:
    budgets = (*rebalancing.limits.budgets, (name, Ceiling(count=most)))
    return replace(rebalancing, limits=replace(rebalancing.limits, budgets=budgets))


async def _nobody() -> None:
    """Nobody wants to know."""
