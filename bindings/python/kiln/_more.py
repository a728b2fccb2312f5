"""What the extension's classes have that is better said in Python. Nothing is imported here before it is needed."""

from __future__ import annotations

from . import _kiln

# As in `typing`, whose import alone would take as long as all of this package's.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from cuda.core import ObjectCode

# How often a coroutine asks whether its kernel is there, in seconds: soon at first, then seldom.
_FIRST_STEP = 0.001
_LONGEST_STEP = 0.01


async def _get_async(
    self: _kiln.Session, unit: _kiln.Unit, entry: str = "", timeout: float | None = 2.0
) -> _kiln.Kernel:
    """As `get`, for a coroutine: the event loop goes on meanwhile, and no thread waits.

    The loop's own timer asks every 1 to 10 ms, which costs microseconds. It asks on the loop's thread, whose context is
    the one that the kernel is loaded for. Cancelling the coroutine ends the wait; the compile goes on.
    """
    import asyncio

    from .errors import TimedOut

    loop = asyncio.get_running_loop()
    end = None if timeout is None else loop.time() + timeout
    step = _FIRST_STEP
    while (kernel := self._poll(unit, entry)) is None:
        if end is not None and loop.time() >= end:
            message = f"unit '{unit.label}' is not ready yet; work on it goes on"
            raise TimedOut(message, code="timed_out")
        left = step if end is None else min(step, end - loop.time())
        await asyncio.sleep(max(left, 0))
        step = min(step * 1.5, _LONGEST_STEP)
    return kernel


def _object_code(self: _kiln.Artifact) -> ObjectCode:
    """The same code as cuda.core has it: `cuda.core.ObjectCode`, not loaded yet, that knows the names of its kernels."""
    from cuda.core import ObjectCode

    from .errors import Unsupported

    makers: dict[str, Any] = {
        "cubin": ObjectCode.from_cubin,
        "ptx": ObjectCode.from_ptx,
        "ltoir": ObjectCode.from_ltoir,
    }
    make = makers.get(self.form.replace("-", "").replace("_", "").lower())
    if make is None:
        raise Unsupported(f"cuda.core has no place for {self.form}", code="unsupported")
    code: ObjectCode = make(self.bytes, name=self.unit, symbol_mapping=self.symbols)
    return code


def _kernel_object_code(self: _kiln.Kernel) -> ObjectCode:
    """The kernel's code as `cuda.core.ObjectCode`; its `get_kernel(name)` finds what `kernel.name` names."""
    return _object_code(self.artifact)


def complete() -> None:
    """Gives the classes what they lack. Called once, by the package."""
    _kiln.Session.get_async = _get_async  # type: ignore[method-assign]
    _kiln.Artifact.to_object_code = _object_code  # type: ignore[method-assign]
    _kiln.Kernel.to_object_code = _kernel_object_code  # type: ignore[method-assign]
