"""Defines selectors: as written in the API, and compiled for matching.

Two families that look alike and differ:

* *Label selectors* select objects by their labels. A missing one matches nothing, an empty one everything; a
  malformed one is an error of its object.
* *Node selectors* (``nodeSelector`` and node affinity terms) select nodes by labels and by name. They also
  know ``Gt`` and ``Lt``. A term that cannot be parsed matches nothing, and so does one without requirements.

Source: Kubernetes v1.36, ``apimachinery/pkg/labels/selector.go`` and
``component-helpers/scheduling/corev1/nodeaffinity``.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from plimsoll.model.read_once import ReadOnce
from plimsoll.model.read_only_dict import NO_ENTRIES
from plimsoll.model.shortened import shortened

NAME_FIELD = "metadata.name"
"""The one field that ``matchFields`` may name."""

#: Number of compiled selectors, and of terms, that are kept; of requirements and values in the largest of
#: them; and of terms in the largest list whose terms are kept.
MOST_KEPT, LARGEST_KEPT, FEW_TERMS = 2_048, 16, 16

#: Characters of their values: those of a preferred node affinity may be as long as the object.
LONGEST_KEPT = 4_096


class LabelSelectorRequirement(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Operators ``In``, ``NotIn``, ``Exists``, ``DoesNotExist``."""

    key: str = ""
    operator: str = ""
    values: tuple[str, ...] = ()


class LabelSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Labels that must be equal, and requirements; all must hold."""

    match_labels: dict[str, str] = NO_ENTRIES
    match_expressions: tuple[LabelSelectorRequirement, ...] = ()


class NodeSelectorRequirement(LabelSelectorRequirement, frozen=True, kw_only=True, rename="camel", gc=False):
    """Likewise, and ``Gt``, ``Lt``."""


class NodeSelectorTerm(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Requirements on labels and on fields; all must hold."""

    match_expressions: tuple[NodeSelectorRequirement, ...] = ()
    match_fields: tuple[NodeSelectorRequirement, ...] = ()


class NodeSelector(msgspec.Struct, frozen=True, kw_only=True, rename="camel", gc=False):
    """Terms of which one must hold; no term at all matches nothing."""

    node_selector_terms: tuple[NodeSelectorTerm, ...] = ()


class SelectorError(ValueError):
    """An invalid selector; the message says where and why."""


SHOWN, SHOWN_VALUES, SHOWN_ERRORS = 128, 8, 8
"""Characters of a text, values, and errors of a term that a message repeats."""


def shown(text: str) -> str:
    """A text of a selector in a message."""
    return shortened(text, SHOWN)


_NAME = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
_SUBDOMAIN = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*")
_INTEGER = re.compile(r"[+-]?[0-9]+")
_INT64_DIGITS = 19


def is_label_key(text: str) -> bool:
    """Whether the text is a qualified name: ``name`` or ``dns.sub.domain/name``."""
    prefix, slash, name = text.rpartition("/")
    if slash and (len(prefix) > 253 or not _SUBDOMAIN.fullmatch(prefix)):
        return False
    return len(name) <= 63 and _NAME.fullmatch(name) is not None


def is_label_value(text: str) -> bool:
    """Whether the text may be a label's value; the empty string may."""
    return text == "" or (len(text) <= 63 and _NAME.fullmatch(text) is not None)


def int64(text: str) -> int | None:
    """The decimal integer in the text, or ``None`` if it is not one of at most 64 bits."""
    if not _INTEGER.fullmatch(text):
        return None
    digits = text.lstrip("+-").lstrip("0")
    if len(digits) > _INT64_DIGITS:
        return None
    number = -int(digits or "0") if text[0] == "-" else int(digits or "0")
    return number if -(2**63) <= number < 2**63 else None


