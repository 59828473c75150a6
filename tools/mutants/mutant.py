"""A Mutant is a module with one slip; a sample of them is drawn by seed, from each package by its size."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import distributions
from distributions import package_of
from mutants.operators import is_usual, mutations
from planter import faults

#: The fewest mutants of a package in a sample of all.
FEWEST = 4
#: The folders of tests of packages whose tests do not lie in the folder of their own name.
HOMES = {
    "answers": "tests/cli/",
    "check": "tests/preflight/",
    "commands": "tests/cli/",
    "dra_cel": "tests/cel/",
    "offline": "tests/inspection/",
    "plimsoll_optimal": "tests/planning/optimal/",
    "pages": "tests/web_pages/",
    "ports": "tests/kube/",
    "records": "tests/rebalancing/",
    "usage": "tests/kube/",
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One slip at its place.

    Attributes:
        path: The module, seen from the root of the repository.
        line: The number of its first line, from 1.
        last: The number of its last line.
        operator: What is wrong.
        before: The text of its lines, without the indentation of the first.
        after: What they say instead.
        begin: The first byte of the module that is replaced.
        end: The byte after the last one.
        instead: By what; as many line ends as it replaces.
    """

    path: str
    line: int
    last: int
    operator: str
    before: str
    after: str
    begin: int
    end: int
    instead: str

    @property
    def package(self) -> str:
        """The package that it is in."""
        return package_of(self.path)

    @property
    def homes(self) -> tuple[str, str]:
        """The folder in which the tests of its module lie, and that of its package."""
        home = HOMES.get(self.package, f"tests/{self.package}/")
        within = distributions.inner(self.path).partition("/")[2].rpartition("/")[0]
        return (f"{home}{within}/" if within else home), home

    @property
    def key(self) -> tuple[str, str, str, str]:
        """What it is known by when the lines above it have changed."""
        return self.path, self.operator, self.before, self.after


def mutants_of(path: str, text: str) -> list[Mutant]:
    """The mutants of a module whose slips compile."""
    raw = text.encode()
    starts = [0]
    for each in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(each))
    found = []
    for slip in mutations(ast.parse(text)):
        node = slip.node
        begin = starts[node.lineno - 1] + node.col_offset
        end = starts[(node.end_lineno or node.lineno) - 1] + (node.end_col_offset or 0)
        breaks = raw.count(b"\n", begin, end)
        is_expression = isinstance(node, ast.expr)
        instead = (
            f"({slip.text}" + "\n" * breaks + ")" if is_expression and breaks else slip.text + "\n" * breaks
        )
        first, last = starts[node.lineno - 1], starts[node.end_lineno or node.lineno]
        before = raw[first:last].decode().strip()
        after = (raw[first:begin].decode() + slip.text + raw[end:last].decode()).strip()
        found.append(
            Mutant(
                path,
                node.lineno,
                node.end_lineno or node.lineno,
                slip.kind,
                before,
                after,
                begin,
                end,
                instead,
            )
        )
    return found


def text_with(mutant: Mutant, text: str) -> str:
    """The text of its module with the slip."""
    raw = text.encode()
    return (raw[: mutant.begin] + mutant.instead.encode() + raw[mutant.end :]).decode()


def is_sound(mutant: Mutant, text: str) -> bool:
    """Whether the module still compiles and is another one."""
    try:
        changed = ast.parse(text_with(mutant, text))
        compile(changed, mutant.path, "exec")
    except (SyntaxError, ValueError):
        return False
    return ast.dump(changed) != ast.dump(_parsed(text))


@cache
def _parsed(text: str) -> ast.Module:
    return ast.parse(text)


def modules(root: Path, packages: Iterable[str] = ()) -> dict[str, str]:
    """The texts of the modules of some packages, of all if none is named, by path."""
    wanted = tuple(packages)
    found = {}
    for each in (
        each for each in distributions.modules(root) if package_of(each.relative_to(root).as_posix())
    ):
        path = each.relative_to(root).as_posix()
        inner = distributions.inner(path)
        if not wanted or any(inner.startswith((f"{one}/", f"{one}.py")) for one in wanted):
            found[path] = each.read_text(encoding="utf-8")
    return found


