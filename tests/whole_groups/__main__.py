"""Random clusters with groups: none may be broken below what it needs by the operator.

make whole-groups CLUSTERS=200 SEED=1
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter

from whole_groups.world import play


def main() -> int:
    """Play the clusters, and print what was broken."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--clusters", type=int, default=200)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    counts, broken = Counter[str](), 0
    for seed in range(asked.seed, asked.seed + asked.clusters):
        story = asyncio.run(play(seed))
        counts += story.counts
        broken += len(story.broken)
        for sentence in story.broken:
            print(f"seed {seed}: {sentence}")
    print(f"{asked.clusters} clusters, {broken} groups broken; {dict(counts)}")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
