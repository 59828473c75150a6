"""Finds admission objects that do not adopt pods as policies say; only administrators write them."""

from collections.abc import Callable, Mapping, Sequence

from plimsoll.adoption.admission_objects import admission_objects
from plimsoll.adoption.drift import drift
from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicy
from plimsoll.kube.session.errors import APIError, Unauthorized
from plimsoll.ports.adoption import AdmissionPort
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.timing.signal import Signal

#: Seconds between two comparisons.
LOOK_S = 15.0

#: Reasons for which a policy that adopts pods is degraded.
NOT_APPLIED, NOT_COMPARED = "AdoptionNotApplied", "AdoptionNotCompared"

REMEDY = "apply deploy/components/adoption (chart: adoption.enabled: true)"


class Adoption:
    """Compares admission objects with policies; ``conditions`` is notified when a trouble changes.

    Args:
        namespace: The operator's namespace.
    """

    def __init__(
        self, admission: AdmissionPort, namespace: str, clock: Clock, observer: Observer, conditions: Signal
    ) -> None:
        self._admission = admission
        self._namespace = namespace
        self._clock = clock
        self._observer = observer
        self._conditions = conditions
        self._troubles: Mapping[str, Mapping[str, str]] = {}

    def troubles(self, policy: str) -> Mapping[str, str]:
        """Why a policy does not adopt pods as it says, in sentences by reason."""
        return self._troubles.get(policy, {})

    async def run(self, adopting: Callable[[], Sequence[SchedulingPolicy]]) -> None:
        """Compare until cancelled; ``adopting`` returns the policies that adopt pods."""
        while True:
            try:
                await self.look(adopting())
            except Exception as exc:  # noqa: BLE001 - whatever one look finds, the next one comes
                self._observer.failed("comparing admission policies", repr(exc))
            await self._clock.sleep(LOOK_S)

    async def look(self, policies: Sequence[SchedulingPolicy]) -> None:
        """Compare the admission objects of these policies."""
        troubles: dict[str, Mapping[str, str]] = {}
        for policy in policies:
            try:
                troubles[policy.metadata.name] = await self._difference(policy)
            except Unauthorized as exc:
                said = f"what adopts its pods cannot be compared: {exc.message}; {REMEDY}"
                troubles[policy.metadata.name] = {NOT_COMPARED: said}
            except APIError as exc:  # what is known stays
                troubles[policy.metadata.name] = self.troubles(policy.metadata.name)
                self._observer.failed("comparing admission policies", str(exc))
        troubles = {name: said for name, said in troubles.items() if said}
        if troubles != self._troubles:
            self._troubles = troubles
            self._conditions.notify()

    async def _difference(self, policy: SchedulingPolicy) -> Mapping[str, str]:
        """What is wrong with the admission objects of a policy."""
        version = await self._admission.served_version()
        if not version:
            return {}  # another program admits pods, by a policy that is not ours to read
        wanted = admission_objects(policy, self._namespace, version)
        said = drift(wanted, await self._admission.read(wanted))
        return {NOT_APPLIED: f"{said}: plimsoll adopt {policy.metadata.name} --apply"} if said else {}
