"""A Judge hands what was seen from outside to the checker: commits in their order, each with its author.

The author of a commit is the passage whose answer bore its version; for bindings, evictions and deletions,
whose answers bear none, a passage to that pod in whose time the commit lies. A commit without such a passage
has no author: one of an operator may go unjudged, and one of somebody else is not laid to its charge. The
answer to a write that changed nothing bears the version of the last commit, which may be somebody else's.
"""

from __future__ import annotations

import heapq
import json
import math
from collections import defaultdict
from collections.abc import Iterable, Mapping

from chaos.passage import Passage
from chaos.sightings import Sighting
from promises.checker import Checker
from promises.commits import UNKNOWN, Author, Commit, Obj
from simulation.world.happenings import Happenings

#: Seconds that a commit waits for others of lower version, and for the answers to what was under way.
SETTLING_S = 8.0

#: Seconds for which what an operator sees may be old: a watch falls silent for up to 40 seconds, and is
#: listed again after that. client-go does not notice it sooner: it gives connections up after 45 seconds.
STALE_S = 60.0

#: Seconds that a watch is behind what it shows, at most, as a rule.
LAG_S = 2.0

LEASES = "leases.coordination.k8s.io"

#: Collections that only operators write to, so that a passage without an answer may be the author.
OWN = frozenset((LEASES, "evictions.plimsoll.dev"))

#: What is written, as the checker names collections.
Target = tuple[str, str, str]


def target(passage: Passage) -> tuple[Target, str]:
    """The object that a request is about, and its subresource or ""."""
    parts = passage.path.strip("/").split("/")
    group, rest = ("", parts[2:]) if parts[0] == "api" else (parts[1] if len(parts) > 1 else "", parts[3:])
    namespace = ""
    if len(rest) > 2 and rest[0] == "namespaces":
        namespace, rest = rest[1], rest[2:]
    resource, name, sub = (*rest, "", "", "")[:3]
    if passage.method == "POST" and not name:
        meta = json.loads(passage.body).get("metadata") or {}
        name = meta.get("name") or ""
    return (f"{resource}.{group}" if group else resource, namespace, name), sub


def about(sighting: Sighting) -> Target:
    """The object that a sighting shows."""
    meta = sighting.obj["metadata"]
    return sighting.collection, meta.get("namespace") or "", meta["name"]


