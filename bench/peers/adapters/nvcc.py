# SPDX-License-Identifier: Apache-2.0
"""nvcc as a build uses it, alone or under ccache: nvcc.py alone|ccache …

A request is a run of `ccache nvcc -c --cubin`: without `-c` ccache treats it as a link and stores nothing. `compiles` comes from
ccache's own log of results.
"""

import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Optional

from adapter import Question, ask, not_here

HITS = {"direct_cache_hit", "preprocessed_cache_hit"}


def program(name: str) -> str:
    home = os.environ.get("CUDA_HOME", "/usr/local/cuda")
    return shutil.which(name) or shutil.which(name, path=f"{home}/bin") or not_here(f"{name} is not installed")


def version(command: list[str]) -> str:
    """Returns the version of each program: the first number with a point in its --version output."""
    numbers = []
    for path in command:
        said = subprocess.run([path, "--version"], capture_output=True, text=True, check=True).stdout
        found = re.search(r"\d+\.\d+(\.\d+)?", said)
        numbers.append(found.group() if found else "?")
    return " + ".join(numbers)


class Nvcc:
    def __init__(self, command: list[str], scratch: str) -> None:
        self.compiles: Optional[int] = 0
        self._command = command
        self._output = Path(scratch, "cubin")
        self._log = Path(scratch, "log")

    def get(self, asked: Question) -> bytes:
        words = [*self._command, "-c", "--cubin", f"-arch={asked.arch}", f"-I{asked.include}", asked.path]
        done = subprocess.run([*words, "-o", self._output], env=self._variables(asked), capture_output=True, text=True)
        if done.returncode != 0:
            raise RuntimeError(done.stderr.strip() or f"exit code {done.returncode}")
        # Every result except a hit was a compile, whatever ccache calls it.
        results = self._log.read_text().split() if self._log.exists() else []
        self.compiles = (self.compiles or 0) + (HITS.isdisjoint(results))
        self._log.unlink(missing_ok=True)
        code = self._output.read_bytes()
        self._output.unlink()
        return code

    def _variables(self, asked: Question) -> dict[str, str]:
        """Returns the default settings of ccache, without the user's configuration."""
        own = {name: value for name, value in os.environ.items() if not name.startswith("CCACHE_")}
        own |= {"CCACHE_DIR": asked.cache, "CCACHE_STATSLOG": str(self._log)}
        if asked.limit is not None:
            own["CCACHE_MAXSIZE"] = f"{max(1, asked.limit // 1000)}k"
        return own


if __name__ == "__main__":
    programs = [program("nvcc")]
    if sys.argv.pop(1) == "ccache":
        programs.insert(0, program("ccache"))
    version_text = version(programs) if "--version" in sys.argv else ""
    with tempfile.TemporaryDirectory(prefix="kiln-peer-") as folder:
        # A build starts these programs itself, so the imports of this program do not count.
        ask(Nvcc(programs, folder), version_text, time.monotonic_ns())
