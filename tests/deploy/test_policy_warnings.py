"""deploy/components/policy-warnings says on ``kubectl apply`` what the operator would say in the status."""

from __future__ import annotations

import re
import subprocess
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from admission.policy import NAME, admission_files, admission_objects
from admission.tables import GIVE, LEVELS, argument_tables
from deploy.manifests import DEPLOY, Obj, parsed, templated
from deploy.tools import ROOT, tool
from plimsoll.inspection.catalogue import Catalogue, RebalancingJudge, SchedulingJudge
from plimsoll.model.kinds.objects import ClusterObjects
from plimsoll.plugins import IN_TREE as PLUGINS
from plimsoll.policies.judgement import PolicyChecks
from plimsoll.strategies import IN_TREE as STRATEGIES
from roadstead.admission.validations import broken_validations
from roadstead.schemas.fields import struct
from roadstead.store.admission import ADMINISTRATOR

if TYPE_CHECKING:
    from roadstead.pytest_plugin import StartRoadstead

FOLDER = DEPLOY / "components/policy-warnings"
POLICY, BINDING = (dict(each) for each in admission_objects())
TABLES = argument_tables((*PLUGINS, *STRATEGIES))
_CATALOGUE = Catalogue()
_NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
CHECKS = PolicyChecks(SchedulingJudge(_CATALOGUE), RebalancingJudge(_CATALOGUE, ClusterObjects(), _NOW))
#: What the operator says of arguments where the tables know as much as it does.
KNOWN_SENTENCES = re.compile(
    r"there is no such field|has the wrong type|the smallest allowed value is|the largest allowed value is"
)


def policy(**spec: Any) -> Obj:
    """A SchedulingPolicy."""
    return {
        "apiVersion": "plimsoll.dev/v1alpha1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "night"},
        "spec": spec,
    }


def with_args(name: str, args: Any) -> Obj:
    """A policy with one plugin or strategy."""
    if name in _CATALOGUE.strategies:
        return policy(rebalancing={"strategies": [{"name": name, "args": args}]})
    return policy(scheduling={"schedulerName": "plimsoll", "pluginConfig": [{"name": name, "args": args}]})


def warned(document: Obj) -> list[str]:
    """The warnings that kubectl would print."""
    known = {"object": document, "oldObject": None, "request": {"userInfo": ADMINISTRATOR}}
    return [each.message for each in broken_validations(POLICY, known)]


@pytest.mark.parametrize("name", sorted(admission_files()))
def test_make_crds_has_written_it(name: str) -> None:
    """What is committed is what the models make."""
    assert (FOLDER / name).read_text(encoding="utf-8") == admission_files()[name], "run make crds"


@pytest.mark.parametrize(("obj", "model"), [(each, f"V1{each['kind']}") for each in (POLICY, BINDING)])
def test_its_fields_exist(obj: Obj, model: str) -> None:
    """As Kubernetes' own description of the kinds has them; it rejects nothing."""
    strays: list[str] = []

    struct(model).taken(obj, strays)

    assert strays == []
    assert BINDING["spec"]["validationActions"] == ["Warn"]


def test_the_chart_has_it_under_its_own_name() -> None:
    """Where the value asks for it, and not else."""
    objects = parsed(templated("", "--set", "policyWarnings.enabled=true"))

    found = [each for each in objects if each["metadata"]["name"] == "plimsoll-policy-warnings"]
    assert [each["kind"] for each in found] == [POLICY["kind"], BINDING["kind"]]
    assert found[0]["spec"]["variables"] == POLICY["spec"]["variables"]
    assert found[1]["spec"] == BINDING["spec"]


def test_the_levels_are_those_of_the_deepest_arguments() -> None:
    """One fewer, and objects of NodeAffinity would not be looked at."""
    one_more = argument_tables((*PLUGINS, *STRATEGIES), levels=LEVELS + 1)
    one_less = argument_tables((*PLUGINS, *STRATEGIES), levels=LEVELS - 1)

    assert one_more == TABLES
    assert one_less != TABLES


@pytest.mark.parametrize("path", sorted((ROOT / "examples").glob("*.yaml")), ids=lambda path: str(path.name))
def test_examples_give_no_warning(path: Any) -> None:
    """They are right."""
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        if document["kind"] == "SchedulingPolicy":
            assert warned(document) == []


def strategies(*given: Obj, **more: Any) -> Obj:
    """A policy that rebalances."""
    return policy(rebalancing={"strategies": list(given), **more})


def scheduling(**spec: Any) -> Obj:
    """A policy that places pods."""
    return policy(scheduling={"schedulerName": "plimsoll", **spec})


