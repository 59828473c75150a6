"""Keeps the parameter by which pods are adopted, and finds admission objects that are not as policies say.

The parameter names the policies that this process serves. Whoever leads writes it, so a leader that may not
bind, or rejects a policy, withdraws what an earlier one has written. ``plimsoll watchdog`` withdraws it when
nobody leads.
"""

from collections.abc import Callable, Mapping, Sequence

from plimsoll.adoption.admission_objects import PARAMETER, admission_objects
from plimsoll.adoption.drift import drift
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.kube.session.errors import APIError
from plimsoll.ports.adoption import AdmissionPort, ParameterPort
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.ports.writes import WriteOutcome
from plimsoll.timing.signal import Signal

#: Seconds between two looks at the parameter, and between two at the admission objects.
LOOK_S, COMPARE_S = 5.0, 60.0

#: Reasons for which a policy that adopts pods is degraded.
NOT_ADOPTING, NOT_APPLIED = "NotAdopting", "AdoptionNotApplied"

REMEDY = "apply deploy/components/adoption (chart: adoption.enabled: true)"


class Adoption:
    """Adopts pods for the policies that are served; ``conditions`` is notified when a trouble changes."""

    def __init__(
        self,
        parameter: ParameterPort,
        admission: AdmissionPort,
        clock: Clock,
        observer: Observer,
        conditions: Signal,
    ) -> None:
        self._parameter = parameter
        self._admission = admission
        self._clock = clock
        self._observer = observer
        self._conditions = conditions
        self._troubles: Mapping[str, Mapping[str, str]] = {}
        self._differences: dict[str, str] = {}  #: by policy, as of the last comparison
        self._compared: tuple[Sequence[SchedulingPolicy], float] = ((), 0.0)
        self._is_absent = False  #: whether there is no parameter, or none that we may write

    def troubles(self, policy: str) -> Mapping[str, str]:
        """Why a policy does not adopt pods as it says, in sentences by reason."""
        return self._troubles.get(policy, {})

    async def run(self, adopting: Callable[[], Sequence[SchedulingPolicy]]) -> None:
        """Keep the parameter until cancelled; ``adopting`` returns the served policies that adopt pods."""
        while True:
            try:
                await self.look(adopting())
            except Exception as exc:  # noqa: BLE001 - whatever one look finds, the next one comes
                self._observer.failed("adopting pods", repr(exc))
            await self._clock.sleep(LOOK_S)

    async def look(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Write the parameter if it is not as it should be; compare admission objects from time to time."""
        refused = await self._write({name_of(each): scheduler_of(each) for each in policies})
        await self._compare(policies)
        troubles = {}
        for name in map(name_of, policies):
            said = {NOT_ADOPTING: refused, NOT_APPLIED: self._differences.get(name, "")}
            troubles[name] = {reason: sentence for reason, sentence in said.items() if sentence}
        if troubles != self._troubles:
            self._troubles = troubles
            self._conditions.notify()

    async def _write(self, served: Mapping[str, str]) -> str:
        """Make the parameter say this, where nothing is adopted remove it; returns why it is refused."""
        if not served and (self._is_absent or not await self._parameter.is_ours()):
            self._is_absent = True
            return ""
        answer, written = await self._parameter.read()
        if answer.is_done and served and written != served:
            answer = await self._parameter.write(served)
        elif answer.is_done and written is not None and not served:
            answer = await self._parameter.withdraw()
        self._is_absent = not served and (answer.is_done or answer.verdict is WriteOutcome.GONE)
        if answer.verdict is not WriteOutcome.REFUSED:
            return ""
        where = f"ConfigMap {self._parameter.namespace}/{PARAMETER}"
        return f"no pod is adopted, because {where} cannot be written: {answer.message}; {REMEDY}"

    async def _compare(self, policies: Sequence[SchedulingPolicy]) -> None:
        before, when = self._compared
        if policies == before and self._clock.monotonic() - when < COMPARE_S:
            return
        for policy in policies:
            try:
                self._differences[name_of(policy)] = await self._difference(policy)
            except APIError as exc:  # what is known stays
                self._observer.failed("comparing admission policies", str(exc))
        self._compared = policies, self._clock.monotonic()

    async def _difference(self, policy: SchedulingPolicy) -> str:
        """What is wrong with the admission objects of a policy, "" for nothing."""
        version = await self._admission.version()
        if not version:
            return ""  # another program admits pods, by a policy that is not ours to read
        wanted = admission_objects(policy, self._parameter.namespace, version)
        said = drift(wanted, await self._admission.read(wanted))
        return f"{said}: plimsoll adopt {name_of(policy)} --apply" if said else ""


def name_of(policy: SchedulingPolicy) -> str:
    """The name of a policy."""
    return str(policy.metadata.name)


def scheduler_of(policy: SchedulingPolicy) -> str:
    """The scheduler name that its pods get."""
    assert policy.spec.scheduling is not None
    return policy.spec.scheduling.scheduler_name
