"""Helpers that the tests of the Python package share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap

# PoCL takes a second for a kernel, and more if other builds run at the same time.
PATIENT = 240.0


def private_cache() -> None:
    """Sets a private cache for this test. Call it first: the shared session reads the setting when it is first used."""
    folder = tempfile.mkdtemp(prefix="kiln-python-")
    os.environ["KILN_CACHE_DIR"] = folder


def run(script: str, *arguments: str, timeout: float = 240, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs a script in a new Python process."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def figure(text: str) -> None:
    """Prints a line that CI shows among its measurements."""
    # Starts a new line, because unittest prints dots without a newline.
    print(f"\nfigure: python: {text}", flush=True)
