"""Converts arguments of descheduler's DefaultEvictor to ``spec.rebalancing.evictor``.

Written values are kept. Values that are not written become Plimsoll's defaults, and notes describe the
change; with ``keep`` descheduler's defaults are written out instead.
"""

import re
from collections.abc import Iterator
from typing import Any

from plimsoll.api.schema.fields import SIGNED_DURATION
from plimsoll.api.v1alpha1.evictor import EvictorSpec
from plimsoll.migration.descheduler_profiles import CheckedProfile
from plimsoll.migration.documents import Path
from plimsoll.migration.report import FieldChange, Note, carried, differs, dropped
from plimsoll.toolkit.descheduling.protections import DEFAULTS, EXTRAS, duration

WHERE = "spec.rebalancing.evictor"

#: Deprecated booleans that disable a default protection, with the protection.
DISABLING = {
    "evictSystemCriticalPods": "SystemCriticalPods",
    "evictFailedBarePods": "FailedBarePods",
    "evictLocalStoragePods": "PodsWithLocalStorage",
    "evictDaemonSetPods": "DaemonSetPods",
}

#: Deprecated booleans that enable an extra protection, with the protection.
ENABLING = {"ignorePvcPods": "PodsWithPVC", "ignorePodsWithoutPDB": "PodsWithoutPDB"}

#: Extra protections of a policy that lists none.
OUR_EXTRAS = tuple(each.value for each in EvictorSpec().pod_protections.extra_enabled)

#: A selector that matches no node.
NO_NODE = "plimsoll.dev/none,!plimsoll.dev/none"

_WRITTEN_OUT = "descheduler's default, written out."


