"""The wheel as a user gets it: packed from the build directory, installed into a new environment, and used there."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import subprocess
import tempfile
import time
import unittest

import support
from support import ROOT, call

HERE = pathlib.Path(__file__).resolve().parent


class Wheel(unittest.TestCase):
    def test_works_in_a_fresh_environment(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            wheel = support.build_kiln_wheel(place)
            support.figure(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB")
            python = support.environment_with(place / "fresh", wheel)
            self.warms_two_units_and_finds_them_again(python, place)
            self.has_the_program(python, place)
            self.compiles_cub_with_only_nvrtc(python, place)

    def warms_two_units_and_finds_them_again(self, python: pathlib.Path, place: pathlib.Path) -> None:
        cache = str(place / "cache")
        first = call(python, HERE / "warm_two.py", KILN_CACHE_DIR=cache)
        print(first, end="")
        self.assertIn("True 2 units: 2 compiled, 0 cached", first)
        self.assertIn("True 2 units: 0 compiled, 2 cached", call(python, HERE / "warm_two.py", KILN_CACHE_DIR=cache))

    def has_the_program(self, python: pathlib.Path, place: pathlib.Path) -> None:
        cache = str(place / "cache")
        doctor = call(python, "-m", "kiln", "doctor", KILN_CACHE_DIR=cache)
        self.assertIn("kiln", doctor)
        # The program and the extension must find the worker in the package.
        self.assertIn(str(place / "fresh"), doctor)
        self.assertIn("0.1.0", call(place / "fresh" / "bin" / "kiln", "version"))
        lines = call("nm", "-D", "--defined-only", next((place / "fresh").glob("lib/*/site-packages/kiln/_kiln*.so")))
        self.assertEqual([line.split()[-1] for line in lines.splitlines()], ["PyInit__kiln"])

    def compiles_cub_with_only_nvrtc(self, python: pathlib.Path, place: pathlib.Path) -> None:
        """docs/bundled-headers.md: kiln's wheel and the package of NVRTC, and no toolkit."""
        (site,) = (place / "fresh").glob("lib/*/site-packages")
        package = site / "nvidia" / "cu13" / "lib"
        package.mkdir(parents=True)
        libraries = list((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/lib/libnvrtc*"))
        for library in libraries:
            shutil.copy(library, package)
        if not any(int(library.suffix[1:]) >= 3 for library in libraries if "builtins" in library.name):
            print("no NVRTC with bundled headers (13.3 or later) is installed: compiles_cub_with_only_nvrtc does not run")
            return
        hidden = [path for path in ("/usr/local/cuda", str(ROOT / ".venv")) if pathlib.Path(path).is_dir()]
        hide = "".join(f"mount -t tmpfs -o size=64k none '{os.path.realpath(path)}' || exit 77; " for path in hidden)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{hide}exec "$@"', "sh"]
        environment = {"PATH": os.environ["PATH"], "HOME": str(place), "KILN_CACHE_DIR": str(place / "only-nvrtc")}

        def run(*arguments: str) -> subprocess.CompletedProcess[str]:
            script = [*command, str(python), "-B", *arguments]
            return subprocess.run(script, capture_output=True, text=True, env=environment, timeout=300)

        start = time.monotonic()
        first = run(str(HERE / "cub_without_toolkit.py"))
        if first.returncode == 77 or "unshare failed" in first.stderr:
            self.skipTest(f"directories cannot be hidden here: {first.stderr.strip()}")
        self.assertEqual(first.returncode, 0, first.stdout + first.stderr)
        compiled = json.loads(first.stdout)
        support.figure(f"a CUB unit with only NVRTC's package: {time.monotonic() - start:.1f} s, {compiled['installed']}")
        self.assertEqual(len(compiled["installed"]), 1)
        self.assertIn("published", compiled["kinds"])
        second = run(str(HERE / "cub_without_toolkit.py"))
        self.assertEqual(second.returncode, 0, second.stdout + second.stderr)
        found = json.loads(second.stdout)
        self.assertEqual(found["bytes"], compiled["bytes"])
        self.assertEqual(found["installed"], [])
        self.assertIn("hit", found["kinds"])
        self.assertNotIn("compiled", found["kinds"])
        self.assertRegex(run("-m", "kiln", "doctor").stdout, "bundled headers: NVRTC 13.* installed in")


if __name__ == "__main__":
    unittest.main()
