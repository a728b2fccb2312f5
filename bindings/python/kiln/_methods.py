# SPDX-License-Identifier: Apache-2.0
"""Methods of the extension's classes that are written in Python. Imports nothing before it is needed."""

from __future__ import annotations

from . import _kiln

# As in `typing`, whose import would take as long as that of this whole package.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from inspect import Signature
    from typing import Any, TypeVar

    from cuda.core import ObjectCode

    _T = TypeVar("_T")

# Interval in seconds at which a coroutine checks for its kernel: short at first, then longer.
_FIRST_STEP = 0.001
_LONGEST_STEP = 0.01


async def _wait(poll: Callable[[int], _T | None], unit: _kiln.Unit, timeout: float | None) -> _T:
    """Calls `poll` at intervals of 1 to 10 ms on the event loop until it returns something.

    Its argument is the time of the first call.
    """
    import asyncio
    import time

    from .errors import TimedOut

    if not isinstance(unit, _kiln.Unit):
        raise TypeError(f"unit must be a kiln.Unit, not {type(unit).__name__}")
    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout
    step = _FIRST_STEP
    first = time.monotonic_ns()
    while (result := poll(first)) is None:
        if end is not None and not loop.time() < end:  # also if `timeout` is NaN, as in `get`
            message = f"unit '{unit.label}' is not ready yet; its compile continues in the background"
            raise TimedOut(message, code="timed_out")
        left = step if end is None else min(step, end - loop.time())
        await asyncio.sleep(max(left, 0))
        step = min(step * 1.5, _LONGEST_STEP)
    return result


async def _get_async(
    self: _kiln.Session, unit: _kiln.Unit, entry: str = "", timeout: float | None = None
) -> _kiln.Kernel:
    """Same as `get`, for a coroutine: the event loop continues, and no thread waits.

    A timer of the loop checks every 1 to 10 ms, which costs microseconds. It runs on the loop's thread, whose context
    is the one that the kernel is loaded for. Canceling the coroutine ends the wait; the compile continues.
    """
    return await _wait(lambda first: self._poll(unit, entry, first), unit, timeout)


async def _artifact_async(
    self: _kiln.Session, unit: _kiln.Unit, target: _kiln.Target | str, timeout: float | None = None
) -> _kiln.Artifact:
    """Same as `artifact`, for a coroutine: the event loop continues, and no thread waits. See `get_async`."""
    return await _wait(lambda first: self._poll_artifact(unit, target, first), unit, timeout)


def _object_code(self: _kiln.Artifact) -> ObjectCode:
    """Returns the code as a `cuda.core.ObjectCode`, not loaded yet, with the names of its kernels."""
    from cuda.core import ObjectCode

    from .errors import Unsupported

    makers: dict[str, Any] = {
        "cubin": ObjectCode.from_cubin,
        "ptx": ObjectCode.from_ptx,
        "ltoir": ObjectCode.from_ltoir,
    }
    make = makers.get(self.form.replace("-", "").replace("_", "").lower())
    if make is None:
        raise Unsupported(f"cuda.core does not support the form {self.form}", code="unsupported")
    code: ObjectCode = make(self.bytes, name=self.unit, symbol_mapping=self.symbols)
    return code


def _kernel_object_code(self: _kiln.Kernel) -> ObjectCode:
    """Returns the kernel's code as a `cuda.core.ObjectCode`; its `get_kernel(kernel.name)` returns the kernel."""
    return _object_code(self.artifact)


def _status_html(self: _kiln.Status) -> str:
    """The units as a table, for notebooks."""
    from ._notebook import status_html

    return status_html(self)


def _kernel_html(self: _kiln.Kernel) -> str:
    """The parameters as a table, for notebooks."""
    from ._notebook import kernel_html

    return kernel_html(self)


_reduced = _kiln.Unit.__reduce__


def _read_unit(data: bytes, served_by: list[str]) -> _kiln.Unit:
    """Reads a pickled unit. pickle accepts a Python function, and no function of nanobind."""
    return _kiln._read_unit(data, served_by)


def _reduce_unit(self: _kiln.Unit) -> Any:
    return _read_unit, _reduced(self)[1]


def _signature(function: Any) -> Signature | None:
    from ._signatures import signature_of

    try:
        return signature_of(function)
    except OSError:  # the stubs are not installed
        return None


def attach_methods() -> None:
    """Attaches the methods to the classes, and signatures to their functions. Called once, by the package."""
    for cls, name, function in (
        (_kiln.Session, "get_async", _get_async),
        (_kiln.Session, "artifact_async", _artifact_async),
        (_kiln.Artifact, "to_object_code", _object_code),
        (_kiln.Kernel, "to_object_code", _kernel_object_code),
        (_kiln.Kernel, "_repr_html_", _kernel_html),
        (_kiln.Status, "_repr_html_", _status_html),
        (_kiln.Unit, "__reduce__", _reduce_unit),
    ):
        function.__name__, function.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, function)
    # A function, a method and a bound method: nanobind has a type for each.
    for example in (_kiln.use_bundle, _kiln.Session.get, _kiln.Session._shared().get):
        _kiln._extend_type(type(example), "__signature__", property(_signature))