AT = "spec.rebalancing.strategies[0]"
REGISTERED = " (no mistake where a package registers it)"


@pytest.mark.parametrize(
    ("document", "said"),
    [
        pytest.param(
            strategies({"name": "LowNodeUtilisation"}),
            f"{AT}.name: there is no strategy LowNodeUtilisation in tree; did you mean LowNodeUtilization?"
            + REGISTERED,
            id="strategy, one letter",
        ),
        pytest.param(
            strategies({"name": "removeduplicates"}),
            f"{AT}.name: there is no strategy removeduplicates in tree; did you mean RemoveDuplicates?"
            + REGISTERED,
            id="strategy, case",
        ),
        pytest.param(
            strategies({"name": "SameRack"}),
            f"{AT}.name: there is no strategy SameRack in tree{REGISTERED}",
            id="strategy, a third party's",
        ),
        *(
            pytest.param(
                strategies({"name": "PodLifeTime", "args": {wrong: []}}),
                f"{AT}.args.{wrong}: there is no such field{hint}",
                id=f"field {wrong}",
            )
            for wrong, hint in (
                ("sates", "; did you mean states?"),
                ("sttates", "; did you mean states?"),
                ("stades", "; did you mean states?"),
                ("sattes", "; did you mean states?"),
                ("stateess", ""),
            )
        ),
        pytest.param(
            strategies({"name": "LowNodeUtilization", "args": {"evictionLimits": {"nodes": 1}}}),
            f"{AT}.args.evictionLimits.nodes: there is no such field; did you mean node?",
            id="field of an object",
        ),
        pytest.param(
            scheduling(pluginConfig=[{"name": "InterPodAffinity", "args": {"hardPodAffinityWeight": 101}}]),
            "spec.scheduling.pluginConfig[0].args.hardPodAffinityWeight: 101 is too large; the largest "
            "allowed value is 100",
            id="too large",
        ),
        pytest.param(
            scheduling(
                pluginConfig=[
                    {
                        "name": "PodTopologySpread",
                        "args": {
                            "defaultingType": "List",
                            "defaultConstraints": [
                                {"maxSkew": 0, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway"}
                            ],
                        },
                    }
                ]
            ),
            "spec.scheduling.pluginConfig[0].args.defaultConstraints[0].maxSkew: 0 is too small; the "
            "smallest allowed value is 1",
            id="too small, in a list",
        ),
        pytest.param(
            scheduling(pluginConfig=[{"name": "PodTopologySpread", "args": {"defaultingType": "system"}}]),
            "spec.scheduling.pluginConfig[0].args.defaultingType: system is not allowed; use System, List",
            id="not among the choices",
        ),
        pytest.param(
            strategies({"name": "RemovePodsViolatingNodeAffinity"}),
            f"{AT}.args.nodeAffinityType: is required",
            id="required, no args at all",
        ),
        pytest.param(
            strategies({"name": "LowNodeUtilization", "args": {"thresholds": {"cpu": "high"}}}),
            f"{AT}.args.thresholds.cpu: it has the wrong type; give a number",
            id="type in a map",
        ),
        pytest.param(
            strategies({"name": "FollowScore"}, planner="Upstream"),
            "spec.rebalancing.strategies: FollowScore cannot be driven by planner Upstream, only by Proven",
            id="planner",
        ),
        pytest.param(
            strategies(
                {
                    "name": "LowNodeUtilization",
                    "args": {
                        "metricsUtilization": {"metricsServer": True},
                        "thresholds": {"cpu": 20},
                        "targetThresholds": {"cpu": 50},
                    },
                }
            ),
            f"{AT}.args.metricsUtilization.source: KubernetesMetrics is not among "
            "spec.rebalancing.metricsProviders; add it there",
            id="metrics",
        ),
        pytest.param(
            scheduling(pluginConfig=[{"name": "NodeResourceFit"}]),
            "spec.scheduling.pluginConfig[0].name: there is no plugin NodeResourceFit in tree; did you mean "
            f"NodeResourcesFit?{REGISTERED}",
            id="plugin",
        ),
        pytest.param(
            scheduling(plugins={"score": {"enabled": [{"name": "ImageLocality"}, {"name": "NodePorts"}]}}),
            "spec.scheduling.plugins.score.enabled[1].name: plugin NodePorts has no score; it has preFilter, "
            "filter",
            id="extension point",
        ),
        pytest.param(
            scheduling(plugins={"multiPoint": {"enabled": [{"name": "ImageLocallity"}]}}),
            "spec.scheduling.plugins.multiPoint.enabled[0].name: there is no plugin ImageLocallity in tree; "
            f"did you mean ImageLocality?{REGISTERED}",
            id="plugin of an extension point",
        ),
    ],
)
def test_it_warns_of_what_the_operator_refuses(document: Obj, said: str) -> None:
    """In one sentence for each kind of mistake, and the operator does refuse it."""
    assert warned(document) == [said]
    assert CHECKS.judge(document).policy is None


def _values() -> st.SearchStrategy[Any]:
    scalars = (
        st.none()
        | st.booleans()
        | st.integers(-3, 130)
        | st.sampled_from([0.5, 1.0, 1e20, -0.5])
        | st.sampled_from(["", "1", "true", "nan", "x", "Pods", "10%", "System", "all", "1e3"])
    )
    names = st.sampled_from(
        ["include", "exclude", "cpu", "memory", "node", "nod", "maxSkew", "query", "shape"]
    )
    return st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
        max_leaves=4,
    )


