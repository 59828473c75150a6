"""Translates a policy's extenders for the engine."""

from plimsoll.api.v1alpha1.extender import ExtenderSpec
from plimsoll.engine.extender import Extender


def extender_of(spec: ExtenderSpec) -> Extender:
    """An extender as the engine sees it."""
    return Extender(
        name=spec.url_prefix,
        filter_verb=spec.filter_verb or "",
        prioritize_verb=spec.prioritize_verb or "",
        preempt_verb=spec.preempt_verb or "",
        bind_verb=spec.bind_verb or "",
        weight=spec.weight or 0,
        node_cache_capable=spec.node_cache_capable,
        managed=frozenset(each.name for each in spec.managed_resources),
        ignorable=spec.ignorable,
    )
