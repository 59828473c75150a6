"""Converts a DeschedulerPolicy to SchedulingPolicies that rebalance.

``keep`` writes the planner Upstream and descheduler's own defaults, so that the same pods are chosen. It
makes one policy, since limits are common to all profiles; its strategies have the evictor of their profile.
Other planners support one evictor, and each strategy once. Therefore, without ``keep``, profiles with equal
evictors become one policy, and profiles with different ones become separate policies. The mode is DryRun in
either case.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct, field
from msgspec.structs import replace

from plimsoll.api.schema.fields import MAX_COUNT
from plimsoll.api.v1alpha1.metrics_providers import KUBERNETES_METRICS, PROMETHEUS
from plimsoll.api.v1alpha1.prometheus import HTTPS, is_plain_url
from plimsoll.framework import ConfigurationError
from plimsoll.migration.descheduler_file import DeschedulerPolicy, read_policy
from plimsoll.migration.descheduler_profiles import CheckedProfile, EnabledStrategy, checked_profile
from plimsoll.migration.evictor_conversion import EvictorConversion
from plimsoll.migration.report import FieldChange, Note, ReportWriter, carried, differs, dropped
from plimsoll.model.kinds.pod import DEFAULT_SCHEDULER
from plimsoll.model.selector_text import parse_selector
from plimsoll.model.selectors import SelectorError

WHERE = "spec.rebalancing"

#: Limits of one cycle, with their field in a policy and our default.
LIMITS = {
    "maxNoOfPodsToEvictTotal": ("total", "At most 10 pods are evicted in one run"),
    "maxNoOfPodsToEvictPerNode": ("perNode", "At most 2 pods of a node are evicted in one run"),
    "maxNoOfPodsToEvictPerNamespace": (
        "perNamespace",
        "At most 5 pods of a namespace are evicted in one run",
    ),
}

#: Limits that descheduler does not have, with our default.
FURTHER_LIMITS = {
    "perWorkload": "At most 1 pod of an owner is evicted in one run",
    "perMinute": "At most 10 pods are evicted within a minute",
}


class _Draft(Struct):
    """A policy under construction.

    Attributes:
        evictor: The policy's evictor, which is that of its first profile.
        strategies: Each with the evictor of its profile.
    """

    evictor: EvictorConversion
    names: list[str] = field(default_factory=list)
    strategies: list[tuple[EnabledStrategy, EvictorConversion]] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)

    def takes(self, evictor: EvictorConversion, strategies: Sequence[EnabledStrategy]) -> bool:
        """Whether planners that support one evictor, and each strategy once, could run it."""
        known = {each.name for each, _ in self.strategies}
        return evictor.spec == self.evictor.spec and not any(each.name in known for each in strategies)

    def has_own(self, evictor: EvictorConversion) -> bool:
        """Whether strategies must name this evictor because it differs from the policy's."""
        return evictor.spec != self.evictor.spec


def rebalancing_policies(
    document: Mapping[str, Any], report: ReportWriter, *, keep: bool
) -> list[tuple[str, dict[str, Any]]]:
    """Convert a DeschedulerPolicy to policies: names and specs.

    Args:
        document: A DeschedulerPolicy, descheduler/v1alpha2.
        report: Receives a note for each field.
        keep: Whether the policies must choose the same pods as descheduler.

    Raises:
        ConfigurationError: descheduler rejects the policy, or a part has no counterpart; names the field.
    """
    given = read_policy(document)
    profiles = [
        checked_profile(profile, ("profiles", position)) for position, profile in enumerate(given.profiles)
    ]
    drafts = _drafts(profiles, given.sources | {""}, report, keep=keep)
    shared = list(_shared(given, document, keep=keep, policies=len(drafts)))
    found: list[tuple[str, dict[str, Any]]] = []
    for draft in drafts:
        name = "descheduler" if len(drafts) == 1 else f"descheduler-{draft.names[0] or len(found) + 1}"
        spec: dict[str, Any] = {"scope": {}, "rebalancing": {}}
        for target, value, note in shared:
            if value is not None:
                _put(spec, target.removeprefix("spec."), value)
            report.add([note] if note else (), name)
        strategies = _in_order(draft.strategies)
        report.add(_strategy_notes([each for each, _ in strategies]), name)
        report.add(_own_evictor_notes(draft, strategies), name)
        rebalancing = spec["rebalancing"]
        rebalancing["strategies"] = [
            {"name": each.name}
            | ({"args": _plain(each.args)} if _plain(each.args) else {})
            | ({"evictor": dict(evictor.spec)} if draft.has_own(evictor) else {})
            for each, evictor in strategies
        ]
        if draft.evictor.spec:
            rebalancing["evictor"] = dict(draft.evictor.spec)
        report.add(draft.notes, name)
        found.append((name, spec))
    return found


