#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes names.inc (every function of the toolkit's stub driver) and versions.inc (the symbol of each name and CUDA
version) from a toolkit:

    tests/support/fakes/cuda_driver/generate_names.py $CUDA_HOME
"""
import pathlib
import re
import subprocess
import sys


def stub_names(toolkit):
    for folder in ("lib64", "lib"):
        stub = toolkit / folder / "stubs" / "libcuda.so"
        if stub.exists():
            lines = subprocess.run(["nm", "-D", stub], check=True, capture_output=True, text=True).stdout.splitlines()
            return sorted(line.split()[2] for line in lines if line.split()[-2] == "T")
    sys.exit(f"{toolkit}: no stub driver found")


def forms(name, names):
    """Returns the symbols of a name, from the oldest form to the newest."""
    return [symbol for symbol in [name] + [f"{name}_v{n}" for n in range(2, 9)] if symbol in names]


def versions(toolkit, names):
    """Yields (name, version, symbol) of the forms without a per-thread default stream."""
    text = (toolkit / "include" / "cudaTypedefs.h").read_text()
    found = {}
    for name, version in re.findall(r"PFN_(cu\w+?)_v(\d+)\)", text):
        found.setdefault(name, set()).add(int(version))
    for name in sorted(found):
        symbols = forms(name, names)
        numbers = sorted(found[name])
        if len(symbols) != len(numbers):
            print(f"{name}: {numbers} but {symbols}", file=sys.stderr)
        yield from ((name, *pair) for pair in zip(numbers, symbols))
    # From CUDA 12, the header maps this name to another symbol.
    yield "cuGraphInstantiate", 12000, "cuGraphInstantiateWithFlags"


def main():
    toolkit = pathlib.Path(sys.argv[1])
    here = pathlib.Path(__file__).parent
    names = stub_names(toolkit)
    (here / "names.inc").write_text("".join(f"KILN_DRIVER_NAME({name})\n" for name in names))
    rows = versions(toolkit, set(names))
    (here / "versions.inc").write_text("".join(f'{{"{n}", {v}, "{s}"}},\n' for n, v, s in rows))


main()