class Judge:
    """Orders and attributes commits, and has them judged.

    Args:
        identities: Of senders in the election.
        writes: Of operators, in the order in which they were passed on; it grows.

    Attributes:
        happenings: What features have led to.
        attributed: How many commits have an author.
        unclaimed: Pods of our scheduler that were bound without a known author, which must not be.
        late: Commits that came after others of higher version had been judged.
    """

    def __init__(
        self, checker: Checker, scheduler: str, identities: Mapping[str, str], writes: list[Passage]
    ) -> None:
        self._scheduler = scheduler
        self.checker = checker
        self.happenings = Happenings()
        self.attributed = 0
        self.unclaimed: list[str] = []
        self.late = 0
        self._identities = identities
        self._writes = writes
        self._requested = 0  #: writes that were judged as requests
        self._known = 0  #: writes that are in the tables
        self._open: dict[Target, list[tuple[Passage, str]]] = defaultdict(list)
        self._waiting: list[tuple[int, int, Sighting]] = []
        self._count = 0
        self._judged = 0  #: the highest version so far

    def see(self, sighting: Sighting) -> None:
        """A watch has shown a commit."""
        self._count += 1
        heapq.heappush(self._waiting, (sighting.version, self._count, sighting))

    def advance(self, until: float) -> None:
        """Judge what was seen up to a time."""
        known = self._known_at()
        while self._waiting and self._waiting[0][2].at <= until:
            version, _, sighting = heapq.heappop(self._waiting)
            self.late += version < self._judged
            self._judged = max(version, self._judged)
            self._judge_requests(known.pop())
            self._judge(sighting, self._passage_of(sighting))
        self._judge_requests(min([until, *known]))

    def _known_at(self) -> list[float]:
        """When each waiting commit was certainly there, the last one first.

        The answer to a write comes before watches show it, and what has a lower version was there by then.
        """
        self._note_writes()
        known, earliest = [], math.inf
        for version, _, sighting in sorted(self._waiting, reverse=True):
            answers = (
                passage.answered
                for passage, _ in self._open.get(about(sighting), ())
                if passage.answered is not None and passage.status < 300 and passage.version == str(version)
            )
            earliest = min([earliest, sighting.at, *answers])
            known.append(earliest)
        return known

    def _judge(self, sighting: Sighting, passage: Passage | None) -> None:
        author, at = UNKNOWN, sighting.at
        if passage is not None:
            self.attributed += 1
            author = self._author(passage)
            assert passage.passed_on is not None
            at = passage.passed_on  # when the operator had sent it; a slow server is not its fault
        elif self._is_bound(sighting):
            self.unclaimed.append(f"{sighting.at:.3f} {sighting.obj['metadata']['name']}")
        before = self.checker.view.find(*about(sighting))
        self.happenings.see(Commit(sighting.collection, sighting.type, sighting.obj, before, author, at))
        self.checker.judge(Commit(sighting.collection, sighting.type, sighting.obj, None, author, at))

    def _is_bound(self, sighting: Sighting) -> bool:
        """Whether a pod of ours has just got a node."""
        if sighting.collection != "pods" or sighting.type != "MODIFIED":
            return False
        meta, spec = sighting.obj["metadata"], sighting.obj["spec"]
        before = self.checker.view.find("pods", meta["namespace"], meta["name"])
        has_now = bool(spec.get("nodeName")) and spec.get("schedulerName") == self._scheduler
        return has_now and before is not None and not before["spec"].get("nodeName")

    def _judge_requests(self, until: float) -> None:
        """Requests that were passed on up to a time."""
        while self._requested < len(self._writes):
            passage = self._writes[self._requested]
            if passage.passed_on is None or passage.passed_on > until:
                return
            self._requested += 1
            self.checker.judge_request(self._author(passage), passage.passed_on)

    def _author(self, passage: Passage) -> Author:
        identity = self._identities.get(passage.sender, "")
        return Author(passage.sender, identity, passage.method, passage.path, passage.body)

    # -- who wrote ---------------------------------------------------------------------------------------

    def _passage_of(self, sighting: Sighting) -> Passage | None:
        """The passage that made a commit; it is taken, so that it makes no other."""
        subject = about(sighting)
        candidates = [
            (passage, sub)
            for passage, sub in self._open.get(subject, ())
            if passage.passed_on is not None and passage.passed_on <= sighting.at
        ]
        found = self._chosen(sighting, candidates)
        if found is not None:
            self._open[subject] = [each for each in self._open[subject] if each[0] is not found]
        return found

    def _note_writes(self) -> None:
        """Put the writes that are new into the tables."""
        while self._known < len(self._writes):
            passage = self._writes[self._known]
            subject, sub = target(passage)
            self._open[subject].append((passage, sub))
            self._known += 1

    def _chosen(self, sighting: Sighting, candidates: Iterable[tuple[Passage, str]]) -> Passage | None:
        version = str(sighting.version)
        before = self.checker.view.find(*about(sighting))
        for passage, sub in candidates:
            is_removal = sub == "eviction" or passage.method == "DELETE"
            if (
                passage.version == version
                and passage.status < 300
                and (
                    is_removal or not (begins_to_leave(sighting, before) or is_given_a_node(sighting, before))
                )
            ):
                return passage
            if passage.answered is not None and passage.status >= 300:
                continue
            if sub == "binding" and is_bound_by(passage, sighting.obj, before):
                return passage
            if is_removal and is_removed_by(passage, sighting, before):
                return passage
            is_open = passage.answered is None and sighting.collection in OWN and not sub
            is_change = sighting.type != "DELETED" and passage.method != "DELETE"
            if is_open and is_change and says(passage, sighting.obj):
                return passage
        return None


def is_bound_by(passage: Passage, pod: Obj, before: Obj | None) -> bool:
    """Whether a pod has got the node that a binding names."""
    asked = json.loads(passage.body)
    node = pod["spec"].get("nodeName")
    if not node or (before is not None and before["spec"].get("nodeName")):
        return False
    uid = asked["metadata"].get("uid")
    return asked["target"]["name"] == node and uid in (None, pod["metadata"]["uid"])


def begins_to_leave(sighting: Sighting, before: Obj | None) -> bool:
    """Whether an object that stayed is gone, or is being deleted now."""
    if before is None or "deletionTimestamp" in before["metadata"]:
        return False
    return sighting.type == "DELETED" or "deletionTimestamp" in sighting.obj["metadata"]


def is_given_a_node(sighting: Sighting, before: Obj | None) -> bool:
    """Whether a pod has got a node."""
    has_none = before is not None and not (before.get("spec") or {}).get("nodeName")
    return sighting.collection == "pods" and has_none and bool(sighting.obj["spec"].get("nodeName"))


def is_removed_by(passage: Passage, sighting: Sighting, before: Obj | None) -> bool:
    """Whether an object has gone, or begun to go, in the time of an eviction or a deletion."""
    if not begins_to_leave(sighting, before):
        return False
    if passage.answered is not None and sighting.at > passage.answered + LAG_S:
        return False
    asked = json.loads(passage.body or b"{}") or {}
    options = asked.get("deleteOptions") or asked
    uid = (options.get("preconditions") or {}).get("uid")
    return uid in (None, sighting.obj["metadata"]["uid"])


def says(passage: Passage, obj: Obj) -> bool:
    """Whether an object's status or spec is what an unanswered request wanted."""
    try:
        asked = json.loads(passage.body)
    except ValueError:
        return False
    return all(
        (obj.get(part) or {}).get(key) == value
        for part in ("spec", "status")
        for key, value in (asked.get(part) or {}).items()
    )
