"""LoadFall says of which nodes the load has fallen, for pods that a busy node rejected.

Axis letter: K nodes whose load fell.
"""

import msgspec

from plimsoll.load.load_book import LoadBook
from plimsoll.load.readings import FloatArray
from plimsoll.model.columns.columns import BoolArray, IntArray


class LoadFall(msgspec.Struct, frozen=True, eq=False):
    """Nodes whose load has fallen.

    Attributes:
        before: Shape (K, 4): percent of cpu, memory, and the peaks of both, before the fall.
        after: The same now.
        room: Shape (K, 2): billionths of a core, and bytes.
        was_stale: Shape (K,): whether the measurements were stale before.
        book: The load book.
    """

    before: FloatArray
    after: FloatArray
    room: IntArray
    was_stale: BoolArray
    book: LoadBook
