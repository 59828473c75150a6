"""DefaultPreemption: the node, the victims, and the message without victims."""

from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome, Decision
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import CycleState, Diagnosis, Registry, Rejections, Snapshot, Status
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.node import Node
from plimsoll.model.kinds.pod import Pod
from plimsoll.model.kinds.workload import PodDisruptionBudget
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.plugins.default_preemption import DefaultPreemption, DefaultPreemptionArgs
from plimsoll.testing.builders import a_cluster, a_node, a_pod


def a_scheduler(
    nodes: list[Node], pods: list[Pod], *, via_eviction: bool = False, **args: Any
) -> ProfileScheduler:
    profile = build_profile(
        ProfileConfig(
            "default-scheduler",
            args={"DefaultPreemption": args} if args else {},
            via_eviction=via_eviction,
        ),
        Registry(IN_TREE),
        [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()],
    )
    return ProfileScheduler(profile, a_cluster(nodes, pods))


def a_victim(name: Any, node: Any, cpu: Any = "1", priority: int = 0, hour: Any = None, **more: Any) -> Pod:
    status = {} if hour is None else {"startTime": f"2026-01-01T{hour:02}:00:00Z"}
    return a_pod(name, node=node, cpu=cpu, priority=priority, status=status, **more)


def decided(scheduler: ProfileScheduler, pod: Pod) -> Decision:
    return schedule(scheduler, scheduler.cluster.templates.info(pod))


def a_preemptor(cpu: Any = "2", priority: Any = 100, **more: Any) -> Pod:
    return a_pod("preemptor", cpu=cpu, priority=priority, **more)


def outcome(scheduler: ProfileScheduler, pod: Pod) -> Any:
    """The node and the victims' names."""
    nomination = decided(scheduler, pod).nomination
    return nomination.node, [victim.name for victim in nomination.victims]


def small(*names: str, cpu: str = "2") -> list[Node]:
    return [a_node(name, cpu=cpu) for name in names]


def protect(
    scheduler: ProfileScheduler,
    name: str,
    allowed: int,
    app: str = "web",
    disrupted: list[str] | tuple[Any, ...] = (),
    selector: dict[str, Any] | None = None,
) -> None:
    scheduler.cluster.objects.budgets[f"default/{name}"] = convert(
        PodDisruptionBudget,
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"selector": {"matchLabels": {"app": app}} if selector is None else selector},
            "status": {
                "disruptionsAllowed": allowed,
                "disruptedPods": dict.fromkeys(disrupted, "2026-01-01T00:00:00Z"),
            },
        },
    )
    scheduler.cluster.objects.budget_version += 1


@pytest.mark.parametrize(
    ("victims", "expected"),
    [
        pytest.param(
            [("low", "n1", "2", 1, 1), ("high", "n2", "2", 2, 1)], ("n1", ["low"]), id="lowest-priority"
        ),
        pytest.param(
            [("a", "n1", "1", 5, 1), ("b", "n1", "1", 1, 1), ("c", "n2", "1", 5, 1), ("d", "n2", "1", 0, 1)],
            ("n2", ["c", "d"]),
            id="lowest-sum",
        ),
        pytest.param(
            [("a", "n1", "1", 0, 1), ("b", "n1", "1", 0, 2), ("c", "n2", "2", 0, 1)],
            ("n2", ["c"]),
            id="fewest",
        ),
        pytest.param(
            [("early", "n1", "2", 0, 1), ("late", "n2", "2", 0, 5)], ("n2", ["late"]), id="latest-start"
        ),
        pytest.param(
            [("a", "n1", "2", 0, 1), ("new", "n2", "2", 0, None)], ("n2", ["new"]), id="not-started-is-latest"
        ),
        pytest.param(
            [("a", "n1", "2", 100, 1), ("b", "n2", "2", 0, 1)], ("n2", ["b"]), id="equal-priority-is-safe"
        ),
    ],
)
def test_the_node_with_the_least_to_lose_is_nominated(
    victims: list[tuple[Any, ...]], expected: tuple[str, list[str]]
) -> None:
    """Criterion by criterion, in upstream's order."""
    pods = [a_victim(name, node, cpu, priority, hour) for name, node, cpu, priority, hour in victims]

    assert outcome(a_scheduler(small("n1", "n2"), pods), a_preemptor()) == expected


