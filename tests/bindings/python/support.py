"""What the tests of the Python package share."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import textwrap

# PoCL takes a second for a kernel, and more where others build beside it.
PATIENT = 60.0


def private_cache() -> None:
    """A cache of this test's own, before anybody asks for one: the shared session reads it at its first need."""
    folder = tempfile.mkdtemp(prefix="kiln-python-")
    os.environ["KILN_CACHE_DIR"] = folder


def run(script: str, *arguments: str, timeout: float = 60, **variables: str) -> subprocess.CompletedProcess[str]:
    """A Python of its own, with the script on its command line."""
    environment = {**os.environ, **variables}
    command = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout, env=environment)


def figure(text: str) -> None:
    """A line that CI shows among its figures."""
    # On a line of its own: the dots of unittest have none.
    print(f"\nfigure: python: {text}", flush=True)
