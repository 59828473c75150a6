"""Plants a mutant in a running process: functions that exist get the code that they have in the mutant.

So nothing is imported again, and whatever has a function, such as a registry, a subscriber or a bound
method, has the mutant's. What a module did when it was imported stays.
"""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from types import CodeType, FunctionType

from mutants.mutant import Mutant, text_with

#: What a code object is found by in its file.
Key = tuple[str, int]


class Functions:
    """All functions of the product in this process, by their files.

    Args:
        root: The repository.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._by_file: dict[str, dict[Key, list[FunctionType]]] = defaultdict(lambda: defaultdict(list))
        gc.unfreeze()
        for each in gc.get_objects():
            if isinstance(each, FunctionType) and each.__code__.co_filename.startswith(str(root)):
                self._by_file[each.__code__.co_filename][_key(each.__code__)].append(each)
        gc.freeze()

    def plant(self, mutant: Mutant) -> int:
        """Give the functions that the mutant changes its code; how many there are.

        Raises:
            ValueError: A function that exists would need another number of variables from around it.
        """
        path = self._root / mutant.path
        text = path.read_text(encoding="utf-8")
        functions = self._by_file.get(str(path), {})
        before = [*_codes(_compiled(text, path))]
        after = [*_codes(_compiled(text_with(mutant, text), path))]
        changed = {_key(new): new for new in after if new not in before}
        if len(changed) != sum(new not in before for new in after):
            raise ValueError("two functions of one name begin in one line")
        planted = 0
        for key, code in changed.items():
            for function in functions.get(key, ()):
                function.__code__ = code
                planted += 1
        return planted


def _compiled(text: str, path: Path) -> CodeType:
    return compile(text, str(path), "exec", dont_inherit=True)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for each in code.co_consts:
        if isinstance(each, CodeType):
            yield from _codes(each)


def _key(code: CodeType) -> Key:
    return code.co_qualname, code.co_firstlineno
