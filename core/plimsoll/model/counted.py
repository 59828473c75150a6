"""Writes numbers of things in sentences: ``1 pod stays``, ``2 pods stay``."""


def counted(count: int, noun: str, nouns: str = "") -> str:
    """A number and its noun; ``nouns`` is the plural where it is not the noun with an s."""
    return f"{count} {agreeing(count, noun, nouns or f'{noun}s')}"


def agreeing(count: int, one: str, many: str) -> str:
    """The word that agrees with a number, such as ``is`` or ``are``."""
    return one if count == 1 else many
