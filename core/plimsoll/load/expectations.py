"""Computes what one pod is expected to use; priors are the expectations of pods without measurements.

A prior is the first of these that is known: the average use of the workload's pods, if it has enough samples;
a share of the request; a fixed amount if a pod requests neither. It never exceeds the limit. (Before all of
these, the load book uses the measurements of a pod of the workload that has just left.)

Source: koordinator a7a1b76b, ``pkg/scheduler/plugins/loadaware/estimator`` for shares, fixed amounts and the
limit; there a limit above the request replaces the request.
"""

import re
from collections.abc import Hashable, Sequence
from enum import IntEnum
from typing import NamedTuple

import numpy as np

from plimsoll.load.readings import LARGEST, FloatArray, LoadSettings
from plimsoll.load.usage_histograms import UsageHistograms
from plimsoll.model.kinds.deployment import TEMPLATE_HASH
from plimsoll.model.kinds.pod_info import PodTemplate
from plimsoll.model.quantity import QuantityError, nanos

#: The number that a CronJob appends to its Jobs' names.
_CRON_JOB = re.compile(r"-\d{8,}$")

#: Days of history after which a peak's margin is half of the initial one.
YOUNG_DAYS = 0.25

#: Number of templates whose priors are kept.
KEPT = 10_000

#: The units of variances: thousandths of a core, and MiB; their squares fit 64 bits.
SPREAD_UNITS = np.array((10.0**6, 2.0**20))


class Basis(IntEnum):
    """The source of an expectation."""

    MEASURED = 0  #: fresh readings of the pod
    MOVED = 5  #: fresh readings of the pod that it replaces in a plan
    STALE = 1  #: outdated readings of the pod
    PREDECESSOR = 2  #: readings of pods of its workload that have just left
    WORKLOAD = 3  #: the history of its workload
    REQUEST = 4  #: a share of its request


class Expectation(NamedTuple):
    """The expected use of one pod.

    Attributes:
        cpu: Billionths of a core.
        memory: Bytes.
        peak_cpu: The cpu that it rarely exceeds.
        peak_memory: The memory that it rarely exceeds.
        spread_cpu: Variance of cpu, in thousandths of a core, squared.
        spread_memory: Variance of memory, in MiB, squared.
        basis: The source of the expectation.
    """

    cpu: int
    memory: int
    peak_cpu: int
    peak_memory: int
    spread_cpu: int = 0
    spread_memory: int = 0
    basis: Basis = Basis.REQUEST

    @property
    def is_measured(self) -> bool:
        """Whether it is from fresh readings, of the pod or of the pod that it replaces in a plan."""
        return self.basis in (Basis.MEASURED, Basis.MOVED)


def expectation(amounts: Sequence[int], basis: Basis) -> Expectation:
    """One of its six amounts, in order."""
    cpu, memory, peak_cpu, peak_memory, spread_cpu, spread_memory = amounts
    return Expectation(cpu, memory, peak_cpu, peak_memory, spread_cpu, spread_memory, basis)


def workload_of(template: PodTemplate) -> Hashable | None:
    """Identifies pods of one workload across rollouts; None for pods without an owner.

    Namespace, kind and name of the top owner, as far as the pod shows it, and the names of the containers.
    """
    return template.memo("load workload", lambda: _workload_of(template))


def limits_of(template: PodTemplate) -> tuple[int, int]:
    """Cpu and memory limits of a pod; LARGEST if some container has no limit."""
    return template.memo("load limits", lambda: (_limit(template, "cpu"), _limit(template, "memory")))


def _workload_of(template: PodTemplate) -> Hashable | None:
    owner = template.owner
    if owner is None:
        return None
    kind, name = owner.kind, owner.name
    of_template = template.labels.get(TEMPLATE_HASH)
    if kind == "ReplicaSet" and of_template and name.endswith(f"-{of_template}"):
        kind, name = "Deployment", name.removesuffix(f"-{of_template}")
    elif kind == "Job" and (number := _CRON_JOB.search(name)):
        kind, name = "CronJob", name[: number.start()]
    containers = tuple(container.name for container in template.sample.spec.containers)
    return template.namespace, kind, name, containers


def _limit(template: PodTemplate, resource: str) -> int:
    most, per_unit = (LARGEST[0], 1) if resource == "cpu" else (LARGEST[1], 10**9)
    total = 0
    for container in template.sample.spec.containers:
        limit = container.resources.limits.get(resource)
        if limit is None:
            return most
        try:
            total += nanos(limit)
        except QuantityError:
            return most
    return min(max(total // per_unit, 0), most)


class Priors:
    """Priors of pods without measurements, as of one time; immutable.

    Args:
        settings: Shares and minimum samples.
        habits: The workloads' histories.
        now: The time.

    Attributes:
        quantiles: Shape (W, 2): amounts that a workload's pods rarely exceed; 0 if too little is known.
        peaks: The same with a margin for short histories.
    """

    def __init__(self, settings: LoadSettings, habits: UsageHistograms, now: float) -> None:
        self._settings = settings
        self._places = dict(habits.places) if settings.uses_history else {}
        self._means = habits.means()
        self._known: dict[bytes, Expectation] = {}  #: by the template's signature
        confidence = np.maximum(habits.confidence(now), 0.0)
        margin = settings.peak_margin * YOUNG_DAYS / (YOUNG_DAYS + confidence)
        enough = habits.samples[: len(self._means)] >= settings.least_samples
        self._is_known = enough & settings.uses_history
        self.quantiles: FloatArray = np.where(
            self._is_known[:, None], habits.peaks(settings.peak_quantiles), 0.0
        )
        self.peaks: FloatArray = self.quantiles * (1.0 + margin)[:, None]

    def of(self, template: PodTemplate) -> Expectation:
        """The prior of a pod of that template."""
        known = self._known.get(template.signature)
        if known is None:
            if len(self._known) >= KEPT:
                self._known.clear()
            known = self._known[template.signature] = self._of(template)
        return known

    def _of(self, template: PodTemplate) -> Expectation:
        settings, limits = self._settings, limits_of(template)
        workload = workload_of(template)
        place = None if workload is None else self._places.get(workload)
        if place is not None and self._is_known[place]:
            mean, peak = self._means[place].tolist(), self.peaks[place].tolist()
            cpu, memory = (min(round(each), most) for each, most in zip(mean, limits, strict=True))
            peaks = (min(round(each), most) for each, most in zip(peak, limits, strict=True))
            return expectation([cpu, memory, *map(max, peaks, (cpu, memory)), 0, 0], Basis.WORKLOAD)
        asked, (most_cpu, most_memory) = template.requests, limits
        fixed_cpu, fixed_memory = settings.unrequested
        requested = min(asked.get("cpu", 0), 10**9) * 10**6
        cpu = min(requested * settings.cpu_percent // 100 if requested else fixed_cpu, most_cpu)
        peak_cpu = min(max(requested, cpu), most_cpu)
        requested = min(asked.get("memory", 0), LARGEST[1])
        memory = min(requested * settings.memory_percent // 100 if requested else fixed_memory, most_memory)
        return Expectation(cpu, memory, peak_cpu, min(max(requested, memory), most_memory))
