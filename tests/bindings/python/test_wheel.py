"""The wheel as a user gets it: packed from the build directory, installed into a new environment, and used there."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

import support

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[2]


def call(*command: str | os.PathLike[str], **variables: str) -> str:
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8", **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=120)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


class Wheel(unittest.TestCase):
    def test_works_in_a_fresh_environment(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder)
            self.pack(place)
            python = place / "fresh" / "bin" / "python"
            self.warms_two_units_and_finds_them_again(python, place)
            self.has_the_program(python, place)

    def pack(self, place: pathlib.Path) -> None:
        build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", place, "."]
        call(*build, KILN_PREBUILT=os.environ["KILN_BUILD_FOLDER"])
        (wheel,) = place.glob("kiln_gpu-*.whl")
        call(sys.executable, "-m", "venv", "--without-pip", place / "fresh")
        pip = [sys.executable, "-m", "pip", "--python", place / "fresh" / "bin" / "python", "install", "-q"]
        call(*pip, "--no-index", "--no-deps", "--disable-pip-version-check", wheel)
        support.figure(f"{wheel.name} has {wheel.stat().st_size / 1e6:.1f} MB")

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


if __name__ == "__main__":
    unittest.main()
