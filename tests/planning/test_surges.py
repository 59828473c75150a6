"""The only pod of a Deployment: moved by a rollout where one pod stays available, else protected."""

from collections.abc import Iterator
from typing import Any

import pytest
from msgspec.structs import replace

from engine.toys import ALL
from planning.builders import NOW, Named, a_profile
from planning.surge_builders import READY, a_crowded_node, a_deployment, a_replica_set, an_only_pod
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import NoArgs, Registry
from plimsoll.framework.descheduling.measurements import Planner
from plimsoll.framework.descheduling.proposals import Bundle, Candidate, Refusal
from plimsoll.framework.descheduling.strategy import StrategyKind
from plimsoll.model.columns.cluster import Cluster
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.deployment import DELETION_COST, SURGED, Deployment
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.kinds.storage import PersistentVolumeClaim
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.planning.history import MoveHistory, MoveOutcome, PastMove, UnreadyReplacement
from plimsoll.planning.limits import NO_CEILING, Limits
from plimsoll.planning.moves import EvictionPlan, Goal, Objective, PlanningContext, RebalancingConfig
from plimsoll.planning.planners import make_plan
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.planning.proven.planner import revalidate
from plimsoll.planning.surges import Deployments, Surge
from plimsoll.plugins.inter_pod_affinity import InterPodAffinity
from plimsoll.strategies.default_evictor import DefaultEvictor, DefaultEvictorArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def asked(
    *plugins: Any, surge: bool = True, names: tuple[str] = ("web-1-x",), **kwargs: Any
) -> RebalancingConfig:
    evictor = DefaultEvictor(DefaultEvictorArgs.model_validate({"minReplicas": 2}))
    return RebalancingConfig(
        strategies=(Named(*names),),  # type: ignore[arg-type] # a fake has only what is used
        evictors=(evictor,),
        profiles=kwargs.pop("profiles", {"default-scheduler": a_profile(*plugins)}),
        surge=surge,
        **kwargs,
    )


def around(*deployments: Deployment, problem: str = "", **kwargs: Any) -> PlanningContext:
    known = Deployments({each.metadata.uid: each for each in deployments}, problem)
    return PlanningContext(now=NOW, deployments=known, **kwargs)


def planned(cluster: Cluster, deployment: Any = None, *plugins: Any, **kwargs: Any) -> EvictionPlan:
    return plan(asked(*plugins, **kwargs), cluster, around(deployment or a_deployment()))


def test_the_only_pod_is_moved_by_a_rollout() -> None:
    """The move names the Deployment, its template and the workload; gain and target as for an eviction."""
    deployment = a_deployment(annotations={SURGED: "earlier from idle", "team": "a"})

    found = planned(a_crowded_node(), deployment)

    move = found.moves[0]
    assert (move.source, move.target, move.gain) == ("full", "idle", 50)  # room without it: 50, and 100
    assert move.surge == Surge("web", "uid-Deployment/web", deployment.template_digest(), "earlier from idle")
    assert (move.workload.key, move.workload.name) == ("default/uid-Deployment/web", "Deployment default/web")


@pytest.mark.parametrize("owner", ["default/uid-Deployment/web", "default/uid-ReplicaSet/web-1"])
@pytest.mark.parametrize("reason", ["ReplacementNotReady", "HeldBack"])
def test_what_happened_to_its_deployment_and_to_its_replica_set_counts(owner: str, reason: str) -> None:
    """Surges are recorded for the Deployment, evictions of its pods for the ReplicaSet."""
    failed = PastMove("", "Named", owner, "web", "full", MoveOutcome.RETURNED, NOW.timestamp() - 10)
    unready = {owner: UnreadyReplacement("other", "default/other", "it has no node", "record")}
    past: dict[str, dict[str, Any]] = {
        "ReplacementNotReady": {"unready": unready},
        "HeldBack": {"memory": MoveHistory([failed], NOW.timestamp())},
    }

    found = plan(asked(), a_crowded_node(), around(a_deployment(), **past[reason]))

    assert [each.refusal.reason for each in found.refused] == [reason]


def test_no_pod_is_surged_unless_the_policy_says_so() -> None:
    """The protection holds, with its own reason."""
    found = planned(a_crowded_node(), surge=False)

    assert [each.refusal.reason for each in found.refused] == ["MinReplicas"]


