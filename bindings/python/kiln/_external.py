# SPDX-License-Identifier: Apache-2.0
"""Code that the adapters share: the external caches of the shared session, and the compile claims."""

from __future__ import annotations

import functools
import os
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any, Callable, Generic, NamedTuple, Optional, TypeVar

# Interval in seconds for detecting compiles that ended without a result.
_STEP = 0.1

Held = TypeVar("Held")

_caches: dict[str, Any] = {}

# Systems whose entries run on the host. Only this user's cache and bundles serve them, because running hosts write to the
# remote store.
_HOST_CODE = ("jax.cpu", "triton.host")

# The releases that the adapters were tested with.
_SUPPORTED = {"triton": "3.9.", "cupy": "14.2.", "jax": "0.10."}


def cache(system: str) -> Any:
    """Returns the cache of a system: in the shared session, or without servers for host code."""
    found = _caches.get(system)
    if found is None:
        import kiln

        session = _session_without_servers() if system in _HOST_CODE else kiln.shared
        found = _caches.setdefault(system, session.external_cache(system))
    return found


@functools.lru_cache(maxsize=1)
def _session_without_servers() -> Any:
    import kiln

    return kiln.Session({"remote.url": "", "lease.url": ""}, locked=("remote.url", "lease.url"))


class PendingCompile:
    """A compile of a missing entry, with its claim if there is one. The claim is released when the result is stored,
    and with this object."""

    def __init__(self, key: bytes, claim: Any = None) -> None:
        self.key = key
        self._claim = claim
        self._since = time.monotonic()

    def store(self, system: str, data: bytes, name: str) -> None:
        """Stores the result. A cache that cannot store it costs only the next compile."""
        import kiln

        try:
            cache(system).put(self.key, data, name=name, ms=(time.monotonic() - self._since) * 1e3)
        except (kiln.Error, OSError):
            pass  # an event of the session reports the reason
        self.release()

    def is_claimed(self) -> bool:
        return self._claim is not None

    def release(self) -> None:
        claim, self._claim = self._claim, None
        if claim is not None:
            claim.release()

    def __del__(self) -> None:
        self.release()


class ClaimTable(Generic[Held]):
    """A table of objects that hold claims, by an id, until they are removed or end. A cache is not notified when a
    compile raises. A thread therefore checks every tenth of a second, while there are claims, and drops each object for
    which `is_over` returns True: the claim is released with the last reference. A forked child inherits no claims.
    Thread-safe."""

    def __init__(self, is_over: Callable[[Held], bool]) -> None:
        self._is_over = is_over
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._watcher: Optional[threading.Thread] = None

    def hold(self, number: int, held: Held) -> None:
        if self._process != os.getpid():  # a forked child: the lock may be held, and the claims belong to its parent
            self._begin()
        with self._lock:
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = threading.Thread(target=self._watch, name="kiln-claims", daemon=True)
                try:
                    self._watcher.start()
                # the interpreter is ending or has too many threads: the claim would not be watched
                except RuntimeError:
                    self._watcher = None
                    return
            self._held[number] = held

    def pop(self, number: int) -> Optional[Held]:
        if not self._held or self._process != os.getpid():
            return None
        with self._lock:
            return self._held.pop(number, None)

    def release_all(self) -> None:
        if self._process != os.getpid():
            return
        with self._lock:
            self._held.clear()

    def _watch(self) -> None:
        while True:
            time.sleep(_STEP)
            with self._lock:
                over = [number for number, held in self._held.items() if self._is_over(held)]
                for number in over:
                    del self._held[number]
                if not self._held:
                    self._watcher = None
                    return


class _Watched(NamedTuple):
    """A weak reference and ids, so that watching does not keep the compile alive."""

    pending: weakref.ref[PendingCompile]
    thread: int
    call: int


def _is_over(watched: _Watched) -> bool:
    """Returns True if a compile has ended. A stored exception, for example in a future, keeps its frames and with them
    the compile alive. This therefore checks whether the call that queried the cache is still on its thread's stack."""
    pending = watched.pending()
    if pending is None or pending._claim is None:
        return True
    frame = sys._current_frames().get(watched.thread)
    while frame is not None and id(frame) != watched.call:
        frame = frame.f_back
    if frame is None:
        pending.release()
    return frame is None


_claims = ClaimTable(_is_over)


def get_or_claim(
    system: str, key: bytes, wait_timeout: float, call: Optional[FrameType] = None
) -> tuple[Optional[bytes], Optional[PendingCompile], str]:
    """Returns the bytes of a key and the tier that had them or, on a miss after at most `wait_timeout` seconds, the
    object to store them with. A caller that does not release it passes `call`: the compile counts as ended when that
    frame has ended."""
    data, claim, origin = cache(system)._find_or_claim(key, wait_timeout)
    if data is not None:
        return data, None, origin
    pending = PendingCompile(key, claim)
    if claim is not None and call is not None:
        _claims.hold(id(pending), _Watched(weakref.ref(pending), threading.get_ident(), id(call)))
    return None, pending, ""


class KeyedCache:
    """The cache of a system whose interface consists of a lookup and a store by key, both on the thread that compiles.
    Thread-safe."""

    def __init__(self, system: str) -> None:
        self._system = system
        # By thread and key: a compile can cause another one on its thread.
        self._pending: dict[tuple[int, bytes], PendingCompile] = {}

    def find(self, key: bytes, wait_timeout: float, call: Optional[FrameType]) -> Optional[bytes]:
        """Returns the bytes of a key. After None, this thread holds the claim until it stores the result or `call` has
        ended. Without `call` it neither waits nor holds a claim."""
        self._forget_ended(key)
        if call is None:
            found: Optional[bytes] = cache(self._system).get(key)
            return found
        data, pending, _ = get_or_claim(self._system, key, wait_timeout, call)
        if pending is not None:
            self._pending[threading.get_ident(), key] = pending
        return data

    def _forget_ended(self, key: bytes) -> None:
        """Removes the compiles of this thread that ended without a result, and the last one of `key`."""
        thread = threading.get_ident()
        for place, pending in list(self._pending.items()):
            if place[0] == thread and (place[1] == key or not pending.is_claimed()):
                del self._pending[place]

    def store(self, key: bytes, data: bytes, name: str) -> None:
        """Stores the result of a compile. A result that follows a hit replaces the entry, which the system rejected."""
        pending = self._pending.pop((threading.get_ident(), key), None)
        if pending is None:
            pending = PendingCompile(key)
            cache(self._system).remove(key)
        pending.store(self._system, data, name)


def host_name() -> str:
    """Returns what native code for this host depends on and other systems' keys do not contain: the C library and the
    version of Python."""
    version = sys.version.split()[0]
    try:
        libc = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        libc = ""
    return f"{os.uname().machine} {libc} {sys.implementation.name} {version}"


def is_supported(system: str, version: str) -> bool:
    """Returns True for a release that the adapter was tested with. Adapters use private interfaces: other releases are
    not changed, and a warning says so."""
    if version.startswith(_SUPPORTED[system]):
        return True
    import logging

    logging.getLogger("kiln").warning(
        "%s is not changed: kiln supports %s* and not %s; %s uses its own cache", system, _SUPPORTED[system], version, system
    )
    return False
