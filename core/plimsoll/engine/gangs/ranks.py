"""The rank of a member in its group: the index that its controller gave it, or the number in its name.

Members that talk to their neighbours by rank are placed in this order, so that neighbours share a domain.
Sources: Kubernetes v1.36 (Job, StatefulSet), JobSet v0.10, LeaderWorkerSet v0.7, Kubeflow's training operator
v1.9 (labels of pods).
"""

import re

from plimsoll.model.kinds.pod import Pod

#: Labels with the index of what a pod belongs to within the group, and of the pod within that.
OUTER = ("jobset.sigs.k8s.io/job-global-index", "jobset.sigs.k8s.io/job-index")
INNER = (
    "batch.kubernetes.io/job-completion-index",
    "leaderworkerset.sigs.k8s.io/worker-index",
    "training.kubeflow.org/replica-index",
    "apps.kubernetes.io/pod-index",
)

#: Roles that have index 0 of their own and come before the workers.
FIRST = frozenset({"master", "launcher", "chief", "head", "driver"})
ROLES = (
    "training.kubeflow.org/replica-type",
    "training.kubeflow.org/job-role",
    "ray.io/node-type",
    "spark-role",
)

#: All of these; most groups have none.
_KEYS = frozenset((*OUTER, *INNER, *ROLES))

Rank = tuple[bool, int, int, str]
"""Sorts members: those in a leading role first, then by index."""

_DIGITS = re.compile(r"([0-9]+)", re.ASCII)
_NUMBER = re.compile(r"([0-9]{1,9})$", re.ASCII)

#: What the API server adds to ``generateName``. Source: Kubernetes v1.36, ``apimachinery/pkg/util/rand``.
_RANDOM = re.compile(r"-(?=[0-9]*[a-z])[bcdfghjklmnpqrstvwxz2456789]{5}$", re.ASCII)


def rank_of(pod: Pod) -> Rank:
    """The rank of a pod; pods without an index are sorted by the number at the end of their names."""
    labels = pod.metadata.labels
    if _KEYS.isdisjoint(labels):
        return True, 0, number_of(pod.name), pod.name
    leads = any(labels.get(each, "").lower() in FIRST for each in ROLES)
    inner = _index(labels, INNER)
    if inner is None:
        inner = number_of(pod.name)
    return not leads, _index(labels, OUTER) or 0, inner, pod.name


def number_of(name: str) -> int:
    """The number at the end of a pod's name, without a random suffix; 0 for none."""
    found = _NUMBER.search(_RANDOM.sub("", name))
    return int(found[1]) if found else 0


def _index(labels: dict[str, str], keys: tuple[str, ...]) -> int | None:
    for key in keys:
        text = labels.get(key, "")
        if text.isascii() and text.isdigit() and len(text) < 10:
            return int(text)
    return None


def natural(name: str) -> list[int | str]:
    """A key that sorts names with the numbers in them by value: node-2 before node-10."""
    parts: list[int | str] = [
        int(each) if number % 2 else each for number, each in enumerate(_DIGITS.split(name))
    ]
    return parts
