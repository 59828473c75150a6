"""Sends the requests of attempts to HTTP extenders, concurrently with the scheduling loop.

The loop decides in memory and never waits. A pod that an extender is interested in leaves the loop, takes one
of its profile's turns, and returns with a decision. A hanging extender therefore holds up to ``TURNS`` pods
of its own profile and nothing else: slots, connections and turns are not shared.

Called by :mod:`plimsoll.scheduling.loop`; configured by :mod:`plimsoll.policy_controller.controller`.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import replace
from typing import Any, ClassVar

from msgspec import Struct

from plimsoll.api.schema.fields import duration_s
from plimsoll.api.v1alpha1.extender import LONGEST_TIMEOUT_S, ExtenderSpec, ExtenderTLS
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.extender import EXTENDER, Extender, interested
from plimsoll.engine.plugin_calls import BUDGET_S, METER, UNBOUNDED, OverBudgetError
from plimsoll.engine.profile import Profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import (
    SKIP,
    SUCCESS,
    BindPlugin,
    ConfigurationError,
    CycleState,
    NoArgs,
    PodInfo,
    Status,
    error,
)
from plimsoll.leadership.fence import Fence
from plimsoll.policies.extenders import extender_of
from plimsoll.ports.clock import Clock
from plimsoll.ports.extenders import Endpoint, ExtenderPort, TLSSettings
from plimsoll.ports.observer import Observer
from plimsoll.ports.pod_writes import PodReader
from plimsoll.ports.writes import WriteOutcome
from plimsoll.scheduling.binding.pipeline import BindingHook
from plimsoll.scheduling.extenders import wire
from plimsoll.scheduling.extenders.asks import Ask, Failure, NodeDocuments, bind_ask
from plimsoll.scheduling.extenders.health import ExtenderHealth
from plimsoll.scheduling.extenders.steps import schedule_steps
from plimsoll.timing.priority_semaphore import PrioritySemaphore
from plimsoll.timing.signal import Signal

#: Pods of one profile that wait for extenders simultaneously, and that extenders bind simultaneously.
TURNS = 16

#: kube-scheduler's default, used where the policy has 0.
DEFAULT_TIMEOUT_S = 5.0


class _Served(Struct, frozen=True):
    """The state of one profile's extenders."""

    endpoints: Mapping[str, Endpoint]
    asking: PrioritySemaphore
    binding: PrioritySemaphore


