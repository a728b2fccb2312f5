# SPDX-License-Identifier: Apache-2.0
"""The in-process adapters of kiln for systems that compile at run time: Triton, CuPy and JAX.

:func:`install` enables all that are there. `kiln run` and `kiln jit fill` place entries of systems that have no such
interface before the program starts.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.metadata
import logging
import os
import sys
import threading
from types import ModuleType
from typing import Any, Callable, Collection, Dict, NamedTuple, Optional, Sequence, Set, Tuple

from kiln import _external

__all__ = ["Adapter", "install"]

# The distributions that contain a system.
_DISTRIBUTIONS = {
    "triton": ("triton", "pytorch-triton", "triton-rocm"),
    "cupy": ("cupy-cuda13x", "cupy-cuda12x", "cupy", "cupy-rocm-7-0"),
    "jax": ("jax",),
}
_MANAGER = "kiln.triton:CacheManager"


class Adapter(NamedTuple):
    """An adapter that `install` returns: whether kiln is enabled under the system, and how, or the reason why not."""

    installed: bool
    reason: str


def install(*, host_code: Optional[Collection[str]] = None) -> Dict[str, Adapter]:
    """Enables kiln under each system that is installed in a supported release, and returns what was done for each. A system
    that the program has not imported is not imported: kiln is enabled when the program does. `host_code` names the
    systems whose code for the host kiln also stores, such as ``("jax",)``; the default is `KILN_JIT_HOST_CODE`.

    For Triton it sets `TRITON_CACHE_MANAGER`, so that processes that compile for this one also use kiln. Remove the variable
    from the environment of a child process whose Python does not have kiln: its Triton cannot compile otherwise."""
    if host_code is None:
        host_code = [name.strip() for name in os.environ.get("KILN_JIT_HOST_CODE", "").split(",")]
    return {system: _install(system, system in host_code) for system in _DISTRIBUTIONS}


def _install(system: str, host_code: bool) -> Adapter:
    version = _version(system)
    if version is None:
        return Adapter(False, f"{system} is not installed")
    if not _external.is_supported(system, version):
        return Adapter(False, f"kiln does not support {system} {version}")
    if system == "triton" and system not in sys.modules:
        if os.environ.setdefault("TRITON_CACHE_MANAGER", _MANAGER) != _MANAGER:
            return Adapter(False, "TRITON_CACHE_MANAGER names another cache manager")
        return Adapter(True, "with TRITON_CACHE_MANAGER, also for child processes")
    options: Dict[str, Any] = {"host_code": host_code} if system == "jax" else {}

    def enable() -> Adapter:
        try:
            if importlib.import_module(f"kiln.{system}").install(**options) is False:
                return Adapter(False, f"kiln does not support this release of {system}")
            return Adapter(True, "in the imported module")
        # Another interface than in the tested releases. The import of the system, which may have called this, must not fail.
        except Exception as error:
            logging.getLogger("kiln").warning("%s is not changed: %s; %s uses its own cache", system, error, system)
            return Adapter(False, str(error))

    if system in sys.modules:
        return enable()
    _AfterImport.call(system, enable)
    return Adapter(True, "when the program imports it")


def _version(system: str) -> Optional[str]:
    for name in _DISTRIBUTIONS[system]:
        try:
            return importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            pass
    return None


class _AfterImport(importlib.abc.MetaPathFinder):
    """A finder that calls a function after the first import of a module. The other finders find the module. Thread-safe."""

    _waiting: Dict[str, Callable[[], object]] = {}
    _searches: Set[Tuple[int, str]] = set()  # the threads that ask the other finders, and for which module

    @classmethod
    def call(cls, name: str, then: Callable[[], object]) -> None:
        cls._waiting[name] = then
        if not any(isinstance(finder, cls) for finder in sys.meta_path):
            sys.meta_path.insert(0, cls())

    @classmethod
    def imported(cls, name: str) -> None:
        """Calls the function of a module, if no earlier import did."""
        then = cls._waiting.pop(name, None)
        if then is not None:
            then()

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        # Another finder may ask all finders as well, and thus call this one again.
        search = (threading.get_ident(), fullname)
        if fullname not in self._waiting or search in self._searches:
            return None
        self._searches.add(search)
        try:
            spec = self._find(fullname, path, target)
        finally:
            self._searches.discard(search)
        # A program may look for a module without an import, so the function is still waiting here.
        if spec is not None and spec.loader is not None and not isinstance(spec.loader, _Loader):
            spec.loader = _Loader(spec.loader, fullname)
        return spec

    def _find(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType]
    ) -> Optional[importlib.machinery.ModuleSpec]:
        for finder in list(sys.meta_path):
            # Python before 3.12 also accepts finders without find_spec.
            if finder is not self and hasattr(finder, "find_spec"):
                spec = finder.find_spec(fullname, path, target)
                if spec is not None:
                    return spec
        return None


class _Loader(importlib.abc.Loader):
    """The loader of a module, which reports the import to `_AfterImport`. Other attributes are those of the real loader."""

    def __init__(self, loader: Any, name: str) -> None:
        self._loader = loader
        self._name = name

    def __getattr__(self, name: str) -> Any:
        if name == "_loader":  # a copy that is not initialized yet
            raise AttributeError(name)
        return getattr(self._loader, name)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        _AfterImport.imported(self._name)  # not after an import that raised: the program may try again