def test_the_only_ready_pod_of_several_stays() -> None:
    """A Deployment of two with one ready pod: a rollout would replace both."""
    cluster = a_crowded_node()
    sick = {"conditions": [{"type": "Ready", "status": "False"}]}
    cluster.place(cluster.templates.info(an_only_pod("web-1-y", node="idle", status=sick)), "idle")

    refusal = planned(cluster, a_deployment(replicas=2)).refused[0].refusal

    assert refusal.reason == "NoSurge"
    assert refusal.message == (
        "the pod is the only ready one of ReplicaSet web-1, and no surge can move it:"
        " Deployment web wants 2 replicas, and a rollout replaces them all"
    )


#: Of two replicas, both of which are ready, on nodes that are full with and without them.
TWO: dict[str, Any] = {"replicas": 2, "updatedReplicas": 2, "availableReplicas": 2}


@pytest.mark.parametrize(
    ("autoscaled", "annotations", "room", "left", "refused"),
    [
        pytest.param({}, {}, "4", 0, "", id="one more"),
        pytest.param(
            {},
            {DELETION_COST: "5"},
            "4",
            0,
            f"it has the annotation {DELETION_COST} of somebody else",
            id="cost",
        ),
        pytest.param(
            {"Deployment default/web": "w"},
            {},
            "4",
            0,
            "HorizontalPodAutoscaler w decides on the replicas of Deployment web",
            id="an autoscaler",
        ),
        pytest.param(
            None,
            {},
            "4",
            1,
            "whether an autoscaler decides on the replicas of Deployment web could not be read",
            id="autoscalers are not known",
        ),
        pytest.param(
            {},
            {},
            "1",
            0,
            "node full, its own, is the only feasible one",
            id="no room for one more",
        ),
    ],
)
def test_one_of_several_moves_by_one_more_or_as_the_budget_allows(
    autoscaled: Any, annotations: Any, room: str, left: int, refused: str
) -> None:
    """A budget asks for no replica less than one more has; each pod that goes or stays has the reason."""
    pod = an_only_pod(node="full", annotations=annotations)
    cluster = a_crowded_node(pod, nodes=[a_node("full"), a_node("idle", cpu=room)])
    cluster.place(cluster.templates.info(an_only_pod("web-1-y", node="idle")), "idle")
    if not left:
        cluster.objects.budgets["default/web"] = a_budget(2, 2)
    found = a_deployment(replicas=2, status=TWO)
    given = replace(around(found), deployments=Deployments({found.uid: found}, "", autoscaled))
    surge = None if refused else Surge("web", "uid-Deployment/web", replicas=2)

    made = plan(asked(), cluster, given)

    if left or surge:
        (move,) = made.moves
        assert (move.surge, move.unsurged) == (surge, refused)
        assert move.workload.key == "default/uid-ReplicaSet/web-1"
    else:
        (stays,) = made.refused
        assert stays.refusal.reason == "Budget"
        assert f", and no surge can move it: {refused}" in stays.refusal.message


@pytest.mark.parametrize(("paused", "why"), [(False, ""), (True, "Deployment web is paused")])
def test_the_only_one_that_may_be_evicted_leaves_by_a_rollout_where_it_can(paused: bool, why: str) -> None:
    """Nothing protects it: an outage is allowed, and not wanted."""
    (move,) = plan(replace(asked(), evictors=()), a_crowded_node(), around(a_deployment(paused=paused))).moves

    assert (move.surge is None, move.unsurged) == (paused, why)
    assert move.workload.name == ("ReplicaSet default/web-1" if paused else "Deployment default/web")


@pytest.mark.parametrize(
    ("deployment", "why"),
    [
        ({"paused": True}, "Deployment web is paused"),
        ({"strategy": {"type": "Recreate"}}, "has strategy Recreate, which ends the old pod first"),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": 1, "maxSurge": 1}}},
            "may be without its pod in a rollout (maxUnavailable 1, not 0)",
        ),
        (
            {"strategy": {"rollingUpdate": {"maxUnavailable": "100%", "maxSurge": "25%"}}},
            "(maxUnavailable 1, not 0)",
        ),
        (
            # Neither a pod more nor one less: the controller allows one less, lest nothing moves.
            {"strategy": {"rollingUpdate": {"maxUnavailable": "25%", "maxSurge": 0}}},
            "(maxUnavailable 1, not 0)",
        ),
        ({"status": {"observedGeneration": 2}}, "a rollout of Deployment web is under way"),
        ({"status": {"updatedReplicas": 0}}, "a rollout of Deployment web is under way"),
        ({"status": {"replicas": 2}}, "a rollout of Deployment web is under way"),
        ({"status": {"availableReplicas": 0}}, "a rollout of Deployment web is under way"),
        ({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}, "Deployment web is being deleted"),
        ({"metadata": {"uid": "another"}}, "Deployment web is gone, or came after the run began"),
        ({"metadata": {"namespace": "other"}}, "Deployment web is gone"),
    ],
)
def test_a_deployment_that_a_rollout_would_hurt_keeps_its_pod(deployment: dict[str, Any], why: str) -> None:
    """Each condition has its sentence."""
    refused = planned(a_crowded_node(), a_deployment(**deployment)).refused

    assert [each.refusal.reason for each in refused] == ["NoSurge"]
    assert why in refused[0].refusal.message


