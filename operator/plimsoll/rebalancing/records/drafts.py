"""Drafts Eviction records from planned moves, and rebuilds the moves that records propose."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from plimsoll.api.v1alpha1.eviction import (
    BundleReference,
    EvictedOwner,
    EvictionSpec,
    GangMember,
    PodReference,
    Purpose,
    SurgeReference,
)
from plimsoll.api.v1alpha1.eviction_naming import BUNDLE_LABEL, label_value, record_name
from plimsoll.api.v1alpha1.rebalancing import Mode, PlannerName
from plimsoll.framework import PodInfo
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Beneficiary
from plimsoll.model.names import PolicyName, RecordKey, record_key
from plimsoll.planning.moves import Move, workload_of
from plimsoll.planning.surges import Surge
from plimsoll.rebalancing.records.load_figures import moved_load

#: Maximum length of a move's reason in a record, in characters.
REASON_LENGTH = 1024

#: The reason of a new record's first phase.
_FIRST_REASON = {Mode.DRY_RUN: "DryRun", Mode.APPROVE: "AwaitsApproval"}

_WHAT_TO_DO = (
    "; annotate this record with plimsoll.dev/approved=true to carry the move out, =false to reject it"
)


def spec_of(move: Move, policy: PolicyName, mode: Mode) -> EvictionSpec:
    """The immutable part of a move's record."""
    pod = move.pod
    controller = pod.pod.metadata.owner
    return EvictionSpec(
        pod=PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid),
        owner=None
        if controller is None
        else EvictedOwner(
            api_version=controller.api_version or "v1",
            kind=controller.kind,
            name=controller.name,
            uid=controller.uid,
        ),
        policy=policy,
        strategy=move.strategy,
        mode=mode,
        planner=PlannerName(move.planner),
        reason=move.reason[:REASON_LENGTH],
        from_node=move.source,
        target_node=move.target or None,
        directed=move.is_directed,
        gain_maximum=move.maximum if move.gain is not None else None,
        purpose=Purpose.RESTART if move.renews else Purpose.MOVE,
        forecast=move.is_forecast,
        equal_targets=move.equals,
        proven_with=move.proven_with[:REASON_LENGTH] or None,
        bundle=_bundle_of(move),
        gain=move.gain,
        surge=surge_reference(move.surge),
        load=moved_load(move.load),
    )


def key_of(move: Move, policy: PolicyName, mode: Mode, run: str) -> RecordKey:
    """``namespace/name`` of a move's record; ``run`` distinguishes the decision from others about the pod."""
    # A prediction is the same in each run: it is written once, not once per run.
    distinction = f"{policy}/{move.strategy}/{move.source}/{move.target}" if mode is Mode.DRY_RUN else run
    return record_key(move.pod.namespace, record_name(move.pod.name, move.pod.uid, distinction))


def first_message(move: Move, mode: Mode) -> str:
    """The message of a new record: the expected node of the replacement, how to answer a proposal."""
    message = _expectation(move)
    return message + _what_to_do(move) if mode is Mode.APPROVE else message


def first_reason(mode: Mode, move: Move) -> str:
    """The machine reason of a new record's first phase; a move of planner Upstream is not proven."""
    return _FIRST_REASON.get(mode, "Selected" if move.planner is Planner.UPSTREAM else "Proved")


def _bundle_of(move: Move) -> BundleReference | None:
    if not move.bundle:
        return None
    position, moves = move.part
    for_whom = move.beneficiary
    return BundleReference(
        name=move.bundle,
        position=position,
        moves=moves,
        group=move.group or None,
        price_per_hour=move.price or None,
        beneficiary=None if for_whom is None else _reference(for_whom.pod),
        node=None if for_whom is None else for_whom.node,
        members=tuple(
            GangMember(pod=_reference(each.pod), node=each.node)
            for each in (for_whom.others if for_whom is not None else ())
        ),
    )


def _reference(pod: PodInfo) -> PodReference:
    return PodReference(namespace=pod.namespace, name=pod.name, uid=pod.uid)


