"""Of a pod that evictors let go, they are asked again when something that they read has changed."""

from typing import Any, ClassVar

import pytest
from msgspec.structs import replace

from plimsoll.framework import NoArgs, PodInfo
from plimsoll.framework.descheduling import Evictor, Refusal, StrategyContext
from plimsoll.framework.descheduling.measurements import Measurements
from plimsoll.testing.builders import a_node, a_pod
from strategies.builders import a_context


class Asked(Evictor):
    """Notes who was asked about, and refuses what is in ``kept``."""

    name: ClassVar = "Asked"
    args_model: ClassVar = NoArgs

    def __init__(self) -> None:
        self.pods: list[str] = []
        self.kept: dict[str, Refusal] = {}

    def filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        self.pods.append(pod.name)
        return self.kept.get(pod.name)

    def pre_eviction_filter(self, pod: PodInfo, context: StrategyContext) -> Refusal | None:
        self.pods.append(pod.name)
        return None


@pytest.fixture
def asked() -> Asked:
    return Asked()


@pytest.fixture
def context(asked: Asked) -> StrategyContext:
    pods = [a_pod(name, node="n0") for name in ("one", "other")] + [a_pod("waiting")]
    made = a_context([a_node("n0"), a_node("n1")], pods, exact=False)
    return replace(made, evictors=(asked,))


def the(name: str, context: StrategyContext) -> PodInfo:
    return next(pod for pod in context.cluster.pods.values() if pod.name == name)


def a_move(context: StrategyContext) -> None:
    pod = the("other", context)
    context.cluster.displace(pod.uid)
    context.cluster.place(pod, "n1")


def a_pod_less(context: StrategyContext) -> None:
    context.unplaced.discard(next(iter(context.unplaced)).uid)


def a_measurement(context: StrategyContext) -> None:
    context.measurements = Measurements()


def test_a_pod_that_goes_is_asked_about_once(context: StrategyContext, asked: Asked) -> None:
    pod = the("one", context)
    assert all(context.may_go(pod) for _ in range(3))
    assert asked.pods == ["one"] * 2  # by each of both checks


@pytest.mark.parametrize("change", [a_move, a_pod_less, a_measurement])
def test_a_change_ends_what_was_known(context: StrategyContext, asked: Asked, change: Any) -> None:
    pod = the("one", context)
    assert context.may_go(pod)
    change(context)
    asked.kept["one"] = Refusal("Kept", "it stays")
    assert not context.may_go(pod)


def test_a_refusal_is_asked_for_again(context: StrategyContext, asked: Asked) -> None:
    pod = the("one", context)
    asked.kept["one"] = Refusal("Kept", "it stays")
    assert not context.may_go(pod, "wanted")
    assert not context.may_go(pod, "wanted")
    assert [each.refusal.reason for each in context.protected] == ["Kept"] * 2


def test_another_view_asks_its_own_evictors(context: StrategyContext, asked: Asked) -> None:
    pod = the("one", context)
    assert context.may_go(pod)
    strict = Asked()
    strict.kept["one"] = Refusal("Kept", "it stays")
    view = replace(context, evictors=(strict,), kept={})
    assert not view.may_go(pod)
    assert context.may_go(pod)
    assert asked.pods == ["one"] * 2


def test_what_a_surge_lifts_is_not_known_as_unprotected(context: StrategyContext, asked: Asked) -> None:
    class Lifting:
        def lift(self, pod: PodInfo, refusal: Refusal) -> Refusal | None:
            return None

    pod = the("one", context)
    asked.kept["one"] = Refusal("LastReady", "it is the only one", yields_to_surge=True)
    context.surges = Lifting()
    assert context.is_evictable(pod)
    assert pod.uid not in context.present.evictable
