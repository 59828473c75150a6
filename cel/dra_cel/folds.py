"""Compiles comprehensions, to which ``all``, ``exists``, ``map``, ``filter`` and ``cel.bind`` expand.

Each iteration costs one unit or more. A failing step makes the accumulator an error, which later iterations
may absorb.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from dra_cel.frames import Evaluate, FailedValue, Frame, LocalNames
from dra_cel.literals import LIST_COST, MAP_COST
from dra_cel.syntax import (
    Call,
    Constant,
    Fold,
    ListLiteral,
    MapLiteral,
    Name,
    Select,
    Tree,
    nodes,
)
from dra_cel.values import (
    DomainMap,
    EvaluationError,
    key_of,
    no_such_overload,
    type_name,
    value_of,
)

FREE = 10
"""Operators without a charge that cost one unit in each turn, so that no loop of them is free."""
_OPERATORS = ("_||_", "_&&_", "_?_:_")
Compile = Callable[[Tree, LocalNames], Evaluate]


def fold(tree: Fold, scope: LocalNames, compiled: Compile) -> Evaluate:
    """The evaluation of a comprehension."""
    over = compiled(tree.over, scope)
    start = _start(tree, scope, compiled)
    names = (tree.accumulator, tree.variable, *((tree.second,) if tree.second else ()))
    with scope.inside(tree.accumulator) as (slot,):
        result = compiled(tree.result, scope)
        if _is_binding(tree):
            return _binding(start, slot, result)
    with scope.inside(*names) as slots:
        condition = _condition(tree, scope, compiled)
        step = _step(tree.step, tree.accumulator, slots[0], scope, compiled)
    return _loop(over, start, condition, step, result, slots, 1 + _free(tree) // FREE)


def _free(tree: Fold) -> int:
    """Operators that an iteration evaluates without their own cost: ``||``, ``&&``, ``?:`` and ``has``."""
    return sum(
        (isinstance(node, Call) and node.function in _OPERATORS) or (isinstance(node, Select) and node.test)
        for part in (tree.step, tree.condition)
        for node in nodes(part)
    )


def _is_binding(tree: Fold) -> bool:
    """Whether it has no iteration: ``cel.bind``."""
    return isinstance(tree.condition, Constant) and tree.condition.value is False


def _binding(start: Evaluate, slot: int, result: Evaluate) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.slots[slot] = _attempt(start, frame)
        return result(frame)

    return run


def _attempt(evaluate: Evaluate, frame: Frame) -> Any:
    try:
        return evaluate(frame)
    except EvaluationError as error:
        return FailedValue(error)


def _loop(
    over: Evaluate,
    start: Evaluate,
    condition: Evaluate | None,
    step: Evaluate,
    result: Evaluate,
    slots: list[int],
    cost: int,
) -> Evaluate:
    accumulator, first = slots[0], slots[1]
    second = slots[2] if len(slots) > 2 else None

    def run(frame: Frame) -> Any:
        variables = frame.slots
        values = over(frame)
        variables[accumulator] = _attempt(start, frame)
        for one, two in _turns(values, pairs=second is not None):
            frame.charge(cost)
            variables[first] = one
            if second is not None:
                variables[second] = two
            if condition is not None and _attempt(condition, frame) is False:
                break
            variables[accumulator] = _attempt(step, frame)
        return result(frame)

    return run


def _turns(values: Any, *, pairs: bool) -> Iterable[tuple[Any, Any]]:
    """The values of the variables, iteration by iteration."""
    kind = type(values)
    if kind is dict or kind is DomainMap:
        return [(value_of(key), value) for key, value in values.items()]
    if kind is not list:
        raise EvaluationError(f"got '{type_name(values)}', expected iterable type")
    return enumerate(values) if pairs else ((value, None) for value in values)


def _condition(tree: Fold, scope: LocalNames, compiled: Compile) -> Evaluate | None:
    """The condition that ends the loop when it is false; None if nothing ends the loop."""
    if isinstance(tree.condition, Constant) and tree.condition.value is True:
        return None
    return compiled(tree.condition, scope)


# -- macros that build a list or a map -----------------------------------------------------------------------


def _builds(tree: Fold) -> bool:
    """Whether a macro collects into a list or a map of its own, which no expression can name."""
    empty = (isinstance(tree.start, ListLiteral) and not tree.start.elements) or (
        isinstance(tree.start, MapLiteral) and not tree.start.entries
    )
    return empty and tree.accumulator.startswith("@")


def _start(tree: Fold, scope: LocalNames, compiled: Compile) -> Evaluate:
    if _builds(tree):
        new: type[list[Any] | dict[Any, Any]] = list if isinstance(tree.start, ListLiteral) else dict
        return lambda _: new()
    return compiled(tree.start, scope)


def _step(tree: Tree, accumulator: str, slot: int, scope: LocalNames, compiled: Compile) -> Evaluate:
    """The step of a loop; ``accumulator + [value]`` extends the list in place, so n turns take n steps."""
    match tree:
        case Call(function="_?_:_", arguments=(condition, then, Name(name=name))) if name == accumulator:
            return _conditional_step(
                compiled(condition, scope), _step(then, accumulator, slot, scope, compiled), slot
            )
        case Call(
            function="_+_", arguments=(Name(name=name), ListLiteral(elements=(value,), optional=left_out))
        ) if name == accumulator and accumulator.startswith("@") and not left_out:
            return _append(compiled(value, scope), slot)
        case Call(function="cel.@mapInsert", arguments=(_, MapLiteral(entries=entries))):
            pairs = [(compiled(key, scope), compiled(value, scope)) for key, value, _ in entries]
            return _insert(pairs, slot, MAP_COST)
        case Call(function="cel.@mapInsert", arguments=(_, key, value)):
            return _insert([(compiled(key, scope), compiled(value, scope))], slot, 0)
        case _:
            return compiled(tree, scope)


def _collected(frame: Frame, slot: int) -> Any:
    value = frame.slots[slot]
    if type(value) is FailedValue:
        raise value.error
    return value


def _conditional_step(condition: Evaluate, then: Evaluate, slot: int) -> Evaluate:
    def run(frame: Frame) -> Any:
        value = condition(frame)
        if value is True:
            return then(frame)
        if value is not False:
            raise no_such_overload()
        frame.charge(1)
        return _collected(frame, slot)

    return run


def _append(value: Evaluate, slot: int) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(2 + LIST_COST)
        collected = _collected(frame, slot)
        collected.append(value(frame))
        return collected

    return run


def _insert(pairs: list[tuple[Evaluate, Evaluate]], slot: int, cost: int) -> Evaluate:
    def run(frame: Frame) -> Any:
        frame.charge(2 + cost)
        collected = _collected(frame, slot)
        for key, value in pairs:
            name, inner = key(frame), value(frame)
            if not isinstance(name, bool | int | str):
                raise EvaluationError("unsupported key type")
            if key_of(name) in collected:
                raise EvaluationError(f"insert failed: key {name} already exists")
            collected[key_of(name)] = inner
        return collected

    return run
