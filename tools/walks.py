"""Measures walks through the product: the modules that an event enters on its way to its effect.

A *room* is a module that is entered by a call from another module; a *return* is such a call into a module
that was entered before. Passive modules are left out: values, protocols, observers, and plugins with what
they call (toolkit, devices) say nothing about who owns a step. The inner modules of a sub-package count as
its front. Calls are counted until the walk has its effect, or for the first 300, whichever comes first::

    with Walk() as walk:
        ...            # let an event through
    print(walk.report())

``tests/structure/test_walks.py`` walks a pod from the watch to its binding, and a policy from its schedule to
a verified move.
"""

import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType, TracebackType
from typing import Any, Self

import distributions

#: The folders whose modules are counted.
PACKAGES = tuple(distributions.ROOT / each / "plimsoll" for each in distributions.PRODUCT)

#: Packages and modules of values, protocols and instruments.
PASSIVE = (
    *(
        "api",
        "framework",
        "model",
        "ports",
        "telemetry",
        "testing",
        "timing",
        "plugins",
        "toolkit",
        "devices",
    ),
    *(
        "app.machine.clock",
        "engine.plugin_calls",
        "policy_controller.served_profiles",
        "scheduling.plugin_timing",
    ),
)

#: Sub-packages with a front: a visit to any of their modules is one to the front, unless it is listed itself.
FRONTS = {
    "engine.cache": "engine.cache.template",
    "engine.kernel": "engine.cache.template",
    "scheduling.binding": "scheduling.binding.cycle",
    "scheduling.queue": "scheduling.queue.queue",
}
APART = ("scheduling.binding.pipeline", "scheduling.queue.feed")

#: The same for the walk of a policy. Strategies are left out as plugins are; ``rebalancing.ways`` has
#: protocols, ``cluster.changes`` compares values. A package counts as one module, its front: what a run
#: reads, writes and reports is its run, the tables of a move are its machine, handlers and targets its
#: executor, what is read of records their store.
POLICY_PASSIVE = (*PASSIVE, "strategies", "rebalancing.ways", "cluster.changes")
POLICY_FRONTS = {
    "engine": "engine.scheduler",
    "engine.cache": "engine.scheduler",
    "engine.kernel": "engine.scheduler",
    "planning": "planning.planners",
    "planning.load": "planning.proven.planner",
    "planning.proven": "planning.proven.planner",
    "rebalancing.execution": "rebalancing.execution.executor",
    "rebalancing.moves": "rebalancing.moves.machine",
    "rebalancing.records": "rebalancing.records.store",
    "rebalancing.runs": "rebalancing.runs.run",
}

#: Calls that are looked at.
FIRST = 300


@dataclass
class Walk:
    """One walk; records while it is entered.

    Attributes:
        passive: Packages and modules that are left out.
        fronts: The front of each sub-package that has one.
        apart: Modules of such packages that count by themselves.
        is_over: Whether a call of this function, by module and name, ends the walk.
        rooms: Modules in the order in which they were entered first.
        returns: Modules in the order in which they were entered again.
        calls: Calls into modules that count.
    """

    passive: tuple[str, ...] = PASSIVE
    fronts: Mapping[str, str] = field(default_factory=lambda: FRONTS)
    apart: tuple[str, ...] = APART
    is_over: Callable[[str, str], bool] = lambda _module, _function: False
    first: int = FIRST
    rooms: list[str] = field(default_factory=list)
    returns: list[str] = field(default_factory=list)
    calls: int = 0
    _here: str = ""
    _modules: dict[CodeType, str] = field(default_factory=dict)
    _ended: bool = False

    def __enter__(self) -> Self:
        sys.setprofile(self._event)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, traceback: TracebackType | None
    ) -> None:
        sys.setprofile(None)

    def _event(self, frame: FrameType, event: str, _arg: Any) -> None:
        if event != "call" or self._ended or self.calls >= self.first:
            return
        code = frame.f_code
        module = self._modules.get(code)
        if module is None:
            module = self._modules[code] = self._module_of(code)
        if not module or code.co_name.startswith("<"):
            return
        self.calls += 1
        self._ended = self.is_over(module, code.co_name)
        if module == self._here:
            return
        self._here = module
        (self.returns if module in self.rooms else self.rooms).append(module)

    def _module_of(self, code: CodeType) -> str:
        path = Path(code.co_filename).with_suffix("")
        inner = next((path.relative_to(each).parts for each in PACKAGES if path.is_relative_to(each)), ())
        name = ".".join(inner)
        if not inner or inner[0] in self.passive or name in self.passive or inner[-1] == "__init__":
            return ""
        return name if name in self.apart else self.fronts.get(".".join(inner[:-1]), name)

    def report(self) -> str:
        """The walk in words."""
        rooms = "\n".join(f"{number:3} {room}" for number, room in enumerate(self.rooms, 1))
        returns = "\n".join(f"    {room}" for room in self.returns)
        return (
            f"{len(self.rooms)} modules, {len(self.returns)} returns in {self.calls} calls\n"
            f"{rooms}\nreturns:\n{returns}"
        )