class Requirement(Struct, frozen=True):
    """One compiled requirement on labels; ``bound`` is the number of ``Gt`` and ``Lt``."""

    key: str
    operator: str
    values: frozenset[str] = frozenset()
    bound: int = 0

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether these labels satisfy the requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case _:
                number = None if value is None else int64(value)
                if number is None:
                    return False
                return number > self.bound if self.operator == "Gt" else number < self.bound


def compile_requirement(key: str, operator: str, values: tuple[str, ...], where: str = "") -> Requirement:
    """Check and compile one requirement on labels, at the path ``where`` (``[0].matchExpressions[1]``).

    Raises:
        SelectorError: worded as kube-scheduler words it; starts with the path.
    """
    dot = f"{where}." if where else ""
    if not is_label_key(key):
        raise SelectorError(f'{dot}key: Invalid value: "{shown(key)}": {_KEY_RULE}')
    bound = 0
    match operator:
        case "In" | "NotIn":
            if not values:
                raise SelectorError(
                    f"{dot}values: Invalid value: []: for 'in', 'notin' operators, values set can't be empty"
                )
        case "Exists" | "DoesNotExist":
            if values:
                raise SelectorError(
                    f"{dot}values: Invalid value: {_go_strings(values)}: "
                    "values set must be empty for exists and does not exist"
                )
        case "Gt" | "Lt":
            if len(values) != 1:
                raise SelectorError(
                    f"{dot}values: Invalid value: {_go_strings(values)}: "
                    "for 'Gt', 'Lt' operators, exactly one value is required"
                )
            number = int64(values[0])
            if number is None:
                raise SelectorError(
                    f'{dot}values[0]: Invalid value: "{shown(values[0])}": '
                    "for 'Gt', 'Lt' operators, the value must be an integer"
                )
            bound = number
        case _:
            raise SelectorError(f'{dot}operator: Unsupported value: "{shown(operator)}"')
    for index, value in enumerate(values):
        if not is_label_value(value):
            raise SelectorError(
                f'{dot}values[{index}][{key}]: Invalid value: "{shown(value)}": {_VALUE_RULE}'
            )
    return Requirement(key, operator, frozenset(values), bound)


_KEY_RULE = "a label key is [dns-subdomain/]name, the name up to 63 letters, digits, '-', '_' or '.'"
_VALUE_RULE = "a label value is empty or up to 63 letters, digits, '-', '_' or '.'"


def _go_strings(values: Sequence[str]) -> str:
    more = [f"and {len(values) - SHOWN_VALUES} more"] if len(values) > SHOWN_VALUES else []
    return "[" + ",".join([f'"{shown(value)}"' for value in values[:SHOWN_VALUES]] + more) + "]"


class Selector(Struct, frozen=True):
    """A compiled label selector: hashable, and equal selectors are equal.

    All requirements must hold; without any it matches everything, or nothing if the selector was absent.
    """

    requirements: tuple[Requirement, ...] = ()
    matches_nothing: bool = False

    @property
    def is_empty(self) -> bool:
        """Whether it is present and has no requirement: it matches everything."""
        return not self.requirements and not self.matches_nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        """Whether an object with these labels is selected."""
        if self.matches_nothing:
            return False
        return all(requirement.matches(labels) for requirement in self.requirements)

    def and_equal(self, pairs: Mapping[str, str]) -> "Selector":
        """This selector and, for each pair, label equals value; a selector of nothing stays so."""
        if self.matches_nothing or not pairs:
            return self
        more = [Requirement(key, "In", frozenset((value,))) for key, value in sorted(pairs.items())]
        return Selector((*self.requirements, *more))


NOTHING = Selector(matches_nothing=True)
EVERYTHING = Selector()


def compile_selector(selector: LabelSelector | None, *, among: int = 1) -> Selector:
    """Compile a label selector; ``None`` selects nothing, an empty one everything.

    Args:
        selector: As written.
        among: Number of selectors that its object has in one list: one of many is not kept for others.

    Raises:
        SelectorError: a requirement means nothing.
    """
    if selector is None:
        return NOTHING
    labels = selector.match_labels
    if among <= FEW_TERMS and _are_few(selector.match_expressions, besides=len(labels)):
        return _kept(tuple(sorted(labels.items())), selector.match_expressions)
    return Selector((*_equal_to(labels), *_of_expressions(selector.match_expressions)))


