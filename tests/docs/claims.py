"""Collects the sentences of pages that promise something without exception: with "only" or "never"."""

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: The pages that say what the operator does to a cluster; SECURITY.md has rows of its own.
PAGES = (
    "README.md",
    "docs/devices.md",
    "docs/gangs.md",
    "docs/high-availability.md",
    "docs/how-it-decides.md",
    "docs/metrics.md",
    "docs/preemption.md",
    "docs/rebalancing.md",
    *(f"docs/rebalancing/{each.name}" for each in sorted((ROOT / "docs/rebalancing").glob("*.md"))),
)
WORDS = re.compile(r"(?<!-)(?<!the )(?<!The )\b(only|never)\b")
#: Words by which a sentence is known.
FIRST = 10


def claims(text: str) -> Iterator[str]:
    """The first words of each such sentence, without marks of Markdown."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*|#]|\d+\. )", text):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", " ".join(block.split())):
            if WORDS.search(sentence):
                yield known_by(sentence)


def known_by(sentence: str) -> str:
    """Its first words."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return " ".join(re.sub(r"[`*_|]", " ", plain).removeprefix("- ").split()[:FIRST])
