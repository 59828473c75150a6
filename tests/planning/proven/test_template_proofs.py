"""Refusals by template, against a proof for each candidate."""

import random
from collections.abc import Hashable
from typing import Any, TypeVar

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from planning.builders import NOW, SURROUNDINGS
from plimsoll.engine.profile import Enabled, Profile, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.framework.descheduling.proposals import Candidate, Destinations, Refusal
from plimsoll.framework.descheduling.registry import EvictorRegistry, StrategyRegistry
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.kinds.deployment import SURGED
from plimsoll.model.kinds.pod import PodResourceClaim
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import RebalancingConfig
from plimsoll.planning.proven.checks import CheckedCandidate
from plimsoll.planning.proven.plan_builder import PlanBuilder
from plimsoll.planning.proven.proof import _refused_by_template
from plimsoll.planning.proven.template_proofs import KnownRefusal, TemplateProofs, _Ranked
from plimsoll.planning.proven.verdicts import judge_strategy
from plimsoll.planning.surges import Surge
from plimsoll.plugins import DEFAULT_PLUGINS
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.strategies import EVICTORS, IN_TREE
from plimsoll.testing.builders import a_cluster, a_node, a_pod

#: The second owner of every name has just left most nodes: what speaks against its moves is another reason.
LEFT = [
    PastMove(
        "",
        "LowNodeUtilization",
        f"default/uid-{app}-1",
        app,
        f"n{node:02}",
        MoveOutcome.SETTLED,
        NOW.timestamp() - 60,
    )
    for app in "abcd"
    for node in range(0, 30, 2)
]

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


class Unaided(TemplateProofs):
    """Leaves each candidate to its own proof."""

    def refusal(
        self, candidate: Candidate, profile: Profile, asker: Hashable, refusal_at: KnownRefusal
    ) -> Refusal | None:
        return None


class Counting(TemplateProofs):
    """Counts the candidates that need no proof."""

    known = 0

    def refusal(
        self, candidate: Candidate, profile: Profile, asker: Hashable, refusal_at: KnownRefusal
    ) -> Refusal | None:
        found = super().refusal(candidate, profile, asker, refusal_at)
        self.known += found is not None
        return found


class Refusing(TemplateProofs):
    """Refuses whatever is asked about."""

    def refusal(
        self, candidate: Candidate, profile: Profile, asker: Hashable, refusal_at: KnownRefusal
    ) -> Refusal | None:
        return Refusal("Known", "another pod of its template stays, too")


ProofsT = TypeVar("ProofsT", bound=TemplateProofs)


def a_plan(kind: type[ProofsT], *given: Any) -> tuple[PlanBuilder, ProofsT]:
    """A plan whose refusals by template are of this kind."""
    plan = PlanBuilder(*given)
    plan.template_proofs = proofs = kind(plan.fork, plan.schedulers, plan.target_rows)
    return plan, proofs


def a_policy(line: int) -> RebalancingConfig:
    lines = {"cpu": line, "memory": line}
    registry = StrategyRegistry(IN_TREE)
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    profile = build_profile(ProfileConfig("default-scheduler"), Registry(PLUGINS), defaults)
    return RebalancingConfig(
        strategies=[
            registry.build("LowNodeUtilization", {"thresholds": lines, "targetThresholds": lines}, "low"),
            registry.build("RemoveDuplicates", {}, "duplicates"),
        ],
        evictors=(EvictorRegistry(EVICTORS).build("DefaultEvictor", {}, "evictor"),),
        profiles={"default-scheduler": profile},
        limits=Limits(per_workload=NO_CEILING),
    )


