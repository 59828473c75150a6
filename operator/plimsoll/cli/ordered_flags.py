"""OrderedCommand is a command that preserves the order of its flags."""

from collections.abc import Iterator, Sequence
from typing import Any, ClassVar

from plimsoll.cli.parameters import ParameterCommand


class OrderedCommand(ParameterCommand):
    """Lists the given flags in its parameter ``order``, in order and with repeats.

    Attributes:
        pairs: Flags that take two words each; their value is both words, joined by a space.
    """

    pairs: ClassVar[frozenset[str]] = frozenset()

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Parse the flags twice: the first pass only records their order."""
        words = list(_joined(args, self.pairs))
        *_, order = self.make_parser(ctx).parse_args(args=list(words))
        rest = super().parse_args(ctx, words)
        ctx.params["order"] = [parameter.name for parameter in order]
        return rest


def _joined(args: Sequence[str], pairs: frozenset[str]) -> Iterator[str]:
    """The words, with the two words of pairs joined."""
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