_NAMES = sorted(place for place in TABLES.fields if "." not in place)


@st.composite
def arguments(draw: st.DrawFn) -> tuple[str, Any]:
    """Arguments of one plugin or strategy: its own fields with values of all kinds, and some strangers."""
    name = draw(st.sampled_from(_NAMES))
    known = [*TABLES.fields[name], "kind", "stranger"]

    def value(place: str, depth: int = 0) -> Any:
        kind = TABLES.types.get(place, "").rstrip("?!")
        if depth > 3 or draw(st.integers(0, 5)) == 0:
            return draw(_values())
        if place in TABLES.fields:
            chosen = draw(st.lists(st.sampled_from([*TABLES.fields[place], "x"]), max_size=3, unique=True))
            needed = TABLES.required.get(place, []) if draw(st.booleans()) else []
            return {each: value(f"{place}.{each}", depth + 1) for each in [*needed, *chosen]}
        if kind == "array":
            return [value(f"{place}[]", depth + 1) for _ in range(draw(st.integers(0, 2)))]
        if kind == "object":
            return {draw(st.sampled_from(["cpu", "memory", "a/b"])): value(f"{place}{{}}", depth + 1)}
        if place in TABLES.choices:
            return draw(st.sampled_from([*TABLES.choices[place], "x"]))
        if kind in ("integer", "number"):
            return draw(st.integers(-1, 110) | st.sampled_from(["7", "a", 2.5, 3.0, True]))
        return draw(st.booleans() if kind == "boolean" else st.sampled_from(["In", "zone", "x", "1h"]))

    chosen = draw(st.lists(st.sampled_from(known), max_size=4, unique=True))
    return name, {each: value(f"{name}.{each}") for each in chosen}


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(arguments())
def test_it_warns_of_no_right_policy_and_of_all_that_the_tables_know(given: tuple[str, Any]) -> None:
    """What is accepted gives no warning; what is refused for a field, a type or a bound gives one."""
    document = with_args(*given)
    verdict = CHECKS.judge(document)

    said = warned(document)

    if verdict.policy is not None:
        assert said == []
    elif ".args" in verdict.sentence and KNOWN_SENTENCES.search(verdict.sentence):
        assert said != [], verdict.sentence


def test_every_type_has_a_name() -> None:
    """A warning says what to give."""
    assert {each.rstrip("?!") for each in TABLES.types.values()} <= set(GIVE)


def test_kubectl_apply_prints_the_warning(start_roadstead: StartRoadstead, tmp_path: Any) -> None:
    """The policy is stored all the same; one without mistakes is stored in silence."""
    cluster = start_roadstead(nodes=0)

    def apply(*files: Any) -> subprocess.CompletedProcess[str]:
        listed = [word for file in files for word in ("-f", str(file))]
        return subprocess.run(
            [tool("kubectl"), "--kubeconfig", str(cluster.kubeconfig), "apply", *listed],
            capture_output=True,
            text=True,
            check=True,
            timeout=300,
        )

    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(yaml.safe_dump(strategies({"name": "PodLifeTime", "args": {"stats": []}})), "utf-8")
    apply(ROOT / "crds", FOLDER / "policy_warnings.yaml")

    told = apply(wrong)

    assert told.stdout == "schedulingpolicy.plimsoll.dev/night created\n"
    assert told.stderr == (
        f"Warning: Validation failed for ValidatingAdmissionPolicy '{NAME}' with binding '{NAME}': "
        f"{AT}.args.stats: there is no such field; did you mean states?\n"
    )
    assert apply(ROOT / "examples/rebalance-dry-run.yaml").stderr == ""
    assert apply(wrong).stderr == ""