def selector_of_labels(labels: Mapping[str, str]) -> Selector:
    """The selector of exactly these labels (a Service's, a ReplicationController's)."""
    return EVERYTHING.and_equal(labels)


def _are_few(expressions: Sequence[LabelSelectorRequirement], besides: int = 0) -> bool:
    most = LARGEST_KEPT - besides
    return (
        len(expressions) <= most
        and sum([len(each.values) or 1 for each in expressions]) <= most
        and sum([len(value) for each in expressions for value in each.values]) <= LONGEST_KEPT
    )


def _compiled(
    pairs: tuple[tuple[str, str], ...], expressions: tuple[LabelSelectorRequirement, ...]
) -> Selector:
    requirements = (compile_requirement(key, "In", (value,)) for key, value in pairs)
    return Selector((*requirements, *_of_expressions(expressions)))


def _of_expressions(expressions: tuple[LabelSelectorRequirement, ...]) -> Iterator[Requirement]:
    for expression in expressions:
        if expression.operator in ("Gt", "Lt"):
            raise SelectorError(f'"{expression.operator}" is not a valid label selector operator')
        yield compile_requirement(expression.key, expression.operator, expression.values)


def _requirements(labels: Mapping[str, str]) -> tuple[Requirement, ...]:
    return tuple(compile_requirement(key, "In", (value,)) for key, value in sorted(labels.items()))


_equal_to = ReadOnce(_requirements)
_kept = lru_cache(maxsize=MOST_KEPT)(_compiled)


