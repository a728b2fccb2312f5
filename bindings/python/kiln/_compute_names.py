# SPDX-License-Identifier: Apache-2.0
"""Names of compiled Python operators that are the same in every process.

cuda.compute counts the operators that it compiles and puts the number into their names, and with it into their code:
the same operator has other code if another one was compiled before. With a digest in place of the number, code that one
thread or process builds has the key that another looks for.
"""

from __future__ import annotations

import hashlib
import sys
import threading
import types
from typing import Any, Callable

_MODULE = "cuda.compute._odr_helpers"
_MARK = "_kiln"
_lock = threading.Lock()
_operators: dict[str, Any] = {}  # what a name stands for, by the name


def _copy(function: types.FunctionType, name: str) -> types.FunctionType:
    copy = types.FunctionType(
        function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    copy.__annotations__ = function.__annotations__
    return copy


def _stable_name(function: types.FunctionType, signature: Any, identity: Any) -> str:
    """Returns a name for a function and its types, or an empty one if another function of this process has it: values
    of globals and closures are not in the digest, and one program cannot have two functions of one name."""
    code = function.__code__
    content = (function.__name__, code.co_code.hex(), code.co_consts, code.co_names, str(signature))
    name = f"{function.__name__}{_MARK}{hashlib.sha256(repr(content).encode()).hexdigest()[:16]}"
    with _lock:
        return name if _operators.setdefault(name, (identity, str(signature))) == (identity, str(signature)) else ""


def named_by_content(create: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
    """Replaces `create_op_void_ptr_wrapper`, which begins the compile of an operator."""

    def created(op: Any, signature: Any) -> Any:
        from cuda.compute._caching import CachableFunction

        plain = isinstance(op, types.FunctionType)
        name = _stable_name(op, signature, CachableFunction(op)) if plain else ""
        return create(_copy(op, name) if name else op, signature)

    return created


def without_number(make_name: Callable[[str], str]) -> Callable[[str], str]:
    """Replaces `_make_wrapper_name`, which appends the number."""

    def made(name: str) -> str:
        numbered = make_name(name)
        return numbered.rpartition("_")[0] if name in _operators else numbered

    return made


def replacements() -> list[tuple[Any, str, Callable[..., Any]]]:
    """Returns the functions to replace and their replacements, once cuda.compute has imported its compiler of Python
    operators."""
    module = sys.modules.get(_MODULE)
    wanted: dict[str, Callable[..., Any]] = {
        "create_op_void_ptr_wrapper": named_by_content,
        "_make_wrapper_name": without_number,
    }
    if module is None or not all(hasattr(module, name) for name in wanted):
        return []
    return [(module, name, replacement) for name, replacement in wanted.items()]
