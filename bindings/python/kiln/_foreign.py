"""What the adapters share: the caches of other systems in the shared session, and whose turn it is to compile."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any, Callable, Generic, NamedTuple, Optional, TypeVar

# How often it is looked whether a compile is over that nobody said so of, in seconds.
_STEP = 0.1

Held = TypeVar("Held")

_caches: dict[str, Any] = {}


def cache(system: str) -> Any:
    """The cache of a system in the shared session."""
    found = _caches.get(system)
    if found is None:
        import kiln

        found = _caches.setdefault(system, kiln.shared.foreign(system))
    return found


class Making:
    """Something that is being compiled because nobody had it, with the turn to do so where there is one. The turn goes
    when the result is kept, and with this object."""

    def __init__(self, key: bytes, turn: Any = None) -> None:
        self.key = key
        self._turn = turn
        self._since = time.monotonic()

    def keep(self, system: str, data: bytes, name: str) -> None:
        """Keeps what was made. A cache that cannot take it costs nothing but the next compile."""
        import kiln

        try:
            cache(system).put(self.key, data, name=name, ms=(time.monotonic() - self._since) * 1e3)
        except (kiln.Error, OSError):
            pass  # an event of the session says why
        self.let_go()

    def let_go(self) -> None:
        turn, self._turn = self._turn, None
        if turn is not None:
            turn.release()

    def __del__(self) -> None:
        self.let_go()


class Turns(Generic[Held]):
    """What holds turns, by a number that the holder has, until it is taken back or over. Nobody tells a cache that a
    compile raised. So a thread looks, every tenth of a second while there are turns, and drops what `is_over` is said
    of: the turn goes with the last who has it. What a process holds its forked children do not."""

    def __init__(self, is_over: Callable[[Held], bool]) -> None:
        self._is_over = is_over
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._held: dict[int, Held] = {}
        self._watcher: Optional[threading.Thread] = None

    def hold(self, number: int, held: Held) -> None:
        if self._process != os.getpid():  # a forked child: the lock may be locked, and the turns are its parent's
            self._begin()
        with self._lock:
            if self._watcher is None or not self._watcher.is_alive():
                self._watcher = threading.Thread(target=self._watch, name="kiln-turns", daemon=True)
                try:
                    self._watcher.start()
                except RuntimeError:  # the interpreter ends, or has too many: nobody would see to it
                    self._watcher = None
                    return
            self._held[number] = held

    def take_back(self, number: int) -> Optional[Held]:
        if not self._held or self._process != os.getpid():
            return None
        with self._lock:
            return self._held.pop(number, None)

    def let_go_of_all(self) -> None:
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
    """By a weak reference and numbers: what is watched must not be kept by it."""

    making: weakref.ref[Making]
    thread: int
    call: int


def _is_over(watched: _Watched) -> bool:
    """An exception that somebody keeps, as a future does, keeps what compiled with it. So it is looked whether the call
    that asked the cache is still on its thread's stack."""
    making = watched.making()
    if making is None or making._turn is None:
        return True
    frame = sys._current_frames().get(watched.thread)
    while frame is not None and id(frame) != watched.call:
        frame = frame.f_back
    if frame is None:
        making.let_go()
    return frame is None


_turns = Turns(_is_over)


def look(
    system: str, key: bytes, wait: float, call: Optional[FrameType] = None
) -> tuple[Optional[bytes], Optional[Making]]:
    """The bytes under a key; or, where nobody has them within `wait` seconds, what to make them with. Whoever does not
    let it go himself gives the `call` after whose end it is over."""
    data, turn = cache(system).get_or_claim(key, wait)
    if data is not None:
        return data, None
    making = Making(key, turn)
    if turn is not None and call is not None:
        _turns.hold(id(making), _Watched(weakref.ref(making), threading.get_ident(), id(call)))
    return None, making
