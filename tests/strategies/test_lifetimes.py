"""PodLifeTime, RemovePodsHavingTooManyRestarts, RemoveFailedPods: pods that have been in a state too long."""

from datetime import timedelta
from typing import Any

import pytest
from pydantic import ValidationError

from plimsoll.framework.descheduling.strategy import Strategy
from plimsoll.model.kinds.pod import Pod
from plimsoll.strategies.default_evictor import DefaultEvictor
from plimsoll.strategies.pod_life_time import PodLifeTime
from plimsoll.strategies.remove_failed_pods import RemoveFailedPods
from plimsoll.strategies.remove_pods_having_too_many_restarts import RemovePodsHavingTooManyRestarts
from plimsoll.testing.builders import a_node, a_pod
from plimsoll.testing.strategy_conformance import StrategyConformance
from strategies.builders import NOW, a_context, a_strategy, an_evictor, evicted

NODES = [a_node("n1"), a_node("n2")]


def at(seconds: int) -> str:
    """An API timestamp so many seconds before the run."""
    return (NOW - timedelta(seconds=seconds)).strftime("%Y-%m-%dT%H:%M:%SZ")


def a_waiting(reason: str, name: str = "main") -> dict[str, Any]:
    return {"name": name, "state": {"waiting": {"reason": reason}}}


def an_ended(reason: str = "Error", code: int = 1, name: str = "main") -> dict[str, Any]:
    return {"name": name, "state": {"terminated": {"reason": reason, "exitCode": code}}}


def an_old(
    name: str = "p", age: int = 605, owner: str = "ReplicaSet/web", node: str = "n1", **kwargs: Any
) -> Pod:
    return a_pod(name, node=node, owner=owner, metadata={"creationTimestamp": at(age)}, **kwargs)


def goes(
    strategy: Strategy,
    *pods: Pod,
    evictor: DefaultEvictor | None = None,
    per_node: int | None = None,
    exact: bool = True,
) -> list[str]:
    return evicted(strategy, a_context(NODES, pods, evictor=evictor, exact=exact), per_node=per_node)


