"""Defines rules about signals: annotations and labels that cannot be read, or that mean nothing."""

from collections.abc import Iterator

from plimsoll.inspection.lint.subjects import LintedObject, Neighbourhood
from plimsoll.toolkit.descheduling import disruption_signals


def unreadable(subject: LintedObject, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """A value of an annotation or label that steers disruption cannot be read, so it counts as protection."""
    meta = subject.metadata
    return disruption_signals.unreadable(subject.bearer, meta.annotations, meta.labels, subject.volumes)


def unknown_key(subject: LintedObject, around: Neighbourhood) -> Iterator[str]:  # noqa: ARG001 - rules have one form
    """Annotations or labels below plimsoll.dev/ that Plimsoll does not know."""
    meta = subject.metadata
    return disruption_signals.unknown_keys((*meta.annotations, *meta.labels))