def a_start(seed: int) -> Cluster:
    """Few applications on many nodes, some of which are closed to them; every third start with more rules."""
    chance = random.Random(seed)
    is_plain = seed % 3 > 0  # nodes then score by themselves
    taints = [(), (), ("closed:NoSchedule",), () if is_plain else ("shy:PreferNoSchedule",)]
    nodes = [
        a_node(
            f"n{number:02}",
            cpu=chance.choice(["4", "8"]),
            memory="16Gi",
            labels={"zone": chance.choice("ab")},
            taints=chance.choice(taints),
        )
        for number in range(chance.randint(3, 30))
    ]
    term = {"topologyKey": "zone", "labelSelector": {"matchLabels": {"app": "c"}}}
    rule = {**term, "maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}
    wishes: dict[str, dict[str, Any]] = {
        "c": {"topologySpreadConstraints": [rule]},
        "d": {"affinity": {"podAntiAffinity": {REQUIRED: [term]}}},
    }
    pods = []
    open_to_all = [node for node in nodes[1:] if "closed" not in str(node.spec.taints)] or nodes
    for number in range(4 * len(nodes)):
        app = chance.choice("ab" if is_plain else "aabbcd")
        node = open_to_all[int(len(open_to_all) * chance.random())].name
        cpu = {"a": "250m", "b": "500m"}.get(app, "1")
        pod = a_pod(
            f"p{number}",
            node=node,
            owner=f"ReplicaSet/{app}",
            labels={"app": app},
            cpu=cpu,
            memory="1Gi",
            **wishes.get(app, {}),
        )
        # Two owners of one name, one deleted and created again: their pods are of one template.
        (owner,) = pod.metadata.owner_references
        owners = (msgspec.structs.replace(owner, uid=f"uid-{app}-{number % 2}"),)
        metadata = msgspec.structs.replace(pod.metadata, owner_references=owners)
        pods.append(msgspec.structs.replace(pod, metadata=metadata))
    return a_cluster(nodes, pods)


@pytest.mark.parametrize("line", [20, 30])
def test_refusals_by_template_are_those_of_proofs(line: int) -> None:
    """Whatever is booked in between: the same moves, and the same refusals with the same sentences."""
    policy, known, moved = a_policy(line), 0, 0
    reasons: set[str] = set()
    surroundings = replace(SURROUNDINGS, memory=MoveHistory(LEFT, NOW.timestamp()))
    for seed in (1, 3, 5):  # the others have more nodes, and take four fifths of the time
        aided, counted = a_plan(Counting, policy, a_start(seed), surroundings)
        unaided, _ = a_plan(Unaided, policy, a_start(seed), surroundings)
        for kind in StrategyKind:
            for strategy in policy.strategies:
                if strategy.kind is kind:
                    judge_strategy(aided, strategy)
                    judge_strategy(unaided, strategy)

        assert [(each.pod.uid, each.target) for each in aided.moves] == [
            (each.pod.uid, each.target) for each in unaided.moves
        ]
        assert [(each.pod.uid, each.refusal) for each in aided.refused] == [
            (each.pod.uid, each.refusal) for each in unaided.refused
        ]

        known, moved = known + counted.known, moved + len(aided.moves)
        reasons |= {each.refusal.reason for each in aided.refused}
    assert {"PingPong", "NewComplaint"} <= reasons
    assert known > 20
    assert moved > 5


def of_one_shape() -> Cluster:
    """Six owners whose pods differ in labels alone; a pod on the first node wants none of the fourth."""
    nodes = [a_node(f"n{number}", cpu="4", memory="16Gi") for number in range(5)]
    nodes.append(a_node("n5", cpu="4", memory="16Gi", taints=["closed:NoSchedule"]))
    pods = [
        a_pod(
            f"a{app}-{number}",
            node=f"n{number}",
            owner=f"ReplicaSet/a{app}",
            labels={"app": f"a{app}"},
            cpu="250m",
            memory="1Gi",
        )
        for app in range(6)
        for number in range(5)
    ]
    term = {"topologyKey": "kubernetes.io/hostname", "labelSelector": {"matchLabels": {"app": "a3"}}}
    alone = {"podAntiAffinity": {REQUIRED: [term]}}
    pods.append(a_pod("guard", node="n0", cpu="100m", memory="1Gi", affinity=alone))
    return a_cluster(nodes, pods)


@pytest.mark.parametrize("is_blind", [False, True])
def test_templates_of_one_shape_share_a_ranking(monkeypatch: pytest.MonkeyPatch, is_blind: bool) -> None:
    """All but the owner whose pods another pod's rule keeps away; blind to the rule, it would get theirs."""
    policy, ranked = a_policy(20), []
    original = ProfileScheduler.filtered

    def noted(scheduler: ProfileScheduler, pod: Any, *given: Any, **more: Any) -> Any:
        ranked.append(pod.labels["app"])
        return original(scheduler, pod, *given, **more)

    unaided, _ = a_plan(Unaided, policy, of_one_shape(), SURROUNDINGS)
    judge_strategy(unaided, policy.strategies[0])
    aided, counted = a_plan(Counting, policy, of_one_shape(), SURROUNDINGS)
    monkeypatch.setattr(ProfileScheduler, "filtered", noted)
    if is_blind:
        monkeypatch.setattr(ProfileScheduler, "is_of_no_concern", lambda *_, **__: True)
    judge_strategy(aided, policy.strategies[0])

    assert counted.known == (30 if is_blind else 25), "those five are proven one by one"
    are_equal = [(each.pod.uid, each.refusal) for each in aided.refused] == [
        (each.pod.uid, each.refusal) for each in unaided.refused
    ]
    assert are_equal is not is_blind
    assert ranked == (["a0"] if is_blind else ["a0", *["a3"] * 6]), "its template, then each pod's own proof"


def test_what_sets_a_candidate_apart_from_its_template_is_proven_individually() -> None:
    """Each by itself: a target, its bundle, its rollout, a mark, devices that it frees, an order of nodes."""
    plan, _ = a_plan(Refusing, a_policy(20), a_start(1), SURROUNDINGS)
    profile = plan.rebalancing.profiles["default-scheduler"]
    context = plan.context
    pod = min(plan.fork.pods.values(), key=lambda each: each.uid)

    def refusal(proposed: Candidate, **given: Any) -> Refusal | None:
        candidate = replace(CheckedCandidate.of(proposed, "LowNodeUtilization"), **given)
        return _refused_by_template(candidate, profile, plan)

    plain = Candidate(pod, context.node_of(pod), "it was named", destinations=Destinations.among(frozenset()))
    marked = replace(pod.pod, metadata=replace(pod.pod.metadata, annotations={SURGED: "x"}))
    claims = (PodResourceClaim(name="gpu"),)
    claiming = replace(pod.pod, spec=replace(pod.pod.spec, resource_claims=claims))
    ordered = Destinations.among(frozenset(), preference=len)

    assert refusal(plain) is not None
    assert refusal(replace(plain, target=plain.node)) is None
    assert refusal(plain, is_bundled=True) is None
    assert refusal(plain, surge=Surge("web", "uid", "digest")) is None
    assert refusal(replace(plain, pod=plan.fork.templates.info(marked))) is None
    assert refusal(replace(plain, pod=plan.fork.templates.info(claiming))) is None
    assert refusal(replace(plain, destinations=ordered)) is None


@pytest.mark.parametrize("feasible", [[], [0], [7], [8], [3, 8, 17], list(range(18))])
def test_the_bit_of_each_row_says_whether_it_is_feasible(feasible: list[int]) -> None:
    """Eight rows to a byte, the first in the highest bit."""
    bits = np.zeros(18, dtype=np.bool_)
    bits[feasible] = True

    ranked = _Ranked((), len(feasible), len(feasible), np.packbits(bits).tobytes())

    assert [row for row in range(18) if ranked.fits(row)] == feasible