class TestPodLifeTime:
    """Categories are ANDed, values within one ORed."""

    @pytest.mark.parametrize(("age", "expected"), [(605, ["p"]), (600, []), (601, ["p"]), (-5, [])])
    def test_age_must_exceed_the_limit(self, age: int, expected: list[str]) -> None:
        """Strictly, in whole seconds; the future is not old."""
        assert goes(a_strategy(PodLifeTime, maxPodLifeTimeSeconds=600), an_old(age=age)) == expected

    def test_the_oldest_goes_first_over_all_nodes(self) -> None:
        """A closed node does not end it: the list is one."""
        pods = [an_old("a", 700), an_old("b", 900, node="n2"), an_old("c", 800)]
        strategy = a_strategy(PodLifeTime, maxPodLifeTimeSeconds=600)

        assert goes(strategy, *pods) == ["b", "c", "a"]
        assert goes(strategy, *pods, per_node=1) == ["b", "c"]

    @pytest.mark.parametrize(
        ("args", "status", "expected"),
        [
            ({"states": ["Running"]}, {"phase": "Running"}, True),
            ({"states": ["Shutdown"]}, {"phase": "Failed", "reason": "Shutdown"}, True),
            ({"states": ["ErrImagePull"]}, {"containerStatuses": [a_waiting("ErrImagePull")]}, True),
            ({"states": ["OOMKilled"]}, {"containerStatuses": [an_ended("OOMKilled")]}, True),
            (
                {"states": ["CreateContainerError"]},
                {"initContainerStatuses": [a_waiting("CreateContainerError")]},
                False,
            ),
            (
                {"states": ["CreateContainerError"], "includingInitContainers": True},
                {"initContainerStatuses": [a_waiting("CreateContainerError")]},
                True,
            ),
            (
                {"states": ["Error"], "includingEphemeralContainers": True},
                {"ephemeralContainerStatuses": [an_ended()]},
                True,
            ),
            ({"exitCodes": [1]}, {"containerStatuses": [an_ended(code=1)]}, True),
            ({"exitCodes": [2]}, {"containerStatuses": [an_ended(code=1)]}, False),
            (
                {"conditions": [{"type": "Ready", "status": "False"}]},
                {"conditions": [{"type": "Ready", "status": "False"}]},
                True,
            ),
            (
                {"conditions": [{"type": "Ready", "status": "True"}]},
                {"conditions": [{"type": "Ready", "status": "False"}]},
                False,
            ),
            (
                {"conditions": [{"reason": "Why"}]},
                {"conditions": [{"type": "Ready", "reason": "Not"}]},
                False,
            ),
            ({"conditions": [{"type": "Other"}]}, {"conditions": [{"type": "Ready"}]}, False),
            (
                {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 60}]},
                {"conditions": [{"type": "Ready", "lastTransitionTime": at(61)}]},
                True,
            ),
            (
                {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 60}]},
                {
                    "conditions": [
                        {"type": "Ready", "lastTransitionTime": at(5)},
                        {"type": "X", "lastTransitionTime": at(99)},
                    ]
                },
                False,
            ),
            (
                {"conditions": [{"type": "Ready", "minTimeSinceLastTransitionSeconds": 60}]},
                {"conditions": [{"type": "Ready"}]},
                False,
            ),
        ],
    )
    def test_states_conditions_and_exit_codes(
        self, args: dict[str, Any], status: dict[str, Any], expected: bool
    ) -> None:
        """One value of the category must agree, in the containers that count."""
        assert bool(goes(a_strategy(PodLifeTime, **args), an_old(status=status))) is expected

    def test_all_categories_must_agree(self) -> None:
        """An old pod in another state stays, and so does a young one in that state."""
        strategy = a_strategy(PodLifeTime, maxPodLifeTimeSeconds=600, states=["Running"])

        assert goes(strategy, an_old("p"), an_old("q", 10), an_old("r", status={"phase": "Pending"})) == ["p"]

    def test_owner_kinds(self) -> None:
        """Included kinds only, or all but the excluded ones."""
        pods = [an_old("job", owner="Job/x"), an_old("web")]

        def strategy(**kinds: Any) -> Any:
            return a_strategy(PodLifeTime, maxPodLifeTimeSeconds=600, ownerKinds=kinds)

        assert goes(strategy(include=["Job"]), *pods) == ["job"]
        assert goes(strategy(exclude=["Job"]), *pods) == ["web"]

    @pytest.mark.parametrize(
        ("args", "message"),
        [
            ({}, "at least one filtering criterion"),
            ({"states": ["Sleeping"]}, "states must be one of"),
            ({"conditions": [{}]}, "at least one of type, status, reason"),
            (
                {"states": ["Running"], "ownerKinds": {"include": ["a"], "exclude": ["b"]}},
                "only one of Include/Exclude",
            ),
            ({"maxPodLifeTimeSeconds": -1}, "greater than or equal to 0"),
        ],
    )
    def test_arguments_that_make_no_sense_are_refused(self, args: dict[str, Any], message: str) -> None:
        """With upstream's words."""
        with pytest.raises(ValidationError, match=message):
            a_strategy(PodLifeTime, **args)


def restarted(name: str = "p", count: int = 4, init: int = 0, node: str = "n1", **status: Any) -> Pod:
    statuses = {
        "containerStatuses": [{"name": "main", "restartCount": count, **status.pop("container", {})}],
        "initContainerStatuses": [{"name": "init", "restartCount": init, **status.pop("init_container", {})}],
    }
    return a_pod(name, node=node, owner="ReplicaSet/web", status={**statuses, **status})


class TestTooManyRestarts:
    """Restarts are summed over the containers."""

    def test_the_threshold_itself_is_too_many(self) -> None:
        """One below is not."""
        strategy = a_strategy(RemovePodsHavingTooManyRestarts, podRestartThreshold=4)

        assert goes(strategy, restarted("p", 4), restarted("q", 3)) == ["p"]

    def test_namespaces_narrow_it(self) -> None:
        """Pods of other namespaces may restart as they like."""
        strategy = a_strategy(
            RemovePodsHavingTooManyRestarts, podRestartThreshold=1, namespaces={"exclude": ["default"]}
        )

        assert goes(strategy, restarted("p", 4)) == []

    def test_the_most_restarted_goes_first(self) -> None:
        """Node by node; the node limit ends the node."""
        strategy = a_strategy(RemovePodsHavingTooManyRestarts, podRestartThreshold=1)
        pods = [restarted("p", 4), restarted("q", 9), restarted("r", 5, node="n2")]

        assert goes(strategy, *pods) == ["q", "p", "r"]
        assert goes(strategy, *pods, per_node=1) == ["q", "r"]

    def test_init_containers_count_on_request(self) -> None:
        """Their restarts and their states."""
        looping = {"state": {"waiting": {"reason": "CrashLoopBackOff"}}}
        pod = restarted(count=1, init=9, init_container=looping, phase="Pending")

        def strategy(**args: Any) -> Any:
            return a_strategy(RemovePodsHavingTooManyRestarts, podRestartThreshold=5, **args)

        assert goes(strategy(), pod) == []
        assert goes(strategy(includingInitContainers=True), pod) == ["p"]
        assert goes(strategy(includingInitContainers=True, states=["CrashLoopBackOff"]), pod) == ["p"]
        assert goes(strategy(includingInitContainers=True, states=["Running"]), pod) == []

    @pytest.mark.parametrize(
        "args", [{}, {"podRestartThreshold": 0}, {"podRestartThreshold": 1, "states": ["x"]}]
    )
    def test_arguments_that_make_no_sense_are_refused(self, args: dict[str, Any]) -> None:
        """A threshold from 1, states from the two."""
        with pytest.raises(ValidationError):
            a_strategy(RemovePodsHavingTooManyRestarts, **args)


