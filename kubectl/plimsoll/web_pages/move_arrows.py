"""MoveArrows draws moves as arrows, from the pods' nodes on the left to their targets on the right."""

from collections import Counter
from collections.abc import Iterable, Sequence

from msgspec import Struct

#: Maximum number of node pairs drawn; the table has all moves.
DRAWN = 40

#: Height of a row, in units of the drawing.
ROW = 22

#: Horizontal positions of the ends of left names and the starts of right names, in the same units.
LEFT, RIGHT = 310, 590

#: Maximum number of characters of a name, and their width in the page's fixed-width font.
LONGEST, CHARACTER = 47, 7.3


class Arrow(Struct, frozen=True):
    """All moves from one node to another.

    Attributes:
        start: Distance of its start from the top.
        end: Distance of its head from the top.
    """

    source: str
    target: str
    moves: int
    start: int
    end: int

    @property
    def thickness(self) -> float:
        """The line's thickness: grows with the moves, up to six."""
        return min(6.0, 1.0 + 0.5 * self.moves)


class MoveArrows(Struct, frozen=True):
    """The drawing.

    Attributes:
        left: Nodes that pods leave, with their distances from the top.
        right: Targets, with their distances from the top.
        left_out: Number of moves that are not drawn.
    """

    left: Sequence[tuple[str, int]]
    right: Sequence[tuple[str, int]]
    arrows: Sequence[Arrow]
    left_out: int

    @property
    def height(self) -> int:
        """Height of the drawing."""
        return ROW * max(len(self.left), len(self.right))

    @property
    def begin(self) -> int:
        """Left edge of the longest name on the left, so that the drawing has no empty margin."""
        return LEFT - _width(self.left)

    @property
    def width(self) -> int:
        """Distance from there to the end of the longest name on the right."""
        return RIGHT + _width(self.right) - self.begin


def move_arrows(moves: Iterable[tuple[str, str]]) -> MoveArrows:
    """Draw the pairs of nodes with the most moves.

    Args:
        moves: The pod's node and its target, for each move.
    """
    pairs = Counter(moves)
    drawn = sorted(pairs.items(), key=lambda each: (-each[1], each[0]))[:DRAWN]
    left = _column(source for (source, _), _ in drawn)
    right = _column(target for (_, target), _ in drawn)
    arrows = [Arrow(source, target, count, left[source], right[target]) for (source, target), count in drawn]
    return MoveArrows(
        tuple(left.items()), tuple(right.items()), arrows, pairs.total() - sum(count for _, count in drawn)
    )


def _width(column: Iterable[tuple[str, int]]) -> int:
    return round(CHARACTER * min(LONGEST, max((len(name) for name, _ in column), default=0)))


def _column(names: Iterable[str]) -> dict[str, int]:
    """Each name once, sorted, with the middle of its row."""
    return {name: place * ROW + ROW // 2 for place, name in enumerate(sorted(set(names)))}