def _drafts(
    profiles: Sequence[CheckedProfile], provided: frozenset[str], report: ReportWriter, *, keep: bool
) -> list[_Draft]:
    drafts: list[_Draft] = []
    for position, profile in enumerate(profiles):
        report.add(
            dropped(
                where, f"descheduler itself has no plugin {name}; left out, as a build of your own has it."
            )
            for where, name in profile.unknown
        )
        report.add(
            dropped(where, "The plugin is configured and not enabled, so it never ran; left out.")
            for where in profile.unused
        )
        strategies = _once(each for each in profile.strategies if _source(each) in provided)
        report.add(
            dropped(
                (*each.args_at, "metricsUtilization"),
                f"No provider of {_source(each)} is configured, so {each.name} fails in every run; left out. "
                "Add it to metricsProviders.",
            )
            for each in profile.strategies
            if _source(each) not in provided
        )
        if not strategies:
            report.add([dropped(("profiles", position), "The profile enables no strategy; left out.")])
            continue
        evictor = EvictorConversion(profile, keep=keep)
        draft = next((each for each in drafts if keep or each.takes(evictor, strategies)), None)
        if draft is None:
            draft = _Draft(evictor)
            drafts.append(draft)
        draft.names.append(profile.name)
        draft.strategies += [(each, evictor) for each in strategies]
        draft.notes += () if draft.has_own(evictor) else evictor.notes
        draft.notes += _profile_notes(position, profile)
    return drafts


def _profile_notes(position: int, profile: CheckedProfile) -> Iterator[Note]:
    yield Note(
        FieldChange.RENAMED,
        ("profiles", position, "name"),
        "metadata.name",
        f"Profile {profile.name} becomes part of this policy; records name the policy.",
    )
    for point in ("filter", "preevictionfilter"):
        yield Note(
            FieldChange.RENAMED,
            ("profiles", position, "plugins", point),
            f"{WHERE}.evictor",
            "The DefaultEvictor is always enabled.",
        )


def _shared(
    given: DeschedulerPolicy,
    document: Mapping[str, Any],
    *,
    keep: bool,
    policies: int,
) -> Iterator[tuple[str, Any, Note | None]]:
    """Fields of every policy: target, value (None for none) and note."""
    yield (
        "spec.scope.otherSchedulers",
        [DEFAULT_SCHEDULER],
        differs(
            "spec.scope.otherSchedulers",
            "descheduler evicts pods of every scheduler; a policy moves those of schedulers that policies "
            f"serve or that are named here: {DEFAULT_SCHEDULER}. Add others.",
        ),
    )
    yield from _nodes(given)
    target = f"{WHERE}.mode"
    yield (
        target,
        "DryRun",
        differs(
            target,
            "descheduler evicts; DryRun records what would be moved. Compare the records, stop descheduler, "
            "then set Enforce.",
        ),
    )
    target = f"{WHERE}.planner"
    if keep:
        sentence = (
            "Upstream chooses the pods that descheduler chooses, without a proof that they land better."
        )
        yield target, "Upstream", Note(FieldChange.KEPT, None, target, sentence)
    else:
        sentence = (
            "Proven moves fewer pods than descheduler evicts: only those whose replacement the scheduler "
            "places on a better node."
        )
        yield target, None, differs(target, sentence)
    target = f"{WHERE}.schedule"
    sentence = "The interval of descheduler is a flag, or a CronJob; here it is 300 seconds."
    yield target, None, differs(target, sentence)
    yield from _limits(given, keep=keep, policies=policies)
    yield from _providers(given)
    yield from _without_counterpart(document)


