# SPDX-License-Identifier: Apache-2.0
"""Operations, stages and purposes: a program's own names for what it does, which events and the audit carry."""

from __future__ import annotations

from _thread import get_ident

from . import _kiln

# As in `typing`, whose import would take as long as that of this whole package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import CodeType, TracebackType
    from typing import Literal, ParamSpec, TypeVar

    from typing_extensions import Self

    _P = ParamSpec("_P")
    _R = TypeVar("_R")
    _Scope = _kiln.OperationScope | _kiln.DispatchStage | _kiln.WorkflowScope
    Residency = Literal["unknown", "host", "device"]
    Purpose = Literal["input", "allocation_size", "materialize", "trace"]

# The runs of kiln.runtime operations on each thread, the innermost last.
running: dict[int, list[_kiln.Dispatch]] = {}

# The flags of code objects that return before their body has run.
_GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x20, 0x80, 0x200


def _code_of(function: Callable[..., object]) -> CodeType | None:
    """Returns the code that a call runs: of a function, a functools.partial or an object with __call__."""
    from functools import partial

    while isinstance(function, partial):
        function = function.func
    if not hasattr(function, "__code__"):
        function = type(function).__call__
    return getattr(function, "__code__", None)


def check_runs_when_called(function: Callable[..., object], what: str) -> None:
    """Raises TypeError for a generator or a coroutine: its body runs after the call, outside of the scope."""
    if not callable(function):
        raise TypeError(f"{what} must be a function, not {type(function).__name__}")
    code = _code_of(function)
    if code is not None and code.co_flags & (_GENERATOR | _COROUTINE | _ASYNC_GENERATOR):
        raise TypeError(f"{what} must not be a generator or a coroutine: its body runs after the call has returned")


class scope:
    """The base class of operation, stage, purpose and kiln.runtime.Workflow. The scope belongs to the thread that
    enters it. Not thread-safe."""

    name: str

    def __init__(self) -> None:
        self._scope: _Scope | None = None

    def _begin(self) -> _Scope:
        raise NotImplementedError

    def __repr__(self) -> str:
        state = ", entered" if self._scope is not None else ""
        return f"<kiln.{type(self).__name__} {self.name!r}{state}>"

    def __enter__(self) -> Self:
        if self._scope is not None:
            raise RuntimeError(f"this {type(self).__name__} is entered already; create another one")
        self._scope = self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if self._scope is not None:
            self._scope.end()
            self._scope = None


class operation(scope):
    """One run of a named operation: `with kiln.operation("sjoin", rows=n):`. Every event of the thread carries the name
    and the number of the run. As a decorator, each call of the function is a run, and `rows` can be a function of its
    arguments."""

    def __init__(
        self, name: str, *, rows: int | Callable[..., int] | None = None, residency: Residency = "unknown"
    ) -> None:
        super().__init__()
        self.name = name
        self._rows = rows
        self._residency = residency

    def _begin(self) -> _kiln.OperationScope:
        if callable(self._rows):
            raise TypeError("rows can be a function only if operation is a decorator")
        return _kiln._begin_operation(self.name, self._rows or 0, self._residency)

    def __call__(self, function: Callable[_P, _R]) -> Callable[_P, _R]:
        import functools

        check_runs_when_called(function, "the decorated object")
        name, rows, residency = self.name, self._rows, self._residency

        @functools.wraps(function)
        def run(*args: _P.args, **kwargs: _P.kwargs) -> _R:
            with operation(name, rows=rows(*args, **kwargs) if callable(rows) else rows, residency=residency):
                return function(*args, **kwargs)

        return run


class stage(scope):
    """A named part of the thread's operation: `with kiln.stage("refine"):`. In a run of kiln.runtime it is timed; with
    `time_stages` its end waits for `stream`. `on_host` marks a stage of a run on a device that computes on the host."""

    def __init__(self, name: str, *, stream: _kiln.Stream | None = None, on_host: bool = False) -> None:
        super().__init__()
        if stream is not None and not isinstance(stream, _kiln.Stream):
            raise TypeError(f"stream must be a kiln.Stream or None, not {type(stream).__name__}")
        self.name = name
        self._stream = stream
        self._on_host = on_host

    def _begin(self) -> _kiln.OperationScope | _kiln.DispatchStage:
        runs = running.get(get_ident())
        timed = runs[-1].begin_stage(self.name, self._stream, self._on_host) if runs else None
        return timed if timed is not None else _kiln._begin_stage(self.name)


class purpose(scope):
    """The purpose of the thread's copies and waits: `with kiln.purpose("materialize"):`."""

    def __init__(self, purpose: Purpose) -> None:
        super().__init__()
        self.name = purpose

    def _begin(self) -> _kiln.OperationScope:
        return _kiln._begin_purpose(self.name)
