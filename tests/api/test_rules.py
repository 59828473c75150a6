"""Rules across fields: CEL and Python judge alike, so the API server and the model refuse the same."""

from collections.abc import Iterator
from functools import cache
from types import SimpleNamespace
from typing import Any

import pytest
from cel_expr_python import cel
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from plimsoll.api.schema.label_selectors import LabelSelectorRequirementSpec, SelectorOperator
from plimsoll.api.schema.resource import Resource
from plimsoll.api.v1alpha1.adoption import AdoptSpec
from plimsoll.api.v1alpha1.eviction import EvictionSpec, EvictionStatus
from plimsoll.api.v1alpha1.eviction_phases import Phase
from plimsoll.api.v1alpha1.extender import ExtenderSpec, ExtenderTLS, ManagedResource
from plimsoll.api.v1alpha1.limits import EvictionBudget
from plimsoll.api.v1alpha1.metrics_providers import MetricsProviderSpec
from plimsoll.api.v1alpha1.node_maintenance import MaintenanceWindow, NodeMaintenanceSpec
from plimsoll.api.v1alpha1.prometheus import PodQueries, PrometheusProviderSpec, PrometheusTLS, UsageQueries
from plimsoll.api.v1alpha1.rebalancing import RebalancingSpec
from plimsoll.api.v1alpha1.rebalancing_rule import RebalancingRuleSpec
from plimsoll.api.v1alpha1.schedules import Schedule, Window
from plimsoll.api.v1alpha1.scheduling import SchedulingSpec
from plimsoll.api.v1alpha1.scope import NamespaceScope, PriorityThreshold
from plimsoll.framework.field_errors import RULE_BROKEN

CRON_FIELD = st.one_of(
    st.sampled_from(["*", "*/5", "0", "1-5", "7", "8", "12", "13", "23", "24", "31", "32", "59", "60", "61"]),
    st.sampled_from(["mon-fri", "SUN", "jan", "feb-MAR", "monday", "1,2", "1,,2", "*/0", "5-", "-5", "L"]),
    st.text("0123456789*/,-ajn", min_size=1, max_size=6),
)
CRON = st.one_of(
    st.lists(CRON_FIELD, min_size=4, max_size=6).map(" ".join).filter(lambda cron: len(cron) >= 9),
    st.tuples(*[st.sampled_from(["*", "1", "1-3", "2,4", "*/2"])] * 5).map("  ".join),
)
NAMES = st.lists(st.sampled_from(["a", "b", "c"]), unique=True)
MANAGED = st.lists(
    st.sampled_from(["example.com/gpu", "example.com/fpga"]).map(lambda name: {"name": name}),
    unique_by=lambda one: one["name"],
)
EXTENDERS = st.lists(
    st.fixed_dictionaries(
        {"urlPrefix": st.sampled_from(["http://a", "http://b", "http://c"])},
        optional={"bindVerb": st.sampled_from(["", "bind"]), "managedResources": MANAGED},
    ),
    unique_by=lambda one: one["urlPrefix"],
)
TLS = st.fixed_dictionaries(
    {},
    optional={
        "insecure": st.booleans(),
        "caData": st.just("YQ=="),
        "certData": st.just("YQ=="),
        "keyData": st.just("YQ=="),
    },
)
POD_QUERY = st.fixed_dictionaries({"query": st.just("q"), "unit": st.sampled_from(["Cores", "Bytes"])})

