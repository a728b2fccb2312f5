# SPDX-License-Identifier: Apache-2.0
"""Helpers that the tests of the Python package share."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import textwrap
import unittest
from collections.abc import Iterable

ROOT = pathlib.Path(__file__).resolve().parents[3]

# PoCL takes a second for a kernel, and more if other builds run at the same time.
PATIENT = 240.0
NOT_HIDDEN = 77  # exit code if a directory could not be hidden


def private_cache() -> None:
    """Sets a private cache for this test. Call it first: the shared session reads the setting when it is first used."""
    folder = tempfile.mkdtemp(prefix="kiln-python-")
    os.environ["KILN_CACHE_DIR"] = folder


def run(script: str, *arguments: str, timeout: float = 240, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a new Python process."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def call(*command: str | os.PathLike[str], timeout: float = 120, **variables: str) -> str:
    """Runs a command in the root of the tree, without the settings of the caller. Returns its output."""
    environment = {"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/"), "LC_ALL": "C.UTF-8", **variables}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=ROOT, timeout=timeout)
    if done.returncode != 0:
        raise AssertionError(f"{command} ended with {done.returncode}\n{done.stdout}\n{done.stderr}")
    return done.stdout


def compiler_directories() -> list[str]:
    """Returns the directories of this machine that have a compiler or its headers, as tests/support/fixtures/workload.hpp does."""
    places = {"/usr/local/cuda", "/usr/local/include", str(ROOT / ".venv"), os.environ.get("CUDA_HOME", "")}
    return sorted({os.path.realpath(place) for place in places if place and os.path.isdir(place)})


def call_hiding(
    test: unittest.TestCase, hidden: Iterable[str], *command: str | os.PathLike[str], timeout: float = 300, **variables: str
) -> str:
    """Runs a command with only PATH and these variables in a mount namespace where these directories are empty. Returns its
    output. Skips the test if directories cannot be hidden."""
    hide = "".join(f"mount -t tmpfs -o size=64k none '{directory}' || exit {NOT_HIDDEN}; " for directory in hidden)
    inside = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f'{hide}exec "$@"', "sh", *map(str, command)]
    environment = {"PATH": os.environ["PATH"], **variables}
    done = subprocess.run(inside, capture_output=True, text=True, env=environment, timeout=timeout)
    if done.returncode == NOT_HIDDEN or (done.returncode and "unshare failed" in done.stderr):
        test.skipTest(f"directories cannot be hidden here: {done.stderr.strip()}")
    test.assertEqual(done.returncode, 0, done.stdout + done.stderr)
    return done.stdout


def build_kiln_wheel(place: pathlib.Path) -> pathlib.Path:
    """Packs kiln's wheel from the build directory into `place`."""
    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(place), "."]
    call(*build, KILN_PREBUILT=os.environ["KILN_BUILD_FOLDER"])
    (wheel,) = place.glob("kiln_gpu-*.whl")
    return wheel


def environment_with(place: pathlib.Path, *wheels: pathlib.Path) -> pathlib.Path:
    """Installs wheels into a new environment in `place`. Returns its interpreter."""
    call(sys.executable, "-m", "venv", "--without-pip", place)
    python = place / "bin" / "python"
    pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-q"]
    call(*pip, "--no-index", "--no-deps", "--disable-pip-version-check", *wheels)
    return python


def figure(text: str) -> None:
    """Prints a line that CI shows among its measurements."""
    # Starts a new line, because unittest prints dots without a newline.
    print(f"\nfigure: python: {text}", flush=True)
