# SPDX-License-Identifier: Apache-2.0
"""Compares what cuda.compute builds with what kiln builds for it: python compute_identity.py sm_80 NAME…
Prints one JSON object. A separate process, because the driver must be present at its start."""

import json
import struct
import sys

import compute_algorithms
from cuda.compute import _bindings
from cuda.compute import _cccl_interop as interop

import kiln
import kiln.compute
from kiln._compute_specs import spec_of

FAILED = 1


def code_of(blob):
    """Returns the sections of machine code in a blob of the library, by name: they are the same in every process, while
    internal symbols contain its id."""
    cubin = blob[blob.index(b"\x7fELF") :]
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    sections = [struct.unpack_from("<IIQQQQ", cubin, table + i * size) for i in range(count)]
    texts = sections[names][4]
    found = {}
    for name, _, _, _, offset, length in sections:
        label = cubin[texts + name : cubin.index(b"\0", texts + name)].decode()
        if label.startswith(".text"):
            found[label] = cubin[offset : offset + length]
    return found


def compare(name, target, build):
    """Returns what differs, in words; empty if both are alike."""
    builds = []
    interop.call_compile = lambda kind, *args, cc: builds.append((kind, args)) or build(kind, *args, cc=cc)
    compute_algorithms.cuda.compute.clear_all_caches()
    made = compute_algorithms.make(name, compute_capability=int(target[3:]))
    kind, args = builds[-1]
    spec = spec_of(kind, args)
    if name.startswith("select"):
        return "" if spec is None else "a Python predicate has a spec"
    unit = kiln.Unit.cccl(name)
    if spec is None or kiln.Unit.cccl(spec).source != unit.source:
        return f"the spec is {spec}, not {unit.source}"
    theirs = next(iter(made.build_results.values())).serialize()
    artifact = kiln.artifact(unit, target, timeout=600)
    ours = kiln._kiln._serialized_build(artifact, unit, kiln.compute._cccl_libraries()[0])
    code = code_of(theirs)
    if not code or code != code_of(ours):
        return f"the code differs: {sorted(code)} and {sorted(code_of(ours))}"
    # Each reads what the other has written.
    again = kind.deserialize(ours, load=False, check_cc=False).serialize()
    if code_of(again) != code or not isinstance(kind.deserialize(theirs, load=False, check_cc=False), kind):
        return "the library does not read what it has written"
    return ""


if __name__ == "__main__":
    plain = interop.call_compile
    assert kiln.compute.spec_of is spec_of and _bindings is not None
    answers = {name: compare(name, sys.argv[1], plain) for name in sys.argv[2:]}
    print(json.dumps(answers))
