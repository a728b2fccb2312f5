# SPDX-License-Identifier: Apache-2.0
"""kiln run with real systems and without a GPU: campaign.py --kiln PROGRAM --python INTERPRETER [--driver DIR] [SYSTEM...].
CuPy and JAX use kiln's adapters, so that the interpreter must find kiln's package (PYTHONPATH).

For each system that the interpreter can import: a cold start that publishes, a signed bundle of what it published, and a start
from the bundle with another HOME, another directory and an empty cache, which must compile nothing and give the same code. Then
starts with a damaged bundle and with a key that is not trusted, which must compile as if there were no bundle. --quick leaves out
the damaged bundles but one. Fails if a statement does not hold."""

import argparse
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
from typing import NamedTuple

HERE = pathlib.Path(__file__).resolve().parent
PROVIDER = HERE.parents[3] / "packaging" / "flashinfer_jit_cache"
ADAPTERS = HERE.parents[2] / "bindings" / "python" / "adapters"


class System(NamedTuple):
    """A system of the campaign: the module to import, the program and its arguments, the name of the entries in kiln's cache,
    and the name of the system if its entries are host code."""

    module: str
    program: tuple[pathlib.Path | str, ...]
    external: str
    host_code: str = ""


PROGRAMS = HERE / "programs.py"
SYSTEMS = {
    "triton": System("triton", (PROGRAMS, "triton"), "jit.triton"),
    "triton_amd": System("triton", (PROGRAMS, "triton_amd"), "jit.triton"),
    "tilelang": System("tilelang", (PROGRAMS, "tilelang"), "jit.tilelang", "tilelang"),
    "tilelang_cuda": System("tilelang", (PROGRAMS, "tilelang"), "jit.tilelang_cuda"),
    "warp": System("warp", (PROGRAMS, "warp"), "jit.warp"),
    "flashinfer": System("flashinfer", (PROGRAMS, "flashinfer"), "jit.flashinfer", "flashinfer"),
    "cupy": System("cupy", (ADAPTERS / "cupy_kernels.py", "install"), "cupy"),
    "jax": System("jax", (ADAPTERS / "jax_programs.py", "install"), "jax.cpu", "jax"),
}
# Variables that would lead a system to a cache outside the home directory of a start.
CACHES = ("TRITON_CACHE_DIR", "TILELANG_CACHE_DIR", "WARP_CACHE_PATH", "FLASHINFER_WORKSPACE_BASE", "CUPY_CACHE_DIR",
          "JAX_COMPILATION_CACHE_DIR", "VIRTUAL_ENV", "XDG_CACHE_HOME")


