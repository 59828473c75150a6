"""Loads the compiled kernel.

The build compiles ``kernel.c`` where a C compiler exists (``tools/kernel_build.py``). If the library is
missing, has another edition or is disabled by ``PLIMSOLL_KERNEL=numpy``, numpy computes the same results more
slowly. Calls hold the interpreter's lock, as they take microseconds.
"""

import ctypes
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from plimsoll.model.columns.cluster import Cluster

#: The edition in ``kernel.c``; increases with each change of a structure or function.
EDITION = 4

#: Up to this many changes are renewed individually, even of the same row; beyond it, the distinct rows.
MOST_CHANGES = 4096

SWITCH = "PLIMSOLL_KERNEL"
PATH = Path(__file__).with_name("_kernel.so")


class Kernel:
    """The functions of the library; structures and columns are passed by address.

    Raises:
        OSError: There is no such library, or it has another edition.
    """

    def __init__(self, path: Path) -> None:
        library = ctypes.PyDLL(str(path))
        if _declared(library.plimsoll_kernel_edition, 0)() != EDITION:
            raise OSError(f"{path} is of another edition")
        self.room_all = _declared(library.plimsoll_room_all, 2)
        self.room_rows = _declared(library.plimsoll_room_rows, 3)
        self.victims = _declared(library.plimsoll_victims, 3)
        self.points_all = _declared(library.plimsoll_points_all, 2)
        self.points_rows = _declared(library.plimsoll_points_rows, 3)
        self.best_all = _declared(library.plimsoll_best_all, 2)
        self.best_rows = _declared(library.plimsoll_best_rows, 3)
        self.classes_all = _declared(library.plimsoll_classes_all, 1)
        self.classes_rows = _declared(library.plimsoll_classes_rows, 3)
        self.classes_best = _declared(library.plimsoll_classes_best, 1)
        self.classes_row = _declared(library.plimsoll_classes_row, 2)


def _declared(function: Any, arguments: int) -> Any:
    """Declare a function of addresses and counts, which are integers of 64 bits."""
    function.argtypes = (ctypes.c_size_t,) * arguments
    function.restype = ctypes.c_int64
    return function


def load(path: Path = PATH, switch: str | None = None) -> Kernel | None:
    """The kernel, or None if numpy computes; ``switch`` defaults to the environment variable."""
    if (os.environ.get(SWITCH, "") if switch is None else switch) == "numpy":
        return None
    try:
        return Kernel(path)
    except (OSError, AttributeError):
        return None


#: The kernel of this process.
KERNEL = load()


def described() -> str:
    """The implementation that computes: ``compiled`` or ``numpy``."""
    return "numpy" if KERNEL is None else "compiled"


def address(array: NDArray[Any]) -> int:
    """The address of an array's data; valid while the caller keeps the array."""
    start: int = array.__array_interface__["data"][0]
    return start


class ColumnAddresses:
    """Addresses of one cluster's columns: one axis after the other, one row after the other.

    Attributes:
        kernel: None if numpy computes.
    """

    def __init__(self, cluster: Cluster, kernel: Kernel | None) -> None:
        self.kernel = kernel
        self.cluster = cluster
        self._kept: tuple[NDArray[np.int64], ...] = ()
        self._starts: tuple[int, int, int] = 0, 0, 0
        self._step = 0

    def current(self) -> tuple[int, int, int, int]:
        """Addresses of allocatable, requested and nonzero_requested, and the bytes from axis to axis."""
        cluster = self.cluster
        columns = cluster.allocatable, cluster.requested, cluster.nonzero_requested
        kept = self._kept
        if not kept or any(one is not other for one, other in zip(columns, kept, strict=True)):
            assert all(each.flags.f_contiguous for each in columns)
            self._kept = columns
            self._starts = address(columns[0]), address(columns[1]), address(columns[2])
            self._step = 8 * len(columns[0])
        return *self._starts, self._step

    @property
    def arrays(self) -> tuple[NDArray[np.int64], ...]:
        """The columns of the latest addresses; a caller that keeps an address must keep these."""
        return self._kept
