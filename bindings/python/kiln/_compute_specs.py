# SPDX-License-Identifier: Apache-2.0
"""Specs of CCCL's algorithms (docs/reference/cccl.md), from the builds of cuda.compute and from calls written as data.

A build is expressed as a spec only if the spec says everything that decides the build's code. Imports neither kiln's
extension nor cuda.compute before it is needed.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Iterable, Optional, Union

if TYPE_CHECKING:
    from kiln import Unit

# The arguments of each build of cuda.compute, in order. A histogram is missing: its code depends on the number of
# samples, which a spec does not have.
_BUILDS = {
    "DeviceReduceBuildResult": ("reduce", "iterator iterator operator type init determinism"),
    "DeviceScanBuildResult": ("scan", "iterator iterator operator type inclusive init"),
    "DeviceSegmentedReduceBuildResult": ("segmented_reduce", "iterator iterator iterator iterator operator value"),
    "DeviceThreeWayPartitionBuildResult": (
        "three_way_partition",
        "iterator iterator iterator iterator iterator operator operator",
    ),
    "DeviceBinarySearchBuildResult": ("binary_search", "bound iterator iterator iterator operator"),
    "DeviceRadixSortBuildResult": ("radix_sort", "order iterator iterator no_operator no_text"),
    "DeviceMergeSortBuildResult": ("merge_sort", "iterator iterator iterator iterator operator"),
    "DeviceUniqueByKeyBuildResult": ("unique_by_key", "iterator iterator iterator iterator iterator operator"),
    "DeviceUnaryTransform": ("unary_transform", "iterator iterator operator"),
    "DeviceBinaryTransform": ("binary_transform", "iterator iterator iterator operator"),
    "DeviceSegmentedSortBuildResult": ("segmented_sort", "order iterator iterator iterator iterator"),
}
#: Builds whose code depends on whether an array's address is null: the library sorts keys alone if that of the values
#: is.
NULL_MATTERS = frozenset(("DeviceRadixSortBuildResult", "DeviceMergeSortBuildResult", "DeviceSegmentedSortBuildResult"))

_INITS = {"VALUE_INIT": "value", "FUTURE_VALUE_INIT": "future", "NO_INIT": "none"}
_BOUNDS = {"LOWER_BOUND": "lower", "UPPER_BOUND": "upper"}
_SIZES = {"i8": 1, "i16": 2, "i32": 4, "i64": 8, "u8": 1, "u16": 2, "u32": 4, "u64": 8}
_SIZES.update({"f16": 2, "bf16": 2, "f32": 4, "f64": 8, "bool": 1})
_POINTER_ALIGNMENT = 8

_Type = Union[str, "dict[str, int]"]


def _short_name(name: str) -> Optional[str]:
    """Returns the name of a type in a spec, from that name, from numpy's and from cuda.compute's."""
    lower = name.lower()
    for long, short in (("uint", "u"), ("int", "i"), ("bfloat", "bf"), ("float", "f"), ("boolean", "bool")):
        if lower.startswith(long):
            lower = short + lower[len(long) :]
            break
    lower = "bool" if lower == "bool_" else lower
    return lower if lower in _SIZES else None


def _is_empty(op: Any) -> bool:
    return not (op.name or op.ltoir or op.state or op.extra_code)


class _Inexpressible(Exception):
    """A build has a part that a spec cannot have."""


class _BuildReader:
    """The parts of a spec, taken from the arguments of one build. Not thread-safe."""

    def __init__(self, bindings: Any, null_matters: bool) -> None:
        self._bindings = bindings
        self._null_matters = null_matters
        self.spec: dict[str, Any] = {"iterators": [], "operators": []}

    def _named(self, value: Any, kind: Any) -> str:
        if not isinstance(value, kind):
            raise _Inexpressible
        return str(value.name)

    def _type_of(self, info: Any) -> _Type:
        if not isinstance(info, self._bindings.TypeInfo):
            raise _Inexpressible
        name = self._bindings.TypeEnum(info.typenum).name
        if name == "STORAGE":
            return {"storage": info.size, "alignment": info.alignment}
        short = _short_name(name)
        if short is None or not _SIZES[short] == info.size == info.alignment:
            raise _Inexpressible
        return short

    def iterator(self, value: Any) -> None:
        if not isinstance(value, self._bindings.Iterator) or not value.is_ptr_kind:
            raise _Inexpressible
        functions = (value.advance_op, value.dereference_or_assign_op)
        # A missing array has another alignment.
        if value.alignment != _POINTER_ALIGNMENT or not all(_is_empty(function) for function in functions):
            raise _Inexpressible
        if self._null_matters and not value.state:
            raise _Inexpressible
        self.spec["iterators"].append(self._type_of(value.value_type))

    def operator(self, value: Any) -> None:
        if not isinstance(value, self._bindings.Op) or not _is_empty(value):
            raise _Inexpressible
        name = self._named(value.operator_type, self._bindings.OpKind)
        if name in ("STATELESS", "STATEFUL"):
            raise _Inexpressible
        self.spec["operators"].append(name.lower())

    def no_operator(self, value: Any) -> None:
        stateless = self._bindings.OpKind.STATELESS
        if not isinstance(value, self._bindings.Op) or not _is_empty(value) or value.operator_type != stateless:
            raise _Inexpressible

    def no_text(self, value: Any) -> None:
        if value != b"":
            raise _Inexpressible

    def type(self, value: Any) -> None:
        self.spec["type"] = self._type_of(value)

    def value(self, value: Any) -> None:
        if not isinstance(value, self._bindings.Value):
            raise _Inexpressible
        self.spec["type"] = self._type_of(value.type)

    def init(self, value: Any) -> None:
        self.spec["init"] = _INITS[self._named(value, self._bindings.InitKind)]

    def inclusive(self, value: Any) -> None:
        if not isinstance(value, bool):
            raise _Inexpressible
        self.spec["inclusive"] = value

    def determinism(self, value: Any) -> None:
        self.spec["determinism"] = self._named(value, self._bindings.Determinism).lower()

    def bound(self, value: Any) -> None:
        self.spec["bound"] = _BOUNDS[self._named(value, self._bindings.BinarySearchMode)]

    def order(self, value: Any) -> None:
        self.spec["order"] = self._named(value, self._bindings.SortOrder).lower()


def spec_of(kind: Any, args: Iterable[Any]) -> Optional[str]:
    """Returns the text of the spec that compiles to the code of a build, or None if there is none: with iterators other
    than arrays, with operators that have code of their own, and for what a spec cannot say."""
    from cuda.compute import _bindings

    algorithm, parts = _BUILDS.get(kind.__name__, ("", ""))
    words, values = parts.split(), list(args)
    if not algorithm or len(words) != len(values):
        return None
    reader = _BuildReader(_bindings, kind.__name__ in NULL_MATTERS)
    try:
        for word, value in zip(words, values):
            getattr(reader, word)(value)
    except (_Inexpressible, KeyError):
        return None
    return json.dumps({"algorithm": algorithm, **reader.spec})


# Of each function of cuda.compute: the algorithm, the arrays, the default operator and the fixed fields of its spec. An
# `init` there is a default: `make_inclusive_scan` has no initial value unless it is given one.
_CALLS: dict[str, tuple[str, str, str, dict[str, Any]]] = {
    "reduce_into": ("reduce", "dtype out", "", {}),
    "exclusive_scan": ("scan", "dtype out", "", {"inclusive": False}),
    "inclusive_scan": ("scan", "dtype out", "", {"inclusive": True, "init": "none"}),
    "segmented_reduce": ("segmented_reduce", "dtype out offset offset", "", {}),
    "lower_bound": ("binary_search", "dtype dtype u64", "less", {"bound": "lower"}),
    "upper_bound": ("binary_search", "dtype dtype u64", "less", {"bound": "upper"}),
    "radix_sort": ("radix_sort", "dtype value", "none", {}),
    "merge_sort": ("merge_sort", "dtype value dtype value", "less", {}),
    "unique_by_key": ("unique_by_key", "dtype value dtype value count", "equal_to", {}),
    "unary_transform": ("unary_transform", "dtype out", "", {}),
    "binary_transform": ("binary_transform", "dtype second out", "", {}),
    "segmented_sort": ("segmented_sort", "dtype value offset offset", "none", {}),
}
_SHORT_OPERATORS = {"sum": "plus", "min": "minimum", "max": "maximum"}


def _dtype(value: Any, argument: str) -> str:
    name = value if isinstance(value, str) else getattr(value, "name", None) or getattr(value, "__name__", "")
    short = _short_name(name) if isinstance(name, str) else None
    if short is None:
        raise ValueError(f"{argument}: {value!r} is not the type of an element; use one of {', '.join(_SIZES)}")
    return short


def call(
    algorithm: str,
    *,
    dtype: Any,
    op: Any = None,
    value_dtype: Any = None,
    out_dtype: Any = None,
    init_dtype: Any = None,
    offset_dtype: Any = "i64",
    count_dtype: Any = "i64",
    init: Optional[str] = None,
    order: Optional[str] = None,
    determinism: Optional[str] = None,
) -> Unit:
    """Returns the unit of what ``cuda.compute.make_<algorithm>`` builds for arrays of these types and one of the
    library's operators: ``call("reduce_into", dtype="f64", op="sum")``. docs/reference/cccl.md lists the arguments."""
    from kiln import Unit

    if algorithm not in _CALLS:
        raise ValueError(f"{algorithm!r} cannot be written as data; use one of {', '.join(_CALLS)}, or a function")
    kind, roles, default_op, fixed = _CALLS[algorithm]
    out = out_dtype if out_dtype is not None else dtype
    second = value_dtype if value_dtype is not None else dtype
    given = {"dtype": dtype, "out": out, "second": second, "value": value_dtype}
    given.update(offset=offset_dtype, count=count_dtype, u64="u64")
    if value_dtype is None and "value" in roles.split():
        raise ValueError(f"{algorithm} needs value_dtype; without values it cannot be written as data, use a function")
    spec: dict[str, Any] = {"algorithm": kind, **fixed}
    spec["iterators"] = [_dtype(given[role], f"{role}_dtype".replace("dtype_dtype", "dtype")) for role in roles.split()]
    if default_op == "none":
        spec["operators"] = []
    else:
        name = str(getattr(op, "name", op)).lower() if op is not None else default_op
        spec["operators"] = [_SHORT_OPERATORS.get(name, name)]
    if kind in ("reduce", "scan", "segmented_reduce"):
        init = fixed.get("init") if init is None else init.lower()
        accumulated = dtype if init == "none" else init_dtype if init_dtype is not None else out
        spec["type"] = _dtype(accumulated, "init_dtype")
    # The parser of specs rejects what the algorithm does not take.
    fields = {"init": init, "order": order, "determinism": determinism}
    spec.update({field: value.lower() for field, value in fields.items() if value is not None})
    return Unit.cccl(json.dumps(spec))