@pytest.mark.parametrize(
    ("pod", "replica_set", "why"),
    [
        (
            {"owner": "StatefulSet/web"},
            {},
            "its owner is a StatefulSet, and one replica more has another ordinal",
        ),
        ({"owner": "ReplicaSet/web-9"}, {}, "ReplicaSet web-9 belongs to no Deployment"),
        ({}, {"kind": "Shop"}, "ReplicaSet web-1 belongs to no Deployment"),
        ({}, {"kind": "Rollout"}, "Rollout web is gone, or came after the run began"),
        (
            {"owner": "GameServerSet/web"},
            {},
            "its owner is a GameServerSet, only pods of Deployments, Rollouts",
        ),
        ({"owner": "CloneSet/web"}, {}, "CloneSet web is gone, or came after the run began"),
        ({"status": {}}, {}, "it is not ready"),
        ({"schedulerName": "other"}, {}, 'scheduler "other" places its replacement, which no policy serves'),
    ],
)
def test_a_pod_that_no_rollout_moves_stays(
    pod: dict[str, Any], replica_set: dict[str, Any], why: str
) -> None:
    """Other owners, pods that are not ready, pods of other schedulers."""
    cluster = a_crowded_node(an_only_pod(node="full", **pod), a_replica_set(**replica_set))

    refused = planned(cluster).refused

    assert [each.refusal.reason for each in refused] == ["NoSurge"]
    assert why in refused[0].refusal.message


def test_without_a_look_at_deployments_everybody_stays() -> None:
    """The missing right is the sentence."""
    found = plan(asked(), a_crowded_node(), around(problem="deployments may not be read"))

    assert found.refused[0].refusal.message.endswith("deployments may not be read")


@pytest.mark.parametrize(("modes", "moved"), [(["ReadWriteOnce"], 0), (["ReadWriteMany"], 1)])
def test_a_volume_for_one_node_ties_the_pod(modes: list[str], moved: int) -> None:
    """The replacement would wait for the volume until the pod goes, and the pod for the replacement."""
    pod = an_only_pod(node="full", volumes=[{"name": "d", "persistentVolumeClaim": {"claimName": "data"}}])
    cluster = a_crowded_node(pod)
    cluster.objects.claims["default/data"] = convert(
        PersistentVolumeClaim,
        {"metadata": {"name": "data", "namespace": "default"}, "spec": {"accessModes": modes}},
    )

    found = planned(cluster)

    assert len(found.moves) == moved
    assert (
        moved or "PersistentVolumeClaim data cannot be used on two nodes" in found.refused[0].refusal.message
    )


def test_the_pod_keeps_its_room_until_the_replacement_is_ready() -> None:
    """Two pods of a service never share a zone: with one zone, the pod would have to go first."""
    apart = {"labelSelector": {"matchLabels": {"app": "web"}}, "topologyKey": "zone"}
    terms = {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}
    pod = an_only_pod(node="full", affinity={"podAntiAffinity": terms})
    nodes = [a_node("full", labels={"zone": "a"}), a_node("idle", labels={"zone": "a"})]
    defaults = [Enabled(name) for name in ("Fifo", "Room", "Binds", "InterPodAffinity")]
    profile = build_profile(ProfileConfig("default-scheduler"), Registry((*ALL, InterPodAffinity)), defaults)
    ours = {"profiles": {"default-scheduler": profile}}

    refused = planned(a_crowded_node(pod, nodes=nodes), **ours).refused
    apart_zones = [a_node("full", labels={"zone": "a"}), a_node("idle", labels={"zone": "b"})]
    found = planned(a_crowded_node(pod, nodes=apart_zones), **ours)

    assert [each.refusal.reason for each in refused] == ["NoRoomBeside"]
    assert "2 node(s) didn't match pod anti-affinity rules" in refused[0].refusal.message
    assert [move.target for move in found.moves] == ["idle"]


def test_a_pod_that_fits_no_other_node_stays_as_before() -> None:
    """With or without the pod, the only feasible node is its own."""
    cluster = a_crowded_node(nodes=[a_node("full"), a_node("idle", cpu="0.5")])

    assert [each.refusal.reason for each in planned(cluster).refused] == ["NoOtherNode"]