def failed(
    name: str = "p",
    age: int = 4000,
    *statuses: dict[str, Any],
    owner: str = "ReplicaSet/web",
    init: list[dict[str, Any]] | tuple[Any, ...] = (),
    node: str = "n1",
    **status: Any,
) -> Pod:
    return an_old(
        name,
        age,
        owner=owner,
        node=node,
        status={"phase": "Failed", "containerStatuses": statuses, "initContainerStatuses": init, **status},
    )


class TestRemoveFailedPods:
    """Only phase Failed, an hour old unless said otherwise."""

    @pytest.mark.parametrize(
        ("args", "pod", "expected"),
        [
            ({}, failed(), True),
            ({}, failed("p", 3599), False),
            ({"minPodLifetimeSeconds": 0}, failed("p", 1), True),
            ({}, an_old(age=4000), False),
            ({"reasons": ["Error"]}, failed("p", 4000, an_ended("Error")), True),
            ({"reasons": ["Evicted"]}, failed(reason="Evicted"), True),
            ({"reasons": ["Other"]}, failed("p", 4000, an_ended("Error")), False),
            ({"reasons": ["Error"]}, failed(init=[an_ended("Error")]), False),
            ({"reasons": ["Error"], "includingInitContainers": True}, failed(init=[an_ended("Error")]), True),
            ({"exitCodes": [1]}, failed("p", 4000, an_ended(code=1)), True),
            ({"exitCodes": [1], "reasons": ["Other"]}, failed("p", 4000, an_ended(code=1)), False),
            ({"exitCodes": [2]}, failed("p", 4000, an_ended(code=1)), False),
            ({"excludeOwnerKinds": ["ReplicaSet"]}, failed(), False),
            ({"excludeOwnerKinds": ["DaemonSet"]}, failed(), True),
        ],
    )
    def test_failed_pods_go(self, args: dict[str, Any], pod: Pod, expected: bool) -> None:
        """When all that is given agrees."""
        assert bool(goes(a_strategy(RemoveFailedPods, **args), pod)) is expected

    def test_bare_pods_go_when_their_protection_is_off(self) -> None:
        """And only then."""
        pod = failed(owner="")

        assert goes(a_strategy(RemoveFailedPods), pod) == []
        assert goes(a_strategy(RemoveFailedPods), pod, evictor=an_evictor(evictFailedBarePods=True)) == ["p"]

    def test_node_by_node(self) -> None:
        """The node limit ends the node."""
        pods = [failed("p"), failed("q"), failed("r", node="n2")]

        assert goes(a_strategy(RemoveFailedPods), *pods, per_node=1) == ["p", "r"]

    def test_a_pod_from_the_future_is_old_upstream_and_young_here(self) -> None:
        """Upstream counts unsigned seconds."""
        assert goes(a_strategy(RemoveFailedPods), failed("p", -60)) == ["p"]
        assert goes(a_strategy(RemoveFailedPods), failed("p", -60), exact=False) == []


class TestPodLifeTimeConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(PodLifeTime, states=["Running"])


class TestRestartsConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemovePodsHavingTooManyRestarts, podRestartThreshold=1)
    pods = ({}, {"status": {"containerStatuses": [{"name": "main", "restartCount": 3}]}})


class TestFailedConformance(StrategyConformance):
    """The laws every strategy obeys."""

    strategy = a_strategy(RemoveFailedPods)
    pods = ({}, {"status": {"phase": "Failed"}})
