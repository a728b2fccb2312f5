"""The wheel as a user gets it: packed from the build directory, installed into a new environment, and used there."""

from __future__ import annotations

import pathlib
import tempfile
import unittest

import support
from support import call

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
