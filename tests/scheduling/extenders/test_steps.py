"""Attempts with extenders, as values: their asks, their answers, and a cluster that changes meanwhile."""

import dataclasses
import json
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from planning.builders import SURROUNDINGS, Named, a_rebalancing
from plimsoll.engine.attempt import schedule
from plimsoll.engine.decision import AttemptOutcome
from plimsoll.engine.extender import EXTENDER, Extender, interested
from plimsoll.engine.profile import Enabled, ProfileConfig, build_profile
from plimsoll.engine.scheduler import ProfileScheduler
from plimsoll.framework import Registry
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.planning.planners import proven_plan as plan
from plimsoll.plugins import DEFAULT_PLUGINS, IN_TREE
from plimsoll.scheduling.extenders.asks import Failure, NodeDocuments
from plimsoll.scheduling.extenders.consultation import Consultation
from plimsoll.scheduling.extenders.steps import ROUNDS, schedule_steps
from plimsoll.scheduling.extenders.wire import AnswerError
from plimsoll.testing.builders import a_cluster, a_node, a_pod

FILTER = Extender("http://f", filter_verb="filter", node_cache_capable=True)
SCORE = Extender("http://s", prioritize_verb="prioritize", weight=5, node_cache_capable=True)
PREEMPT = Extender("http://p", preempt_verb="preempt", node_cache_capable=True)


def a_scheduler(cluster: Any) -> Any:
    defaults = [Enabled(name, weight) for name, weight in DEFAULT_PLUGINS.items()]
    return ProfileScheduler(build_profile(ProfileConfig("s"), Registry(IN_TREE), defaults), cluster)


def three(*pods: Any, **more: Any) -> Any:
    return a_cluster([a_node("a", **more), a_node("b", **more), a_node("c", **more)], pods)


class Answers:
    """Carries asks out: a function of the question by point; a text is a failure."""

    def __init__(self, **by_point: Any) -> None:
        self.by_point = by_point
        self.asked: list[Any] = []

    def to(self, ask: Any) -> Any:
        body = json.loads(ask.body(b'{"metadata":{}}'))
        self.asked.append((ask.point, ask.extender.name, body))
        answer = self.by_point[ask.point]
        answer = answer(body) if callable(answer) else answer
        if isinstance(answer, str):
            return Failure(answer)
        try:
            return ask.read(json.dumps(answer).encode())
        except AnswerError as exc:
            return Failure(str(exc))

    @property
    def points(self) -> Any:
        return [point for point, _, _ in self.asked]


def decide(cluster: Any, pod: Any, answers: Any, *extenders: Any, scheduler: Any = None) -> Any:
    """The decision, all asks carried out."""
    info = cluster.templates.info(pod)
    steps = schedule_steps(
        scheduler or a_scheduler(cluster), info, interested(extenders, info), NodeDocuments()
    )
    try:
        asks = next(steps)
        while True:
            asks = steps.send(tuple(answers.to(ask) for ask in asks))
    except StopIteration as end:
        return end.value


def only(*names: Any) -> Any:
    return lambda body: {"NodeNames": [name for name in body["NodeNames"] if name in names]}


# -- filter ------------------------------------------------------------------------------------------


def test_a_pod_goes_where_the_extender_lets_it() -> None:
    """It is given the feasible nodes only."""
    answers = Answers(filter=only("b"))
    pods = [a_pod("full", cpu="4", node="a")]

    decision = decide(three(*pods), a_pod("p", cpu="1"), answers, FILTER)

    assert (decision.outcome, decision.node) == (AttemptOutcome.SCHEDULED, "b")
    assert answers.asked[0][2]["NodeNames"] == ["b", "c"]


def test_each_extender_is_given_what_those_before_it_left() -> None:
    """And the ignorable ones come last, in whatever order they are written."""
    answers = Answers(filter=lambda body: {"NodeNames": body["NodeNames"][1:]})
    extenders = [
        Extender(f"http://{name}", filter_verb="filter", node_cache_capable=True, ignorable=name == "x")
        for name in ("x", "y")
    ]

    decision = decide(three(), a_pod("p"), answers, *extenders)

    assert [(name, body["NodeNames"]) for _, name, body in answers.asked] == [
        ("http://y", ["a", "b", "c"]),
        ("http://x", ["b", "c"]),
    ]
    assert decision.node == "c"


