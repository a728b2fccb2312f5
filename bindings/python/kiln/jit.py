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
import importlib.util
import logging
import os
import sys
from types import ModuleType
from typing import Any, Callable, Collection, Dict, NamedTuple, Optional, Sequence

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
        # Another interface than in the tested releases, or a directory of the system that cannot be used. The import of the
        # system, which may have called this, must not fail.
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
    """A finder that calls a function after the first import of a module, and finds nothing itself."""

    _waiting: Dict[str, Callable[[], object]] = {}

    @classmethod
    def call(cls, name: str, then: Callable[[], object]) -> None:
        cls._waiting[name] = then
        if not any(isinstance(finder, cls) for finder in sys.meta_path):
            sys.meta_path.insert(0, cls())

    def find_spec(
        self, fullname: str, path: Optional[Sequence[str]], target: Optional[ModuleType] = None
    ) -> Optional[importlib.machinery.ModuleSpec]:
        then = self._waiting.pop(fullname, None)
        spec = importlib.util.find_spec(fullname) if then is not None else None
        if then is None or spec is None or spec.loader is None:
            return None
        spec.loader = _Loader(spec.loader, then)
        return spec


class _Loader(importlib.abc.Loader):
    """The loader of a module, with a function to call afterwards."""

    def __init__(self, loader: Any, then: Callable[[], object]) -> None:
        self._loader = loader
        self._then = then

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> Optional[ModuleType]:
        created: Optional[ModuleType] = self._loader.create_module(spec)
        return created

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._then()
