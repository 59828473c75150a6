"""Decides for pods of one template, one after the other, and looks up once what they share.

Source: KEP-5598. Differs: rows that changed are looked at again, so that a batch may last as long as pods of
the template come; decisions are those of as many attempts.
"""

from collections.abc import Iterable, Iterator

from plimsoll.engine.attempt import schedule
from plimsoll.engine.cache.template import TemplateCache
from plimsoll.engine.decision import Decision
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import PluginError, PodInfo


def schedule_alike(scheduler: ProfileScheduler, pods: Iterable[PodInfo]) -> Iterator[Decision]:
    """Decide where each pod goes that concerns no extender, as :func:`plimsoll.engine.attempt.schedule` does.

    The caller places a pod before it asks for the next decision, or does not; whatever else happens to the
    cluster in between is seen. The pods may be of several templates: neighbours that share one are cheap.
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
