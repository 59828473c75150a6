"""Groups refusals of a plan by reason and then by workload."""

from collections import defaultdict
from collections.abc import Iterable

from plimsoll.inspection.plans.answer import RefusalSummary, RefusedSubject
from plimsoll.inspection.refusal_reasons import meaning_of, remedy_of
from plimsoll.planning.moves import Refused, workload_of

#: Number of example pods named per workload.
EXAMPLES = 5


def refusal_groups(refused: Iterable[Refused]) -> tuple[RefusalSummary, ...]:
    """The refusals by reason, the most frequent first; a pod counts once per reason."""
    by_reason: defaultdict[str, list[Refused]] = defaultdict(list)
    for each in refused:
        by_reason[each.refusal.reason].append(each)
    groups = [_group(reason, found) for reason, found in by_reason.items()]
    return tuple(sorted(groups, key=lambda group: (-group.pods, group.reason)))


def _group(reason: str, refused: list[Refused]) -> RefusalSummary:
    by_subject: defaultdict[str, list[Refused]] = defaultdict(list)
    for each in refused:
        by_subject[workload_of(each.pod).name].append(each)
    subjects = [_subject(subject, found) for subject, found in by_subject.items()]
    return RefusalSummary(
        reason=reason,
        meaning=meaning_of(reason),
        remedy=remedy_of(reason),
        pods=sum(each.pods for each in subjects),
        message=refused[0].refusal.message,
        subjects=tuple(sorted(subjects, key=lambda one: (-one.pods, one.subject))),
    )


def _subject(subject: str, refused: list[Refused]) -> RefusedSubject:
    pods = {each.pod.uid: each.pod.key for each in refused}
    return RefusedSubject(
        subject=subject,
        pods=len(pods),
        strategies=tuple(dict.fromkeys(each.strategy for each in refused)),
        message=refused[0].refusal.message,
        examples=tuple(list(pods.values())[:EXAMPLES]),
    )
