"""Messages about malformed fields: exact path, problem, allowed values."""

from typing import Any

import pytest
from pydantic import (
    BaseModel,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    ValidationError,
    model_validator,
)

from plimsoll.api.v1alpha1.scheduling_policy import SchedulingPolicySpec
from plimsoll.framework.field_errors import FieldError, field_errors, summary


def errors_of(spec: dict[str, Any]) -> list[str]:
    """The sentences about a spec."""
    with pytest.raises(ValidationError) as caught:
        SchedulingPolicySpec.from_wire(spec)
    return [str(error) for error in field_errors(caught.value, model=SchedulingPolicySpec, prefix="spec")]


def _prometheus(url: str) -> dict[str, Any]:
    return {"metricsProviders": [{"source": "Prometheus", "prometheus": {"url": url}}]}


@pytest.mark.parametrize(
    ("spec", "sentence"),
    [
        (
            {"supend": True},
            "spec.supend: there is no such field; did you mean suspend (allowed: {allowed})".format(
                allowed="suspend, scope, scheduling, rebalancing"
            ),
        ),
        (
            {"scheduling": {"schedulerName": "a", "extenders": [{"urlPrefix": "http://u:p@gpu/x"}]}},
            (
                'spec.scheduling.extenders[0].urlPrefix: "http://…@gpu/x" is malformed; write it like'
                " https://gpu-extender.kube-system.svc:8443/scheduler"
            ),
        ),
        (
            {"rebalancing": _prometheus("http://user:password@prometheus:9090")},
            (
                "spec.rebalancing.metricsProviders[0].prometheus.url: write it like"
                " http://prometheus.monitoring.svc:9090, with a path if need be; a user, a password,"
                " a query (?) and a fragment (#) are not allowed"
            ),
        ),
        (
            {"rebalancing": {"records": {"day": 3}}},
            "spec.rebalancing.records.day: there is no such field; remove it (allowed: maxCount, ttlSeconds)",
        ),
        (
            {"rebalancing": {"mode": "Maybe"}},
            'spec.rebalancing.mode: "Maybe" is not allowed; use DryRun, Approve or Enforce',
        ),
        (
            {"rebalancing": {"evictor": {"nodeFit": False}}},
            (
                "spec.rebalancing.evictor.nodeFit: false is for planner Upstream only; the others prove that"
                " the pod has another node"
            ),
        ),
        ({"scheduling": {}}, "spec.scheduling.schedulerName: is required"),
        (
            {"rebalancing": {"optimizer": {"timeLimitSeconds": "5"}}},
            'spec.rebalancing.optimizer.timeLimitSeconds: "5" has the wrong type; give a whole number',
        ),
        (
            {"rebalancing": {"optimizer": {"timeLimitSeconds": 2000}}},
            (
                "spec.rebalancing.optimizer.timeLimitSeconds: 2000 is too large; "
                "the largest allowed value is 600"
            ),
        ),
        (
            {"rebalancing": {"limits": {"budgets": [{"name": "a", "evictions": 1}] * 2}}},
            "spec.rebalancing.limits.budgets[1]: a occurs twice; each item may occur once",
        ),
        (
            {"rebalancing": {"strategies": [{"name": "A"}, {"name": "B"}, {"name": "A"}]}},
            (
                "spec.rebalancing.strategies: each strategy may occur once; "
                "only with planner Upstream it may occur several times"
            ),
        ),
        (
            {"scope": {"namespaces": {"include": ["ok", "Team A"]}}},
            'spec.scope.namespaces.include[1]: "Team A" is malformed; write it like team-a',
        ),
        (
            {"scope": {"podSelector": {"matchLabels": {"app": "a b"}}}},
            'spec.scope.podSelector.matchLabels.app: "a b" is malformed; write it like web',
        ),
        (
            {"scope": {"nodeSelector": {"matchLabels": {"?": "c"}}}},
            'spec.scope.nodeSelector.matchLabels.?: "?" is malformed; write it like app.kubernetes.io/name',
        ),
        (
            {"scope": {"namespaces": {"include": ["a"], "exclude": ["b"]}}},
            "spec.scope.namespaces.exclude: give either include or exclude, not both",
        ),
        (
            {"rebalancing": {"schedule": {}}},
            "spec.rebalancing.schedule: give exactly one of cron and intervalSeconds",
        ),
        (
            {"rebalancing": {"limits": {"total": "all"}}},
            'spec.rebalancing.limits.total: "all" is refused: give a number of pods or a share, as in "10%"',
        ),
    ],
)
def test_a_sentence_says_where_what_and_what_is_allowed(spec: dict[str, Any], sentence: str) -> None:
    """One mistake, one sentence."""
    assert errors_of(spec) == [sentence]


