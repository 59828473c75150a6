"""PodLives follows each pod from its creation to its end, by uid."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field

from promises.commits import Commit, Obj
from promises.pods import controller_of, is_leaving, is_over, is_ready, node_of, owners_of

#: From when until when something held, in seconds.
Span = tuple[float, float]


@dataclass(slots=True)
class PodLife:
    """What has become of one pod; times are infinite until it happens.

    Attributes:
        controller: The uid of the owner that replaces it, or "".
        owners: The uids of all.
        spans: When it was ready and stayed; the last one may be open.
    """

    uid: str
    key: tuple[str, str]
    controller: str
    owners: frozenset[str]
    born_at: float
    node: str = ""
    bound_at: float = math.inf
    leaving_at: float = math.inf
    over_at: float = math.inf
    gone_at: float = math.inf
    has_run: bool = False
    spans: list[Span] = field(default_factory=list)

    @property
    def left_at(self) -> float:
        """When it began to go, was gone or had ended, whichever came first."""
        return min(self.leaving_at, self.gone_at, self.over_at)

    @property
    def is_serving(self) -> bool:
        """Whether it is ready and stays."""
        return bool(self.spans) and self.spans[-1][1] == math.inf

    def serve(self, at: float, *, serves: bool) -> None:
        """Whether it is ready and stays, from now on."""
        if serves and not self.is_serving:
            self.spans.append((at, math.inf))
        elif self.is_serving and not serves:
            self.spans[-1] = (self.spans[-1][0], at)


class PodLives:
    """The lives of all pods, also of those that are gone."""

    def __init__(self) -> None:
        self.by_uid: dict[str, PodLife] = {}
        self._by_owner: dict[str, list[PodLife]] = {}

    def judge(self, commit: Commit) -> None:
        """A commit of any collection."""
        if commit.collection == "pods":
            self._see(commit.obj, commit.at, is_gone=commit.type == "DELETED")

    def find(self, uid: str) -> PodLife | None:
        """The life of a pod; None for one that never existed."""
        return self.by_uid.get(uid)

    def owned(self, owner: str) -> list[PodLife]:
        """The lives of an owner's pods."""
        return self._by_owner.get(owner, [])

    def most_there(self, owner: str, since: float, until: float) -> int:
        """The most pods that an owner had at one time, with or without a node, as descheduler counts."""
        return most(((each.born_at, each.gone_at) for each in self.owned(owner)), since, until)

    def most_serving(self, owner: str, since: float, until: float) -> int:
        """The most pods of an owner that were ready and stayed at one time."""
        return most((span for life in self.owned(owner) for span in life.spans), since, until)

    def _see(self, pod: Obj, at: float, *, is_gone: bool) -> None:
        meta = pod["metadata"]
        life = self.by_uid.get(meta["uid"])
        if life is None:
            owners = frozenset(each["uid"] for each in owners_of(pod))
            key = (meta.get("namespace") or "", meta["name"])
            life = PodLife(meta["uid"], key, controller_of(pod), owners, at)
            self.by_uid[life.uid] = life
            for owner in owners:
                self._by_owner.setdefault(owner, []).append(life)
        if node_of(pod) and not life.node:
            life.node, life.bound_at = node_of(pod), at
        life.has_run = life.has_run or (pod.get("status") or {}).get("phase") == "Running"
        life.serve(at, serves=is_ready(pod) and not is_leaving(pod) and not is_gone)
        if is_leaving(pod):
            life.leaving_at = min(life.leaving_at, at)
        if is_over(pod):
            life.over_at = min(life.over_at, at)
        if is_gone:
            life.gone_at = at


def most(spans: Iterable[Span], since: float, until: float) -> int:
    """The most spans that held at one time between two, both included."""
    within = [(begin, end) for begin, end in spans if begin <= until and end > since]
    moments = [since, *(begin for begin, _ in within if begin > since)]
    return max(sum(begin <= moment < end for begin, end in within) for moment in moments)
