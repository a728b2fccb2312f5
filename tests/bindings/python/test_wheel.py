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
NOT_HIDDEN = 77  # exit code if a directory could not be hidden


class Wheel(unittest.TestCase):
    place: pathlib.Path
    python: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        wheel = support.build_kiln_wheel(cls.place)
        support.figure(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB")
        cls.python = support.environment_with(cls.place / "fresh", wheel)

    def test_works_in_a_fresh_environment(self) -> None:
        self.warms_two_units_and_finds_them_again(self.python, self.place)
        self.has_the_program(self.python, self.place)

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

    def test_compiles_cub_with_only_the_package_of_nvrtc(self) -> None:
        """docs/bundled-headers.md: kiln's wheel and NVRTC, and no toolkit."""
        libraries = list((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/lib/libnvrtc*"))
        if not any(int(library.suffix[1:]) >= 3 for library in libraries if "builtins" in library.name):
            self.skipTest("no NVRTC with bundled headers (13.3 or later) is installed")
        (site,) = (self.place / "fresh").glob("lib/*/site-packages")
        package = site / "nvidia" / "cu13" / "lib"
        package.mkdir(parents=True)
        for library in libraries:
            shutil.copy(library, package)
        start = time.monotonic()
        first = self.without_toolkit(str(HERE / "cub_without_toolkit.py"))
        compiled = json.loads(first)
        support.figure(f"a CUB unit with only NVRTC's package: {time.monotonic() - start:.1f} s, {compiled['installed']}")
        self.assertEqual(len(compiled["installed"]), 1)
        self.assertIn("published", compiled["kinds"])
        found = json.loads(self.without_toolkit(str(HERE / "cub_without_toolkit.py")))
        self.assertEqual(found["bytes"], compiled["bytes"])
        self.assertEqual(found["installed"], [])
        self.assertIn("hit", found["kinds"])
        self.assertNotIn("compiled", found["kinds"])
        self.assertRegex(self.without_toolkit("-m", "kiln", "doctor"), "bundled headers: NVRTC 13.* installed in")

    def without_toolkit(self, *arguments: str) -> str:
        """Runs the fresh environment's interpreter where the toolkit and the test's own environment are empty. Returns its output."""
        hidden = [os.path.realpath(path) for path in ("/usr/local/cuda", ROOT / ".venv") if os.path.isdir(path)]
        hide = "".join(f"mount -t tmpfs -o size=64k none '{path}' || exit {NOT_HIDDEN}; " for path in hidden)
        command = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{hide}exec "$@"', "sh"]
        cache = str(self.place / "only-nvrtc")
        environment = {"PATH": os.environ["PATH"], "HOME": str(self.place), "KILN_CACHE_DIR": cache}
        script = [*command, str(self.python), "-B", *arguments]
        done = subprocess.run(script, capture_output=True, text=True, env=environment, timeout=300)
        if done.returncode == NOT_HIDDEN or (done.returncode and "unshare failed" in done.stderr):
            self.skipTest(f"directories cannot be hidden here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout


if __name__ == "__main__":
    unittest.main()