def drawn(
    texts: dict[str, str], count: int, seed: int, known: frozenset[tuple[str, ...]] = frozenset()
) -> list[Mutant]:
    """A sample: packages by their size in lines, one mutant a line, half of them by operators of ours.

    Args:
        texts: The modules.
        count: How many mutants.
        seed: The same seed draws the same mutants from the same modules.
        known: Keys of mutants to leave out.
    """
    by_package: dict[str, list[Mutant]] = defaultdict(list)
    sizes: dict[str, int] = defaultdict(int)
    for path, text in sorted(texts.items()):
        for each in mutants_of(path, text):
            if each.key not in known:
                by_package[each.package].append(each)
        sizes[package_of(path)] += text.count("\n")
    wanted = shares({each: sizes[each] for each in by_package}, count)
    return [
        mutant
        for package, number in sorted(wanted.items())
        for mutant in _some(by_package[package], number, _chance(seed, package), texts)
    ]


def _chance(seed: int, package: str) -> random.Random:
    return random.Random(f"{seed} {package}")  # noqa: S311 - the same for the same seed


def found_again(earlier: Iterable[Mutant], texts: dict[str, str]) -> list[Mutant]:
    """Mutants in modules as they are now, at the nearest place; those whose text is gone are left out."""
    now: dict[str, list[Mutant]] = {}
    found = []
    for each in earlier:
        if each.path in texts:
            alike = now.setdefault(each.path, mutants_of(each.path, texts[each.path]))
            places = [other for other in alike if other.key == each.key]
            found += [min(places, key=lambda other: abs(other.line - each.line))] if places else []
    return sorted(found, key=lambda each: (each.path, each.line))


def listed(planned: Iterable[faults.Fault], root: Path) -> list[Mutant]:
    """Faults of a list of the planter's as mutants where their lines are now, but for those that are gone."""
    found = []
    for fault in planned:
        if (place := faults.place_of(fault, root)) is None:
            continue
        text = (root / place.path).read_text(encoding="utf-8")
        lines = text.splitlines(keepends=True)
        first, last = place.line - 1, place.line - 1 + len(fault.old)
        head, old, tail = (
            "".join(each).encode() for each in (lines[:first], lines[first:last], lines[last:])
        )
        after = faults.planted(fault, place.line, text).encode()
        instead = after[len(head) : len(after) - len(tail)].decode()
        end = len(head) + len(old)
        before = old.decode().strip()
        found.append(
            Mutant(place.path, first + 1, last, fault.kind, before, instead.strip(), len(head), end, instead)
        )
    return found


def shares(sizes: dict[str, int], count: int) -> dict[str, int]:
    """How many mutants each package gets: by its size, and :data:`FEWEST` if there are enough."""
    least = min(FEWEST, count // max(1, len(sizes)))
    spare, total = count - least * len(sizes), sum(sizes.values())
    exact = {each: least + spare * size / total for each, size in sizes.items()}
    found = {each: int(share) for each, share in exact.items()}
    for each in sorted(exact, key=lambda each: found[each] - exact[each])[: count - sum(found.values())]:
        found[each] += 1
    return found


def _some(pile: Sequence[Mutant], count: int, chance: random.Random, texts: dict[str, str]) -> list[Mutant]:
    kinds: dict[str, list[Mutant]] = defaultdict(list)
    for each in chance.sample(pile, len(pile)):
        kinds[each.operator].append(each)
    usual = [each for each in chance.sample(pile, len(pile)) if is_usual(each.operator)]
    ours = [kinds[each] for each in sorted(kinds) if not is_usual(each)]
    found: dict[tuple[str, int], Mutant] = {}
    while len(found) < count and (usual or any(ours)):
        turn = chance.choice([each for each in ours if each]) if any(ours) and len(found) % 2 else usual
        turn = turn or next(each for each in ours if each)
        mutant = turn.pop()
        if (mutant.path, mutant.line) not in found and is_sound(mutant, texts[mutant.path]):
            found[mutant.path, mutant.line] = mutant
    return sorted(found.values(), key=lambda each: (each.path, each.line))