def test_its_own_node_does_not_look_worse_for_the_pod_that_is_there() -> None:
    """Scores are those of the cluster without the pod: two equal nodes are no reason to move."""
    cluster = a_cluster([a_node("full"), a_node("idle")], [an_only_pod(node="full")])
    cluster.objects.replica_sets["default/web-1"] = a_replica_set()

    assert [each.refusal.reason for each in planned(cluster).refused] == ["WouldReturn"]


def a_budget(healthy: int, desired: int, generation: int = 1) -> PodDisruptionBudget:
    return convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": "web", "namespace": "default", "generation": generation},
            "spec": {"selector": {"matchLabels": {"app": "web"}}, "minAvailable": desired},
            "status": {
                "observedGeneration": 1,
                "disruptionsAllowed": 0,
                "currentHealthy": healthy,
                "desiredHealthy": desired,
                "expectedPods": 1,
            },
        },
    )


@pytest.mark.parametrize(
    ("budget", "reason"),
    [
        (a_budget(1, 1), ""),  # it allows no eviction now, and one when there are two
        (a_budget(1, 2), "Budget"),  # two are not enough
        (a_budget(1, 1, generation=2), "Budget"),  # its status is outdated
    ],
)
def test_a_budget_is_asked_as_it_will_be_with_the_replacement(
    budget: PodDisruptionBudget, reason: str
) -> None:
    """What the Eviction API would answer when the pod goes; the move takes none of its disruptions."""
    cluster = a_crowded_node()
    cluster.objects.budgets[budget.key] = budget

    found = planned(cluster)

    assert [each.refusal.reason for each in found.refused] == ([reason] if reason else [])
    assert [move.budget for move in found.moves] == ([] if reason else [""])


def test_limits_hold_for_surges_too() -> None:
    """One move in flight of the Deployment is the limit, whatever ReplicaSet its pods are of."""
    flying = around(a_deployment(), in_flight={"default/uid-Deployment/web": 1})

    found = plan(asked(), a_crowded_node(), flying)

    assert [each.refusal.reason for each in found.refused] == ["WorkloadLimit"]


def test_a_surge_is_asked_again_of_the_deployment_as_it_is() -> None:
    """At rest it stands, with the digest of now; with a rollout under way it is dropped."""
    cluster, deployment = a_crowded_node(), a_deployment()
    move = planned(cluster, deployment).moves[0]

    assert revalidate(move, asked(), cluster, around(deployment)) == move
    later = revalidate(move, asked(), cluster, around(a_deployment(metadata={"generation": 4})))
    assert isinstance(later, Refusal)
    assert later.reason == "NoSurge"


def test_the_digest_distinguishes_templates_but_not_surges() -> None:
    """Marks come and go, everything else counts; an empty map of annotations counts as a missing one."""
    bare = a_deployment()
    marked = a_deployment(annotations={SURGED: "x from y"})
    other = a_deployment(annotations={"team": "a"})
    none = convert(type(bare), {"spec": {"template": {"metadata": {"labels": {"app": "web"}}, "spec": {}}}})

    assert bare.template_digest() == marked.template_digest() == none.template_digest()
    assert bare.template_digest() != other.template_digest()


class Aged(Named):
    """Another name, for a second strategy."""

    name = "Aged"
    kind = StrategyKind.BALANCE
    args_model = NoArgs


def test_a_surged_pod_is_moved_once_in_a_plan() -> None:
    """The second strategy finds its replacement in the new place."""
    rebalancing = replace(
        asked(limits=Limits(per_workload=NO_CEILING)),
        strategies=(Named("web-1-x"), Aged("web-1-x")),
    )

    assert len(plan(rebalancing, a_crowded_node(), around(a_deployment())).moves) == 1


# -- the scheduler keeps the replacement off the node that it leaves -----------------------------------


def the_replacement(cluster: Cluster, mark: str = "record from full") -> PodInfo:
    pod = a_pod(
        "web-2-y",
        cpu="1",
        owner="ReplicaSet/web-2",
        labels={"app": "web", "pod-template-hash": "2"},
        annotations={SURGED: mark},
    )
    return cluster.templates.info(pod)


def test_the_replacement_never_goes_back_while_the_pod_stands() -> None:
    """Its own node is refused in words, whatever it is nominated to; the others are asked as before."""
    cluster = a_crowded_node(nodes=[a_node("full"), a_node("idle", cpu="0.5")])
    scheduler = ProfileScheduler(a_profile(), cluster)
    pod = the_replacement(cluster)
    scheduler.nominator.add(pod, "full")

    decision = schedule(scheduler, pod)

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.message == (
        "0/2 nodes are available: 1 Insufficient room,"
        " 1 node(s) hold the pod that this one is to replace elsewhere."
    )


