# SPDX-License-Identifier: Apache-2.0
"""The predefined specs as calls of cuda.compute, for the tests of kiln.compute. Import it in a process that found the
driver's double."""

import ctypes
import re
import warnings

# The toolkit's compiler, which its linker supports; a newer one in the environment produces code that it rejects.
ctypes.CDLL("libnvrtc.so.13", ctypes.RTLD_GLOBAL)
warnings.filterwarnings("ignore")

import cuda.compute  # noqa: E402
import numpy  # noqa: E402
from cuda.compute import OpKind  # noqa: E402

OPERATORS = {"sum": OpKind.PLUS, "min": OpKind.MINIMUM, "max": OpKind.MAXIMUM}


class Array:
    """An array on a device, as far as a build looks at it: it has an address, which nothing reads."""

    def __init__(self, dtype):
        self.dtype = numpy.dtype(dtype)
        self.shape = (1024,)
        self.__cuda_array_interface__ = {
            "shape": self.shape,
            "typestr": self.dtype.str,
            "data": (0x7F0000000000, False),
            "strides": None,
            "version": 3,
        }


def is_positive(x):
    return x > 0


def make(name, array=Array, **target):
    """Returns what cuda.compute makes for the predefined spec of this name."""
    algorithm, types = re.fullmatch(r"(\w+?)((?:_[iuf]\d+)+)", name).groups()
    first, *rest = [array(f"{t[0]}{int(t[1:]) // 8}") for t in types.strip("_").split("_")]
    offsets = array("i8")
    algorithm, _, operator = algorithm.partition("reduce_")
    if operator:
        arguments = {"d_in": first, "d_out": first, "op": OPERATORS[operator], "h_init": numpy.zeros(1, first.dtype)}
        if not algorithm:
            return cuda.compute.make_reduce_into(**arguments, **target)
        segments = {"start_offsets_in": offsets, "end_offsets_in": offsets}
        return cuda.compute.make_segmented_reduce(**arguments, **segments, **target)
    if algorithm == "exclusive_scan":
        start = numpy.zeros(1, first.dtype)
        return cuda.compute.make_exclusive_scan(d_in=first, d_out=first, op=OpKind.PLUS, init_value=start, **target)
    if algorithm == "select":
        counts = {"d_num_selected_out": array("u8"), "cond": is_positive}
        return cuda.compute.make_select(d_in=first, d_out=first, **counts, **target)
    if algorithm in ("lower_bound", "upper_bound"):
        search = getattr(cuda.compute, f"make_{algorithm}")
        return search(d_data=first, d_values=first, d_out=array("u8"), **target)
    pairs = {"d_in_keys": first, "d_out_keys": first}
    if algorithm == "unique_by_key":
        pairs.update(d_in_items=rest[0], d_out_items=rest[0], d_out_num_selected=array("i8"), op=OpKind.EQUAL_TO)
        return cuda.compute.make_unique_by_key(**pairs, **target)
    pairs.update(d_in_values=rest[0], d_out_values=rest[0])
    if algorithm == "merge_sort":
        return cuda.compute.make_merge_sort(**pairs, op=OpKind.LESS, **target)
    return cuda.compute.make_radix_sort(**pairs, order=cuda.compute.SortOrder.ASCENDING, **target)
