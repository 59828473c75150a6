"""Rules for docs/glossary.md: upstream's words once each, and a reason for each word of our own.

The page has two tables: ``Word | Meaning`` for the words of Kubernetes, kube-scheduler and descheduler, and
``Word | Meaning | Why upstream has no word for it`` for ours.
"""

import re
from collections import Counter
from collections.abc import Iterator

#: The words of upstream that every reader meets: style rule N1.
UPSTREAM = (
    "allocatable",
    "assume",
    "back-off",
    "bind",
    "budget",
    "candidate",
    "capacity",
    "cordon",
    "cycle state",
    "disruption",
    "drain",
    "eviction",
    "extension point",
    "feasible",
    "infeasible",
    "nominate",
    "policy",
    "preempt",
    "profile",
    "queueing hint",
    "requested",
    "strategy",
    "unschedulable",
    "used",
    "victim",
)

_ROW = re.compile(r"^\| (?P<word>[^|]+?) \| (?P<meaning>[^|]+?) \|(?: (?P<why>[^|]*?) \|)?$")
_OWN = "Why upstream has no word for it"


def glossary_problems(page: str) -> Iterator[tuple[int, str]]:
    """What is wrong with the glossary: line, sentence."""
    words: list[tuple[int, str]] = []
    own = False
    for number, line in enumerate(page.splitlines(), 1):
        row = _ROW.match(line)
        if row is None or set(row["word"]) <= {"-", " "}:
            continue
        if row["word"] == "Word":
            own = row["why"] == _OWN
            continue
        word = row["word"].strip("`*")
        if own and not row["why"]:
            yield number, f"{word!r} is a word of ours: say why upstream has no word for it"
        if own and word in UPSTREAM:
            yield number, f"{word!r} is upstream's word"
        words.append((number, word))
    yield from _counted(words)


def _counted(words: list[tuple[int, str]]) -> Iterator[tuple[int, str]]:
    counts = Counter(word for _, word in words)
    for number, word in words:
        if counts[word] > 1:
            yield number, f"{word!r} is explained {counts[word]} times"
    for word in UPSTREAM:
        if word not in counts:
            yield 1, f"{word!r} is missing: every upstream word of style rule N1 is explained once"
