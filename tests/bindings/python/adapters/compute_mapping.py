# SPDX-License-Identifier: Apache-2.0
"""Which builds of cuda.compute are kiln units: prints the spec of each, or null, as one JSON object. Compiles nothing.
A separate process, because the driver must be present at its start."""

import json

import compute_algorithms
import numpy
from compute_algorithms import Array
from cuda.compute import OpKind, ProxyArray, SortOrder
from cuda.compute import _bindings as bindings
from cuda.compute import _cccl_interop as interop

import kiln
import kiln.compute
from kiln._compute_specs import spec_of

compute = compute_algorithms.cuda.compute


class Recorded(Exception):
    pass


def recorded(kind, *args, cc):
    raise Recorded(spec_of(kind, args), lambda: kiln.compute._key(kind, args, cc))


def build(make, **arguments):
    """Returns the text of the spec of a build, or None, and a function that returns its key by content."""
    try:
        make(**arguments, compute_capability=80)
    except Recorded as record:
        return record.args
    raise AssertionError("nothing was built")


def spec(make, **arguments):
    text, _ = build(make, **arguments)
    return text and kiln.Unit.cccl(text).source


def keys_are_equal(make, first, second):
    one, two = (build(make, **arguments)[1]() for arguments in (first, second))
    assert one is not None and two is not None
    return one == two


def moved(array):
    """Returns an iterator that is not an array."""
    op = bindings.Op(name="advance", operator_type=OpKind.STATELESS, ltoir=b"code")
    state = bindings.IteratorState(memoryview(bytearray(8)))
    return bindings.Iterator(8, bindings.IteratorKind.ITERATOR, op, op, interop._type_info_from_dtype(array.dtype), state)


interop.call_compile = recorded
i32, i64, f64, complex64 = Array("i4"), Array("i8"), Array("f8"), Array("c8")
one = numpy.zeros(1, "i4")
keys = {"d_in_keys": i32, "d_out_keys": i32}
values = {"d_in_values": i64, "d_out_values": i64}
no_values = {"d_in_values": None, "d_out_values": None}
raw = compute.op.RawOp(ltoir=b"code", name="mine")
plus = bindings.Op(name="", operator_type=OpKind.PLUS, ltoir=b"")
reduction = {"d_in": i32, "d_out": i32}
answers = {
    "reduce": spec(compute.make_reduce_into, **reduction, op=OpKind.PLUS, h_init=one),
    "reduce to another type": spec(
        compute.make_reduce_into, d_in=i32, d_out=f64, op=OpKind.MAXIMUM, h_init=numpy.zeros(1, "f8")
    ),
    "reduce without init": spec(compute.make_reduce_into, **reduction, op=OpKind.PLUS),
    "reduce of proxies": spec(
        compute.make_reduce_into, d_in=ProxyArray("i4"), d_out=ProxyArray("i4"), op=OpKind.PLUS, h_init=one
    ),
    "inclusive scan": spec(compute.make_inclusive_scan, **reduction, op=OpKind.MINIMUM, init_value=None),
    "scan from the device": spec(compute.make_exclusive_scan, **reduction, op=OpKind.PLUS, init_value=i32),
    "descending": spec(compute.make_radix_sort, **keys, **values, order=SortOrder.DESCENDING),
    "sort of structs": spec(
        compute.make_radix_sort, **keys, d_in_values=complex64, d_out_values=complex64, order=SortOrder.ASCENDING
    ),
    "transform": spec(compute.make_unary_transform, d_in=i32, d_out=f64, op=OpKind.NEGATE),
    "operator with code": spec(compute.make_reduce_into, **reduction, op=raw, h_init=one),
    "keys alone": spec(compute.make_radix_sort, **keys, **no_values, order=SortOrder.ASCENDING),
    "merge sort of keys": spec(compute.make_merge_sort, **keys, **no_values, op=OpKind.LESS),
    "sort of proxies": spec(
        compute.make_radix_sort,
        d_in_keys=ProxyArray("i4"),
        d_out_keys=ProxyArray("i4"),
        d_in_values=ProxyArray("i8"),
        d_out_values=ProxyArray("i8"),
        order=SortOrder.ASCENDING,
    ),
    "histogram": spec(
        compute.make_histogram_even,
        d_samples=f64,
        d_histogram=i32,
        h_num_output_levels=numpy.array([5], "i4"),
        h_lower_level=numpy.array([0.0]),
        h_upper_level=numpy.array([1.0]),
        num_samples=100,
    ),
    "another iterator": spec_of(
        bindings.DeviceUnaryTransform, [moved(i32), interop.to_cccl_output_iter(i32), plus]
    ),
    "an unknown argument": spec_of(bindings.DeviceUnaryTransform, [interop.to_cccl_input_iter(i32), plus, 1]),
    "another count": spec_of(bindings.DeviceUnaryTransform, [interop.to_cccl_input_iter(i32), plus]),
}
proxy = ProxyArray("i4")
arrays = {"d_in_keys": i32, "d_out_keys": i32, "d_in_values": i32, "d_out_values": i32, "op": OpKind.LESS}
proxies = {**arrays, **dict.fromkeys(list(arrays)[:4], proxy)}
answers["keys of a sort of proxies and of arrays"] = keys_are_equal(compute.make_merge_sort, arrays, proxies)
first, second = ({"d_in": array, "d_out": array, "op": OpKind.NEGATE} for array in (i32, proxy))
answers["keys of a transform of proxies and of arrays"] = keys_are_equal(compute.make_unary_transform, first, second)
print(json.dumps(answers))
