"""kiln behind `cuda.core`'s `Program.compile(cache=…)`, by one argument:

    from cuda.core import Program, ProgramOptions
    from kiln.cuda_core import ProgramCache

    cache = ProgramCache()
    code = Program(source, "c++", ProgramOptions(arch="sm_90")).compile("cubin", cache=cache)

What it adds: an entry is checked when it is read, and one that is damaged is compiled again; of the processes of a
host that miss the same key one compiles while the others wait, and of a fleet's hosts where leases are configured;
bundles and the remote store are asked; a cache that cannot be read or written never raises into a compile; two releases
of NVRTC that differ in their patch alone do not share entries.

What it cannot add: a key is `cuda.core`'s own and covers what that knows. A header that the source includes by its name
alone from the working directory is not in it, so an edit of that header is not seen; `include_path` and the like need
an `extra_digest`, as with every cache of `cuda.core`'s. kiln's own units know what they read. docs/adapters.md has the
whole list.
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
from ._foreign import Turns

if TYPE_CHECKING:
    from cuda.core import ObjectCode

    from . import ForeignCache, Session, Turn

__all__ = ["ProgramCache"]

Keyish = Union[bytes, bytearray, str]

SYSTEM = "cuda.core"


class _Making:
    """Something that this process compiles because nobody had it."""

    __slots__ = ("caller_key", "key", "since", "turn")

    def __init__(self, caller_key: object, key: bytes, turn: Turn) -> None:
        self.caller_key = caller_key
        self.key = key
        self.since = time.monotonic()
        self.turn = turn


def _references(making: _Making) -> int:
    return sys.getrefcount(making.caller_key)


# What the above says of a key that nobody else has any more.
_FORGOTTEN = _references(_Making(bytes(bytearray(b"a key that nobody has")), b"", None))  # type: ignore[arg-type]


@functools.lru_cache(maxsize=8)
def _build_id(path: str) -> bytes:
    """The number that a linker gave a library, by which two builds of one version differ; empty where it has none."""
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
    """Which NVRTC this process has open: the key of `cuda.core` has its major and minor version alone. None where there
    is none open yet."""
    try:
        with open("/proc/self/maps", encoding="utf-8", errors="surrogateescape") as maps:
            for line in maps:
                if "/libnvrtc.so" in line or "/libnvrtc.alt.so" in line:
                    return _build_id(line.rstrip("\n").split(maxsplit=5)[-1])
        return None
    except (OSError, struct.error):
        return b""


class ProgramCache(ProgramCacheResource):  # type: ignore[misc, unused-ignore]
    """A cache for `Program.compile(cache=…)` that is kiln's. Any thread; forked children use it as their parents do.

    `session` is whose tiers are used (by default `kiln.shared`). `wait` is how many seconds a miss waits for another
    process that compiles the same; then one compiles for oneself. `longest` is how many seconds one keeps others
    waiting at most.
    """

    def __init__(self, session: Optional[Session] = None, *, wait: float = 30.0, longest: float = 60.0) -> None:
        self._cache: ForeignCache = (_shared if session is None else session).foreign(SYSTEM)
        self._wait = wait
        # `Program.compile` has the key for as long as it may still store, and whoever looks keys up himself has, too: a
        # turn whose key nobody else has any more is let go, and one that has been held for too long.
        self._turns = Turns[_Making](
            lambda making: _references(making) <= _FORGOTTEN or time.monotonic() - making.since > longest
        )
        self._compiler: Optional[bytes] = None

    def get(self, key: Keyish, default: Optional[bytes] = None) -> Optional[bytes]:
        """The code under a key. On a miss it is this thread's turn to compile and store it, until it does, or looks up
        something else, or forgets the key."""
        self._turns.take_back(threading.get_ident())
        own = self._own_key(key)
        data, turn = self._cache.get_or_claim(own, self._wait)
        if data is not None:
            return data
        if turn is not None:
            self._turns.hold(threading.get_ident(), _Making(key, own, turn))
        return default

    def __getitem__(self, key: Keyish) -> bytes:
        data = self.get(key)
        if data is None:
            raise KeyError(key)
        return data

    def __setitem__(self, key: Keyish, value: Union[bytes, bytearray, memoryview, ObjectCode]) -> None:
        own = self._own_key(key)
        making = self._turns.take_back(threading.get_ident())
        ms = 0.0
        if making is not None and making.key == own:
            ms = (time.monotonic() - making.since) * 1e3
        name, data = _named(value)
        try:
            self._cache.put(own, data, name=name, ms=ms)
        except Error:
            pass  # the compile has its result all the same; an event of the session says why it was not kept

    def __delitem__(self, key: Keyish) -> None:
        """Out of this user's own cache; a bundle and other hosts keep what they have."""
        if not self._cache.remove(self._own_key(key)):
            raise KeyError(key)

    def __len__(self) -> int:
        """How many programs this user's own cache has. It looks at every entry."""
        return self._cache.count()

    def clear(self) -> None:
        self._turns.let_go_of_all()
        self._cache.clear()

    def close(self) -> None:
        self._turns.let_go_of_all()

    def _own_key(self, key: Keyish) -> bytes:
        if self._compiler is None:
            self._compiler = _nvrtc()
        if not isinstance(key, (bytes, bytearray, str)):
            raise TypeError(f"a key is bytes or str, not {type(key).__name__}")
        plain = key.encode() if isinstance(key, str) else bytes(key)
        return (self._compiler or b"") + b"/" + plain


def _named(value: Any) -> tuple[str, Any]:
    """What people call it, and its bytes: of an ObjectCode that is a file, the file's."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return "", value
    if not hasattr(value, "code"):
        raise TypeError(f"a program is bytes or an ObjectCode, not {type(value).__name__}")
    code = value.code
    if isinstance(code, str):
        with open(code, "rb") as file:
            code = file.read()
    return str(getattr(value, "name", "") or ""), code
