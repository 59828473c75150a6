"""Decides for pods of one template in turn, and looks up once what they share.

Source: KEP-5598. Differs: changed rows are evaluated again, so a batch lasts as long as pods of the template
arrive; the decisions equal those of single attempts.
"""

from collections.abc import Iterable, Iterator

from plimsoll.engine.attempt import schedule
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.decision import Decision
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, PodInfo


def schedule_alike(scheduler: ProfileScheduler, pods: Iterable[PodInfo]) -> Iterator[Decision]:
    """Choose nodes for pods without interested extenders, as :func:`plimsoll.engine.attempt.schedule` does.

    The caller may place a pod before it requests the next decision; any other change of the cluster in
    between is seen too. The pods may have several templates; consecutive pods of one template are cheap.
    """
    lane: TemplateCache | None = None
    template = None
    for pod in pods:
        if not scheduler.is_plain(pod):
            lane = None
            yield schedule(scheduler, pod)
            continue
        try:
            if lane is None or pod.template is not template:
                lane, template = scheduler.refreshed(pod), pod.template
            else:
                lane.refresh(pod)
            rows = lane.feasible
            if len(rows):
                best, total = lane.best(pod, rows)
                decision = scheduler.placed_by(lane, pod, best, total, len(rows))
            else:
                decision = schedule(scheduler, pod)
        except PluginError as exc:
            decision, lane = scheduler.broken(pod, exc), None
        yield decision