def test_the_replacement_goes_elsewhere() -> None:
    """The other node is not the best by score, and the only one."""
    cluster = a_crowded_node(nodes=[a_node("full", cpu="64"), a_node("idle", cpu="2")])
    cluster.place(cluster.templates.info(a_pod("busy", cpu="1", node="idle")), "idle")
    plain = cluster.templates.info(a_pod("plain", cpu="1"))

    assert schedule(ProfileScheduler(a_profile(), cluster), plain).node == "full"
    assert schedule(ProfileScheduler(a_profile(), cluster), the_replacement(cluster)).node == "idle"


@pytest.mark.parametrize(
    "mark",
    ["record from nowhere", "record", ""],
)
def test_a_mark_that_names_no_node_keeps_no_pod_away(mark: str) -> None:
    """Any text may stand in the annotation."""
    cluster = a_crowded_node(nodes=[a_node("full", cpu="64"), a_node("idle", cpu="0.5")])

    assert schedule(ProfileScheduler(a_profile(), cluster), the_replacement(cluster, mark)).node == "full"


def test_when_the_pod_has_gone_its_node_is_free_again() -> None:
    """The mark stays in the template permanently, and pods that follow go anywhere."""
    cluster = a_crowded_node(nodes=[a_node("full", cpu="64"), a_node("idle", cpu="0.5")])
    cluster.displace("uid-default-web-1-x")

    assert schedule(ProfileScheduler(a_profile(), cluster), the_replacement(cluster)).node == "full"


def test_a_later_rollout_of_somebody_else_goes_anywhere() -> None:
    """Both pods bear the mark of the same earlier surge: this rollout is not a surge."""
    old = an_only_pod(node="full", annotations={SURGED: "record from full"})
    cluster = a_crowded_node(old, nodes=[a_node("full", cpu="64"), a_node("idle", cpu="0.5")])

    assert schedule(ProfileScheduler(a_profile(), cluster), the_replacement(cluster)).node == "full"


# -- with others -------------------------------------------------------------------------------------


class SendsAll(Named):
    """Proposes its pods together, to one node."""

    name = "SendsAll"
    kind = StrategyKind.BALANCE
    args_model = NoArgs

    group = ""

    def candidates(self, context: Any) -> Iterator[Any]:
        pods = [pod for pod in context.cluster.pods.values() if pod.name in self.names]
        candidates = tuple(Candidate(pod, context.node_of(pod), "together", "idle") for pod in pods)
        yield Bundle(candidates, group=self.group)


class SendsWhole(SendsAll):
    """The same, as the members of a group."""

    group = "the group"


def test_a_group_that_leaves_whole_is_not_moved_by_rollouts() -> None:
    """A rollout would bring up one of its members before the others."""
    cluster = a_crowded_node()
    cluster.place(cluster.templates.info(a_pod("twin", node="idle", owner="Job/other", status=READY)), "idle")
    rebalancing = replace(asked(), strategies=(SendsWhole("web-1-x", "other"),))

    found = plan(rebalancing, cluster, around(a_deployment()))

    assert found.moves == ()
    assert {each.refusal.reason for each in found.refused} == {"MinReplicas", "NotAll"}


@pytest.mark.parametrize(("replicas", "moved"), [(1, {"web-1-x", "other"}), (2, set())])
def test_a_node_with_a_single_replica_can_be_emptied(replicas: int, moved: set[str]) -> None:
    """A surge and an eviction in one bundle; where the surge is refused, the other pod stays too."""
    cluster = a_crowded_node()
    cluster.place(cluster.templates.info(a_pod("twin", node="idle", owner="Job/other", status=READY)), "idle")
    limits = Limits(per_workload=NO_CEILING)
    rebalancing = replace(asked(limits=limits), strategies=(SendsAll("web-1-x", "other"),))

    found = plan(rebalancing, cluster, around(a_deployment(replicas=replicas)))

    assert {move.pod.name for move in found.moves} == moved
    assert {move.pod.name for move in found.moves if move.surge} == moved & {"web-1-x"}


def test_the_optimal_planner_surges_too() -> None:
    """It moves what it may be sent, and that is proved with the pod in place."""
    rebalancing = asked(planner=Planner.OPTIMAL, goal=Goal(Objective.SMALLEST_SPREAD, seconds=5.0))

    found = make_plan(rebalancing, a_crowded_node(), around(a_deployment()))

    assert [(move.pod.name, move.target, bool(move.surge)) for move in found.moves] == [
        ("web-1-x", "idle", True)
    ]