class Campaign:
    def __init__(self, options, folder):
        self.options = options
        self.folder = folder
        self.failures = []
        self.key = self.new_key("release")
        self.policy = self.write_policy("policy", self.key)
        self.other_policy = self.write_policy("other", self.new_key("other"))

    def kiln(self, arguments, variables):
        environment = {name: value for name, value in os.environ.items() if not name.startswith("KILN_") and name not in CACHES}
        command = [str(self.options.kiln), *map(str, arguments)]
        return subprocess.run(command, env={**environment, **variables}, cwd=variables.get("PWD", self.folder), text=True,
                              capture_output=True, timeout=3600)

    def new_key(self, name):
        ran = self.kiln(["key", "generate", "-o", self.folder / f"{name}.key", "--json"], {"HOME": str(self.folder)})
        return json.loads(ran.stdout)["public"]

    def write_policy(self, name, key):
        path = self.folder / f"{name}.toml"
        path.write_text(f'[[key]]\npublic = "{key}"\nnamespaces = ["acme/jit"]\n')
        return path

    def start(self, system, place, more=None):
        """Starts the program of a system below a new home directory; returns what it printed and the time of everything."""
        home, work = place / "home", place / "some" / "where"
        for path in (home, work):
            path.mkdir(parents=True, mode=0o700)
        program, *arguments = SYSTEMS[system].program
        shutil.copy(program, work)
        variables = {"HOME": str(home), "KILN_CACHE_DIR": str(place / "cache"), "PWD": str(work), **(more or {})}
        if SYSTEMS[system].host_code:
            variables["KILN_JIT_HOST_CODE"] = SYSTEMS[system].host_code
        if system == "flashinfer":
            variables["PYTHONPATH"] = ":".join(filter(None, [str(PROVIDER), os.environ.get("PYTHONPATH")]))
        if system == "flashinfer" and self.options.driver:  # its libraries are linked against libcuda.so.1
            variables["LD_LIBRARY_PATH"] = ":".join(filter(None, [os.environ.get("LD_LIBRARY_PATH"), str(self.options.driver)]))
        start = time.monotonic()
        ran = self.kiln(["run", "--time", "60", "--", self.options.python, program.name, *arguments], variables)
        took = (time.monotonic() - start) * 1000
        lines = [line for line in ran.stdout.splitlines() if line.startswith('{"compiles"')]
        if ran.returncode != 0 or not lines:
            raise RuntimeError(f"{system}: exit code {ran.returncode}\n{ran.stdout[-2000:]}\n{ran.stderr[-4000:]}")
        return {**json.loads(lines[-1]), "all": round(took), "said": ran.stderr}

    def bundle(self, system, place):
        path = self.folder / f"{system}.kiln"
        arguments = ["bundle", "create", "-o", path, "--key", self.folder / "release.key", "--namespace", "acme/jit", "--epoch", "1",
                     "--external", SYSTEMS[system].external]
        ran = self.kiln(arguments, {"HOME": str(place / "home"), "KILN_CACHE_DIR": str(place / "cache")})
        if ran.returncode != 0:
            raise RuntimeError(f"{system}: no bundle: {ran.stderr}")
        return path

    def from_bundle(self, system, name, bundle, policy=None):
        variables = {"KILN_BUNDLES": str(bundle), "KILN_TRUST": str(policy or self.policy)}
        return self.start(system, self.folder / system / name, variables)

    def check(self, holds, text):
        if not holds:
            self.failures.append(text)
            print(f"    FAILED: {text}")

    def run(self, system):
        cold = self.start(system, self.folder / system / "cold")
        bundle = self.bundle(system, self.folder / system / "cold")
        filled = self.from_bundle(system, "filled", bundle)
        print(f"  {system:14} cold: {cold['compiles']} compiles, {cold['ms']:.0f} ms (start to end {cold['all']} ms); "
              f"from a bundle of {bundle.stat().st_size} bytes: {filled['compiles']} compiles, {filled['ms']:.0f} ms "
              f"(start to end {filled['all']} ms)", flush=True)
        self.check(cold["compiles"] > 0, f"{system} compiles without an entry")
        self.check(filled["compiles"] == 0, f"{system} compiles nothing from a bundle: {filled['said']}")
        self.check(filled["code"] == cold["code"], f"{system} gets the same code from a bundle")
        self.damage(system, bundle)

    def damage(self, system, bundle):
        good = bundle.read_bytes()
        damaged = {"no trust": (good, self.other_policy)}
        if not self.options.quick:
            # A single byte can be in a part that this program does not need.
            changed = bytes(byte ^ 0x20 if at % 512 == 300 else byte for at, byte in enumerate(good))
            damaged["changed bytes"] = (changed, None)
            damaged["a missing end"] = (good[: len(good) * 2 // 3], None)
        for name, (content, policy) in damaged.items():
            path = bundle.with_name(f"{system}-damaged.kiln")
            path.write_bytes(content)
            ran = self.from_bundle(system, name.replace(" ", "_"), path, policy)
            print(f"    bundle with {name}: {ran['compiles']} compiles", flush=True)
            self.check(ran["compiles"] > 0, f"{system} takes nothing from a bundle with {name}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--kiln", required=True, type=lambda text: pathlib.Path(text).resolve())
    parser.add_argument("--python", required=True, type=os.path.abspath)  # links stay: that of an environment names its packages
    parser.add_argument("--driver", type=lambda text: pathlib.Path(text).resolve(), help="directory with the fake libcuda.so.1")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("systems", nargs="*", help=" ".join(SYSTEMS))
    options = parser.parse_args()
    if not set(options.systems) <= set(SYSTEMS):
        parser.error("the systems are " + " ".join(SYSTEMS))
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options, pathlib.Path(folder))
        for system in options.systems or SYSTEMS:
            code = f"import importlib.util as u, sys; sys.exit(u.find_spec('{SYSTEMS[system].module}') is None)"
            if subprocess.run([options.python, "-c", code], capture_output=True).returncode != 0:
                print(f"  {system:14} is not installed")
                campaign.check(not options.systems, f"{system} is installed")
                continue
            campaign.run(system)
    return 1 if campaign.failures else 0


if __name__ == "__main__":
    sys.exit(main())
