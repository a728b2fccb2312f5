# SPDX-License-Identifier: Apache-2.0
"""A module of a library, as the requirement describes it: it says at import which algorithms it needs, by name, and
calls cuda.compute as ever. KILN_TEST_FEW leaves it three of the twelve."""

import os

import kiln.compute

NEEDS = [
    "exclusive_scan_i32",
    "exclusive_scan_i64",
    "radix_sort_i32_i32",
    "radix_sort_u64_i32",
    "merge_sort_u64_i32",
    "lower_bound_i32",
    "lower_bound_u64",
    "upper_bound_i32",
    "upper_bound_u64",
    "segmented_reduce_min_f64",
]
if "KILN_TEST_FEW" in os.environ:
    NEEDS = ["exclusive_scan_i32", "lower_bound_i32", "segmented_reduce_min_f64"]


# Their predicates are Python functions, which numba compiles, so a function builds them, on a background thread.
def select_i32(capability):
    from compute_algorithms import make

    make("select_i32", compute_capability=capability)


def select_i64(capability):
    from compute_algorithms import make

    make("select_i64", compute_capability=capability)


SELECTS = [select_i32, select_i64] if os.environ.get("KILN_TEST_NUMBA") else []
if "KILN_TEST_FEW" in os.environ:
    SELECTS = SELECTS[:1]

kiln.compute.request_warmup([*NEEDS, *SELECTS])
