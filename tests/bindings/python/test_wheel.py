# SPDX-License-Identifier: Apache-2.0
"""The wheel as a user gets it: packed from the build directory, installed into a new environment, and used there."""

from __future__ import annotations

import json
import os
import pathlib
import shutil
import tempfile
import time
import unittest
from typing import Any

import support
from support import ROOT, call

HERE = pathlib.Path(__file__).resolve().parent


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

    def install_nvrtc(self) -> list[pathlib.Path]:
        """Copies the NVRTC of this machine's packages into the fresh environment, as pip installs it. Returns its files."""
        libraries = list((ROOT / ".venv").glob("lib/*/site-packages/nvidia/cu13/lib/libnvrtc*"))
        if not libraries:
            self.skipTest("the package nvidia-cuda-nvrtc is not installed")
        (site,) = (self.place / "fresh").glob("lib/*/site-packages")
        package = site / "nvidia" / "cu13" / "lib"
        if not package.exists():
            package.mkdir(parents=True)
            for library in libraries:
                shutil.copy(library, package)
        return sorted(package.iterdir())

    def test_compiles_cub_with_only_the_package_of_nvrtc(self) -> None:
        """docs/how-to/install.md: kiln's wheel and NVRTC, and no toolkit."""
        libraries = self.install_nvrtc()
        if not any(int(library.suffix[1:]) >= 3 for library in libraries if "builtins" in library.name):
            self.skipTest("no NVRTC with bundled headers (13.3 or later) is installed")
        start = time.monotonic()
        first = self.without_toolkit(self.python, "-B", HERE / "cub_without_toolkit.py")
        compiled = json.loads(first)
        support.figure(f"a CUB unit with only NVRTC's package: {time.monotonic() - start:.1f} s, {compiled['installed']}")
        self.assertEqual(len(compiled["installed"]), 1)
        self.assertIn("published", compiled["kinds"])
        found = json.loads(self.without_toolkit(self.python, "-B", HERE / "cub_without_toolkit.py"))
        self.assertEqual(found["bytes"], compiled["bytes"])
        self.assertEqual(found["installed"], [])
        self.assertIn("hit", found["kinds"])
        self.assertNotIn("compiled", found["kinds"])
        doctor = self.without_toolkit(self.python, "-B", "-m", "kiln", "doctor")
        self.assertRegex(doctor, "bundled headers: NVRTC 13.* installed in")

    def test_command_finds_the_nvrtc_that_pip_installed(self) -> None:
        """On a root without any toolkit: the wheel's command, one built from source, and one installed into the prefix."""
        library = next(path for path in self.install_nvrtc() if path.name.startswith("libnvrtc.so"))
        fresh = self.place / "fresh"
        built = pathlib.Path(os.environ["KILN_BUILD_FOLDER"]) / "bin"
        shutil.copy(built / "kiln", fresh / "bin" / "kiln-copied")
        shutil.copy(built / "kiln-worker", fresh / "bin")
        cases: list[tuple[pathlib.Path, str, dict[str, str]]] = [
            (fresh / "bin" / "kiln", "package", {}),
            (built / "kiln", "VIRTUAL_ENV", {"VIRTUAL_ENV": str(fresh)}),
            (fresh / "bin" / "kiln-copied", "prefix", {}),
        ]
        for program, found_by, variables in cases:
            with self.subTest(program=program):
                self.assertEqual(self.nvrtc_of(program, **variables)["details"][0]["path"], str(library))
                self.assertEqual(self.nvrtc_of(program, **variables)["details"][0]["found_by"], found_by)
                kernel = ROOT / "examples" / "kernels" / "saxpy.cu"
                compiled = self.without_toolkit(program, "compile", kernel, "--arch", "sm_80", "--json", **variables)
                self.assertIn("sm_80", compiled)

    def test_doctor_lists_the_places_and_does_not_repeat_the_install(self) -> None:
        self.install_nvrtc()  # into an environment that is not active
        built = pathlib.Path(os.environ["KILN_BUILD_FOLDER"]) / "bin" / "kiln"
        missing = self.nvrtc_of(built)
        self.assertEqual(missing["state"], "problem")
        places = {(each["found_by"], each["place"]): each["result"] for each in missing["details"]}
        self.assertIn(("system", "/usr/local/cuda/lib64"), places)
        self.assertIn("not set", places["VIRTUAL_ENV", ""])
        self.assertTrue(missing["advice"].startswith("if pip has installed it, activate its virtual environment"))
        with tempfile.TemporaryDirectory() as empty:
            site = pathlib.Path(empty, "lib", "python3.12", "site-packages")
            site.mkdir(parents=True)
            active = self.nvrtc_of(built, VIRTUAL_ENV=empty)
        self.assertIn({"found_by": "VIRTUAL_ENV", "place": str(site), "result": "has no directory nvidia"}, active["details"])
        self.assertIn(f"{empty}/bin/python -m pip install nvidia-cuda-nvrtc", active["advice"])

    def nvrtc_of(self, program: pathlib.Path, **variables: str) -> dict[str, Any]:
        """Returns what `kiln doctor` finds out about NVRTC without a toolkit."""
        # Without NVRTC its exit code is 3 if there is no OpenCL device either.
        script = '"$0" doctor --json || test $? = 3'
        report = json.loads(self.without_toolkit("sh", "-c", script, program, **variables))
        found: dict[str, Any] = next(each for each in report["findings"] if each["check"] == "NVRTC")
        return found

    def without_toolkit(self, *command: str | os.PathLike[str], **variables: str) -> str:
        """Runs a command where the toolkit and the test's own environment are empty. Returns its output."""
        home = {"HOME": str(self.place), "KILN_CACHE_DIR": str(self.place / "only-nvrtc"), **variables}
        return support.call_hiding(self, support.compiler_directories(), *command, timeout=300, **home)


if __name__ == "__main__":
    unittest.main()
