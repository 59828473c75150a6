"""Collects the sentences of pages that promise something without exception: with "only", "never", "each"."""

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
    "docs/operate.md",
    "CONTRIBUTING.md",
)
#: Of these, sentences about each of something are collected as well.
WHOLE = frozenset(("docs/rebalancing.md", "docs/metrics.md", "docs/operate.md", "CONTRIBUTING.md"))
WORDS = re.compile(r"(?<!-)(?<!the )(?<!The )\b(only|never)\b")
WORDS_OF_WHOLE = re.compile(rf"{WORDS.pattern}|\b([Ee]ach|[Ee]very|[Aa]lways)\b")
#: Words by which a sentence is known.
FIRST = 10


def claims_of(page: str) -> list[str]:
    """Those of a page, each once."""
    words = WORDS_OF_WHOLE if page in WHOLE else WORDS
    return [*dict.fromkeys(claims((ROOT / page).read_text(encoding="utf-8"), words))]


def claims(text: str, words: re.Pattern[str] = WORDS) -> Iterator[str]:
    """The first words of each such sentence, without marks of Markdown."""
    text = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for block in re.split(r"\n\s*\n|\n(?=\s*[-*|#]|\d+\. )", text):
        for sentence in re.split(r"(?<=[.!?])\s+(?=[A-Z`*\[])", " ".join(block.split())):
            if words.search(sentence):
                yield known_by(sentence)


def known_by(sentence: str) -> str:
    """Its first words."""
    plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", sentence)
    return " ".join(re.sub(r"[`*_|]", " ", plain).removeprefix("- ").split()[:FIRST])