def _what_to_do(move: Move) -> str:
    """How to answer a proposal."""
    position, moves = move.part
    if moves == 1:
        return _WHAT_TO_DO
    return (
        f"{_WHAT_TO_DO}; it is move {position} of {moves} that are made all or none: each of them is to be"
        f" approved, see label {BUNDLE_LABEL}={label_value(move.bundle)}"
    )


def surge_reference(surge: Surge | None) -> SurgeReference | None:
    """A surge in a record's form."""
    if surge is None:
        return None
    return SurgeReference(
        deployment=surge.deployment,
        uid=surge.uid,
        template=surge.template or None,
        before=surge.before,
        replicas=surge.replicas,
        kind=surge.kind,
    )


def _expectation(move: Move) -> str:
    """The expected node of the replacement, and who expects it."""
    if move.pod.pod.is_terminal:
        return "the pod has ended and needs no new place"
    if not move.target:
        return "no feasible node is known for a replacement; the move is not proven, as in descheduler"
    if move.planner is Planner.UPSTREAM:
        return f"expected on {move.target}; a forecast, the move is not proven"
    if move.surge is not None:
        way = "a rollout" if move.surge.replicas is None else "one replica more"
        return (
            f"expected on {move.target} before the pod goes: a surge, by {way} of {move.surge.kind}"
            f" {move.surge.deployment}"
        )
    return f"expected on {move.target}" + (
        "; a forecast, another scheduler places it" if move.is_forecast else ""
    )


def moves_of(
    specs: Sequence[EvictionSpec],
    find: Callable[[str], PodInfo | None],
    empties: Callable[[Move], bool],
) -> tuple[Move, ...] | None:
    """The moves that records propose, for the present pods; None if they would help no pod."""
    bundle = specs[0].bundle
    beneficiary = None
    if bundle is not None and bundle.beneficiary is not None:
        waiting = find(bundle.beneficiary.uid)
        others = [(find(each.pod.uid), each.node) for each in bundle.members]
        if waiting is None or any(pod is None for pod, _ in others):
            return None
        members = tuple(Beneficiary(pod, node) for pod, node in others if pod is not None)
        beneficiary = Beneficiary(waiting, bundle.node or "", members)
    whole = frozenset(spec.pod.uid for spec in specs if spec.bundle is not None and spec.bundle.group)
    moves: list[Move] = []
    for spec in specs:
        pod = find(spec.pod.uid)
        if pod is None:
            return None
        move = move_of(spec, pod, beneficiary)
        is_next = any(move.workload.key == each.workload.key for each in moves)
        moves.append(replace(move, waits=is_next and empties(move), whole=whole))
    return tuple(moves)


def move_of(spec: EvictionSpec, pod: PodInfo, beneficiary: Beneficiary | None = None) -> Move:
    """The move that a record proposes, for the present pod; to be judged again before it is made."""
    given = spec.surge
    surge = None
    if given is not None:
        template = given.template or ""
        surge = Surge(given.deployment, given.uid, template, given.before, given.replicas, given.kind)
    return Move(
        pod=pod,
        strategy=spec.strategy,
        reason=spec.reason,
        source=spec.from_node,
        target=spec.target_node or "",
        gain=spec.gain,
        ties=0,
        is_forecast=spec.forecast or Planner(spec.planner) is Planner.UPSTREAM,
        workload=workload_of(pod) if surge is None or surge.replicas else surge.workload(pod.namespace),
        planner=Planner(spec.planner),
        is_directed=spec.directed,
        maximum=spec.gain_maximum,
        renews=spec.purpose is Purpose.RESTART,
        bundle=spec.bundle.name if spec.bundle else "",
        part=(spec.bundle.position, spec.bundle.moves) if spec.bundle else (1, 1),
        beneficiary=beneficiary,
        group=(spec.bundle.group if spec.bundle else None) or "",
        price=(spec.bundle.price_per_hour if spec.bundle else None) or "",
        surge=surge,
    )
