# SPDX-License-Identifier: Apache-2.0
"""Signatures of the extension's functions for `help()`, `inspect` and notebooks: those of the type stubs. Imported when
one is first asked for."""

from __future__ import annotations

import __future__

import ast
import functools
import inspect
import pathlib
from typing import Any


class _Annotation(str):
    """A type as the stubs write it, shown without quotes."""

    def __repr__(self) -> str:
        return str(self)


@functools.cache
def _declarations() -> dict[str, Any]:
    """Returns the classes and functions of the stubs. Their annotations are texts, so that nothing is imported."""
    stubs = ast.parse(pathlib.Path(__file__).with_name("_kiln.pyi").read_text("utf-8"))
    stubs.body = [node for node in stubs.body if isinstance(node, (ast.ClassDef, ast.FunctionDef))]
    for node in stubs.body:
        if isinstance(node, ast.ClassDef):
            node.bases = []
    flags = __future__.annotations.compiler_flag
    declared: dict[str, Any] = {"overload": lambda function: function}
    exec(compile(stubs, "_kiln.pyi", "exec", flags=flags), declared)
    return declared


def signature_of(function: Any) -> inspect.Signature | None:
    """Returns the signature of a function, a method or a bound method; None if the stubs do not have it."""
    scope: Any = _declarations()
    *owner, name = function.__qualname__.split(".")
    for part in owner:
        scope = vars(scope[part]) if part in scope else {}
    found = scope.get(name)
    if found is None:
        return None
    signature = inspect.signature(getattr(found, "__func__", found))
    if not isinstance(found, staticmethod) and hasattr(function, "__self__"):
        signature = signature.replace(parameters=list(signature.parameters.values())[1:])
    parameters = [one.replace(annotation=_shown(one.annotation)) for one in signature.parameters.values()]
    return signature.replace(parameters=parameters, return_annotation=_shown(signature.return_annotation))


def _shown(annotation: Any) -> Any:
    return _Annotation(annotation) if isinstance(annotation, str) else annotation
