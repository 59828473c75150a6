"""Counts of the observer: broken promises by what they cost, zeros included."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

#: What is counted, and how the checker's sentences about it read. The first one that fits counts.
COUNTED = {
    "pods bound twice, or in place of another": r" was moved from | named the uid ",
    "nodes over-committed": r" over-committed ",
    "evictions without a record": r" without a record of that| without saying why",
    "evictions against a budget or its window": r" against a budget| a budget of the policy allows none",
    "evictions against other limits": r" was evicted (for|with two records)|a run of .* made ",
    "records that never end or are not true": r"^the record ",
    "groups below minMember": r" members of ",
    "devices given twice, or to no pod": r" in use twice| allocated twice| has devices at|(the|its) claim ",
    "pods unbound after the faults": r" is not placed| waits",
    "writes without the lease": r", but the lease | took the lease of ",
}
OTHERS = "other promises"


def counted(violations: Iterable[str]) -> Counter[str]:
    """How often each was violated; a sentence of the checker begins with its time."""
    found = Counter(dict.fromkeys((*COUNTED, OTHERS), 0))
    for violation in violations:
        sentence = re.sub(r"^\d+\.\d+ ", "", violation)
        found[next((name for name, words in COUNTED.items() if re.search(words, sentence)), OTHERS)] += 1
    return found
