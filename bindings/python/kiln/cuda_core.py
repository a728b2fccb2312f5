# SPDX-License-Identifier: Apache-2.0
"""kiln as the cache of `cuda.core`'s `Program.compile(cache=…)`, with one argument:

    from cuda.core import Program, ProgramOptions
    from kiln.cuda_core import ProgramCache

    cache = ProgramCache()
    code = Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin", cache=cache)

What it adds: an entry is verified when it is read, and a corrupt one is compiled again; of the processes of a host that
miss the same key, one compiles while the others wait, and so do the hosts of a fleet if leases are configured; bundles
and the remote store are queried; a cache that cannot be read or written never raises into a compile; two releases of
NVRTC that differ only in their patch version do not share entries.

What it cannot add: the key is that of `cuda.core` and covers what `cuda.core` knows. A header that the source includes
by name from the working directory is not covered, so a change of that header is not detected; `include_path` and the
like need an `extra_digest`, as with every cache of `cuda.core`. kiln's own units record the files that they read.
docs/how-to/adapters.md has the complete list.
"""

from __future__ import annotations

import functools
import struct
import sys
import threading
import time
from typing import TYPE_CHECKING, Any, Optional, Union

from cuda.core.utils import ProgramCacheResource

from . import Error
from . import shared as _shared
from ._external import ClaimTable

if TYPE_CHECKING:
    from cuda.core import ObjectCode

    from . import CompileClaim, ExternalCache, Session

__all__ = ["ProgramCache"]

Keyish = Union[bytes, bytearray, str]

SYSTEM = "cuda.core"


class _PendingCompile:
    """A compile of a missing entry in this process."""

    __slots__ = ("caller_key", "key", "since", "claim")

    def __init__(self, caller_key: object, key: bytes, claim: CompileClaim) -> None:
        self.caller_key = caller_key
        self.key = key
        self.since = time.monotonic()
        self.claim = claim


def _references(pending: _PendingCompile) -> int:
    return sys.getrefcount(pending.caller_key)


# The reference count of a key that only this module holds.
_UNREFERENCED_COUNT = _references(_PendingCompile(bytes(bytearray(b"a key without other references")), b"", None))  # type: ignore[arg-type]


@functools.lru_cache(maxsize=8)
def _build_id(path: str) -> bytes:
    """Returns the build id of a library, which distinguishes two builds of one version; empty if it has none."""
    with open(path, "rb") as file:
        head = file.read(64)
        if head[:6] != b"\x7fELF\x02\x01":
            return b""
        at, = struct.unpack_from("<Q", head, 32)
        size, count = struct.unpack_from("<HH", head, 54)
        file.seek(at)
        table = file.read(size * count)
        for i in range(count):
            kind, _, offset, _, _, length = struct.unpack_from("<IIQQQQ", table, i * size)
            if kind != 4 or length > 1 << 16:  # PT_NOTE
                continue
            file.seek(offset)
            notes = file.read(length)
            place = 0
            while place + 12 <= len(notes):
                names, words, what = struct.unpack_from("<III", notes, place)
                name = notes[place + 12 : place + 12 + names]
                place += 12 + (names + 3 & ~3)
                if what == 3 and name == b"GNU\0":
                    return notes[place : place + words]
                place += words + 3 & ~3
    return b""


def _nvrtc() -> Optional[bytes]:
    """Returns the build id of the NVRTC that this process has open: the key of `cuda.core` contains only its major and
    minor version. None if no NVRTC is open yet."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                if "/libnvrtc.so" in line or "/libnvrtc.alt.so" in line:
                    return _build_id(line.rstrip("\n").split(maxsplit=5)[-1])
        return None
    except (OSError, struct.error):
        return b""


class ProgramCache(ProgramCacheResource):  # type: ignore[misc, unused-ignore]
    """A cache for `Program.compile(cache=…)` that is backed by kiln. Forked children can use it like their parents.
    Thread-safe.

    `session` provides the tiers (default: `kiln.shared`). `wait_timeout` is the time in seconds that a miss waits for
    another process that compiles the same code; after it, the caller compiles too. `max_hold` is the maximum time in
    seconds for which a claim is held.
    """

    def __init__(
        self, session: Optional[Session] = None, *, wait_timeout: float = 30.0, max_hold: float = 60.0
    ) -> None:
        self._cache: ExternalCache = (_shared if session is None else session).external_cache(SYSTEM)
        self._wait_timeout = wait_timeout
        # `Program.compile` holds the key as long as it may store a result, and so does a caller that looks keys up
        # directly. A claim is released when no other reference to its key exists, or when it was held too long.
        self._claims = ClaimTable[_PendingCompile](
            lambda pending: _references(pending) <= _UNREFERENCED_COUNT or time.monotonic() - pending.since > max_hold
        )
        self._compiler: Optional[bytes] = None

    def get(self, key: Keyish, default: Optional[bytes] = None) -> Optional[bytes]:
        """Returns the code of a key. After a miss, this thread holds the claim to compile and store it, until it stores
        it, looks up another key or drops the key."""
        self._claims.pop(threading.get_ident())
        own = self._own_key(key)
        data, claim = self._cache.get_or_claim(own, self._wait_timeout)
        if data is not None:
            return data
        if claim is not None:
            self._claims.hold(threading.get_ident(), _PendingCompile(key, own, claim))
        return default

    def __getitem__(self, key: Keyish) -> bytes:
        data = self.get(key)
        if data is None:
            raise KeyError(key)
        return data

    def __setitem__(self, key: Keyish, value: Union[bytes, bytearray, memoryview, ObjectCode]) -> None:
        own = self._own_key(key)
        pending = self._claims.pop(threading.get_ident())
        ms = 0.0
        if pending is not None and pending.key == own:
            ms = (time.monotonic() - pending.since) * 1e3
        name, data = _named(value)
        try:
            self._cache.put(own, data, name=name, ms=ms)
        except Error:
            pass  # the compile has its result anyway; an event of the session reports why it was not stored

    def __delitem__(self, key: Keyish) -> None:
        """Removes the entry from this user's cache; bundles and other hosts keep theirs."""
        if not self._cache.remove(self._own_key(key)):
            raise KeyError(key)

    def __len__(self) -> int:
        """Returns the number of programs in this user's cache. Reads every entry."""
        return self._cache.count()

    def clear(self) -> None:
        self._claims.release_all()
        self._cache.clear()

    def close(self) -> None:
        self._claims.release_all()

    def _own_key(self, key: Keyish) -> bytes:
        if self._compiler is None:
            self._compiler = _nvrtc()
        if not isinstance(key, (bytes, bytearray, str)):
            raise TypeError(f"a key must be bytes or str, not {type(key).__name__}")
        plain = key.encode() if isinstance(key, str) else bytes(key)
        return (self._compiler or b"") + b"/" + plain


def _named(value: Any) -> tuple[str, Any]:
    """Returns the display name and the bytes; for an ObjectCode that is a file, those of the file."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "", value
    if not hasattr(value, "code"):
        raise TypeError(f"a program must be bytes or an ObjectCode, not {type(value).__name__}")
    code = value.code
    if isinstance(code, str):
        with open(code, "rb") as file:
            code = file.read()
    return str(getattr(value, "name", "") or ""), code
