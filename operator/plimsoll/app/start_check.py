"""Checks the installation when the operator begins to lead, and logs each problem in one line.

It judges as ``plimsoll check`` does and reads few objects; nothing waits for it. Findings about a policy are
also in the policy's status.
"""

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import structlog

from plimsoll.access.rights import Access
from plimsoll.kube.custom_resources import PolicyResources, shadowing_evictions
from plimsoll.kube.session.session import Session
from plimsoll.model.columns.cluster import Cluster
from plimsoll.policies.operators import operator_of
from plimsoll.ports.clock import Clock
from plimsoll.ports.observer import Observer
from plimsoll.preflight.definition_reader import read_definitions
from plimsoll.preflight.definitions import SHADOWED, judged_definitions, judged_names, shadowed
from plimsoll.preflight.findings import Finding, Level
from plimsoll.preflight.other_schedulers import WORDS, ProgramActivity, judged_programs, seen_programs
from plimsoll.preflight.policy_conditions import at_work, claims_of
from plimsoll.preflight.rights import Account, judged_rights, wanted_rights
from plimsoll.preflight.unserved_pods import judged_pods, waiting_names
from plimsoll.preflight.workloads import RunningWorkload, image_words, running_pod
from plimsoll.scheduling.orphaned_pods import OrphanedPods

#: Timeout of the whole check in seconds.
TIMEOUT_S = 60.0

OPERATOR = Account("the operator", "", "as reviewed by itself")


class StartCheck:
    """The check at start-up.

    Args:
        cluster: The mirrored cluster, once complete.
        orphans: The pending pods that no scheduler serves, and the schedulers that were seen.
        degrade: Degrades every policy with a reason and a sentence.
        operator: The name of this operator; policies of others need none of its rights.
    """

    def __init__(
        self,
        session: Session,
        access: Access,
        cluster: Cluster,
        orphans: OrphanedPods,
        degrade: Callable[[str, str], None],
        observer: Observer,
        clock: Clock,
        operator: str = "",
    ) -> None:
        self._operator = operator
        self._session = session
        self._access = access
        self._cluster = cluster
        self._orphans = orphans
        self._degrade = degrade
        self._observer = observer
        self._clock = clock

    async def run(self) -> None:
        """Check once; whatever the result, the operator continues."""
        log = structlog.get_logger("plimsoll")
        try:
            async with asyncio.timeout(TIMEOUT_S):
                findings = await self._findings()
        except Exception as exc:  # noqa: BLE001 - the operator works without it
            self._observer.failed("checking the installation", repr(exc))
            return
        for each in findings:
            if each.level is not Level.OK:
                say = log.error if each.level is Level.ERROR else log.warning
                facts = {"area": each.area.value, "subject": each.subject, "certainty": each.certainty.value}
                say("check", **facts, problem=each.message, remedy=each.remedy)

    async def _findings(self) -> list[Finding]:
        shadow = await shadowing_evictions(self._session)
        if shadow:
            self._degrade(SHADOWED, shadowed(shadow))
        defined = await read_definitions(self._session)
        _, documents = await PolicyResources(self._session).list()
        return [
            *judged_names(shadow),
            # The outage log reports missing definitions, and when they are installed.
            *judged_definitions(defined, tells_missing=False),
            *self._of_policies(documents),
        ]

    def _of_policies(self, documents: Sequence[Mapping[str, Any]]) -> Iterator[Finding]:
        """Findings about these policies from rights, other programs, and pods without a scheduler."""
        policies = [
            each for each in at_work(documents) if operator_of(each.metadata.labels) == self._operator
        ]
        wanted = [each for each in wanted_rights(policies, ()) if not each.is_base]
        asked = {one for each in wanted for one in each.asked}
        answers = {one: self._access.allows(one.right, one.namespace) for one in asked}
        yield from judged_rights(OPERATOR, wanted, answers)
        now = self._clock.now()
        seen = tuple(seen_programs(self._programs(), {}, (), now))
        yield from judged_programs(seen, ProgramActivity.of(policies))
        waiting = waiting_names(self._orphans.pending, now)
        yield from judged_pods(waiting, claims_of(documents), self._orphans.seen, leads=True)

    def _programs(self) -> list[RunningWorkload]:
        """Ready pods of schedulers, deschedulers and autoscalers; one pod of each template is examined."""
        is_one: dict[int, bool] = {}
        found = []
        for each in tuple(self._cluster.pods.values()):
            key = id(each.template)
            if key not in is_one:
                images = (container.image for container in each.template.sample.spec.containers)
                is_one[key] = any(word in WORDS for image in images for word in image_words(image))
            if is_one[key] and each.pod.is_ready:
                found.append(running_pod(each.pod))
        return found