WIRE = {
    RebalancingSpec: st.fixed_dictionaries(
        {},
        optional={
            "planner": st.sampled_from(["Proven", "Upstream", "Optimal"]),
            "evictor": st.fixed_dictionaries({}, optional={"nodeFit": st.booleans()}),
            "strategies": st.lists(
                st.fixed_dictionaries(
                    {"name": st.sampled_from(["A", "B", "C"])},
                    optional={"evictor": st.just({"minReplicas": 0})},
                ),
                max_size=3,
            ),
        },
    ),
    AdoptSpec: st.fixed_dictionaries(
        {
            "namespaces": st.fixed_dictionaries(
                {}, optional={"include": NAMES, "exclude": st.just(["d"]), "labelSelector": st.just({})}
            ).filter(lambda chosen: not (chosen.get("include") and chosen.get("exclude")))
        },
        optional={
            "ownerKinds": st.lists(
                st.sampled_from(["ReplicaSet", "Deployment", "CronJob", "Job"]), unique=True
            ),
            "percentage": st.integers(1, 100),
        },
    ),
    ManagedResource: st.fixed_dictionaries(
        {
            "name": st.sampled_from(
                ["example.com/gpu", "kubernetes.io/a", "a.kubernetes.io/b", "requests.example.com/gpu"]
            )
        }
    ),
    ExtenderTLS: TLS,
    ExtenderSpec: st.fixed_dictionaries(
        {"urlPrefix": st.sampled_from(["http://a", "https://a/b"])},
        optional={
            "prioritizeVerb": st.sampled_from(["", "prioritize"]),
            "weight": st.integers(0, 2),
            "enableHTTPS": st.booleans(),
            "tlsConfig": st.sampled_from([{}, {"insecure": True}, {"caData": "YQ=="}, {"insecure": False}]),
            "httpTimeout": st.sampled_from(["0s", "5s", "60s", "1m", "1m1s", "61s", "1h", "100ms"]),
        },
    ),
    SchedulingSpec: st.fixed_dictionaries(
        {"schedulerName": st.just("gpus")}, optional={"extenders": EXTENDERS}
    ),
    Window: st.fixed_dictionaries({"schedule": CRON, "duration": st.just("4h")}),
    RebalancingRuleSpec: st.fixed_dictionaries(
        {},
        optional={
            "podSelector": st.just({"matchLabels": {"app": "db"}}),
            "never": st.booleans(),
            "windows": st.lists(st.just({"schedule": "0 2 * * *", "duration": "4h"}), max_size=1),
            "maxMovesPerHour": st.integers(1, 3),
        },
    ),
    MaintenanceWindow: st.fixed_dictionaries({"schedule": CRON, "duration": st.just("4h")}),
    NodeMaintenanceSpec: st.fixed_dictionaries(
        {}, optional={"nodes": NAMES, "nodeSelector": st.just({"matchLabels": {"pool": "old"}})}
    ),
    Schedule: st.fixed_dictionaries(
        {},
        optional={
            "cron": CRON,
            "intervalSeconds": st.integers(1, 600),
            "timeZone": st.just("Europe/Berlin"),
        },
    ),
    EvictionBudget: st.fixed_dictionaries(
        {"name": st.just("office-hours"), "evictions": st.sampled_from([0, 3, "10%"])},
        optional={"schedule": CRON, "duration": st.just("10h"), "timeZone": st.just("Europe/Berlin")},
    ),
    MetricsProviderSpec: st.fixed_dictionaries(
        {"source": st.sampled_from(["KubernetesMetrics", "Prometheus"])},
        optional={"prometheus": st.just({"url": "http://prometheus:9090"})},
    ),
    PrometheusProviderSpec: st.fixed_dictionaries(
        {
            "url": st.one_of(
                st.sampled_from(
                    ["http://prometheus:9090", "https://[fd00::1]:9090/a/b", "http://u:p@prometheus:9090"]
                ),
                st.tuples(
                    st.sampled_from(["http://", "https://", "ftp://", "", "http:"]),
                    st.text("ab.:@/?#[]%\\ \n-1", max_size=8),
                    st.sampled_from(["", ":9090", ":x", "/a", "/?", "#", "?query=a", "\n"]),
                ).map("".join),
            )
        },
        optional={
            "authToken": st.just({"secretReference": {"name": "token"}}),
            "basicAuth": st.just({"secretName": "password"}),
            "serviceAccountToken": st.booleans(),
            "headersSecret": st.just("tenant"),
            "tls": st.sampled_from([{}, {"caSecret": "ca"}]),
            "allowPlainHTTP": st.booleans(),
        },
    ),
    PrometheusTLS: st.fixed_dictionaries(
        {}, optional={"caSecret": st.just("ca"), "insecureSkipVerify": st.booleans()}
    ),
    PodQueries: st.fixed_dictionaries({}, optional={"cpu": POD_QUERY, "memory": POD_QUERY}),
    UsageQueries: st.fixed_dictionaries(
        {},
        optional={
            "node": st.dictionaries(
                st.one_of(
                    st.sampled_from(["cpu", "memory", "pods", "MetricResource", "example.com/io", "a" * 254]),
                    st.text("ab./-", max_size=4),
                ),
                st.fixed_dictionaries(
                    {"query": st.just("q"), "unit": st.sampled_from(["Share", "Cores", "Bytes"])}
                ),
                max_size=3,
            )
        },
    ),
    NamespaceScope: st.fixed_dictionaries({}, optional={"include": NAMES, "exclude": NAMES}),
    PriorityThreshold: st.fixed_dictionaries(
        {}, optional={"value": st.integers(-5, 5), "name": st.just("high")}
    ),
    LabelSelectorRequirementSpec: st.fixed_dictionaries(
        {"key": st.just("a"), "operator": st.sampled_from([operator.value for operator in SelectorOperator])},
        optional={"values": NAMES},
    ),
}
"""Objects of each model with rules: valid but for the rules."""

