"""Random clusters: strategies and the scheduler's filters must agree about what is wrong.

make shared-rules CLUSTERS=1000 SEED=1
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter

from shared_rules.world import RULES, disagreements


def main() -> int:
    """Compare, and print what differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    found = Counter[str]()
    for seed in range(asked.seed, asked.seed + asked.clusters):
        for rule in RULES:
            for sentence in disagreements(seed, rule):
                print(sentence)
                found[rule] += 1
    print(f"{asked.clusters} clusters, {found.total()} pods judged differently {dict(found) or ''}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