class EvictorConversion:
    """The evictor of one profile.

    Attributes:
        spec: The resulting spec.
        notes: The outcome of each argument.
    """

    def __init__(self, profile: CheckedProfile, *, keep: bool) -> None:
        self._given, self._args, self._at = profile.evictor_args, profile.evictor, profile.evictor_at
        self._keep = keep
        self.spec: dict[str, Any] = {}
        self.notes: list[Note] = [
            *self._node_fit(),
            *self._selectors(),
            *self._priority(),
            *self._replicas(),
            *self._age(),
            *self._opt_out(),
            *self._protections(),
        ]

    def _path(self, key: str) -> Path | None:
        """The path of an argument, None if it is not written."""
        return None if self._at is None or key not in self._given else (*self._at, key)

    def _node_fit(self) -> Iterator[Note]:
        path, target, fits = self._path("nodeFit"), f"{WHERE}.nodeFit", self._args.node_fit
        if self._keep:
            self.spec["nodeFit"] = fits
            yield carried(path, target, "" if path else _WRITTEN_OUT)
        elif fits:
            yield carried(path, target, "true is the default.")
        else:
            yield differs(
                target,
                "descheduler evicts pods that fit on no other node; planner Proven evicts a pod only if its "
                "replacement has a better node.",
                path,
            )

    def _selectors(self) -> Iterator[Note]:
        nodes = self._path("nodeSelector")
        if nodes and self._args.node_selector:
            if not self._args.node_fit and (self._keep or self._args.targets is None):
                yield dropped(nodes, "Without nodeFit it had no effect; left out.")
            elif self._args.targets is None:
                self.spec["nodeSelector"] = NO_NODE
                yield differs(
                    f"{WHERE}.nodeSelector",
                    "It is no label selector; descheduler finds no node with it and evicts nothing. Written "
                    "as one that selects no node; correct it.",
                    nodes,
                )
            else:
                self.spec["nodeSelector"] = self._args.node_selector
                unused = (
                    "" if self._args.node_fit else "Without nodeFit it had no effect; here it limits targets."
                )
                yield (
                    differs(f"{WHERE}.nodeSelector", unused, nodes)
                    if unused
                    else carried(nodes, f"{WHERE}.nodeSelector")
                )
        elif nodes:
            yield dropped(nodes, "It is empty and selects all nodes, as leaving it out does.")
        for key in ("labelSelector", "namespaceLabelSelector"):
            path = self._path(key)
            if path:
                self.spec[key] = self._given[key]
                yield carried(path, f"{WHERE}.{key}")

    def _priority(self) -> Iterator[Note]:
        path, given = self._path("priorityThreshold"), self._args.priority_threshold
        if path is None or given is None:
            return
        target = f"{WHERE}.priorityThreshold"
        if given.name:
            self.spec["priorityThreshold"] = {"name": given.name}
        elif given.value is not None:
            self.spec["priorityThreshold"] = {"value": given.value}
        else:
            yield dropped(path, "It names no priority and had no effect; left out.")
            return
        if "SystemCriticalPods" in self._args.protections or self._keep:
            yield carried(path, target)
        else:
            yield differs(
                target,
                "descheduler ignores the threshold while SystemCriticalPods is disabled; planner Proven "
                "applies it.",
                path,
            )

    def _replicas(self) -> Iterator[Note]:
        path, target = self._path("minReplicas"), f"{WHERE}.minReplicas"
        if path or self._keep:
            self.spec["minReplicas"] = self._args.min_replicas
            yield carried(path, target, "" if path else _WRITTEN_OUT)
        else:
            yield differs(target, "Pods of owners with a single pod are protected: the default is 2, not 0.")

    def _age(self) -> Iterator[Note]:
        path, text = self._path("minPodAge"), self._args.min_pod_age
        if path is None or text is None:
            return
        if re.fullmatch(SIGNED_DURATION, text) and len(text) <= 64:
            self.spec["minPodAge"] = text
            yield carried(path, f"{WHERE}.minPodAge")
            return
        seconds = duration(text).total_seconds()
        self.spec["minPodAge"] = f"{round(seconds * 1000)}ms"
        yield carried(path, f"{WHERE}.minPodAge", f"{text} is written as {self.spec['minPodAge']}.")

    def _opt_out(self) -> Iterator[Note]:
        path, policy = self._path("noEvictionPolicy"), self._args.no_eviction_policy
        if path is None:
            return
        self.spec["noEvictionPolicy"] = policy or "Preferred"
        yield carried(path, f"{WHERE}.noEvictionPolicy", "" if policy else "Empty means Preferred.")

    def _protections(self) -> Iterator[Note]:
        given = self._args.pod_protections
        on = self._args.protections
        disabled = [name for name in DEFAULTS if name not in on]
        extra = [name for name in EXTRAS if name in on]
        spec: dict[str, Any] = {"defaultDisabled": disabled} if disabled else {}
        if given.default_disabled or given.extra_enabled:
            yield from self._lists()
            has_extra = bool(given.extra_enabled)
        else:
            yield from self._booleans(extra)
            has_extra = self._path("ignorePvcPods") is not None or bool(extra)
        target = f"{WHERE}.podProtections.extraEnabled"
        if self._keep or has_extra:
            spec["extraEnabled"] = extra
        if self._keep and not has_extra:
            yield Note(FieldChange.KEPT, None, target, _WRITTEN_OUT)
        elif not has_extra:
            yield differs(target, f"{' and '.join(OUR_EXTRAS)} are protected by default.")
        elif "PodsWithResourceClaims" not in extra and not self._keep:
            yield Note(
                FieldChange.DEFAULT_DIFFERS,
                None,
                target,
                "The list replaces our default, so pods with resource claims may be evicted, as before.",
            )
        yield from self._config(spec, extra)
        if spec:
            self.spec["podProtections"] = spec

    def _lists(self) -> Iterator[Note]:
        for key in ("defaultDisabled", "extraEnabled"):
            if key in self._given["podProtections"] and self._at is not None:
                yield carried((*self._at, "podProtections", key), f"{WHERE}.podProtections.{key}")
        for key in (*DISABLING, *ENABLING):
            path = self._path(key)
            if path:
                yield dropped(path, "false is the default; left out.")

    def _booleans(self, extra: list[str]) -> Iterator[Note]:
        target = f"{WHERE}.podProtections.defaultDisabled"
        for key, protection in DISABLING.items():
            path = self._path(key)
            if path and self._given[key]:
                yield Note(FieldChange.RENAMED, path, target, f"The list disables {protection}.")
            elif path:
                yield Note(FieldChange.RENAMED, path, target, f"The list does not disable {protection}.")
        target = f"{WHERE}.podProtections.extraEnabled"
        for key, protection in ENABLING.items():
            path = self._path(key)
            if path:
                has = "has" if protection in extra else "does not have"
                yield Note(FieldChange.RENAMED, path, target, f"The list {has} {protection}.")
        if "podProtections" in self._given and self._at is not None:
            for key in ("defaultDisabled", "extraEnabled"):
                if key in (self._given["podProtections"] or {}):
                    yield dropped(
                        (*self._at, "podProtections", key), "It is empty and had no effect; left out."
                    )

    def _config(self, spec: dict[str, Any], extra: list[str]) -> Iterator[Note]:
        path = self._path("podProtections")
        if path is None or not self._args.protected_classes:
            return
        if "PodsWithPVC" in extra:
            spec["config"] = self._given["podProtections"]["config"]
            yield carried((*path, "config"), f"{WHERE}.podProtections.config")
        else:
            yield dropped((*path, "config"), "PodsWithPVC is not enabled, so it had no effect; left out.")