@pytest.mark.parametrize("order", [(SCORE, FILTER), (FILTER, SCORE)])
def test_an_extender_that_only_scores_ends_no_filtering(order: Any) -> None:
    """Those after it are asked, too."""
    answers = Answers(filter=only("b", "c"), prioritize=[{"Host": "c", "Score": 9}])

    assert decide(three(), a_pod("p"), answers, *order).node == "c"
    assert answers.points == ["filter", "prioritize"]


def test_one_that_may_fail_and_does_ends_no_filtering() -> None:
    """The next one that may fail is asked all the same."""
    first, second = (
        Extender(f"http://{name}", filter_verb="filter", node_cache_capable=True, ignorable=True)
        for name in ("down", "up")
    )
    failing = iter(["no answer", {"NodeNames": ["b"]}])

    decision = decide(three(), a_pod("p"), Answers(filter=lambda _body: next(failing)), first, second)

    assert decision.node == "b"


def test_an_extender_without_a_node_cache_is_sent_the_nodes() -> None:
    """As documents of the API; and answers with such."""
    whole = Extender("http://w", filter_verb="filter")
    answers = Answers(filter=lambda body: {"Nodes": {"items": body["Nodes"]["items"][2:]}})

    decision = decide(three(labels={"zone": "z"}), a_pod("p"), answers, whole)

    assert decision.node == "c"
    assert answers.asked[0][2]["Nodes"]["items"][0]["metadata"]["labels"]["zone"] == "z"


def test_refusals_carry_the_words_of_the_extender() -> None:
    """The unresolvable reason wins; a node without a reason is refused all the same; any event helps."""
    refusing = {
        "NodeNames": [],
        "FailedNodes": {"a": "no gpu", "b": "busy"},
        "FailedAndUnresolvableNodes": {"b": "too old"},
    }

    decision = decide(three(), a_pod("p"), Answers(filter=refusing), FILTER)

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.message.startswith("0/3 nodes are available: 1 no gpu, 1 too old. ")
    assert decision.diagnosis.plugins == {EXTENDER}


def test_no_pod_is_preempted_for_a_refusal_of_an_extender() -> None:
    """The filters have no objection, so no victim would change anything, as far as we know."""
    low = a_pod("low", cpu="1", node="a", priority=1)
    refusing = {"NodeNames": [], "FailedNodes": {"a": "no", "b": "no", "c": "no"}}

    decision = decide(three(low), a_pod("p", cpu="1", priority=9), Answers(filter=refusing), FILTER)

    assert not decision.nomination.status.is_success
    assert "3 Preemption is not helpful for scheduling" in decision.message


def test_a_failure_ends_the_attempt_in_the_words_of_upstream() -> None:
    """It is an error, not a refusal: the pod backs off."""
    decision = decide(three(), a_pod("p"), Answers(filter="failed filter, code 500"), FILTER)

    assert (decision.outcome, decision.message) == (AttemptOutcome.ERROR, "failed filter, code 500")
    assert decision.diagnosis is None


def test_an_ignorable_extender_that_fails_is_done_without() -> None:
    """The nodes that it was given go on."""
    ignorable = Extender("http://i", filter_verb="filter", node_cache_capable=True, ignorable=True)

    decision = decide(three(), a_pod("p"), Answers(filter="no answer"), ignorable)

    assert decision.outcome is AttemptOutcome.SCHEDULED


def test_no_extender_is_asked_where_nothing_is_feasible() -> None:
    """As upstream; and the message is the filters'."""
    answers = Answers()

    decision = decide(three(), a_pod("p", cpu="9"), answers, FILTER, SCORE)

    assert answers.asked == []
    assert decision.message.startswith("0/3 nodes are available: 3 Insufficient cpu.")
    assert decision.diagnosis.plugins == {"NodeResourcesFit"}


def test_without_nodes_no_extender_is_asked() -> None:
    """The sentence is kube-scheduler's."""
    decision = decide(a_cluster(), a_pod("p"), Answers(), FILTER)

    assert decision.message == "no nodes available to schedule pods"


