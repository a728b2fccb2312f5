# SPDX-License-Identifier: Apache-2.0
"""Requests of algorithms before they are called: see `request_warmup`."""

from __future__ import annotations

import collections
import os
import threading
import weakref
from typing import Any, Callable, Iterable, Optional, Union

import kiln

#: A function that builds with cuda.compute: it is called with a compute capability, such as 90.
Build = Callable[[int], Any]
Need = Union[str, kiln.Unit, Build]
Arch = Union[str, int, "tuple[int, int]"]

# Work that waits for the thread. More is dropped: the first call builds it then.
_MOST_WAITING = 1024


class _Background:
    """A queue of work and one daemon thread, which starts with the first piece and ends when none is left. Each piece
    is done once per process; work of a function, once while the function exists. A forked child has none of its
    parent's. Thread-safe."""

    def __init__(self) -> None:
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._lock = threading.Lock()
        self._waiting: collections.deque[Callable[[], None]] = collections.deque()
        self._seen: set[Any] = set()
        self._seen_of: weakref.WeakKeyDictionary[Build, set[Any]] = weakref.WeakKeyDictionary()
        self._is_running = False

    def add(self, key: Any, work: Callable[[], None], build: Optional[Build] = None) -> None:
        if self._process != os.getpid():
            self._begin()
        with self._lock:
            seen = self._seen if build is None else self._keys_of(build)
            if key in seen or len(self._waiting) >= _MOST_WAITING:
                return
            if not self._is_running:
                try:
                    threading.Thread(target=self._run, name="kiln-compute", daemon=True).start()
                    self._is_running = True
                except RuntimeError:  # the interpreter is ending or has too many threads
                    return
            seen.add(key)
            self._waiting.append(work)

    def _keys_of(self, build: Build) -> set[Any]:
        """Does not keep the function, which may be made for one request and hold arrays."""
        try:
            return self._seen_of.setdefault(build, set())
        except TypeError:  # it has no hash, or no weak references: repeated work finds the result of the first
            return set()

    def _run(self) -> None:
        while True:
            with self._lock:
                if not self._waiting:
                    self._is_running = False
                    return
                work = self._waiting.popleft()
            try:
                work()
            except BaseException as error:  # the thread does the rest of the work nevertheless
                _emit_failure("compile_failed", "kiln.compute.request_warmup", "", error)
            del work


def _emit_failure(kind: str, label: str, target: str, error: BaseException) -> None:
    kiln.shared._emit_failure(kind, label, target, f"{type(error).__name__}: {error}")


_background = _Background()


def request_warmup(needs: Union[Need, Iterable[Need]], arch: Union[Arch, Iterable[Arch], None] = None) -> None:
    """Requests algorithms of cuda.compute that will be called, for every device or for `arch` ("sm_90", 90 or (9, 0),
    or several). Returns at once; repeating it is free. Does nothing without a device and without `arch`.

    A need is the name of a predefined spec ("radix_sort_u64_i32"), a unit of `call` or of `kiln.Unit.cccl`, or a
    function that is called with a compute capability, on a background thread, and builds with ``cuda.compute.make_*``:
    for operators and iterators that are Python functions.
    """
    single = isinstance(needs, (str, kiln.Unit)) or callable(needs)
    units: list[kiln.Unit] = []
    builds: list[Build] = []
    for need in [needs] if single else needs:  # type: ignore[union-attr]
        if isinstance(need, str):
            units.append(kiln.Unit.cccl(need))
        elif isinstance(need, kiln.Unit):
            units.append(need)
        elif callable(need):
            builds.append(need)
        else:
            raise TypeError(f"expected the name of a spec, a kiln.Unit or a function, not {need!r}")
    if arch is not None:
        _request(units, builds, _architectures(arch))
    elif kiln.shared._has_device("cuda"):
        # Opening the driver takes a while. The key covers all units, so that a repetition is free.
        if units:
            _background.add(frozenset(unit.key for unit in units), lambda: _request_for_devices(units, []))
        for build in builds:
            # The default argument binds the value of this iteration.
            _background.add("", lambda build=build: _request_for_devices([], [build]), build)  # type: ignore[misc]


def _architectures(arch: Any) -> list[str]:
    """Returns names of targets, such as sm_90."""
    pair = isinstance(arch, tuple) and len(arch) == 2 and all(isinstance(part, int) for part in arch)
    names = []
    for one in [arch] if pair or isinstance(arch, (str, int)) else arch:
        number = one[0] * 10 + one[1] if isinstance(one, tuple) else str(one).removeprefix("sm_")
        names.append(kiln.Target(f"sm_{number}").name)
    return names


def _request_for_devices(units: list[kiln.Unit], builds: list[Build]) -> None:
    try:
        names = list(dict.fromkeys(device.target.name for device in kiln.shared.devices("cuda")))
    except kiln.Error as error:
        kiln.shared._emit_failure("no_device", "cuda", "", error.message)
        return
    _request(units, builds, names)


def _request(units: list[kiln.Unit], builds: list[Build], architectures: list[str]) -> None:
    for name in architectures:
        if units:
            kiln.shared.request(units, name)
        for build in builds:
            # The default arguments bind the values of this iteration.
            _background.add(name, lambda build=build, name=name: _build(build, name), build)  # type: ignore[misc]


def _build(build: Build, architecture: str) -> None:
    """Builds what is stored by then, for the first call. An error is an event: the call reports it again."""
    from kiln.compute import install

    label = getattr(build, "__qualname__", repr(build))
    try:
        if install():
            build(int(architecture.removeprefix("sm_").rstrip("af")))
    except BaseException as error:  # whatever the caller's function and cuda.compute raise, SystemExit too
        _emit_failure("compile_failed", label, architecture, error)