def _nodes(given: DeschedulerPolicy) -> Iterator[tuple[str, Any, Note | None]]:
    path, target = ("nodeSelector",), "spec.scope.nodeSelector"
    try:
        requirements = parse_selector(given.node_selector).requirements
    except SelectorError as exc:
        raise ConfigurationError("nodeSelector", str(exc)) from exc
    expressions: list[dict[str, Any]] = []
    for each in requirements:
        if each.operator not in ("In", "NotIn", "Exists", "DoesNotExist"):
            raise ConfigurationError(
                "nodeSelector",
                f"{each.key}: a policy cannot compare numbers; name the labels instead of < or >",
            )
        values = {"values": sorted(each.values)} if each.values else {}
        expressions.append({"key": each.key, "operator": each.operator, **values})
    labels = {each["key"]: each["values"][0] for each in expressions if _is_equality(each)}
    if len(labels) == len(expressions) and labels:
        yield target, {"matchLabels": labels}, carried(path, target, "The text becomes a label selector.")
    elif expressions:
        selector = {"matchExpressions": expressions}
        yield target, selector, carried(path, target, "The text becomes a label selector.")


def _is_equality(expression: Mapping[str, Any]) -> bool:
    return expression["operator"] == "In" and len(expression["values"]) == 1


def _limits(given: DeschedulerPolicy, *, keep: bool, policies: int) -> Iterator[tuple[str, Any, Note | None]]:
    amounts = {
        "maxNoOfPodsToEvictTotal": given.max_no_of_pods_to_evict_total,
        "maxNoOfPodsToEvictPerNode": given.max_no_of_pods_to_evict_per_node,
        "maxNoOfPodsToEvictPerNamespace": given.max_no_of_pods_to_evict_per_namespace,
    }
    for key, (name, sentence) in LIMITS.items():
        target, amount = f"{WHERE}.limits.{name}", amounts[key]
        if amount is not None:
            note = carried((key,), target)
            if policies > 1:
                text = (
                    f"descheduler's limit is common to all profiles; each of {policies} policies has its own."
                )
                note = differs(target, text, (key,))
            yield target, min(amount, MAX_COUNT), note
        elif keep:
            yield target, "100%", Note(FieldChange.KEPT, None, target, "descheduler has no limit unless set.")
        else:
            yield target, None, differs(target, f"{sentence}; descheduler has no limit unless set.")
    for name, sentence in FURTHER_LIMITS.items():
        target = f"{WHERE}.limits.{name}"
        if keep:
            yield target, "100%", Note(FieldChange.KEPT, None, target, "descheduler has no such limit.")
        else:
            yield target, None, differs(target, f"{sentence}; descheduler has no such limit.")


