# SPDX-License-Identifier: Apache-2.0
"""Compares the caches of Triton, CuPy and JAX with kiln under them: python compare_caches.py [SYSTEM…]

Needs the packages of the systems and `kiln`. Prints for each system the compiles of eight processes on one cold key, what
a corrupt entry leads to, the compiles with only a bundle in another directory, and times. Triton and CuPy compile for sm_90,
Triton also for gfx942; JAX compiles for the CPU and runs there. Nothing is executed on a GPU. Fails if kiln does not do
what the adapters promise.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).parent
PROGRAMS = {
    "triton": ["triton_kernels.py"],
    "triton for AMD": ["triton_kernels.py", "amd"],
    "cupy": ["cupy_kernels.py"],
    "jax": ["jax_programs.py"],
}
EXTERNAL = {"cupy": "cupy", "jax": "jax.cpu"}  # names of the systems in kiln's cache
PREFIXES = ("TRITON_", "CUPY_", "JAX_", "KILN_")
SIDES = ("own cache", "kiln")
ROUNDS = 3


class Comparison:
    """The processes of one system in a directory of their own."""

    def __init__(self, system, scratch):
        self._system = system
        self._scratch = pathlib.Path(scratch)

    def start(self, folder, side, **more):
        place = self._scratch / folder / side
        clean = {name: value for name, value in os.environ.items() if not name.startswith(PREFIXES)}
        own = {"TRITON_CACHE_DIR": "own", "CUPY_CACHE_DIR": "own", "JAX_COMPILATION_CACHE_DIR": "own", "KILN_CACHE_DIR": "kiln"}
        clean |= {name: str(place / below) for name, below in own.items()}
        # JAX itself stores only what took a second; kiln.jax changes that.
        clean |= {"HOME": str(place / "home"), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", **more}
        if side == "kiln":
            clean.pop("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS")
            clean.pop("JAX_COMPILATION_CACHE_DIR")  # JAX's key would contain this path
        file, *arguments = PROGRAMS[self._system]
        arguments += ["install"] if side == "kiln" else []
        program = [sys.executable, "-B", "-W", "ignore", str(HERE / file), *arguments]
        return subprocess.Popen(program, env=clean, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def finish(self, process):
        output, errors = process.communicate(timeout=1800)
        if process.returncode != 0:
            return {"compiles": 0, "ms": 0.0, "code": f"error {process.returncode}: {errors.strip()[-200:]}", "install_ms": 0.0}
        answer = json.loads(output.splitlines()[-1])
        answer.setdefault("code", answer.get("cubin"))
        return answer

    def run(self, folder, side, **more):
        return self.finish(self.start(folder, side, **more))

    def eight(self, side):
        """Returns the number of compiles of eight processes on one cold key."""
        processes = [self.start("eight", side) for _ in range(8)]
        return sum(self.finish(process)["compiles"] for process in processes)

    def damaged(self, side, damage):
        """Returns what a process does with a corrupt entry, and the one after it."""
        folder = f"damaged {damage}"
        whole = self.run(folder, side)
        for path in self._code_files(self._scratch / folder / side / ("kiln" if side == "kiln" else "own")):
            data = bytearray(path.read_bytes())
            if damage == "truncated":
                del data[len(data) // 2 :]
            else:
                data[len(data) * 3 // 4] ^= 1
            path.write_bytes(data)
        first, second = self.run(folder, side), self.run(folder, side)
        if first["code"] != whole["code"]:
            return "error" if str(first["code"]).startswith("error") else "corrupt code served"
        repaired = (first["compiles"], second["compiles"]) == (1, 0)
        return "repaired" if repaired else f"compiles again: {first['compiles']}, {second['compiles']}"

    def _code_files(self, place):
        """Returns the files that contain code: those of Triton have a suffix, in other caches it is the largest one."""
        files = [path for path in place.rglob("*") if path.is_file() and "files" not in path.parts]
        code = [path for path in files if path.suffix in (".cubin", ".hsaco") and self._system.startswith("triton")]
        return code or [max(files, key=lambda path: path.stat().st_size)]

    def bundle_only(self):
        """Returns the number of compiles with an empty cache and home, another path, and a bundle."""
        self.run("bundle", "kiln")
        bundle = self._scratch / "code.kiln"
        create = [sys.executable, "-m", "kiln", "bundle", "create", "--external", EXTERNAL.get(self._system, "triton"), "-o", str(bundle)]
        place = {**os.environ, "KILN_CACHE_DIR": str(self._scratch / "bundle" / "kiln" / "kiln")}
        subprocess.run(create, env=place, check=True, capture_output=True, timeout=120)
        answer = self.run("elsewhere", "kiln", KILN_BUNDLES=str(bundle), KILN_TRUST_UNSIGNED="true")
        return answer["compiles"], answer["ms"]

    def times(self):
        """Returns the times in milliseconds with an empty and with a filled cache, by side; the sides alternate."""
        cold, filled = ({side: [] for side in SIDES} for _ in range(2))
        for number in range(ROUNDS):
            for side in SIDES:
                cold[side].append(self.run(f"times {number}", side)["ms"])
                filled[side].append(self.run(f"times {number}", side)["ms"])
        return {side: (statistics.median(cold[side]), statistics.median(filled[side])) for side in SIDES}


def compare(system):
    """Prints the comparison. Returns whether kiln did what the adapter promises."""
    with tempfile.TemporaryDirectory(prefix="kiln-compare-") as scratch:
        comparison = Comparison(system, scratch)
        eight = {side: comparison.eight(side) for side in SIDES}
        print(f"{system}: eight processes on one cold key: {eight['own cache']} compiles, with kiln {eight['kiln']}")
        good = eight["kiln"] == 1
        for damage in ("truncated", "flipped"):
            outcome = {side: comparison.damaged(side, damage) for side in SIDES}
            print(f"{system}: entry {damage}: {outcome['own cache']}, with kiln {outcome['kiln']}")
            good = good and outcome["kiln"] == "repaired"
        compiles, ms = comparison.bundle_only()
        print(f"{system}: only a bundle, other home and path: {compiles} compiles, {ms:.0f} ms")
        for side, (cold, filled) in comparison.times().items():
            print(f"{system}: {side}: cold {cold:.0f} ms, filled {filled:.0f} ms (median of {ROUNDS} processes)", flush=True)
        return good and compiles == 0


if __name__ == "__main__":
    results = [compare(system) for system in sys.argv[1:] or PROGRAMS]
    sys.exit(0 if all(results) else 1)
