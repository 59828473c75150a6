"""Policies that must be refused, each with the field that the refusal must name.

Data only: the models refuse them in ``test_malformed_policies.py``, an API server at apply in ``tests/e2e``.
The first part is written by hand, what users get wrong; the second is made from the schema, each of its
bounds, patterns, enums, types and objects broken once.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from plimsoll.api.crds import openapi_schema
from plimsoll.api.v1alpha1 import SchedulingPolicy


@dataclass(frozen=True)
class MalformedPolicy:
    """A spec that must be refused.

    Attributes:
        id: what is wrong with it.
        spec: the spec.
        field: path that the message must contain, as the API server writes it.
        unknown: it holds a field that does not exist, which an API server refuses only when asked for
            ``fieldValidation=Strict`` (kubectl's default); otherwise it warns and prunes.
    """

    id: str
    spec: Any
    field: str
    unknown: bool = False

    def to_object(self, name: str = "malformed") -> dict[str, Any]:
        """The policy, ready to be applied."""
        return {
            "apiVersion": "plimsoll.dev/v1alpha1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": name},
            "spec": self.spec,
        }


def _scope(**fields: Any) -> dict[str, Any]:
    return {"scope": fields}


def _scheduling(**fields: Any) -> dict[str, Any]:
    return {"scheduling": {"schedulerName": "plimsoll"} | fields}


def _extender(**fields: Any) -> dict[str, Any]:
    return _scheduling(extenders=[{"urlPrefix": "http://gpu"} | fields])


def _rebalancing(**fields: Any) -> dict[str, Any]:
    return {"rebalancing": fields}


def _schedule(**fields: Any) -> dict[str, Any]:
    return _rebalancing(schedule=fields)


def _evictor(**fields: Any) -> dict[str, Any]:
    return _rebalancing(evictor=fields)


def _limits(**fields: Any) -> dict[str, Any]:
    return _rebalancing(limits=fields)


def _expression(**fields: Any) -> dict[str, Any]:
    return _scope(podSelector={"matchExpressions": [fields]})


_EXPRESSION = "spec.scope.podSelector.matchExpressions[0]"
_EXTENDER = "spec.scheduling.extenders[0]"
_A = MalformedPolicy

BY_HAND = (
    # What the whole is.
    _A("spec-is-a-list", [], "spec"),
    _A("spec-is-a-word", "default", "spec"),
    _A("typo-at-the-top", {"schedulling": {}}, "spec.schedulling", unknown=True),
    _A("a-descheduler-policy", {"profiles": [{"name": "default"}]}, "spec.profiles", unknown=True),
    _A("suspend-is-a-word", {"suspend": "yes"}, "spec.suspend"),
    _A("suspend-is-a-quoted-boolean", {"suspend": "true"}, "spec.suspend"),
    # Scope.
    _A("namespaces-is-a-list", _scope(namespaces=["a"]), "spec.scope.namespaces"),
    _A(
        "include-and-exclude",
        _scope(namespaces={"include": ["a"], "exclude": ["b"]}),
        "spec.scope.namespaces.exclude",
    ),
    _A(
        "namespace-with-a-star",
        _scope(namespaces={"include": ["team-*"]}),
        "spec.scope.namespaces.include[0]",
    ),
    _A("namespace-in-capitals", _scope(namespaces={"exclude": ["A"]}), "spec.scope.namespaces.exclude[0]"),
    _A("namespace-twice", _scope(namespaces={"include": ["a", "a"]}), "spec.scope.namespaces.include[1]"),
    _A("namespace-too-long", _scope(namespaces={"include": ["a" * 64]}), "spec.scope.namespaces.include[0]"),
    _A("selector-as-text", _scope(podSelector="app=web"), "spec.scope.podSelector"),
    _A(
        "labels-without-match",
        _scope(nodeSelector={"pool": "a"}),
        "spec.scope.nodeSelector.pool",
        unknown=True,
    ),
    _A(
        "label-value-is-a-boolean",
        _scope(podSelector={"matchLabels": {"a": True}}),
        "spec.scope.podSelector.matchLabels.a",
    ),
    _A(
        "label-value-with-a-space",
        _scope(podSelector={"matchLabels": {"a": "b c"}}),
        "spec.scope.podSelector.matchLabels.a",
    ),
    _A("operator-in-capitals", _expression(key="a", operator="IN", values=["b"]), f"{_EXPRESSION}.operator"),
    _A(
        "operator-of-node-affinity",
        _expression(key="a", operator="Gt", values=["1"]),
        f"{_EXPRESSION}.operator",
    ),
    _A("in-without-values", _expression(key="a", operator="In"), f"{_EXPRESSION}.values"),
    _A("not-in-with-no-value", _expression(key="a", operator="NotIn", values=[]), f"{_EXPRESSION}.values"),
    _A("exists-with-values", _expression(key="a", operator="Exists", values=["b"]), f"{_EXPRESSION}.values"),
    _A("expression-without-a-key", _expression(operator="Exists"), f"{_EXPRESSION}.key"),
    _A(
        "threshold-of-both-kinds",
        _scope(priorityThreshold={"value": 1, "name": "a"}),
        "spec.scope.priorityThreshold",
    ),
    _A("threshold-of-no-kind", _scope(priorityThreshold={}), "spec.scope.priorityThreshold"),
    _A(
        "threshold-above-system-critical",
        _scope(priorityThreshold={"value": 2_000_000_001}),
        "spec.scope.priorityThreshold.value",
    ),
    # Scheduling.
    _A("no-scheduler-name", {"scheduling": {}}, "spec.scheduling.schedulerName"),
    _A("empty-scheduler-name", {"scheduling": {"schedulerName": ""}}, "spec.scheduling.schedulerName"),
    _A(
        "scheduler-name-with-a-space",
        {"scheduling": {"schedulerName": "a b"}},
        "spec.scheduling.schedulerName",
    ),
    _A("several-scheduler-names", {"scheduling": {"schedulerName": ["a"]}}, "spec.scheduling.schedulerName"),
    _A(
        "a-share-of-the-nodes",
        _scheduling(percentageOfNodesToScore=50),
        "spec.scheduling.percentageOfNodesToScore",
        unknown=True,
    ),
    _A("plugins-as-a-list", _scheduling(plugins=["NodeName"]), "spec.scheduling.plugins"),
    _A(
        "unknown-extension-point",
        _scheduling(plugins={"scoring": {"enabled": []}}),
        "spec.scheduling.plugins.scoring",
        unknown=True,
    ),
    _A(
        "plugins-by-name-only",
        _scheduling(plugins={"score": {"enabled": ["NodeName"]}}),
        "spec.scheduling.plugins.score.enabled[0]",
    ),
    _A(
        "plugin-without-a-name",
        _scheduling(plugins={"score": {"enabled": [{"weight": 1}]}}),
        "spec.scheduling.plugins.score.enabled[0].name",
    ),
    _A(
        "plugin-twice",
        _scheduling(plugins={"score": {"enabled": [{"name": "A"}, {"name": "A", "weight": 2}]}}),
        "spec.scheduling.plugins.score.enabled[1]",
    ),
    _A(
        "negative-weight",
        _scheduling(plugins={"multiPoint": {"enabled": [{"name": "A", "weight": -1}]}}),
        "spec.scheduling.plugins.multiPoint.enabled[0].weight",
    ),
    _A(
        "all-plugins-enabled-by-a-star",
        _scheduling(plugins={"filter": {"enabled": [{"name": "*"}]}}),
        "spec.scheduling.plugins.filter.enabled[0].name",
    ),
    _A(
        "plugin-configured-twice",
        _scheduling(pluginConfig=[{"name": "A"}, {"name": "A"}]),
        "spec.scheduling.pluginConfig[1]",
    ),
    _A("plugin-config-by-name", _scheduling(pluginConfig={"A": {}}), "spec.scheduling.pluginConfig"),
    _A(
        "args-as-a-list",
        _scheduling(pluginConfig=[{"name": "A", "args": [1]}]),
        "spec.scheduling.pluginConfig[0].args",
    ),
    # Scheduling: extenders.
    _A("extender-without-a-scheme", _extender(urlPrefix="gpu.example.com"), f"{_EXTENDER}.urlPrefix"),
    _A("extender-with-a-password", _extender(urlPrefix="http://a:b@gpu"), f"{_EXTENDER}.urlPrefix"),
    _A("extender-in-a-file", _extender(urlPrefix="file:///etc/passwd"), f"{_EXTENDER}.urlPrefix"),
    _A("verb-with-a-query", _extender(filterVerb="filter?a=b"), f"{_EXTENDER}.filterVerb"),
    _A("scores-without-a-weight", _extender(prioritizeVerb="prioritize"), f"{_EXTENDER}.weight"),
    _A("scores-of-no-weight", _extender(prioritizeVerb="prioritize", weight=0), f"{_EXTENDER}.weight"),
    _A(
        "https-over-http", _extender(enableHTTPS=True, tlsConfig={"insecure": True}), f"{_EXTENDER}.urlPrefix"
    ),
    _A("https-of-nobody", _extender(urlPrefix="https://gpu", enableHTTPS=True), f"{_EXTENDER}.enableHTTPS"),
    _A(
        "verified-and-not",
        _extender(urlPrefix="https://gpu", tlsConfig={"insecure": True, "caData": "YQ=="}),
        f"{_EXTENDER}.tlsConfig.insecure",
    ),
    _A(
        "certificate-without-a-key",
        _extender(urlPrefix="https://gpu", tlsConfig={"certData": "YQ=="}),
        f"{_EXTENDER}.tlsConfig.keyData",
    ),
    _A(
        "certificate-in-a-file",
        _extender(urlPrefix="https://gpu", tlsConfig={"caFile": "/etc/ca.crt"}),
        f"{_EXTENDER}.tlsConfig.caFile",
        unknown=True,
    ),
    _A("timeout-of-minutes", _extender(httpTimeout="2m"), f"{_EXTENDER}.httpTimeout"),
    _A("timeout-in-nanoseconds", _extender(httpTimeout=5_000_000_000), f"{_EXTENDER}.httpTimeout"),
    _A(
        "managed-cpu",
        _extender(managedResources=[{"name": "cpu"}]),
        f"{_EXTENDER}.managedResources[0].name",
    ),
    _A(
        "managed-by-kubernetes",
        _extender(managedResources=[{"name": "kubernetes.io/gpu"}]),
        f"{_EXTENDER}.managedResources[0].name",
    ),
    _A(
        "managed-by-two",
        _scheduling(
            extenders=[
                {"urlPrefix": f"http://{name}", "managedResources": [{"name": "example.com/gpu"}]}
                for name in ("a", "b")
            ]
        ),
        "spec.scheduling.extenders",
    ),
    _A(
        "two-binders",
        _scheduling(extenders=[{"urlPrefix": f"http://{name}", "bindVerb": "bind"} for name in ("a", "b")]),
        "spec.scheduling.extenders",
    ),
    _A(
        "extender-twice",
        _scheduling(extenders=[{"urlPrefix": "http://a"}, {"urlPrefix": "http://a"}]),
        "spec.scheduling.extenders[1]",
    ),
    # Rebalancing: where usage comes from.
    *(
        _A(
            f"prometheus-{what}",
            _rebalancing(metricsProviders=[{"source": "Prometheus", "prometheus": {"url": url}}]),
            "spec.rebalancing.metricsProviders[0].prometheus.url",
        )
        for what, url in {
            "with-a-password": "http://user:password@prometheus:9090",
            "with-a-user": "http://user@prometheus:9090",
            "with-a-query": "http://prometheus:9090/admin?x=",
            "with-a-fragment": "http://prometheus:9090/admin#",
            "with-a-space": "http://prometheus:9090/a b",
            "in-a-file": "file:///etc/passwd",
            "without-a-scheme": "prometheus:9090",
        }.items()
    ),
    *(
        _A(
            f"prometheus-{what}",
            _rebalancing(
                metricsProviders=[{"source": "Prometheus", "prometheus": {"url": "http://p:9090"} | fields}]
            ),
            f"spec.rebalancing.metricsProviders[0].prometheus{path}",
        )
        for what, path, fields in (
            ("token-over-http", ".url", {"authToken": {"secretReference": {"name": "t"}}}),
            ("password-over-http", ".url", {"basicAuth": {"secretName": "t"}}),
            ("projected-token-over-http", ".url", {"serviceAccountToken": True}),
            ("headers-over-http", ".url", {"headersSecret": "t"}),
            ("tls-over-http", ".tls", {"tls": {"caSecret": "t"}}),
            (
                "two-credentials",
                "",
                {"url": "https://p", "basicAuth": {"secretName": "t"}, "serviceAccountToken": True},
            ),
            (
                "verified-and-not",
                ".tls.insecureSkipVerify",
                {"url": "https://p", "tls": {"caSecret": "t", "insecureSkipVerify": True}},
            ),
            ("token-as-text", ".authToken", {"url": "https://p", "authToken": "s3cret"}),
            ("no-query", ".queries.node.cpu.query", {"queries": {"node": {"cpu": {"unit": "Share"}}}}),
            ("no-unit", ".queries.node.cpu.unit", {"queries": {"node": {"cpu": {"query": "q"}}}}),
            (
                "unit-of-another-resource",
                ".queries.node",
                {"queries": {"node": {"cpu": {"query": "q", "unit": "Bytes"}}}},
            ),
            (
                "query-of-pods",
                ".queries.node",
                {"queries": {"node": {"pods": {"query": "q", "unit": "Share"}}}},
            ),
            (
                "label-that-is-none",
                ".queries.node.cpu.nodeLabel",
                {"queries": {"node": {"cpu": {"query": "q", "unit": "Share", "nodeLabel": "a-b"}}}},
            ),
            (
                "share-of-a-pod",
                ".queries.pod.cpu.unit",
                {"queries": {"pod": {"cpu": {"query": "q", "unit": "Share"}}}},
            ),
            (
                "bytes-of-cpu",
                ".queries.pod.cpu",
                {"queries": {"pod": {"cpu": {"query": "q", "unit": "Bytes"}}}},
            ),
        )
    ),
    # Rebalancing: mode and schedule.
    _A("mode-in-lower-case", _rebalancing(mode="dryRun"), "spec.rebalancing.mode"),
    _A("mode-of-another-tool", _rebalancing(mode="Evict"), "spec.rebalancing.mode"),
    _A("mode-is-a-boolean", _rebalancing(mode=True), "spec.rebalancing.mode"),
    _A("schedule-as-text", _rebalancing(schedule="0 2 * * *"), "spec.rebalancing.schedule"),
    _A("schedule-of-no-kind", _schedule(), "spec.rebalancing.schedule"),
    _A("cron-and-interval", _schedule(cron="0 2 * * *", intervalSeconds=60), "spec.rebalancing.schedule"),
    _A(
        "time-zone-for-an-interval",
        _schedule(intervalSeconds=60, timeZone="UTC"),
        "spec.rebalancing.schedule.timeZone",
    ),
    _A("minute-61", _schedule(cron="61 * * * *"), "spec.rebalancing.schedule.cron"),
    _A("hour-24", _schedule(cron="0 24 * * *"), "spec.rebalancing.schedule.cron"),
    _A("day-0", _schedule(cron="0 0 0 * *"), "spec.rebalancing.schedule.cron"),
    _A("month-13", _schedule(cron="0 0 1 13 *"), "spec.rebalancing.schedule.cron"),
    _A("weekday-8", _schedule(cron="0 0 * * 8"), "spec.rebalancing.schedule.cron"),
    _A("cron-with-seconds", _schedule(cron="0 0 2 * * *"), "spec.rebalancing.schedule.cron"),
    _A("cron-with-four-fields", _schedule(cron="0 2 1-31 *"), "spec.rebalancing.schedule.cron"),
    _A("cron-with-a-nickname", _schedule(cron="@midnight"), "spec.rebalancing.schedule.cron"),
    _A("cron-with-an-empty-step", _schedule(cron="*/0 * * * *"), "spec.rebalancing.schedule.cron"),
    _A(
        "time-zone-with-a-space",
        _schedule(cron="0 2 * * *", timeZone="New York"),
        "spec.rebalancing.schedule.timeZone",
    ),
    _A(
        "interval-as-a-duration", _schedule(intervalSeconds="5m"), "spec.rebalancing.schedule.intervalSeconds"
    ),
    _A("interval-of-nothing", _schedule(intervalSeconds=0), "spec.rebalancing.schedule.intervalSeconds"),
    _A(
        "interval-of-another-name",
        _schedule(interval="5m"),
        "spec.rebalancing.schedule.interval",
        unknown=True,
    ),
    # Rebalancing: strategies.
    _A(
        "strategies-by-name-only",
        _rebalancing(strategies=["RemoveDuplicates"]),
        "spec.rebalancing.strategies[0]",
    ),
    _A(
        "strategies-as-a-map",
        _rebalancing(strategies={"RemoveDuplicates": {}}),
        "spec.rebalancing.strategies",
    ),
    _A(
        "strategy-without-a-name",
        _rebalancing(strategies=[{"args": {}}]),
        "spec.rebalancing.strategies[0].name",
    ),
    _A(
        "strategy-twice",
        _rebalancing(strategies=[{"name": "A"}, {"name": "A"}]),
        "spec.rebalancing.strategies",
    ),
    _A(
        "strategy-with-params",
        _rebalancing(strategies=[{"name": "A", "params": {}}]),
        "spec.rebalancing.strategies[0].params",
        unknown=True,
    ),
    _A(
        "strategy-args-as-text",
        _rebalancing(strategies=[{"name": "A", "args": "cpu=20"}]),
        "spec.rebalancing.strategies[0].args",
    ),
    # Rebalancing: evictor, limits, records.
    _A("node-fit-switched-off", _evictor(nodeFit=False), "spec.rebalancing.evictor.nodeFit"),
    _A("age-without-a-unit", _evictor(minPodAge="10"), "spec.rebalancing.evictor.minPodAge"),
    _A("age-in-days", _evictor(minPodAge="1d"), "spec.rebalancing.evictor.minPodAge"),
    _A("age-as-a-number", _evictor(minPodAge=600), "spec.rebalancing.evictor.minPodAge"),
    _A("negative-replicas", _evictor(minReplicas=-1), "spec.rebalancing.evictor.minReplicas"),
    _A(
        "unknown-no-eviction-policy",
        _evictor(noEvictionPolicy="Never"),
        "spec.rebalancing.evictor.noEvictionPolicy",
    ),
    _A(
        "unknown-protection",
        _evictor(podProtections={"extraEnabled": ["PodsWithGPU"]}),
        "spec.rebalancing.evictor.podProtections.extraEnabled[0]",
    ),
    _A(
        "a-default-protection-as-an-extra-one",
        _evictor(podProtections={"extraEnabled": ["DaemonSetPods"]}),
        "spec.rebalancing.evictor.podProtections.extraEnabled[0]",
    ),
    _A(
        "an-extra-protection-as-a-default-one",
        _evictor(podProtections={"defaultDisabled": ["PodsWithPVC"]}),
        "spec.rebalancing.evictor.podProtections.defaultDisabled[0]",
    ),
    _A(
        "protection-twice",
        _evictor(podProtections={"defaultDisabled": ["DaemonSetPods", "DaemonSetPods"]}),
        "spec.rebalancing.evictor.podProtections.defaultDisabled[1]",
    ),
    _A(
        "nameless-storage-class",
        _evictor(podProtections={"config": {"PodsWithPVC": {"protectedStorageClasses": [{"name": ""}]}}}),
        "spec.rebalancing.evictor.podProtections.config.PodsWithPVC.protectedStorageClasses[0].name",
    ),
    _A(
        "a-boolean-that-descheduler-deprecated",
        _evictor(evictDaemonSetPods=True),
        "spec.rebalancing.evictor.evictDaemonSetPods",
        unknown=True,
    ),
    _A("negative-limit", _limits(total=-1), "spec.rebalancing.limits.total"),
    _A("more-than-all-pods", _limits(perNode="101%"), "spec.rebalancing.limits.perNode"),
    _A("fraction-of-a-percent", _limits(perNamespace="2.5%"), "spec.rebalancing.limits.perNamespace"),
    _A("limit-as-a-quoted-number", _limits(perWorkload="3"), "spec.rebalancing.limits.perWorkload"),
    _A("limit-as-a-fraction", _limits(perWorkload=0.5), "spec.rebalancing.limits.perWorkload"),
    _A("limit-without-a-bound", _limits(total="unlimited"), "spec.rebalancing.limits.total"),
    _A(
        "limit-of-descheduler",
        _limits(maxNoOfPodsToEvictTotal=5),
        "spec.rebalancing.limits.maxNoOfPodsToEvictTotal",
        unknown=True,
    ),
    _A(
        "window-without-an-end",
        _limits(budgets=[{"name": "office", "evictions": 0, "schedule": "0 8 * * mon-fri"}]),
        "spec.rebalancing.limits.budgets[0]",
    ),
    _A(
        "window-by-no-cron",
        _limits(
            budgets=[{"name": "office", "evictions": 0, "schedule": "at eight, daily", "duration": "1h"}]
        ),
        "spec.rebalancing.limits.budgets[0].schedule",
    ),
    _A(
        "time-zone-without-a-window",
        _limits(budgets=[{"name": "office", "evictions": 0, "timeZone": "UTC"}]),
        "spec.rebalancing.limits.budgets[0].timeZone",
    ),
    _A(
        "budget-twice",
        _limits(budgets=[{"name": "office", "evictions": 0}, {"name": "office", "evictions": 1}]),
        "spec.rebalancing.limits.budgets[1]",
    ),
    _A("no-record-kept", _rebalancing(records={"maxCount": 0}), "spec.rebalancing.records.maxCount"),
    _A(
        "records-for-a-second", _rebalancing(records={"ttlSeconds": 1}), "spec.rebalancing.records.ttlSeconds"
    ),
)
"""What users get wrong."""

_VALID = {"name": "a", "schedulerName": "plimsoll", "key": "a", "operator": "Exists", "evictions": 0}
"""A valid value for each required field."""
_VALID |= {"source": "KubernetesMetrics", "url": "http://a", "query": "q", "unit": "Cores"}
_VALID |= {"secretName": "a", "secretReference": {"name": "a"}, "namespaces": {"include": ["a"]}}


def _valid(name: str, schema: dict[str, Any], value: str = "") -> Any:
    """A valid value for a required field of a schema, made of ``value`` if it must differ from others."""
    if "enum" in schema["properties"][name]:
        return _VALID[name]
    pattern = schema["properties"][name].get("pattern", "")
    if pattern.startswith("^https"):
        return f"https://{value or 'a'}"
    if "?/[" in pattern:
        return f"example.com/{value or 'a'}"
    return value or _VALID[name]


def _around(path: tuple[str | int, ...], schema: dict[str, Any], value: Any) -> Any:
    """The smallest object of a schema that holds ``value`` at ``path`` and is valid elsewhere."""
    if not path:
        return value
    step, *rest = path
    if isinstance(step, int):
        return [_around(tuple(rest), schema["items"], value)]
    below = schema.get("properties", {}).get(step) or schema.get("additionalProperties", {})
    filled = {name: _valid(name, schema) for name in schema.get("required", ()) if name != step}
    return filled | {step: _around(tuple(rest), below, value)}


def _breaches(schema: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """For each thing that a schema asks for, a value that breaks it, and nothing else where that can be."""
    kind = schema.get("type")
    wrong = {"string": 5, "integer": "five", "boolean": "yes", "array": {"a": 1}, "object": ["a"]}
    yield "wrong-type", wrong.get(str(kind), [1])
    if "enum" in schema:
        yield "not-in-enum", False if kind == "boolean" else "Unheard"
    if "pattern" in schema:
        yield "off-pattern", "-?"
    if "minLength" in schema:
        yield "too-short", "a" * (schema["minLength"] - 1)
    if "maxLength" in schema:
        yield "too-long", "a" * (schema["maxLength"] + 1)
    if "minimum" in schema:
        yield "too-small", schema["minimum"] - 1
    if "maximum" in schema:
        yield "too-large", schema["maximum"] + 1
    if "maxItems" in schema:
        yield "too-many-items", list(_items(schema["items"], schema["maxItems"] + 1))
    if "maxProperties" in schema:
        item = schema["additionalProperties"]
        value: Any = 1 if "x-kubernetes-int-or-string" in item else "a"
        if "required" in item:
            value = {name: _valid(name, item) for name in item["required"]}
        yield "too-many-fields", {f"a{n}": value for n in range(schema["maxProperties"] + 1)}


def _items(schema: dict[str, Any], count: int) -> Iterator[Any]:
    """That many items, each valid and no two alike where the schema allows so many."""
    for n in range(count):
        if schema["type"] == "object":
            first, *others = schema["required"]
            yield {name: _valid(name, schema) for name in others} | {first: _valid(first, schema, f"a{n}")}
        else:
            yield schema.get("enum", [f"a{n}"])[n % len(schema.get("enum", ["a"]))]


def _named(path: tuple[str | int, ...]) -> str:
    return "spec" + "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path)


def _generated(root: dict[str, Any]) -> Iterator[MalformedPolicy]:
    pending: list[tuple[tuple[str | int, ...], dict[str, Any]]] = [((), root)]
    while pending:
        path, schema = pending.pop()
        for breach, value in _breaches(schema):
            yield MalformedPolicy(f"{_named(path)}-{breach}", _around(path, root, value), _named(path))
        if "properties" in schema:
            odd = (*path, "oddity")
            yield MalformedPolicy(
                f"{_named(path)}-unknown-field", _around(odd, root, 1), _named(odd), unknown=True
            )
        for name in schema.get("required", ()):
            rest = {other: _valid(other, schema) for other in schema["required"] if other != name}
            yield MalformedPolicy(
                f"{_named((*path, name))}-missing", _around(path, root, rest), _named((*path, name))
            )
        pending += [((*path, name), field) for name, field in schema.get("properties", {}).items()]
        if "items" in schema:
            pending.append(((*path, 0), schema["items"]))
        if "additionalProperties" in schema:
            pending.append(((*path, "a"), schema["additionalProperties"]))


GENERATED = tuple(_generated(openapi_schema(SchedulingPolicy)["properties"]["spec"]))
"""The schema, broken everywhere once."""

MALFORMED = BY_HAND + GENERATED
