# SPDX-License-Identifier: Apache-2.0
"""Starts adapters, each as a process on a simulated host with its own directories instead of the user's."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Optional

from .table import Side

NOT_HERE = 77
LONGEST_S = 180
ARCH = "sm_90"
UNIT = Path(__file__).resolve().parents[1] / "unit"
# Root without the right to bypass write permissions. Another user could not reach programs below a private directory.
BOUND_BY_PERMISSIONS = ["setpriv", "--bounding-set=-dac_override", "--"]


class NotHere(Exception):
    """The peer is not installed on this machine."""


class Broken(Exception):
    """An adapter violated its protocol."""


@dataclass(frozen=True)
class Answer:
    ns: list[int]
    since_main_ns: int
    sha256: str
    bytes: int
    compiles: Optional[int]
    error: Optional[str]

    def of_sound_mind(self, who: Side) -> Answer:
        """Raises Broken if the answer is an error, which a figure cannot use."""
        if self.error is not None or not self.ns:
            raise Broken(f"{who.title}: {self.error or 'no time'}")
        return self


@dataclass(frozen=True)
class Setup:
    """The locations of programs."""

    build: Path
    python: str

    def command(self, side: Side) -> list[str]:
        places = {
            "{bin}": str(self.build / "bin"),
            "{python}": self.python,
            "{adapters}": str(UNIT.parent / "adapters"),
            "{build}": str(self.build),
        }
        words = list(side.command)
        for name, place in places.items():
            words = [word.replace(name, place) for word in words]
        return words


class Host:
    """A machine as an adapter sees it: home, runtime directory and sources. Caches are directories in it."""

    def __init__(self, setup: Setup, parent: Path, pycache: Path) -> None:
        self.setup = setup
        self.root = Path(tempfile.mkdtemp(dir=parent, prefix="host-"))
        self.root.chmod(0o755)
        self._pycache = pycache
        self._folders = 0
        for name in ("home", "runtime", "tmp"):
            (self.root / name).mkdir(mode=0o700)
        shutil.copytree(UNIT / "include", self.root / "include")

    def gone(self) -> None:
        shutil.rmtree(self.root, ignore_errors=True)

    @property
    def include(self) -> Path:
        return self.root / "include"

    @property
    def header(self) -> Path:
        return self.include / "tuning.h"

    def new_cache(self) -> Path:
        """Returns the path of a directory that does not exist yet."""
        self._folders += 1
        return self.root / f"cache-{self._folders}"

    def source(self, side: Side, variant: int = 0) -> Path:
        """Returns the path of the unit; with `variant`, of one of many small units."""
        path = self.root / (f"variant_{variant}.cu" if variant else "five.cu")
        if side.kind == "algorithm":
            path = path.with_name(f"{side.spec}.txt")
            if not path.exists():  # written once: eight processes may be reading it
                path.write_text(side.spec)
        elif not path.exists() and variant:
            text = (UNIT / "one.cu").read_text()
            path.write_text(text.replace("VARIANT 0", f"VARIANT {variant}"))
        elif not path.exists():
            shutil.copyfile(UNIT / "five.cu", path)
        return path

    def environment(self, cache: Path) -> dict[str, str]:
        """Returns the environment of an adapter, without most variables, so that the user's setup has no effect."""
        kept = {"PATH", "LANG", "LC_ALL", "LD_LIBRARY_PATH", "CUDA_HOME", "CUDA_PATH", "KILN_JITIFY2"}
        variables = {name: value for name, value in os.environ.items() if name in kept}
        variables["HOME"] = str(self.root / "home")
        variables["XDG_RUNTIME_DIR"] = str(self.root / "runtime")
        variables["TMPDIR"] = str(self.root / "tmp")
        # NVRTC's own cache: as new as the cache directory.
        variables["CUDA_CACHE_PATH"] = f"{cache}.nvidia"
        # For Python packages that contain a library, such as cuda-cccl.
        variables["VIRTUAL_ENV"] = str(Path(self.setup.python).parents[1])
        variables["PYTHONPATH"] = str(self.setup.build / "python")
        variables["PYTHONPYCACHEPREFIX"] = str(self._pycache)
        return variables

    def start(
        self, side: Side, cache: Path, *, times: int = 1, limit: Optional[int] = None, variant: int = 0,
        bound: bool = False,
    ) -> subprocess.Popen[str]:
        words = self.setup.command(side)
        words += [str(cache), str(self.source(side, variant)), str(self.include), ARCH]
        if times != 1:
            words += ["--times", str(times)]
        if limit is not None:
            words += ["--limit", str(limit)]
        if bound:
            words = [*BOUND_BY_PERMISSIONS, *words]
        try:
            return subprocess.Popen(
                words, env=self.environment(cache), cwd=self.root, text=True, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            )
        except FileNotFoundError as error:
            raise NotHere(f"there is no {Path(str(error.filename)).name}") from None
        except OSError as error:
            raise Broken(f"{side.title}: cannot start: {error.strerror}") from None

    def run(self, side: Side, cache: Path, **how: object) -> Answer:
        return finish(side, self.start(side, cache, **how))  # type: ignore[arg-type]

    def version(self, side: Side) -> str:
        """Returns the version of the peer; raises NotHere."""
        words = [*self.setup.command(side), "--version"]
        try:
            done = subprocess.run(
                words, env=self.environment(self.root / "none"), cwd=self.root, text=True, capture_output=True,
                timeout=LONGEST_S, stdin=subprocess.DEVNULL,
            )
        except (FileNotFoundError, PermissionError) as error:
            raise NotHere(f"there is no {Path(str(error.filename)).name}") from None
        if done.returncode == NOT_HERE:
            raise NotHere(done.stderr.strip())
        if done.returncode != 0:
            raise Broken(f"{side.title}: --version ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout.strip()


def finish(side: Side, process: subprocess.Popen[str]) -> Answer:
    try:
        output, errors = process.communicate(timeout=LONGEST_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
        raise Broken(f"{side.title}: no response within {LONGEST_S} s") from None
    if process.returncode == NOT_HERE:
        raise NotHere(errors.strip())
    if process.returncode != 0:
        raise Broken(f"{side.title}: ended with {process.returncode}: {errors.strip()[-500:]}")
    try:
        return Answer(**json.loads(output))
    except (ValueError, TypeError) as error:
        raise Broken(f"{side.title}: {error}: {output[:200]!r}") from None


def together(host: Host, side: Side, cache: Path, count: int) -> tuple[float, list[Answer]]:
    """Runs `count` processes at once; returns the seconds until the last one ends, and their answers."""
    start = time.monotonic()
    processes = [host.start(side, cache) for _ in range(count)]
    answers = [finish(side, process) for process in processes]
    return time.monotonic() - start, answers
