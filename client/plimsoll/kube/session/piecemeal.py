"""Lets kubernetes-asyncio be imported piece by piece (docs/adr/0043).

Its packages import eight hundred modules, one for each kind of object, which costs more than all else that
a command imports; a command needs the reader of kubeconfigs. So the packages are put in place without their
contents, and a name is imported from its own module when it is used: ``V1Lease`` from ``models.v1_lease``.
For a name without such a module the package is imported as a whole.

Its modules import aiohttp and urllib3, which a reader of kubeconfigs seldom needs; these are executed when
something of them is used. The module for OpenID uses aiohttp as it is imported, so that is imported when a
token is requested.
"""

import re
import sys
from importlib import import_module
from importlib.util import find_spec, module_from_spec
from types import ModuleType
from typing import Any

#: The packages, and where their names have modules.
PACKAGES = {
    "kubernetes_asyncio": ("",),
    "kubernetes_asyncio.client": ("", "api.", "models."),
    "kubernetes_asyncio.client.api": ("",),
    "kubernetes_asyncio.client.models": ("",),
    "aiohttp": (),
    "urllib3": (),
}

#: Imports aiohttp; kubeconfigs with a provider of OpenID need it.
OPENID = "kubernetes_asyncio.config.openid"

_WORD = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=.)(?=[A-Z][a-z])")


class PiecemealPackage(ModuleType):
    """A package whose contents are imported when they are used."""

    def __getattr__(self, name: str) -> Any:
        """Import a name: a module, or what is defined in a module of its own."""
        if name.startswith("__") and name not in ("__all__", "__version__"):
            raise AttributeError(name)
        own = _WORD.sub("_", name).lower()
        for place in PACKAGES[self.__name__]:
            if find_spec(f"{self.__name__}.{place}{own}") is not None:
                module = import_module(f"{self.__name__}.{place}{own}")
                found = module if own == name else getattr(module, name)
                setattr(self, name, found)
                return found
        self.__class__ = ModuleType  # type: ignore[assignment] # no more pieces
        assert self.__spec__ is not None
        assert self.__spec__.loader is not None
        self.__spec__.loader.exec_module(self)
        return getattr(self, name)


def prepare() -> None:
    """Put the packages in place, unless the library has been imported already."""
    if "kubernetes_asyncio" in sys.modules:
        return
    for name in [each for each in PACKAGES if each not in sys.modules]:
        spec = find_spec(name)
        assert spec is not None
        package = module_from_spec(spec)
        package.__class__ = PiecemealPackage
        sys.modules[name] = package
        parent, _, own = name.rpartition(".")
        if parent:
            setattr(sys.modules[parent], own, package)
    sys.modules[OPENID] = ModuleType(OPENID)
    sys.modules[OPENID].OpenIDRequestor = _openid_requestor  # type: ignore[attr-defined] # of the library


def _openid_requestor(*args: Any, **options: Any) -> Any:
    """An ``OpenIDRequestor`` of the library."""
    if sys.modules[OPENID].__spec__ is None:
        del sys.modules[OPENID]
    return import_module(OPENID).OpenIDRequestor(*args, **options)
