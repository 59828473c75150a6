"""Exceptions for invalid configurations, failing plugins and strategies that cannot judge the cluster.

::

    PlimsollError
    ├── CannotJudgeError        a strategy lacks what it needs to judge the cluster: a sentence
    ├── ConfigurationError      a policy asks for what cannot be: names the field
    └── PluginError             a plugin raised or answered nonsense: names the plugin
"""

from typing import ClassVar


class PlimsollError(Exception):
    """Anything of ours."""


class CannotJudgeError(PlimsollError, ValueError):
    """What a strategy needs is missing or makes no sense; it does nothing in this run.

    Its sentence is shown in the policy's status as it is, without a class name before it.
    """


class ConfigurationError(PlimsollError):
    """A configuration that cannot be served; the policy gets ``Accepted=False`` with this sentence.

    Attributes:
        path: The exact field, such as ``spec.scheduling.plugins.score.enabled[0].name``.
        problem: What is wrong, what is allowed, what to do.
        reason: Of the condition.
    """

    reason: ClassVar[str] = "InvalidConfiguration"

    def __init__(self, path: str, problem: str) -> None:
        super().__init__(path, problem)
        self.path = path
        self.problem = problem

    def __str__(self) -> str:
        """The sentence shown in the policy's status."""
        return f"{self.path}: {self.problem}"


class PluginError(PlimsollError):
    """A plugin raised or broke a rule of its extension point; it fails its own cycle, never the loop.

    The extension point is spelled as in a profile (``preFilter``).
    """

    def __init__(self, plugin: str, point: str, problem: str) -> None:
        super().__init__(plugin, point, problem)
        self.plugin = plugin
        self.point = point
        self.problem = problem

    def __str__(self) -> str:
        """What was attempted, by whom, and what went wrong."""
        point = self.point[:1].upper() + self.point[1:]
        return f'running {point} plugin "{self.plugin}": {self.problem}'
