# SPDX-License-Identifier: Apache-2.0
"""kiln-runtime in Python: modes, and operations with variants of which one is selected. See docs/how-to/dispatch-cpu-gpu.md."""

from __future__ import annotations

from _thread import get_ident

from . import _kiln
from ._kiln import Decision, Memory, Runtime, StageTime
from ._operation import check_runs_when_called, running, scope
from .errors import Error

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    Backend = Literal["cpu", "opencl", "cuda"]
    Residency = Literal["host", "device"]

__all__ = [
    "Decision",
    "Memory",
    "Operation",
    "Runtime",
    "StageTime",
    "Variant",
    "Workflow",
    "allow_cpu_device",
    "allow_cpu_device_source",
    "counts",
    "decide",
    "deterministic",
    "deterministic_source",
    "last_stages",
    "mode",
    "mode_source",
    "precision",
    "precision_source",
    "rewrites",
    "rewrites_source",
    "set_allow_cpu_device",
    "set_deterministic",
    "set_mode",
    "set_precision",
    "set_rewrites",
    "set_time_stages",
    "shared",
    "should_rewrite",
    "status",
    "time_stages",
    "time_stages_source",
]

# The runtime of the process-wide session, and its functions.
shared = Runtime()
mode = shared.mode
mode_source = shared.mode_source
set_mode = shared.set_mode
rewrites = shared.rewrites
rewrites_source = shared.rewrites_source
set_rewrites = shared.set_rewrites
deterministic = shared.deterministic
deterministic_source = shared.deterministic_source
set_deterministic = shared.set_deterministic
allow_cpu_device = shared.allow_cpu_device
allow_cpu_device_source = shared.allow_cpu_device_source
set_allow_cpu_device = shared.set_allow_cpu_device
precision = shared.precision
precision_source = shared.precision_source
set_precision = shared.set_precision
time_stages = shared.time_stages
time_stages_source = shared.time_stages_source
set_time_stages = shared.set_time_stages
decide = shared.decide
should_rewrite = shared.should_rewrite
counts = shared.counts
last_stages = shared.last_stages
status = shared.status


class Variant:
    """One implementation of an operation: a function, and what it declares about its results."""

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        backend: Backend,
        robustness: Literal["exact", "bounded"],
        determinism: Literal["deterministic", "unordered"],
        precision: Literal["fp64", "fp32", "mixed"] = "fp64",
        crossover: int | None = 0,
        requirements: Iterable[_kiln.Unit] | _kiln.Unit = (),
    ) -> None:
        """`crossover` is the number of rows from which on mode auto selects the variant; None means never by size.
        `requirements` are the units that it compiles: a decision requests them."""
        check_runs_when_called(function, "a variant")
        self.function = function
        units = requirements if isinstance(requirements, _kiln.Unit) else tuple(requirements)
        self._declared = (backend, robustness, determinism, precision, crossover, units)
        _kiln._check_variant(self._declared)

    def __repr__(self) -> str:
        name = getattr(self.function, "__name__", type(self.function).__name__)
        return f"<kiln.runtime.Variant {name} for {self._declared[0]}>"


class Operation(_kiln.DispatchOperation):
    """An operation with several variants, in the author's order of preference. A call decides and runs one of them.
    Create it once, at module level: a runtime keeps its description until the process ends."""

    def __init__(
        self,
        name: str,
        *,
        precision: Literal["predicate", "metric", "coarse", "constructive"],
        variants: Iterable[Variant],
    ) -> None:
        self._variants = tuple(variants)
        for variant in self._variants:
            if not isinstance(variant, Variant):
                raise TypeError(f"a variant must be a kiln.runtime.Variant, not {type(variant).__name__}")
        super().__init__(name, precision, [variant._declared for variant in self._variants])

    def __call__(
        self,
        *args: Any,
        rows: int,
        residency: Residency = "host",
        device: Literal["opencl", "cuda"] | None = None,
        runtime: Runtime | None = None,
        **kwargs: Any,
    ) -> Any:
        """Decides and calls the selected variant with the other arguments. If a variant of a device fails in mode auto,
        calls that of the CPU, unless the rows are on the device or the error is the caller's: ValueError, TypeError, or
        an error of kiln with such a code. A variant that fails must leave its arguments unchanged."""
        run = _kiln._begin_dispatch(runtime if runtime is not None else shared, self, rows, residency, device)
        runs = running.setdefault(get_ident(), [])
        runs.append(run)
        try:
            try:
                return self._variants[run.variant].function(*args, **kwargs)
            except Exception as error:
                if not _can_fall_back(run, error):
                    raise
            return self._variants[run.variant].function(*args, **kwargs)
        finally:
            runs.pop()
            if not runs:
                running.pop(get_ident(), None)
            run.end()


def _can_fall_back(run: _kiln.Dispatch, error: Exception) -> bool:
    code = error.code if isinstance(error, Error) else "internal"
    if isinstance(error, (TypeError, ValueError)):
        code = "invalid_argument"
    try:
        text = str(error)
    except Exception:
        text = "the exception has no text: its __str__ raises"
    message = f"{type(error).__name__}: {text}"
    # A file name that is not UTF-8 has characters in Python that cannot be encoded.
    return run.fall_back(code, message.encode("utf-8", "backslashreplace").decode("utf-8"))


class Workflow(scope):
    """A scope in which the thread uses one decision for all its operations. It is made at the beginning and again only
    at `next_chunk`: `with kiln.runtime.Workflow("tile", [within, area], rows=n) as workflow:`."""

    def __init__(
        self,
        name: str,
        operations: Iterable[Operation],
        *,
        rows: int,
        residency: Residency = "host",
        device: Literal["opencl", "cuda"] | None = None,
        runtime: Runtime | None = None,
    ) -> None:
        super().__init__()
        self.name = name
        self._operations = list(operations)
        for one in self._operations:
            if not isinstance(one, _kiln.DispatchOperation):
                raise TypeError(f"an operation of a workflow must be a kiln.runtime.Operation, not {type(one).__name__}")
        self._request = (rows, residency, device)
        self._runtime = runtime if runtime is not None else shared

    def _begin(self) -> _kiln.WorkflowScope:
        return _kiln._begin_workflow(self._runtime, self.name, self._operations, *self._request)

    def _entered(self) -> _kiln.WorkflowScope:
        if not isinstance(self._scope, _kiln.WorkflowScope):
            raise RuntimeError("the workflow is not entered; use it in a with statement")
        return self._scope

    @property
    def decision(self) -> Decision:
        return self._entered().decision

    def next_chunk(
        self, *, rows: int, residency: Residency = "host", device: Literal["opencl", "cuda"] | None = None
    ) -> None:
        """Ends a chunk, begins another one and decides again. Call it between the workflow's runs."""
        self._entered().next_chunk(rows, residency, device)
