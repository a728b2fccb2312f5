# SPDX-License-Identifier: Apache-2.0
"""docs/how-to/embed-bundles.md: the wheel of examples/wheel_package, installed beside kiln's own on a machine without
a compiler and without a cache. The fake driver is the GPU: it loads code and runs none.

KILN_RECIPE=whole builds for all architectures of its kiln.toml (the target campaign_wheel_recipe); otherwise for two, and with
one algorithm, because each takes seconds to compile."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import sys
import tempfile
import time
import unittest
import zipfile
from typing import Any

import support
from support import ROOT, call

HERE = pathlib.Path(__file__).resolve().parent
WHOLE = os.environ.get("KILN_RECIPE") == "whole"
# A device of each architecture that the wheel is for, and what serves it.
DEVICES = {"sm_80": "sm_80", "sm_89": "sm_80", "sm_90": "sm_90"}
if WHOLE:
    DEVICES = {name: name for name in ("sm_75", "sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")}
    DEVICES |= {"sm_103": "sm_100", "sm_121": "sm_120"}
UNKNOWN_DEVICE = "sm_70" if WHOLE else "sm_75"


def reduce_manifest(path: pathlib.Path) -> None:
    """Leaves two architectures and the first algorithm."""
    text = re.sub(r"(?m)^architectures = .*", 'architectures = ["sm_80", "sm_90"]', path.read_text())
    start = [found.start() for found in re.finditer(r"(?m)^\[\[cccl\]\]", text)][1]
    path.write_text(text[:start])


class WheelRecipe(unittest.TestCase):
    place: pathlib.Path
    python: pathlib.Path
    home: pathlib.Path

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.place = pathlib.Path(folder.name)
        package = cls.place / "package"
        shutil.copytree(ROOT / "examples" / "wheel_package", package)
        manifest = package / "src" / "acme_vision" / "kiln.toml"
        if not WHOLE:
            reduce_manifest(manifest)
        wheel = cls.build(package)
        cls.python = support.environment_with(cls.place / "fresh", support.build_kiln_wheel(cls.place), wheel)
        cls.replace_worker()
        cls.home = cls.place / "home"

    @classmethod
    def build(cls, package: pathlib.Path) -> pathlib.Path:
        """Builds the wheel as its author does, with the compilers of this environment."""
        command = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--skip-dependency-check"]
        environment = {"PYTHONPATH": os.environ["PYTHONPATH"], "VIRTUAL_ENV": str(ROOT / ".venv")}
        start = time.monotonic()
        call(*command, "--outdir", cls.place, package, timeout=3600, **environment)
        seconds = time.monotonic() - start
        (wheel,) = cls.place.glob("acme_vision-*.whl")
        with zipfile.ZipFile(wheel) as content:
            bundle = content.getinfo("acme_vision/acme_vision.kiln").file_size
        size = f"{wheel.name} has {wheel.stat().st_size / 1e3:.0f} kB, its bundle {bundle / 1e3:.0f} kB"
        support.figure(f"{size}, built in {seconds:.0f} s")
        return wheel

    @classmethod
    def replace_worker(cls) -> None:
        """Replaces the worker by a program that records that it was started."""
        (worker,) = (cls.place / "fresh").glob("lib/*/site-packages/kiln/bin/kiln-worker")
        worker.write_text(f"#!/bin/sh\ntouch '{cls.place}/worker-started'\nexit 1\n")

    def first_import(self, device: str, what: str, *hidden: str) -> dict[str, Any]:
        """Imports the package in a new process with an empty home, in which these directories are empty."""
        shutil.rmtree(self.home, ignore_errors=True)
        self.home.mkdir()
        environment = {
            "HOME": str(self.home),
            "KILN_DRIVER": os.environ["KILN_FAKE_DRIVER"],
            "KILN_FAKE_DRIVER_DEVICES": device,
        }
        script = str(HERE / "first_import.py")
        out = support.call_hiding(self, hidden, self.python, "-B", script, what, timeout=240, **environment)
        report: dict[str, Any] = json.loads(out)
        return report

    def without_compiler(self, device: str, what: str) -> dict[str, Any]:
        report = self.first_import(device, what, *support.compiler_directories())
        if report["compilers"]:
            self.skipTest(f"a compiler is outside of the hidden directories: {report['compilers']}")
        return report

    def test_is_a_wheel_for_every_python_and_processor(self) -> None:
        (wheel,) = self.place.glob("acme_vision-*.whl")
        self.assertTrue(wheel.name.endswith("-py3-none-any.whl"), wheel.name)

    def test_first_import_finds_everything_without_compiler_and_cache(self) -> None:
        done = []
        for device, served in DEVICES.items():
            with self.subTest(device=device):
                report = self.without_compiler(device, "ready")
                # The algorithms' targets are called cccl_90 and so on.
                targets = {target.replace("cccl_", "sm_") for target, _ in report["artifacts"].values()}
                self.assertEqual(targets, {served})
                self.assertEqual({unit[1:3] == ["ready", "bundle"] for unit in report["units"]}, {True}, report["units"])
                self.assertEqual(report["compiled"], 0)
                self.assertEqual(report["mapped_compilers"], [])
                self.assertFalse((self.place / "worker-started").exists(), "a worker was started")
                done.append(f"{device} by {served}")
        support.figure(f"first import without compiler and cache: 0 compiles, no worker, all units served for {', '.join(done)}")

    def test_figure_of_import_to_first_ready_kernel(self) -> None:
        reports = sorted((self.without_compiler("sm_90", "ready") for _ in range(9)), key=lambda each: each["first_kernel_ms"])
        best, middle = reports[0], reports[4]
        support.figure(
            f"import to first ready kernel {best['first_kernel_ms']:.1f} ms, median {middle['first_kernel_ms']:.1f} ms of 9 "
            f"processes, processor time {best['processor_ms']:.1f} ms; all {len(best['artifacts'])} units after "
            f"{best['all_ms']:.1f} ms; no compiler, no cache, the fake driver as sm_90, load {os.getloadavg()[0]:.0f}"
        )

    def test_unknown_architecture_is_an_error_with_the_next_step(self) -> None:
        report = self.without_compiler(UNKNOWN_DEVICE, "missing")
        name, message = report["error"]
        self.assertEqual(name, "Unavailable")
        self.assertIn("acme_vision.kiln has it for sm_", message)
        self.assertIn(UNKNOWN_DEVICE, message)
        self.assertIn("; ", message)


if __name__ == "__main__":
    unittest.main()
