"""Refuses candidates by the findings for another pod of their template.

A proof ranks the nodes for the replacement as if its pod had left. If each node's verdict and total depend on
that node alone, other nodes rank the same whichever pod of the template leaves. So one ranking serves all of
them, without the pod's own node. Totals are computed only if a feasible node serves the strategy's purpose.
If none of the best nodes serves it, or strategies object to each of them whatever the source, the candidate
is refused with the refusal that its own proof would find. In all other cases there is no result here, and the
candidate is proven individually.

Templates whose pods all local plugins decide on equally, such as those of owners that differ in labels alone,
share a ranking as long as every plugin that reads more than a node skips for them; where no score decides,
only the filters among these plugins matter.

A refusal is computed once for all pods of a template and an owner whose nodes are alike: feasible or not,
admitted or not, and none of the best. They share one object. Results hold until a move is made.
"""

from collections.abc import Callable, Hashable

import numpy as np
from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.engine.decision import Ranking
from plimsoll.engine.profile import Profile
from plimsoll.framework import PluginError, PodInfo, PodTemplate
from plimsoll.framework.descheduling.proposals import Candidate, Refusal
from plimsoll.model.columns.cluster import Cluster
from plimsoll.planning.fork_schedulers import ForkSchedulers
from plimsoll.planning.moves import replacement_of
from plimsoll.planning.proven.target_choice import TRIES, TargetRows, best_rows, no_target

KnownRefusal = Callable[[str], Refusal | None]
"""Why no pod of the template moves to the node of this name, as far as that is known."""

Alike = tuple[Hashable, bool, bool]
"""Who asks, and whether the pod's own node is feasible, and admitted besides."""


class _Ranked(Struct, frozen=True):
    """The ranked nodes of a template.

    Attributes:
        best: Names of the best nodes that serve the purpose, one more than are tried.
        fitting: Number of feasible nodes.
        allowed: Number of these that the policy admits.
        feasible: Whether a node is feasible, one bit per row.
        refusals: Refusals of candidates that are not on one of the best nodes.
    """

    best: tuple[str, ...]
    fitting: int
    allowed: int
    feasible: bytes
    refusals: dict[Alike, Refusal] = field(default_factory=dict)

    def fits(self, row: int) -> bool:
        """Whether the node of a row is feasible."""
        return bool(self.feasible[row >> 3] & (128 >> (row & 7)))


_UNKNOWN = _Ranked((), 0, 0, b"")


class TemplateProofs:
    """The plan's results by template, on its fork.

    Attributes:
        applies: By strategy, whether its candidates may be refused by template.
    """

    def __init__(self, fork: Cluster, schedulers: ForkSchedulers, targets: TargetRows) -> None:
        self._fork = fork
        self._schedulers = schedulers
        self._targets = targets
        self.applies: dict[str, bool] = {}
        self._known: dict[tuple[PodTemplate, int, frozenset[str] | None], _Ranked | None] = {}
        self._alike: dict[Hashable, _Ranked] = {}

    def forget(self) -> None:
        """Drop the results; a move was made or undone."""
        self._known.clear()
        self._alike.clear()

    def refusal(
        self, candidate: Candidate, profile: Profile, asker: Hashable, refusal_at: KnownRefusal
    ) -> Refusal | None:
        """Why a candidate without an order of its own stays; None if it must be proven individually.

        ``refusal_at`` returns the same for all pods of a template that have the same ``asker``, until a move
        is made, or returns None.
        """
        serves = candidate.destinations
        names = None if serves is None else serves.names
        if serves is not None and names is None:
            return None
        key = candidate.pod.template, id(profile), names
        ranked, row = self._known.get(key, _UNKNOWN), self._fork.rows.get(candidate.node)
        if ranked is _UNKNOWN:
            ranked = self._known[key] = self._ranked(candidate.pod, profile, names)
        if ranked is None or row is None:
            return None
        own = ranked.fits(row)
        if ranked.fitting == own:
            return None  # whether its own node is the only one depends on the pod
        admitted = own and bool(self._targets.admitted[row])
        alike = asker, own, admitted
        is_apart = candidate.node not in ranked.best
        known = ranked.refusals.get(alike) if is_apart else None
        if known is not None:
            return known
        first: Refusal | None = None
        for name in [name for name in ranked.best if name != candidate.node][:TRIES]:
            refusal = refusal_at(name)
            if refusal is None:
                return None
            first = first or refusal
        found = first or no_target(ranked.fitting - own, ranked.allowed - admitted)
        if is_apart:
            ranked.refusals[alike] = found
        return found

    def _ranked(self, pod: PodInfo, profile: Profile, names: frozenset[str] | None) -> _Ranked | None:
        scheduler = self._schedulers.of(profile)
        replacement = replacement_of(pod, self._fork)
        try:
            key = scheduler.decides_by(replacement.template)
            alike = None if key is None else (id(profile), pod.priority, names, key)
            shared = self._alike.get(alike)
            if shared is not None and scheduler.is_of_no_concern(replacement, scored=bool(shared.best)):
                return replace(shared, refusals={})
            found = scheduler.filtered(replacement)
            rows = found.rows
            if not len(rows) or not found.cache.is_filtered_by_node:
                return None
            chosen = self._targets.admitted[rows]
            allowed = int(np.count_nonzero(chosen))
            if names is not None:
                chosen = chosen & self._targets.among(names)[rows]
            best: tuple[str, ...] = ()
            if chosen.any():  # otherwise no score decides anything
                ranking = Ranking(self._fork, rows, found.cache.totals(replacement, rows))
                if not found.cache.is_by_node:
                    return None
                nodes = self._fork.nodes
                best = tuple(nodes[row].name for row in best_rows(ranking, chosen, TRIES + 1))
            is_local = not best or found.cache.is_local
        except PluginError:
            return None
        feasible = np.zeros(len(self._fork), dtype=np.bool_)
        feasible[rows] = True
        ranked = _Ranked(best, len(rows), allowed, np.packbits(feasible).tobytes())
        if alike is not None and is_local:
            self._alike[alike] = ranked
        return ranked