def test_pods_that_can_stay_stay_the_most_important_first() -> None:
    """One CPU has to go: the least important pod's, not the first found."""
    pods = [a_victim("a", "n1", priority=3), a_victim("b", "n1", priority=1), a_victim("c", "n1", priority=2)]

    assert outcome(a_scheduler(small("n1", cpu="3"), pods), a_preemptor(cpu="1")) == ("n1", ["b"])


def test_of_equal_priority_the_one_that_started_first_stays() -> None:
    """Importance is priority, then age."""
    pods = [a_victim("young", "n1", hour=9), a_victim("old", "n1", hour=1)]

    assert outcome(a_scheduler(small("n1"), pods), a_preemptor(cpu="1")) == ("n1", ["young"])


class TestBudgets:
    """PodDisruptionBudgets are a preference."""

    def test_protected_pods_are_spared_where_others_can_go(self) -> None:
        """On one node, and among nodes."""
        web = {"labels": {"app": "web"}}
        pods = [a_victim("web", "n1", priority=0, **web), a_victim("plain", "n1", priority=9)]
        scheduler = a_scheduler(small("n1"), pods)
        assert outcome(scheduler, a_preemptor(cpu="1")) == ("n1", ["web"])

        protect(scheduler, "pdb", 0)
        assert outcome(scheduler, a_preemptor(cpu="1")) == ("n1", ["plain"])

    def test_the_node_with_the_fewest_violations_wins(self) -> None:
        """Even at the price of a more important victim; if there is no other way a budget is broken."""
        pods = [
            a_victim("web", "n1", cpu="2", labels={"app": "web"}),
            a_victim("plain", "n2", cpu="2", priority=50),
        ]
        scheduler = a_scheduler(small("n1", "n2"), pods)
        protect(scheduler, "pdb", 0)
        assert outcome(scheduler, a_preemptor()) == ("n2", ["plain"])

        scheduler.cluster.displace(pods[1].uid)
        scheduler.cluster.place(scheduler.cluster.templates.info(a_victim("big", "", "2", 900)), "n2")
        nomination = decided(scheduler, a_preemptor()).nomination
        assert nomination.node == "n1"
        assert nomination.search.candidates()["n1"].violations == 1

    def test_allowed_disruptions_are_spent_in_order_of_importance(self) -> None:
        """Two of three may go: the least important one is protected and spared."""
        pods = [a_victim(f"w{number}", "n1", priority=number, labels={"app": "web"}) for number in (1, 2, 3)]
        scheduler = a_scheduler(small("n1", cpu="3"), pods)
        protect(scheduler, "pdb", 2)

        assert outcome(scheduler, a_preemptor(cpu="2")) == ("n1", ["w3", "w2"])

    def test_a_disruption_already_granted_is_not_counted_again(self) -> None:
        """The pod is named in the budget's status."""
        pods = [a_victim("w", "n1", labels={"app": "web"})]
        scheduler = a_scheduler(small("n1"), pods)
        protect(scheduler, "pdb", 0, disrupted=["w"])

        search = decided(scheduler, a_preemptor()).nomination.search
        assert search.candidates()["n1"].violations == 0


@pytest.mark.parametrize(
    ("nodes", "pods", "preemptor", "message"),
    [
        pytest.param(
            small("n1", "n2"),
            [a_victim("a", "n1", "2", priority=100), a_victim("b", "n2", "2", priority=7)],
            a_preemptor(cpu="3"),
            "0/2 nodes are available: 2 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/2 nodes are available: 2 Preemption is not helpful for scheduling.",
            id="larger-than-the-nodes",
        ),
        pytest.param(
            small("n1"),
            [a_victim("a", "n1", "2", priority=100)],
            a_preemptor(),
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 No preemption victims found for incoming pod.",
            id="nobody-of-lower-priority",
        ),
        pytest.param(
            small("n1", cpu="3"),
            [a_victim("a", "n1", "2", priority=100), a_victim("b", "n1", "1")],
            a_preemptor(),
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "0/1 nodes are available: 1 Insufficient cpu.",
            id="not-enough-to-gain",
        ),
        pytest.param(
            small("n1"),
            [a_victim("a", "n1", "2")],
            a_preemptor(preemptionPolicy="Never"),
            "0/1 nodes are available: 1 Insufficient cpu. no new claims to deallocate, preemption: "
            "not eligible due to preemptionPolicy=Never.",
            id="never",
        ),
    ],
)
def test_the_message_says_why_nothing_can_be_done(
    nodes: list[Node], pods: list[Pod], preemptor: Pod, message: str
) -> None:
    """Word for word as upstream says it; an earlier nomination is cleared unless the pod was not eligible."""
    decision = decided(a_scheduler(nodes, pods), preemptor)

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.message == message
    assert decision.nomination.node == (None if "not eligible" in message else "")