def test_every_mistake_is_named() -> None:
    """The user sees all of them in one message."""
    spec = {
        "suspend": 1,
        "scheduling": {"schedulerName": ""},
        "rebalancing": {"mode": "x", "limits": {"total": -1}},
    }

    assert [sentence.split(":")[0] for sentence in errors_of(spec)] == [
        "spec.suspend",
        "spec.scheduling.schedulerName",
        "spec.rebalancing.mode",
        "spec.rebalancing.limits.total",
    ]


def test_a_long_value_is_cut() -> None:
    """A megabyte in the wrong place does not become a megabyte in the status."""
    (sentence,) = errors_of({"scheduling": {"schedulerName": "x" * 1_000_000}})

    assert len(sentence) < 200


@pytest.mark.parametrize("depth", [200, 1000, 9000])
def test_args_nested_absurdly_deep_are_refused(depth: int) -> None:
    """An API server stores them; they must not stop the reader."""
    args: dict[str, Any] = {}
    for _ in range(depth):
        args = {"a": args}

    assert errors_of({"rebalancing": {"strategies": [{"name": "A", "args": args}]}}) == [
        "spec: it is nested too deeply, or holds what JSON cannot carry; flatten its args"
    ]


class Args(BaseModel):
    """Arguments as a plugin of a third party may declare them."""

    model_config = ConfigDict(extra="forbid")

    thresholds: dict[str, float] = {}
    amount: int | bool | None = None

    @model_validator(mode="after")
    def _not_empty(self) -> "Args":
        if not self.thresholds:
            raise ValueError("no resource threshold is configured")
        return self


def test_args_of_a_plugin_are_named_below_its_place_in_the_policy() -> None:
    """The same sentences serve models that are not ours; a branch of a union is no part of the path."""
    prefix = "spec.rebalancing.strategies[1].args"
    with pytest.raises(ValidationError) as caught:
        Args.model_validate({"thresholds": {"cpu": "much"}, "amount": "x", "threshold": 1})
    with pytest.raises(ValidationError) as contradicted:
        Args.model_validate({})

    told = {error.path: error.sentence for error in field_errors(caught.value, model=Args, prefix=prefix)}
    assert set(told) == {f"{prefix}.thresholds.cpu", f"{prefix}.amount", f"{prefix}.threshold"}
    assert told[f"{prefix}.threshold"] == (
        "there is no such field; did you mean thresholds (allowed: thresholds, amount)"
    )
    assert field_errors(contradicted.value, model=Args, prefix=prefix) == (
        FieldError(prefix, "no resource threshold is configured"),
    )


class Loose(BaseModel):
    """One field of several types."""

    share: StrictInt | StrictFloat | StrictBool = 0


def test_what_the_branches_of_a_union_want_is_one_sentence() -> None:
    """And a whole number is a number."""
    with pytest.raises(ValidationError) as caught:
        Loose.model_validate({"share": "much"})

    assert [str(error) for error in field_errors(caught.value, model=Loose)] == [
        'share: "much" has the wrong type; give a number or true or false'
    ]


def test_without_the_model_the_path_is_still_exact() -> None:
    """Only the hints are missing."""
    with pytest.raises(ValidationError) as caught:
        SchedulingPolicySpec.from_wire({"rebalancing": {"strategies": [{"name": "A", "arg": {}}]}})

    assert [str(error) for error in field_errors(caught.value, prefix="spec")] == [
        "spec.rebalancing.strategies[0].arg: there is no such field; remove it"
    ]


def test_a_summary_counts_what_it_leaves_out() -> None:
    """A condition's message stays readable."""
    errors = [FieldError(f"spec.f{n}", "is required") for n in range(5)]

    assert summary(errors, shown=2) == "spec.f0: is required; spec.f1: is required; and 3 more"
    assert summary(errors[:1]) == "spec.f0: is required"
