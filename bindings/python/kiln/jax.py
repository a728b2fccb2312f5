# SPDX-License-Identifier: Apache-2.0
"""kiln as JAX's persistent compilation cache: entries that are verified when read, one compile per host or fleet, and
bundles.

:func:`install` enables it. Executables for the CPU are host code: kiln stores them only with ``host_code=True``, as the
system ``jax.cpu``, and its key then also covers the processor's features and the C library.
"""

from __future__ import annotations

import functools
import hashlib
import pathlib
import sys
import threading
from types import FrameType
from typing import Any, Optional

import jax
from jax._src import compilation_cache, config, distributed
from jax._src.compilation_cache_interface import CacheInterface

from kiln import _external

__all__ = ["Cache", "install"]


class Cache(CacheInterface):  # type: ignore[misc, unused-ignore]
    """A cache for JAX's executables that is backed by kiln. `own` is JAX's cache for executables that kiln does not store;
    the default, and the cache after a change of `jax_compilation_cache_dir`, is JAX's cache in that directory.
    Thread-safe."""

    #: Seconds to wait for another process that compiles the same program, before compiling it as well.
    wait_timeout = 60.0

    _path = pathlib.Path("kiln")  # JAX logs it

    def __init__(self, own: Optional[CacheInterface] = None, *, host_code: bool = False) -> None:
        self._lock = threading.Lock()
        self._own = own
        self._directory = None if own is None else config.compilation_cache_dir.value or None  # of `_own`
        self._host_code = host_code
        self._device = _external.KeyedCache("jax")
        self._cpu = _external.KeyedCache("jax.cpu")

    def get(self, key: str) -> Optional[bytes]:
        """Returns an executable, or None. After None, JAX compiles and calls `put`."""
        caller = sys._getframe(1)
        cpu = _is_for_cpu(caller)
        if cpu and not self._host_code:
            own = self._own_cache()
            found: Optional[bytes] = None if own is None else own.get(key)
            return found
        return (self._cpu if cpu else self._device).find(_own_key(key, cpu), self.wait_timeout, _compile_call(caller))

    def put(self, key: str, value: bytes) -> None:
        cpu = _is_for_cpu(sys._getframe(1))
        if not cpu or self._host_code:
            (self._cpu if cpu else self._device).store(_own_key(key, cpu), value, key.rpartition("-")[0])
            return
        own = self._own_cache()
        if own is not None:
            own.put(key, value)

    def _own_cache(self) -> Optional[CacheInterface]:
        """Returns JAX's cache in the directory that is set now, or None. Raises the error of a directory that cannot be used
        once, as JAX does, which makes it a warning."""
        directory = config.compilation_cache_dir.value or None
        with self._lock:
            if directory != self._directory:
                self._directory, self._own = directory, None
                found = compilation_cache.get_file_cache(directory) if directory else None
                self._own = found[0] if found else None
            return self._own


def _is_for_cpu(caller: FrameType) -> bool:
    # JAX's functions that call a cache have the backend as their parameter; the key contains only its digest. Code that
    # is not known to be for a device counts as code for the host.
    return getattr(caller.f_locals.get("backend"), "platform", "cpu") == "cpu"


def _compile_call(caller: FrameType) -> Optional[FrameType]:
    """Returns the call of JAX that compiles and stores the program after a miss; None if other processes should not wait
    for it: the processes of a distributed program compile together, and JAX stores neither programs with host callbacks
    nor those below the configured limits."""
    if config.persistent_cache_min_compile_time_secs.value > 0 or config.persistent_cache_min_entry_size_bytes.value > 0:
        return None
    if distributed.global_state.client is not None or caller.f_code.co_name != "get_executable_and_time":
        return None
    frame: Optional[FrameType] = caller
    while frame is not None and frame.f_code.co_name != "compile_or_get_cached":
        frame = frame.f_back
    return frame if frame is not None and not frame.f_locals.get("host_callbacks") else None


@functools.lru_cache(maxsize=1)
def _processor() -> str:
    """Returns a digest of the features of this host's processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
            lines = file.read().splitlines()
    except OSError:
        return ""
    wanted = ("vendor_id", "cpu family", "model\t", "model name", "flags", "features", "cpu implementer", "cpu part")
    seen = sorted({line for line in lines if line.lower().startswith(wanted)})
    return hashlib.sha256("\n".join(seen).encode()).hexdigest()


def _own_key(key: str, cpu: bool) -> bytes:
    # JAX's key does not tell apart the two modules that can compress with Zstandard from zlib on every Python.
    packed = "zstd" if getattr(compilation_cache, "zstd", None) or compilation_cache.zstandard else "zlib"
    return "\0".join((key, packed, *((_external.host_name(), _processor()) if cpu else ()))).encode()


def install(*, host_code: bool = False) -> bool:
    """Enables kiln under JAX in this process; `host_code` also for the CPU backend. JAX's limit of one second for the
    compile time of stored programs is set to 0, unless it was changed. Returns False, with a warning of the logger `kiln`,
    if this release of JAX is not supported."""
    if not _external.is_supported("jax", jax.__version__):
        return False
    before: Any = compilation_cache._cache
    cache = Cache(None if isinstance(before, Cache) else before, host_code=host_code)
    if isinstance(before, Cache):
        cache._own, cache._directory = before._own, before._directory
    if config.persistent_cache_min_compile_time_secs.value == 1.0:
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.0)
    compilation_cache.reset_cache()  # whether a cache is used may have been decided already
    compilation_cache._cache, compilation_cache._cache_initialized = cache, True
    return True