@pytest.mark.parametrize(
    ("spec", "concerned"),
    [
        pytest.param({"requests": {"example.com/gpu": 1}}, True, id="requests"),
        pytest.param({"requests": {"example.com/other": 1}}, False, id="another"),
        pytest.param(
            {"initContainers": [{"name": "i", "resources": {"limits": {"example.com/gpu": 1}}}]},
            True,
            id="limits-of-an-init-container",
        ),
    ],
)
def test_managed_resources_say_whom_an_extender_concerns(spec: Any, concerned: Any) -> None:
    """A container that names one of them, in requests or limits."""
    extender = Extender("http://g", filter_verb="filter", managed=frozenset({"example.com/gpu"}))
    info = a_cluster().templates.info(a_pod("p", **spec))

    assert interested([extender], info) == ((extender,) if concerned else ())


# -- prioritize --------------------------------------------------------------------------------------


def test_scores_count_ten_times_their_weight() -> None:
    """On top of the plugins' totals."""
    cluster = three()
    scores = [{"Host": "a", "Score": 0}, {"Host": "b", "Score": 7}, {"Host": "stranger", "Score": 10}]

    decision = decide(cluster, a_pod("p"), Answers(prioritize=scores), SCORE)
    plain = schedule(a_scheduler(cluster), cluster.templates.info(a_pod("p")))

    # 7 * weight 5 * 100 / 10 = 350
    assert (decision.node, decision.total) == ("b", plain.total + 350)  # type: ignore[operator] # known to exist in this test


def test_all_prioritizers_are_asked_and_those_that_fail_give_nothing() -> None:
    """Whether or not they may be ignored."""
    second = Extender("http://t", prioritize_verb="prioritize", weight=1, node_cache_capable=True)

    def scores(body: Any) -> Any:
        return [{"Host": "c", "Score": 1}]

    calls = iter(["no answer", scores])
    answers = Answers()
    answers.by_point["prioritize"] = lambda body: one(body) if callable(one := next(calls)) else one

    decision = decide(three(), a_pod("p"), answers, SCORE, second)

    assert decision.node == "c"
    assert answers.points == ["prioritize", "prioritize"]


def test_a_single_node_needs_no_scores() -> None:
    """As upstream."""
    answers = Answers(filter=only("b"))

    decision = decide(three(), a_pod("p"), answers, FILTER, SCORE)

    assert (decision.node, answers.points) == ("b", ["filter"])


def test_scores_beyond_all_bounds_overflow_nothing() -> None:
    """The largest score and weight that are taken at all."""
    heavy = Extender("http://h", prioritize_verb="prioritize", weight=2**31 - 1, node_cache_capable=True)

    decision = decide(three(), a_pod("p"), Answers(prioritize=[{"Host": "c", "Score": 2**31}]), heavy)

    assert decision.node == "c"


# -- the cluster moves on ----------------------------------------------------------------------------


def test_a_node_that_was_taken_meanwhile_is_not_taken_twice() -> None:
    """The filters are asked again when the answer comes."""
    cluster = three()

    def slow(body: Any) -> Any:
        for node in ("a", "b"):
            cluster.place(cluster.templates.info(a_pod(f"other-{node}", cpu="4")), node)
        return {"NodeNames": body["NodeNames"]}

    decision = decide(cluster, a_pod("p", cpu="1"), Answers(filter=slow), FILTER)

    assert decision.node == "c"


def test_a_node_that_was_taken_while_scores_were_asked_is_not_chosen() -> None:
    """However good the extender thinks it is."""
    cluster = three()

    def slow(body: Any) -> Any:
        cluster.place(cluster.templates.info(a_pod("other", cpu="4")), "b")
        return [{"Host": "b", "Score": 10}]

    decision = decide(cluster, a_pod("p", cpu="1"), Answers(prioritize=slow), SCORE)

    assert decision.node in ("a", "c")


def test_a_node_that_is_gone_is_not_chosen() -> None:
    """Nor does it break anything."""
    cluster = three()

    def slow(body: Any) -> Any:
        cluster.remove_node("b")
        return {"NodeNames": ["b"]}

    answers = Answers(filter=slow)
    decision = decide(cluster, a_pod("p", cpu="1"), answers, FILTER)

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert decision.diagnosis.plugins == {EXTENDER}


def test_room_that_came_up_meanwhile_is_asked_about() -> None:
    """The attempt begins again, instead of telling that nothing fits."""
    cluster = three(a_pod("full", cpu="4", node="c"))
    asked = []

    def slow(body: Any) -> Any:
        asked.append(body["NodeNames"])
        if len(asked) == 1:
            cluster.displace("uid-default-full")
            return {"NodeNames": []}
        return {"NodeNames": ["c"]}

    decision = decide(cluster, a_pod("p", cpu="1"), Answers(filter=slow), FILTER)

    assert asked == [["a", "b"], ["a", "b", "c"]]
    assert decision.node == "c"