class NodeTerm(Struct, frozen=True):
    """A compiled node selector term.

    Attributes:
        requirements: on the node's labels.
        names: on the node's fields: (field, value, whether they must be equal).
        error: why the term cannot be parsed; it then matches nothing. Empty otherwise.
    """

    requirements: tuple[Requirement, ...] = ()
    names: tuple[tuple[str, str, bool], ...] = ()
    error: str = ""

    @property
    def is_empty(self) -> bool:
        """Whether it has no requirement at all, in which case it matches nothing."""
        return not (self.requirements or self.names or self.error)

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether the node with these labels and this name satisfies every requirement."""
        if self.error or self.is_empty:
            return False
        for field, value, equal in self.names:
            actual = name if field == NAME_FIELD else ""
            if (actual == value) is not equal:
                return False
        return all(requirement.matches(labels) for requirement in self.requirements)


def compile_node_term(term: NodeSelectorTerm, where: str = "", *, among: int = 1) -> NodeTerm:
    """Compile a node selector term; a malformed one carries its error, at ``where``, and matches nothing.

    One ``among`` many terms of an object is not kept for others.
    """
    is_kept = among <= FEW_TERMS and _are_few(term.match_expressions) and _are_few(term.match_fields)
    return (_kept_node_term if is_kept else _compile_node_term)(term, where)


def _compile_node_term(term: NodeSelectorTerm, where: str) -> NodeTerm:
    dot = f"{where}." if where else ""
    requirements = []
    names = []
    errors = []
    for index, expression in enumerate(term.match_expressions):
        try:
            requirements.append(
                compile_requirement(
                    expression.key,
                    expression.operator,
                    expression.values,
                    f"{dot}matchExpressions[{index}]",
                )
            )
        except SelectorError as exc:
            errors.append(str(exc))
    for index, expression in enumerate(term.match_fields):
        path = f"{dot}matchFields[{index}]"
        if expression.operator not in ("In", "NotIn"):
            errors.append(f'{path}.operator: Unsupported value: "{shown(expression.operator)}"')
        elif len(expression.values) != 1:
            errors.append(
                f"{path}.values: Invalid value: {_go_strings(expression.values)}: must have one element"
            )
        else:
            names.append((expression.key, expression.values[0], expression.operator == "In"))
    if len(errors) > SHOWN_ERRORS:
        errors[SHOWN_ERRORS:] = [f"and {len(errors) - SHOWN_ERRORS} more"]
    if len(errors) > 1:
        return NodeTerm(error="[" + ", ".join(errors) + "]")
    return NodeTerm(tuple(requirements), tuple(names), errors[0] if errors else "")


_kept_node_term = lru_cache(maxsize=MOST_KEPT)(_compile_node_term)


class NodeTermIndex:
    """A term for matching many nodes: each costs what its labels do, however large the term."""

    __slots__ = ("_fields", "_is_possible", "_labels", "_others")

    def __init__(self, term: NodeTerm) -> None:
        self._is_possible = not (term.error or term.is_empty)
        self._labels = _RequirementIndex(term.requirements)
        self._fields = _RequirementIndex(
            [
                Requirement(field, "In" if equal else "NotIn", frozenset((value,)))
                for field, value, equal in term.names
            ]
        )
        self._others = {field: "" for field, _, _ in term.names}

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """As :meth:`NodeTerm.matches`."""
        return (
            self._is_possible
            and self._fields.matches({**self._others, NAME_FIELD: name})
            and self._labels.matches(labels)
        )


class _RequirementIndex:
    """Requirements by the labels that they need, and by those that may break them."""

    __slots__ = ("_by_key", "_needed")

    def __init__(self, requirements: Sequence[Requirement]) -> None:
        alike: dict[tuple[str, str], list[Requirement]] = {}
        for each in requirements:
            alike.setdefault((each.key, each.operator), []).append(each)
        self._by_key: dict[str, list[Requirement]] = {}
        for some in alike.values():
            self._by_key.setdefault(some[0].key, []).append(_all_of(some))
        self._needed = frozenset(
            key for key, some in self._by_key.items() if not all(each.matches({}) for each in some)
        )

    def matches(self, labels: Mapping[str, str]) -> bool:
        return labels.keys() >= self._needed and all(
            each.matches(labels) for key in labels.keys() & self._by_key.keys() for each in self._by_key[key]
        )


def _all_of(some: Sequence[Requirement]) -> Requirement:
    """The requirement that holds where all of these do, which have one key and one operator."""
    first = some[0]
    if len(some) == 1:
        return first
    values = [each.values for each in some]
    joined = frozenset.intersection(*values) if first.operator == "In" else frozenset().union(*values)
    bound = (min if first.operator == "Lt" else max)(each.bound for each in some)
    return Requirement(first.key, first.operator, joined, bound)


class NodeMatcher(Struct, frozen=True):
    """The required part of a pod's constraints on nodes.

    All labels of ``nodeSelector`` must be equal, and one term must hold; ``None`` without required affinity.
    """

    equal: tuple[tuple[str, str], ...] = ()
    terms: tuple[NodeTerm, ...] | None = None

    @property
    def is_empty(self) -> bool:
        """Whether there is no constraint: every node matches."""
        return not self.equal and self.terms is None

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Whether the node with these labels and this name satisfies the constraints."""
        if any(labels.get(key) != value for key, value in self.equal):
            return False
        return self.terms is None or any(term.matches(labels, name) for term in self.terms)


def compile_node_matcher(
    node_selector: Mapping[str, str] | None = None, required: NodeSelector | None = None
) -> NodeMatcher:
    """Compile ``spec.nodeSelector`` and the required node affinity into one matcher."""
    return NodeMatcher(
        tuple(sorted((node_selector or {}).items())),
        None if required is None else compile_node_terms(required),
    )


def compile_node_terms(selector: NodeSelector) -> tuple[NodeTerm, ...]:
    """Compile the terms of a node selector, each with its index as its path."""
    terms = selector.node_selector_terms
    return tuple(
        [compile_node_term(term, f"[{index}]", among=len(terms)) for index, term in enumerate(terms)]
    )