def test_a_pod_waits_while_its_victims_are_leaving() -> None:
    """Its nominated node still has a pod that terminates because of preemption."""
    leaving = a_victim(
        "leaving",
        "n1",
        "2",
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        hour=1,
    )
    condition = {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"}
    victim = a_pod(
        "leaving",
        node="n1",
        cpu="2",
        priority=0,
        metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
        status={"conditions": [condition]},
    )
    pod = a_preemptor(status={"nominatedNodeName": "n1"})

    waiting = decided(a_scheduler(small("n1"), [victim]), pod)
    again = decided(a_scheduler(small("n1"), [leaving]), pod)

    assert waiting.nomination.node is None
    assert "not eligible due to a terminating pod on the nominated node." in waiting.message
    assert again.nomination.node == "n1"


@pytest.mark.parametrize(("priority", "gives_way"), [(99, True), (100, False), (101, False)])
def test_only_a_nominated_pod_of_lower_priority_gives_way(priority: int, gives_way: bool) -> None:
    """Equals would take each other's room in turns."""
    scheduler = a_scheduler(small("n1", cpu="3"), [a_victim("a", "n1", "2")])
    nominated = scheduler.cluster.templates.info(a_pod("nominated", cpu="1", priority=priority))
    scheduler.nominator.add(nominated, "n1")

    nomination = decided(scheduler, a_preemptor()).nomination

    assert nomination.node == "n1"
    assert [pod.name for pod in nomination.outranked] == ["nominated"] * gives_way


def test_nominated_pods_of_lower_priority_give_way() -> None:
    """Their nominations to the chosen node are cleared; higher ones are kept room for."""
    scheduler = a_scheduler(small("n1", "n2"), [a_victim("a", "n1", "2"), a_victim("b", "n2", "2")])
    info = scheduler.cluster.templates.info
    scheduler.nominator.add(info(a_pod("vip", cpu="1", priority=900)), "n1")
    scheduler.nominator.add(info(a_pod("minor", cpu="1", priority=5)), "n2")

    nomination = decided(scheduler, a_preemptor()).nomination

    assert nomination.node == "n2"
    assert [pod.name for pod in nomination.outranked] == ["minor"]
    assert set(nomination.search.statuses()) == {"n1"}


def test_filters_that_look_beyond_requests_are_tried_pod_by_pod() -> None:
    """Only removing the pod it cannot stand helps, whatever else could go."""
    hostname = {"topologyKey": "kubernetes.io/hostname"}
    web = {"labelSelector": {"matchLabels": {"app": "web"}}, **hostname}
    pods = [
        a_victim("web", "n1", "1", priority=9, labels={"app": "web"}),
        a_victim("plain", "n1", "1", priority=0),
        a_victim("vip", "n2", "1", priority=900, labels={"app": "web"}),
    ]
    preemptor = a_preemptor(
        cpu="1",
        affinity={"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [web]}},
    )

    search = decided(a_scheduler(small("n1", "n2", cpu="4"), pods), preemptor).nomination.search

    assert search.selected() == ("n1",)
    assert [victim.name for victim in search.candidates()["n1"].victims] == ["web"]
    assert list(search.statuses()) == ["n2"]


def test_candidates_are_enough_when_there_are_as_many_as_asked_for() -> None:
    """Pod by pod, the search ends early; one candidate without violations will do."""
    pods = [a_victim(f"holder-{number}", f"n{number}", "1", priority=number) for number in range(4)]
    ports = [{"name": "c", "ports": [{"hostPort": 80}], "resources": {"requests": {"cpu": "1"}}}]
    pods = [a_pod(pod.name, node=pod.node_name, priority=pod.priority, containers=ports) for pod in pods]
    preemptor = a_pod("preemptor", priority=100, containers=ports)
    nodes = small(*(f"n{number}" for number in range(4)))

    few = a_scheduler(nodes, pods, minCandidateNodesPercentage=0, minCandidateNodesAbsolute=2)
    every = a_scheduler(nodes, pods, minCandidateNodesPercentage=100)

    assert set(decided(few, preemptor).nomination.search.candidates()) == {"n0", "n1"}
    assert len(decided(every, preemptor).nomination.search.candidates()) == 4


def test_what_is_remembered_follows_the_pods() -> None:
    """The second attempt of a template looks at changed nodes only, and comes to the same as a new one."""
    nodes = small("n1", "n2", "n3")
    pods = [a_victim("a", "n1", "2", 5), a_victim("b", "n2", "2", 6), a_victim("c", "n3", "2", 7)]
    scheduler = a_scheduler(nodes, pods)
    assert outcome(scheduler, a_preemptor()) == ("n1", ["a"])

    scheduler.cluster.displace(pods[0].uid)
    scheduler.cluster.place(scheduler.cluster.templates.info(a_victim("d", "", "2", 100)), "n1")
    assert outcome(scheduler, a_preemptor()) == ("n2", ["b"])

    scheduler.cluster.place(scheduler.cluster.templates.info(a_victim("e", "", "1", 1)), "n2")
    assert outcome(scheduler, a_preemptor()) == ("n2", ["b", "e"])


def test_without_anybody_to_ask_nothing_is_nominated() -> None:
    """A caller that cannot try things out gets a refusal, not an error."""
    cluster = a_cluster([a_node("n1")])
    plugin = DefaultPreemption(DefaultPreemptionArgs())

    nomination = plugin.post_filter(
        CycleState(),
        cluster.templates.info(a_preemptor()),
        Snapshot(cluster),
        Rejections({}, Status(), Diagnosis(1)),
    )

    assert nomination.status.is_rejected
    assert nomination.node is None


def test_asking_for_no_candidates_is_refused() -> None:
    """One of the two limits must be above 0."""
    with pytest.raises(ValidationError, match="one must be above 0"):
        DefaultPreemptionArgs(min_candidate_nodes_percentage=0, min_candidate_nodes_absolute=0)


class TestViaEviction:
    """Budgets are walls: who could not be evicted is no victim."""

    def test_a_node_whose_victims_are_protected_is_no_candidate(self) -> None:
        """Even if the others cost a more important pod; without such nodes the pod waits."""
        pods = [
            a_victim("web", "n1", "2", labels={"app": "web"}),
            a_victim("important", "n2", "2", priority=50),
        ]
        scheduler = a_scheduler(small("n1", "n2"), pods, via_eviction=True)
        protect(scheduler, "wall", allowed=0)

        assert outcome(scheduler, a_preemptor()) == ("n2", ["important"])
        search = decided(scheduler, a_preemptor()).nomination.search
        assert (search.candidates().keys(), search.statuses().keys()) == ({"n2"}, {"n1"})

    @pytest.mark.parametrize("labels", [{"app": "web"}, {}], ids=["labels", "no-labels"])
    def test_a_budget_with_an_empty_selector_protects_all_pods_of_its_namespace(
        self, labels: dict[str, str]
    ) -> None:
        """By the Eviction API and, since 1.38, in preemption; it makes way only if it has to."""
        pods = [
            a_victim("web", "n1", "2", labels=labels),
            a_victim("important", "n2", "2", priority=50, namespace="other"),
        ]
        for evicts in (True, False):
            scheduler = a_scheduler(small("n1", "n2"), pods, via_eviction=evicts)
            protect(scheduler, "wall", allowed=0, selector={})

            assert outcome(scheduler, a_preemptor()) == ("n2", ["important"])

    @pytest.mark.parametrize("spread", [False, True], ids=["at-once", "one-by-one"])
    def test_a_pod_that_only_protected_pods_could_make_room_for_waits(self, spread: bool) -> None:
        """It says what is in the way; upstream would break the budget."""
        pods = [a_victim("web", "n1", "2", labels={"app": "web"})]
        # Hard anti-affinity makes filters look at pods, so that nodes are tried one by one.
        apart = {
            "requiredDuringSchedulingIgnoredDuringExecution": [
                {"labelSelector": {"matchLabels": {"x": "y"}}, "topologyKey": "kubernetes.io/hostname"}
            ]
        }
        more = {"affinity": {"podAntiAffinity": apart}} if spread else {}
        walled = a_scheduler(small("n1", "n2", cpu="2"), [*pods, a_victim("b", "n2", "2", 200)])
        strict = a_scheduler(
            small("n1", "n2", cpu="2"), [*pods, a_victim("b", "n2", "2", 200)], via_eviction=True
        )
        for scheduler in (walled, strict):
            protect(scheduler, "wall", allowed=0)

        assert outcome(walled, a_preemptor(**more)) == ("n1", ["web"])
        decision = decided(strict, a_preemptor(**more))
        assert (decision.nomination.node, decision.nomination.victims) == ("", ())
        assert decision.message.endswith(
            "preemption: 0/2 nodes are available: 1 No preemption victims found for incoming pod,"
            " 1 node(s) whose victims a PodDisruptionBudget protects."
        )

    def test_what_the_budget_allows_is_taken(self) -> None:
        """And not one pod more."""
        pods = [a_victim(name, "n1", "1", labels={"app": "web"}) for name in ("a", "b")]
        scheduler = a_scheduler(small("n1"), pods, via_eviction=True)
        protect(scheduler, "wall", allowed=1)

        assert len(outcome(scheduler, a_preemptor(cpu="1"))[1]) == 1
        assert outcome(scheduler, a_preemptor(cpu="2")) == ("", [])

    def test_a_pod_that_two_budgets_cover_cannot_be_evicted(self) -> None:
        """The Eviction API answers with an error, whatever they allow."""
        pods = [
            a_victim("web", "n1", "2", labels={"app": "web"}),
            a_victim("important", "n2", "2", priority=50),
        ]
        scheduler = a_scheduler(small("n1", "n2"), pods, via_eviction=True)
        protect(scheduler, "one", allowed=5)
        protect(scheduler, "two", allowed=5)

        assert outcome(scheduler, a_preemptor()) == ("n2", ["important"])

    def test_a_budget_that_recovers_makes_candidates_again(self) -> None:
        """What was kept of the last attempt is forgotten when a budget changes."""
        pods = [a_victim("web", "n1", "2", labels={"app": "web"})]
        scheduler = a_scheduler(small("n1"), pods, via_eviction=True)
        protect(scheduler, "wall", allowed=0)
        assert outcome(scheduler, a_preemptor()) == ("", [])
        protect(scheduler, "wall", allowed=1)

        assert outcome(scheduler, a_preemptor()) == ("n1", ["web"])

    @pytest.mark.parametrize(("via_eviction", "waits"), [(True, True), (False, False)])
    def test_pods_that_were_evicted_are_waited_for(self, via_eviction: bool, waits: bool) -> None:
        """On the nominated node, as for those that were deleted."""
        leaving = a_pod(
            "web",
            node="n1",
            cpu="2",
            metadata={"deletionTimestamp": "2026-01-01T00:00:00Z"},
            status={
                "conditions": [
                    {"type": "DisruptionTarget", "status": "True", "reason": "EvictionByEvictionAPI"}
                ]
            },
        )
        scheduler = a_scheduler(small("n1"), [leaving], via_eviction=via_eviction)
        pod = scheduler.cluster.templates.info(a_preemptor())
        scheduler.nominator.add(pod, "n1")

        message = schedule(scheduler, pod).message
        assert ("not eligible due to a terminating pod on the nominated node." in message) is waits


@pytest.mark.parametrize(("priority", "victims"), [(99, ["v"]), (100, []), (101, [])])
def test_only_pods_of_lower_priority_are_evicted(priority: int, victims: list[str]) -> None:
    """A pod of the same priority stays, however little room is lacking."""
    nomination = decided(
        a_scheduler(small("n1"), [a_victim("v", "n1", "2", priority)]), a_preemptor("1", priority=100)
    ).nomination

    assert nomination is not None
    assert [victim.name for victim in nomination.victims] == victims


def test_a_node_that_claims_room_without_the_wanted_label_attracts_no_pod() -> None:
    """What selects pods by a label that kubelets may not set is safe from a node that claims anything."""
    label = "node-restriction.kubernetes.io/team"
    nodes = [
        a_node("boaster", cpu="100000", labels={"team": "a"}),
        a_node("own", cpu="4", labels={label: "a"}),
    ]
    pod = a_pod("p", cpu="1", nodeSelector={label: "a"})

    assert decided(a_scheduler(nodes, []), pod).node == "own"
    assert decided(a_scheduler(nodes[:1], []), pod).outcome is AttemptOutcome.UNSCHEDULABLE