def test_a_cluster_that_does_not_stand_still_is_given_up() -> None:
    """After some rounds, with an error: the pod backs off."""
    cluster = three()
    count = iter(range(100))

    def slow(body: Any) -> Any:
        cluster.set_node(a_node(f"new-{next(count)}"))
        return {"NodeNames": []}

    answers = Answers(filter=slow)
    decision = decide(cluster, a_pod("p"), answers, FILTER)

    assert decision.outcome is AttemptOutcome.ERROR
    assert len(answers.asked) == ROUNDS
    assert "taken by others 3 times" in decision.message


# -- the nominated node ------------------------------------------------------------------------------


def test_the_nominated_node_is_asked_about_alone() -> None:
    """And taken without a score."""
    answers = Answers(filter=only("a", "b", "c"))

    decision = decide(three(), a_pod("p", status={"nominatedNodeName": "b"}), answers, FILTER, SCORE)

    assert decision.node == "b"
    assert [body["NodeNames"] for _, _, body in answers.asked] == [["b"]]


def test_a_nominated_node_that_is_refused_leaves_the_others() -> None:
    """They are asked about as usual; so they are when the extender fails at the first."""
    answers = Answers(filter=only("a"))

    decision = decide(three(), a_pod("p", status={"nominatedNodeName": "b"}), answers, FILTER)

    assert decision.node == "a"
    assert [body["NodeNames"] for _, _, body in answers.asked] == [["b"], ["a", "b", "c"]]


# -- preemption --------------------------------------------------------------------------------------


def full() -> Any:
    """Three full nodes with one victim each, of rising priority."""
    return three(
        *(
            a_pod(f"low-{node}", cpu="4", node=node, priority=priority)
            for node, priority in (("a", 1), ("b", 2), ("c", 3))
        )
    )


URGENT = a_pod("urgent", cpu="4", priority=9)


def victims_on(*nodes: Any, **pods: Any) -> Any:
    return lambda body: {
        "NodeNameToMetaVictims": {
            node: {"Pods": pods.get(node, body["NodeNameToMetaVictims"][node]["Pods"])} for node in nodes
        }
    }


def test_an_extender_narrows_the_candidates() -> None:
    """The best of those that it leaves is nominated."""
    answers = Answers(preempt=victims_on("b", "c"))

    decision = decide(full(), URGENT, answers, PREEMPT)

    assert decision.nomination.node == "b"
    assert [victim.pod.name for victim in decision.nomination.victims] == ["low-b"]
    assert answers.asked[0][2]["NodeNameToMetaVictims"].keys() == {"a", "b", "c"}


def test_an_extender_without_a_node_cache_sees_the_victims() -> None:
    """As pods."""
    whole = Extender("http://w", preempt_verb="preempt")

    def answer(body: Any) -> Any:
        (victim,) = body["NodeNameToVictims"]["c"]["Pods"]
        return {"NodeNameToMetaVictims": {"c": {"Pods": [{"UID": victim["metadata"]["uid"]}]}}}

    assert decide(full(), URGENT, Answers(preempt=answer), whole).nomination.node == "c"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        pytest.param("no answer", "no answer", id="failure"),
        pytest.param(victims_on("a", a=[]), 'expected at least one victim pod on node "a"', id="nobody"),
        pytest.param(
            victims_on("a", a=[{"UID": "who"}]), "claims to preempt pod (UID: who) on node: a", id="stranger"
        ),
        pytest.param(
            {"NodeNameToMetaVictims": {"z": {"Pods": [{"UID": "who"}]}}},
            'node "z", which was no',
            id="elsewhere",
        ),
    ],
)
def test_an_invalid_answer_preempts_no_pod(answer: Any, sentence: Any) -> None:
    """The pod stays unschedulable and has the reason."""
    decision = decide(full(), URGENT, Answers(preempt=answer), PREEMPT)

    assert decision.outcome is AttemptOutcome.UNSCHEDULABLE
    assert not decision.nomination.status.is_success
    assert decision.nomination.victims == ()
    assert (
        '3 Insufficient cpu. running PostFilter plugin "DefaultPreemption": preemption: ' in decision.message
    )
    assert sentence in decision.message


