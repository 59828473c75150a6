"""The arguments that most strategies share: namespaces, and a label selector of pods.

Source: descheduler v0.36, ``pkg/api/types.go`` (Namespaces) and ``pkg/descheduler/pod/pods.go``
(BuildFilterFunc).
"""

from typing import Self

from pydantic import Field, PrivateAttr, StrictStr, model_validator

from plimsoll.framework.args import PluginArgs
from plimsoll.model.decoding import convert
from plimsoll.model.kinds.pod_info import PodInfo
from plimsoll.model.selectors import EVERYTHING, LabelSelector, Selector, SelectorError, compile_selector


class LabelRequirement(PluginArgs):
    """A condition on one label: In, NotIn, Exists or DoesNotExist."""

    key: StrictStr = Field(default="", description="Key of the label that the requirement is about.")
    operator: StrictStr = Field(
        default="", description="Comparison of the label: In, NotIn, Exists or DoesNotExist."
    )
    values: tuple[StrictStr, ...] = Field(default=(), description="Values for In and NotIn.")


class LabelSelectorArg(PluginArgs):
    """A label selector as in metav1; all of it must match."""

    match_labels: dict[StrictStr, StrictStr] = Field(
        default={}, description="Labels that must have exactly these values."
    )
    match_expressions: tuple[LabelRequirement, ...] = Field(
        default=(), description="Further conditions on labels."
    )

    _compiled: Selector = PrivateAttr(default=EVERYTHING)

    @model_validator(mode="after")
    def _compile(self) -> Self:
        plain = convert(LabelSelector, self.model_dump(by_alias=True))
        try:
            self._compiled = compile_selector(plain)
        except SelectorError as exc:
            raise ValueError(f"failed to get label selectors: {exc}") from exc
        return self

    @property
    def compiled(self) -> Selector:
        """The compiled selector."""
        return self._compiled


class NamespacesArg(PluginArgs):
    """Names of namespaces, without patterns: only these, or all but these."""

    include: tuple[StrictStr, ...] = Field(
        default=(), description="Namespaces whose pods alone are meant; none means all."
    )
    exclude: tuple[StrictStr, ...] = Field(default=(), description="Namespaces whose pods are left out.")

    @model_validator(mode="after")
    def _one_list(self) -> Self:
        if self.include and self.exclude:
            raise ValueError("only one of Include/Exclude namespaces can be set")
        return self

    def covers(self, namespace: str) -> bool:
        """Whether pods of the namespace are included."""
        if self.include and namespace not in self.include:
            return False
        return namespace not in self.exclude


class ScopedArgs(PluginArgs):
    """Arguments of a strategy that considers only some namespaces and pods."""

    namespaces: NamespacesArg | None = Field(
        default=None, description="Namespaces whose pods are looked at; left out, all."
    )
    label_selector: LabelSelectorArg | None = Field(
        default=None, description="Only pods whose labels match are looked at; left out, all."
    )

    def covers(self, pod: PodInfo) -> bool:
        """Whether the strategy considers the pod."""
        if self.namespaces is not None and not self.namespaces.covers(pod.namespace):
            return False
        return self.label_selector is None or self.label_selector.compiled.matches(pod.labels)
