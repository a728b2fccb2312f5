"""What the adapters share: the caches of other systems in the shared session, and whose turn it is to compile."""

from __future__ import annotations

import os
import sys
import threading
import time
import weakref
from types import FrameType
from typing import Any, Optional

# How often it is looked whether a compile is over that nobody said so of, in seconds.
_STEP = 0.1

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


class _Watch:
    """Lets turns go whose compile is over. Nobody tells a cache that a compile raised, and an exception that somebody
    keeps, as a future does, keeps what compiled with it. So it is looked whether the call that asked the cache is still
    on its thread's stack. The thread that looks lives while there are turns."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        # By weak references and numbers: what is kept here must not keep what it watches.
        self._turns: list[tuple[weakref.ref[Making], int, int]] = []
        self._thread: Optional[threading.Thread] = None

    def add(self, making: Making, call: FrameType) -> None:
        with self._lock:
            self._turns.append((weakref.ref(making), threading.get_ident(), id(call)))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="kiln turns", daemon=True)
                self._thread.start()

    def _run(self) -> None:
        while True:
            time.sleep(_STEP)
            over = []
            with self._lock:
                frames = sys._current_frames()
                kept = []
                for turn in self._turns:
                    making = turn[0]()
                    if making is None or making._turn is None:
                        continue
                    if _is_running(frames.get(turn[1]), turn[2]):
                        kept.append(turn)
                    else:
                        over.append(making)
                self._turns = kept
                if not kept:
                    self._thread = None
            for making in over:
                making.let_go()
            if not kept:
                return


def _is_running(frame: Optional[FrameType], call: int) -> bool:
    while frame is not None:
        if id(frame) == call:
            return True
        frame = frame.f_back
    return False


_watch = _Watch()


def _forget() -> None:
    # Turns are their process's, and so is the thread that watches them.
    global _watch
    _watch = _Watch()


os.register_at_fork(after_in_child=_forget)


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
        _watch.add(making, call)
    return None, making
