"""OrderedCommand is a command to which the order of its flags matters."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from typer.core import TyperCommand


class OrderedCommand(TyperCommand):
    """Its parameter ``order`` lists the flags that were given, as often and in the order as they were.

    Attributes:
        pairs: Flags that take two words each; the value is both, with a space between them.
    """

    pairs: ClassVar[frozenset[str]] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the flags twice: once for their order alone."""
        words = list(_joined(args, self.pairs))
        *_, order = self.make_parser(ctx).parse_args(args=list(words))
        rest = super().parse_args(ctx, words)
        ctx.params["order"] = [parameter.name for parameter in order]
        return rest


def _joined(args: Sequence[str], pairs: frozenset[str]) -> Iterator[str]:
    """The words, those of pairs joined."""
    words = iter(args)
    for word in words:
        flag, equals, _ = word.partition("=")
        if flag not in pairs:
            yield word
            continue
        first = word if equals else next(words, None)
        second = None if first is None else next(words, None)
        if not equals:
            yield word
        if first is not None:
            is_value = second is not None and not second.startswith("--")
            yield f"{first} {second}" if is_value else first
            if second is not None and not is_value:
                yield second