def _providers(given: DeschedulerPolicy) -> Iterator[tuple[str, Any, Note | None]]:
    target = f"{WHERE}.metricsProviders"
    providers: list[dict[str, Any]] = []
    collector = given.metrics_collector
    if collector is not None:
        path = ("metricsCollector", "enabled")
        if collector.enabled:
            providers.append({"source": KUBERNETES_METRICS})
            text = f"metricsProviders has the source {KUBERNETES_METRICS}."
            yield target, None, Note(FieldChange.RENAMED, path, target, text)
        else:
            yield target, None, dropped(path, "false is the default; left out.")
    for position, provider in enumerate(given.metrics_providers):
        at = ("metricsProviders", position)
        if provider.source == KUBERNETES_METRICS:
            providers.append({"source": KUBERNETES_METRICS})
            yield target, None, carried((*at, "source"), f"{target}.source")
        elif provider.source == PROMETHEUS and provider.prometheus is not None:
            url = provider.prometheus.url
            if not is_plain_url(url):
                raise ConfigurationError(
                    f"metricsProviders[{position}].prometheus.url",
                    "a policy takes an address like http://prometheus.monitoring.svc:9090, with a path if"
                    " need be; a user, a password, a query and a fragment are not allowed",
                )
            prometheus: dict[str, Any] = {"url": url}
            providers.append({"source": PROMETHEUS, "prometheus": prometheus})
            yield target, None, carried((*at, "source"), f"{target}.source")
            yield target, None, carried((*at, "prometheus", "url"), f"{target}.prometheus.url")
            token = provider.prometheus.auth_token
            if token is not None and token.secret_reference is not None:
                prometheus["authToken"] = {"secretReference": {"name": token.secret_reference.name}}
                secret = (*at, "prometheus", "authToken", "secretReference")
                text = "The Secret is read from the operator's namespace; copy it there and annotate it."
                there = f"{target}.prometheus.authToken.secretReference"
                yield target, None, Note(FieldChange.RENAMED, secret, there, text)
                if not url.startswith(HTTPS):
                    prometheus["allowPlainHTTP"] = True
                    there = f"{target}.prometheus.allowPlainHTTP"
                    text = "descheduler shows the token over http://, where others can read it; use https://."
                    yield target, None, Note(FieldChange.KEPT, None, there, text)
        else:
            yield (
                target,
                None,
                dropped(at, "x; descheduler ignores it, too."),
            )
    if providers:
        yield target, providers, None


def _source(strategy: EnabledStrategy) -> str:
    metrics = strategy.args.get("metricsUtilization")
    if not isinstance(metrics, Mapping):
        return ""
    return KUBERNETES_METRICS if metrics.get("metricsServer") else str(metrics.get("source") or "")


def _without_counterpart(document: Mapping[str, Any]) -> Iterator[tuple[str, Any, Note | None]]:
    sentences = {
        "gracePeriodSeconds": "Pods are evicted with the grace period of their own spec.",
        "evictionFailureEventNotification": "Refusals are always on the Eviction record and in the policy's "
        "status; there is no switch.",
    }
    for key, sentence in sentences.items():
        if key in document:
            yield key, None, dropped((key,), sentence)


def _strategy_notes(strategies: Sequence[EnabledStrategy]) -> Iterator[Note]:
    for position, each in enumerate(strategies):
        where = f"{WHERE}.strategies[{position}]"
        yield Note(FieldChange.RENAMED, each.enabled_at, f"{where}.name", f"{each.name} is enabled.")
        for key in _plain(each.args):
            yield carried((*each.args_at, key), f"{where}.args.{key}")


def _own_evictor_notes(
    draft: _Draft, strategies: Sequence[tuple[EnabledStrategy, EvictorConversion]]
) -> Iterator[Note]:
    """Notes on the arguments of evictors that strategies name, for each of these strategies."""
    for position, (_, evictor) in enumerate(strategies):
        if draft.has_own(evictor):
            where = f"{WHERE}.strategies[{position}].evictor"
            for note in evictor.notes:
                yield replace(note, target=note.target.replace(f"{WHERE}.evictor", where, 1))


def _plain(args: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in args.items() if key not in ("apiVersion", "kind")}


def _once(strategies: Iterable[EnabledStrategy]) -> list[EnabledStrategy]:
    found: dict[str, EnabledStrategy] = {}
    for each in strategies:
        found.setdefault(each.name, each)
    return list(found.values())


def _in_order(
    strategies: Sequence[tuple[EnabledStrategy, EvictorConversion]],
) -> list[tuple[EnabledStrategy, EvictorConversion]]:
    """The strategies in order of execution: Deschedule plugins of all profiles, then Balance plugins."""
    return sorted(strategies, key=lambda each: each[0].enabled_at[3] != "deschedule")


def _put(spec: dict[str, Any], target: str, value: Any) -> None:
    *parents, last = target.split(".")
    for part in parents:
        spec = spec.setdefault(part, {})
    spec[last] = value
