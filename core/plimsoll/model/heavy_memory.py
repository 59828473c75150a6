"""Keeps what a large object makes out of the arenas in which Python keeps all other small objects.

Python returns an arena (1 MiB) to the system only when it is empty, and a few small objects that were made
while a large one was read keep each of its arenas. So the small objects of a large one come from the C
library's heap, which returns any page of 4 KiB (docs/adr/0041-one-object.md).

Python frees by address: what does not lie in an arena goes back to the C library, as blocks above 512 bytes
always do (CPython 3.11 to 3.14, ``_PyObject_Free`` in ``Objects/obmalloc.c``). Only new objects are affected.
``sys.getallocatedblocks`` counts such an object when it is freed but not when it is made.
"""

import ctypes
import os
import sys
import sysconfig
from contextlib import AbstractContextManager, nullcontext

#: Numbers of Python's domains of memory: the C library's, and two of arenas.
_C_LIBRARY, _ARENAS = 0, (1, 2)

#: Versions of CPython whose way to free is known.
_FIRST, _BEFORE = (3, 11), (3, 15)


class _Allocator(ctypes.Structure):
    """``PyMemAllocatorEx``: a context, and four functions by address."""

    _fields_ = tuple((name, ctypes.c_void_p) for name in ("ctx", "malloc", "calloc", "realloc", "free"))


def _function(name: str) -> "ctypes._NamedFuncPointer":
    """``PyMem_GetAllocator`` or ``PyMem_SetAllocator``; a call holds the interpreter's lock."""
    function = getattr(ctypes.pythonapi, name)
    function.argtypes, function.restype = (ctypes.c_int, ctypes.POINTER(_Allocator)), None
    return function  # type: ignore[no-any-return]


class _HeavyMemory:
    """Makes small objects in the C library's heap within a ``with`` block, which may be in another one.

    One thread at a time enters it. What other threads make meanwhile comes from that heap, too.
    """

    def __init__(self) -> None:
        self._get, self._set = _function("PyMem_GetAllocator"), _function("PyMem_SetAllocator")
        self._usual = tuple(self._current(domain) for domain in _ARENAS)
        heap = self._current(_C_LIBRARY)
        self._ours = tuple(
            _Allocator(each.ctx, heap.malloc, heap.calloc, each.realloc, each.free) for each in self._usual
        )
        # A hook, such as tracemalloc's, has a context, and frees only what it has made.
        self.is_possible = not any(each.ctx for each in (heap, *self._usual))
        self._depth = 0

    def __enter__(self) -> None:
        if self._depth == 0:
            self._replace(self._usual, self._ours)
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._replace(self._ours, self._usual)

    def _current(self, domain: int) -> _Allocator:
        found = _Allocator()
        self._get(domain, found)
        return found

    def _replace(self, old: tuple[_Allocator, ...], new: tuple[_Allocator, ...]) -> None:
        """Replace the allocators, unless somebody else has."""
        for domain, before, after in zip(_ARENAS, old, new, strict=True):
            if bytes(self._current(domain)) == bytes(before):
                self._set(domain, after)


_NOTHING: AbstractContextManager[None] = nullcontext()
_heavy: AbstractContextManager[None] = _NOTHING


def use() -> bool:
    """Let :func:`apart` have its effect in this process; returns whether this Python allows it."""
    global _heavy  # noqa: PLW0603 - the allocators belong to the process, too
    if (
        sys.implementation.name == "cpython"
        and _FIRST <= sys.version_info < _BEFORE
        and not sysconfig.get_config_var("Py_GIL_DISABLED")
        and not sys.flags.dev_mode
        and "PYTHONMALLOC" not in os.environ
        and _heavy is _NOTHING
    ):
        memory = _HeavyMemory()
        if memory.is_possible:
            _heavy = memory
    return _heavy is not _NOTHING


def apart(is_heavy: bool) -> AbstractContextManager[None]:
    """The context in which a large object is read, applied or tried; of no effect for other objects."""
    return _heavy if is_heavy else _NOTHING