class ExtenderClient(BindingHook):
    """The extenders of all profiles; notifies ``conditions`` when one begins or ceases to fail."""

    def __init__(
        self,
        port: ExtenderPort,
        pods: PodReader,
        *,
        fence: Fence,
        clock: Clock,
        observer: Observer,
        conditions: Signal,
        cpu_s: Callable[[], float] = time.thread_time,
    ) -> None:
        self.health = ExtenderHealth(conditions)
        self._port = port
        self._pods = pods
        self._fence = fence
        self._clock = clock
        self._observer = observer
        self._cpu_s = cpu_s
        self._served: dict[str, _Served] = {}
        self._documents = NodeDocuments()

    def check(self, spec: SchedulingSpec) -> None:
        """Validate what the API server could not.

        Raises:
            ConfigurationError: A certificate is invalid; names the field.
        """
        for position, each in enumerate(spec.extenders):
            problem = self._port.problem_of(endpoint_of(each))
            if problem:
                raise ConfigurationError(f"spec.scheduling.extenders[{position}].tlsConfig", problem)

    def equip(self, profile: Profile, spec: SchedulingSpec) -> Profile:
        """Add the policy's extenders to the profile; their failures under an earlier spec are forgotten."""
        name = profile.scheduler_name
        self.health.forgive(name)
        self._served.pop(name, None)
        if not spec.extenders:
            return profile
        self._served[name] = _Served(
            {each.url_prefix: endpoint_of(each) for each in spec.extenders},
            PrioritySemaphore(TURNS),
            PrioritySemaphore(TURNS),
        )
        extenders = tuple(extender_of(each) for each in spec.extenders)
        bind = (ExtenderBinder(self.bind, name, extenders), *profile.bind)
        return replace(profile, extenders=extenders, bind=bind)

    async def retain(self, schedulers: Iterable[str]) -> None:
        """Forget the extenders of profiles that are no longer served."""
        kept = set(schedulers)
        for name in [name for name in self._served if name not in kept]:
            del self._served[name]
            self.health.forgive(name)
        await self._port.retain({each for one in self._served.values() for each in one.endpoints.values()})

    def failing(self, scheduler_name: str) -> Sequence[str]:
        """Sentences about the failures of a profile's extenders."""
        return self.health.of(scheduler_name)

    def slot(self, pod: PodInfo, profile: Profile) -> AbstractAsyncContextManager[object] | None:
        """A turn to be bound, for pods that an extender is interested in: these bindings may be slow."""
        served = self._served.get(profile.scheduler_name)
        if served is None or not interested(profile.extenders, pod):
            return None
        return served.binding.turn(pod.priority)

    @asynccontextmanager
    async def turn(self, scheduler: ProfileScheduler, pod: PodInfo) -> AsyncIterator[None]:
        """Wait for one of the profile's turns to call extenders; hold it within the context."""
        served = self._served.get(scheduler.profile.scheduler_name)
        async with served.asking.turn(pod.priority) if served is not None else nullcontext():
            yield

    async def decide(self, scheduler: ProfileScheduler, pod: PodInfo) -> Decision | None:
        """Try to place a pod; None when it is gone. Nothing is awaited after the decision.

        The caller verifies that the pod is still the one that the extenders decided on. The parts of the
        attempt between the requests have the budget of one attempt together; what other pods take meanwhile
        does not count.
        """
        profile = scheduler.profile
        answer, document = await self._pods.read(pod.pod)
        if answer.verdict is WriteOutcome.GONE:
            return None
        if not answer.is_done:
            why = f"the pod could not be read for its extenders: {answer.message}"
            return Decision(pod, AttemptOutcome.ERROR, message=why)
        steps = schedule_steps(scheduler, pod, interested(profile.extenders, pod), self._documents)
        meter = METER.get()
        budget = UNBOUNDED if meter is None else meter.budget
        answers: tuple[Any, ...] | None = None
        used_s = 0.0
        while True:
            decision: Decision | None = None
            began = self._cpu_s()
            with budget.part(pod.uid, used_s):
                try:
                    asks = next(steps) if answers is None else steps.send(answers)
                except StopIteration as end:
                    decision = end.value
            used_s += self._cpu_s() - began
            is_placed = decision is not None and decision.outcome is AttemptOutcome.SCHEDULED
            if used_s > BUDGET_S and not is_placed and (decision is None or decision.error is None):
                steps.close()
                return scheduler.broken(pod, OverBudgetError())
            if decision is not None:
                return decision
            answers = tuple(
                await asyncio.gather(*(self.ask(profile.scheduler_name, each, document) for each in asks))
            )

    async def ask(self, scheduler: str, ask: Ask, document: bytes = b"") -> Any:
        """Send one request: the response as parsed by its ``read``, or a Failure."""
        name = ask.extender.name
        served = self._served.get(scheduler)
        endpoint = served.endpoints.get(name) if served is not None else None
        if endpoint is None:
            return Failure(f'the policy has no extender "{name}" any more')
        obstacle = self.health.obstacle(scheduler, name, self._clock.monotonic())
        if obstacle:
            self._observer.extender_asked(name, ask.point, "skipped", 0.0, obstacle)
            return Failure(obstacle)
        began = self._clock.monotonic()
        reply = await self._port.post(endpoint, ask.verb, ask.body(document))
        now = self._clock.monotonic()
        problem, is_alive = reply.problem, False
        if reply.content is not None:
            try:
                result = ask.read(reply.content)
            except wire.ReportedError as exc:
                problem, is_alive = str(exc), True
            except wire.AnswerError as exc:
                problem = f'extender "{name}" {exc}'
            else:
                self.health.succeeded(scheduler, name)
                self._observer.extender_asked(name, ask.point, "success", now - began, "")
                return result
        if is_alive:
            self.health.succeeded(scheduler, name)  # it works; the error is about one pod
        else:
            self.health.failed(scheduler, name, problem, now)
        self._observer.extender_asked(name, ask.point, "error", now - began, problem)
        return Failure(problem)

    async def bind(self, scheduler: str, ask: Ask) -> Failure | None:
        """Have a pod bound; only a leader sends this write. None when the pod is bound."""
        left_s = self._fence.seconds_left()
        if left_s <= 0:
            return Failure("not sent: this process does not lead")
        self._fence.begin()
        is_answered = False
        try:
            async with asyncio.timeout(min(left_s, LONGEST_TIMEOUT_S)):
                failure: Failure | None = await self.ask(scheduler, ask)
            is_answered = failure is None
        except TimeoutError:
            return Failure("no answer was waited for: this process leads no more")
        finally:
            self._fence.end(answered=is_answered)
        return failure


class ExtenderBinder(BindPlugin):
    """Lets the extender with bindVerb bind its pods (upstream: extendersBinding); the first Bind plugin."""

    name: ClassVar = EXTENDER
    args_model: ClassVar = NoArgs

    def __init__(
        self,
        send: Callable[[str, Ask], Awaitable[Failure | None]],
        scheduler: str,
        extenders: tuple[Extender, ...],
    ) -> None:
        self._send = send
        self._scheduler = scheduler
        self._extenders = extenders

    async def bind(self, state: CycleState, pod: PodInfo, node: str) -> Status:  # noqa: ARG002 - the port's
        """Bind through the extender; SKIP if none binds the pod, or an ignorable one failed to."""
        for extender in interested(self._extenders, pod):
            if not extender.bind_verb:
                continue
            failure = await self._send(self._scheduler, bind_ask(extender, pod, node))
            if failure is None:
                return SUCCESS
            if not extender.ignorable:
                return error(failure.message)
        return SKIP


def endpoint_of(spec: ExtenderSpec) -> Endpoint:
    """The address and TLS settings of an extender."""
    tls = spec.tls_config or ExtenderTLS()
    return Endpoint(
        spec.url_prefix,
        duration_s(spec.http_timeout) or DEFAULT_TIMEOUT_S,
        TLSSettings(
            insecure=tls.insecure,
            server_name=tls.server_name or "",
            ca_data=tls.ca_data or "",
            cert_data=tls.cert_data or "",
            key_data=tls.key_data or "",
        ),
    )