TRANSITIONS = {
    EvictionStatus: st.fixed_dictionaries(
        {}, optional={"phase": st.sampled_from([phase.value for phase in Phase])}
    ),
    EvictionSpec: st.fixed_dictionaries(
        {
            "pod": st.fixed_dictionaries(
                {"namespace": st.just("a"), "name": st.sampled_from(["p", "q"]), "uid": st.just("1")}
            ),
            "policy": st.just("default"),
            "strategy": st.just("RemoveDuplicates"),
            "mode": st.sampled_from(["DryRun", "Enforce"]),
            "reason": st.just("two of one owner"),
            "fromNode": st.just("n1"),
        },
        optional={"targetNode": st.sampled_from(["n2", "n3"])},
    ),
}
"""Objects of each model with rules on updates."""


VARIABLES = {"self": cel.Type.DYN, "oldSelf": cel.Type.DYN}


@cache
def program_of(expression: str) -> cel.Expression:
    """The expression, compiled once."""
    return cel.NewEnv(variables=VARIABLES).compile(expression)


def judged(expression: str, **variables: Any) -> bool:
    """What the Common Expression Language says."""
    verdict = program_of(expression).eval(data=variables).value()
    assert isinstance(verdict, bool), verdict
    return verdict


def ruled(model: type[Resource] = Resource) -> Iterator[type[Resource]]:
    """Every model of ours that has rules."""
    for child in model.__subclasses__():
        if child.rules or child.transition_rules:
            yield child
        yield from ruled(child)


def is_broken(model: type[Resource], wire: dict[str, Any]) -> bool:
    """Whether the model refuses the object for one of its rules."""
    try:
        model.from_wire(wire)
    except ValidationError as error:
        if {detail["type"] for detail in error.errors()} == {RULE_BROKEN}:
            return True
        raise
    return False


def test_every_model_with_rules_is_compared() -> None:
    """A new rule needs its objects in the tables above."""
    ours = {model for model in ruled() if model.__module__.startswith("plimsoll.")}

    assert {model for model in ours if model.rules} == WIRE.keys()
    assert {model for model in ours if model.transition_rules} == TRANSITIONS.keys()


@pytest.mark.parametrize("model", WIRE, ids=lambda model: model.__name__)
def test_cel_and_python_judge_alike(model: type[Resource]) -> None:
    """An object breaks a rule in CEL exactly when the model refuses it."""

    @given(WIRE[model])
    def judge(wire: dict[str, Any]) -> None:
        holds = [judged(rule.cel, self=wire) for rule in model.rules]

        assert is_broken(model, wire) != all(holds)

    judge()


@pytest.mark.parametrize("model", TRANSITIONS, ids=lambda model: model.__name__)
def test_cel_and_python_judge_updates_alike(model: type[Resource]) -> None:
    """What a transition rule says in CEL it says in Python."""

    @given(TRANSITIONS[model], TRANSITIONS[model])
    def judge(old: dict[str, Any], new: dict[str, Any]) -> None:
        before, after = model.from_wire(old), model.from_wire(new)

        for rule in model.transition_rules:
            assert rule.holds(before, after) == judged(rule.cel, self=new, oldSelf=old)

    judge()


@pytest.mark.parametrize(
    "cron",
    [
        "0 2 * * *",
        "*/5 * * * *",
        "0,30 8-18/2 * * mon-fri",
        "0 0 1 JAN,jul *",
        "59 23 31 12 7",
        "00 02 01 01 0",
        "0  2  *  *  sun",
    ],
)
def test_cron_as_people_write_it_is_accepted(cron: str) -> None:
    """Steps, ranges, lists and names in either case."""
    assert Schedule.from_wire({"cron": cron}).cron == cron


def test_a_broken_rule_is_one_sentence_that_says_what_is_allowed() -> None:
    """The sentence that the API server would say."""
    with pytest.raises(ValidationError, match="give exactly one of cron and intervalSeconds"):
        Schedule.from_wire({"cron": "0 2 * * *", "intervalSeconds": 5})


def test_rules_only_look() -> None:
    """A rule's Python side takes any object with the fields, and says yes or no."""
    both = SimpleNamespace(include=("a",), exclude=("b",))

    assert [rule.holds(both) for rule in NamespaceScope.rules] == [False]
