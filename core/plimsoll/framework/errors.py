"""Exceptions for invalid configurations, failing plugins and strategies that cannot judge the cluster.

::

    PlimsollError
    ├── CannotJudgeError        a strategy lacks the data to judge the cluster: a sentence
    ├── ConfigurationError      a policy is invalid: names the field
    │   └── UnknownPartError    it names a plugin or strategy that is not installed
    └── PluginError             a plugin raised or returned a wrong value: names the plugin
"""

from typing import ClassVar

from plimsoll.model.errors import PlimsollError

__all__ = ["CannotJudgeError", "ConfigurationError", "PlimsollError", "PluginError", "UnknownPartError"]


class CannotJudgeError(PlimsollError, ValueError):
    """A strategy's input is missing or invalid; it does nothing in this run.

    The policy's status shows its sentence without a class name.
    """


class ConfigurationError(PlimsollError):
    """A configuration that cannot be served; the policy gets ``Accepted=False`` with this sentence.

    Attributes:
        path: The exact field, such as ``spec.scheduling.plugins.score.enabled[0].name``.
        problem: What is wrong, what is allowed, what to do.
        reason: The condition's reason.
    """

    reason: ClassVar[str] = "InvalidConfiguration"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        """The sentence shown in the policy's status."""
        return f"{self.path}: {self.problem}"


class UnknownPartError(ConfigurationError):
    """A policy names a plugin or strategy that is not installed where it is read."""


class PluginError(PlimsollError):
    """A plugin raised or broke a rule of its extension point; it fails its own cycle, never the loop.

    The extension point is spelled as in a profile (``preFilter``). ``trace`` is where the plugin raised.
    """

    def __init__(self, plugin: str, point: str, problem: str, trace: str = "") -> None:
        super().__init__(plugin, point, problem)
        self.trace = trace
        self.plugin = plugin
        self.point = point
        self.problem = problem

    def __str__(self) -> str:
        """What was attempted, by which plugin, and the error, in kube-scheduler's words."""
        if self.point == "filter":
            return f'running "{self.plugin}" filter plugin: {self.problem}'
        point = self.point[:1].upper() + self.point[1:]
        return f'running {point} plugin "{self.plugin}": {self.problem}'