def test_a_pod_of_higher_priority_is_nobodys_victim() -> None:
    """An extender may not name it."""
    cluster = full()
    cluster.set_node(a_node("a", cpu="5"))
    cluster.place(cluster.templates.info(a_pod("boss", cpu="1", priority=10)), "a")
    answers = Answers(preempt=victims_on("a", a=[{"UID": "uid-default-boss"}]))

    decision = decide(cluster, URGENT, answers, PREEMPT)

    assert decision.nomination.victims == ()
    assert "no pod of lower priority" in decision.message


def test_an_ignorable_extender_that_fails_spares_no_victim() -> None:
    """Preemption goes on without it; nodes that it leaves without victims are dropped."""
    ignorable = Extender("http://i", preempt_verb="preempt", node_cache_capable=True, ignorable=True)

    failed = decide(full(), URGENT, Answers(preempt="no answer"), ignorable)
    partly = decide(full(), URGENT, Answers(preempt=victims_on("a", "b", a=[])), ignorable)

    assert failed.nomination.node == "a"
    assert partly.nomination.node == "b"


def test_an_extender_may_spare_everybody() -> None:
    """In upstream's words."""
    decision = decide(full(), URGENT, Answers(preempt={"NodeNameToMetaVictims": {}}), PREEMPT)

    assert not decision.nomination.status.is_success
    assert decision.message.endswith("preemption: no candidate node for preemption")


def test_no_pod_goes_when_a_node_became_feasible() -> None:
    """The attempt begins again, and finds it."""
    cluster = full()

    def slow(body: Any) -> Any:
        cluster.displace("uid-default-low-c")
        return victims_on("a", "b")(body)

    decision = decide(cluster, URGENT, Answers(preempt=slow), PREEMPT)

    assert (decision.outcome, decision.node) == (AttemptOutcome.SCHEDULED, "c")


def test_a_victim_that_left_meanwhile_is_no_victim() -> None:
    """Its node is dropped; what remains of the others is chosen from."""
    cluster = full()
    cluster.set_node(a_node("a", cpu="8"))
    cluster.place(cluster.templates.info(a_pod("firm", cpu="4", priority=10)), "a")

    def slow(body: Any) -> Any:
        # The victim's place on a is taken by a pod that cannot be preempted.
        cluster.displace("uid-default-low-a")
        cluster.place(cluster.templates.info(a_pod("firm-too", cpu="4", priority=10)), "a")
        return victims_on("a", "b")(body)

    decision = decide(cluster, URGENT, Answers(preempt=slow), PREEMPT)

    assert decision.nomination.node == "b"


# -- rebalancing -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("extender", "moves"),
    [
        pytest.param(FILTER, 0, id="filters"),
        pytest.param(SCORE, 0, id="scores"),
        pytest.param(PREEMPT, 1, id="preempts-only"),
        pytest.param(
            Extender("http://m", filter_verb="f", managed=frozenset({"a/b"})), 1, id="not-concerned"
        ),
    ],
)
def test_a_pod_that_an_extender_places_is_not_moved(extender: Any, moves: Any) -> None:
    """Its next node cannot be proved, and no pod is evicted on a guess."""
    pods = [a_pod("p", cpu="1", node="a"), a_pod("q", cpu="2", node="a")]
    cluster = a_cluster([a_node("a"), a_node("b")], pods)
    rebalancing = a_rebalancing(Named("p"))
    profiles = {
        name: dataclasses.replace(one, extenders=(extender,)) for name, one in rebalancing.profiles.items()
    }

    made = plan(replace(rebalancing, profiles=profiles), cluster, SURROUNDINGS)

    assert len(made.moves) == moves
    assert made.refused_by_reason() == ({} if moves else {"PlacedByExtender": 1})


@pytest.mark.parametrize("gone", [(), ("a",), ("b",), ("a", "b")])
def test_victims_of_an_extender_are_all_on_the_node(gone: tuple[str, ...]) -> None:
    """An extender's answer may name one that has left, and then the node is no candidate."""
    cluster = a_cluster([a_node("n1")], [a_pod(name, node="n1") for name in "ab"])
    victims = [*cluster.pods.values()]
    here: dict[str, PodInfo] = {each.uid: each for each in victims if each.name not in gone}
    asking: Any = SimpleNamespace(cluster=cluster)

    assert Consultation._may_go(asking, victims, here) is not bool(gone)
