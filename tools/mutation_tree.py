# SPDX-License-Identifier: Apache-2.0
"""The copies of this tree in which tools/mutate builds and tests one mutation at a time."""
import os
import pathlib
import re
import shutil
import signal
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
SCRATCH = ROOT / "build" / "mutate"
# No sanitizer and no optimization, because the compiler takes most of the time. Warnings are not tested here.
CONFIGURE = ["-G", "Ninja", "-DCMAKE_BUILD_TYPE=Debug", "-DCMAKE_CXX_COMPILER=clang++", "-DCMAKE_C_COMPILER=clang",
             "-DCMAKE_CXX_FLAGS=-w", "-DCMAKE_CXX_FLAGS_DEBUG=-O0 -g0", "-DCMAKE_EXE_LINKER_FLAGS=-fuse-ld=lld",
             "-DCMAKE_SHARED_LINKER_FLAGS=-fuse-ld=lld", "-DCMAKE_MODULE_LINKER_FLAGS=-fuse-ld=lld",
             "-DKILN_UNITY=ON", "-DKILN_BUILD_CLI=OFF", "-DKILN_BUILD_EXAMPLES=OFF", "-DKILN_BUILD_BENCH=OFF",
             "-DKILN_TEST_MODULES=cache;bundle;worker;remote;remote/http;remote/redis;remote/s3;engine;session;fault;property"]
SHORTEST_LIMIT = 30  # seconds that a test program has at least; else four times what it takes unbroken
RUNNING = set()  # processes; each has a session of its own


class Tree:
    """A copy of this tree with its own build, in which one mutation at a time is tested."""

    def __init__(self, number, cores, folders, progress):
        self.cores = cores
        self.folders = folders  # below src/, of which the sources are compiled separately
        self.progress = progress
        self.source = SCRATCH / str(number) / "tree"
        self.build = SCRATCH / str(number) / "build"
        self.log = SCRATCH / str(number) / "log"

    def prepare(self):
        self.source.mkdir(parents=True, exist_ok=True)
        self.copy()
        launcher = ["-DCMAKE_CXX_COMPILER_LAUNCHER=ccache"] if shutil.which("ccache") else []
        if self.run(["cmake", "-S", self.source, "-B", self.build, *CONFIGURE, *launcher,
                     "-DKILN_NO_UNITY_MODULES=" + ";".join(self.folders)]) != 0:
            raise SystemExit(f"mutate: cmake failed; see {self.log}")

    def copy(self):
        """Copies the tracked and untracked files that differ, so that the next build is short, and removes all others."""
        listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT, check=True,
                                capture_output=True, text=True).stdout
        names = set(filter(None, listed.split("\0")))
        for folder, _, files in os.walk(self.source):
            for file in (pathlib.Path(folder, name) for name in files):
                if str(file.relative_to(self.source)) not in names or not (ROOT / file.relative_to(self.source)).exists():
                    file.unlink()
        for name in names:
            here, there = ROOT / name, self.source / name
            if here.is_symlink() or not here.is_file():
                continue
            if not there.exists() or there.read_bytes() != here.read_bytes():
                there.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(here, there)
        environment = self.source / ".venv"
        if not environment.is_symlink():
            environment.symlink_to(ROOT / ".venv")

    def run(self, command):
        """Appends the output to the log. Returns the exit status."""
        with open(self.log, "ab") as out:
            return wait_for(start(command, out, ROOT), None)

    def make(self, targets):
        return self.run(["ninja", "-C", self.build, "-j", str(self.cores), *targets]) == 0

    def write(self, name, text):
        (self.source / name).write_text(text, encoding="utf-8")

    def test(self, name, filter_="*", limit=None):
        """Runs a test program. Returns None if it passes, or the test that failed and how."""
        limit = limit or self.progress.limits.get(name, 300)
        said = self.log.with_name(f"{name}.out")
        with open(said, "wb") as out:
            status = wait_for(start([self.build / "bin" / f"test_{name}", f"--gtest_filter={filter_}", "--gtest_fail_fast",
                                     "--gtest_color=no"], out, self.build), limit)
        text = said.read_text(errors="replace")
        if status == 0:
            return None
        begun = re.findall(r"^\[ RUN      \] (\S+)", text, re.M)
        failed = re.findall(r"^\[  FAILED  \] (\S+?),? ", text, re.M)
        if status == 1 and failed:
            return failed[0], "fails"
        return (begun[-1] if begun else "at its start"), "hangs" if status is None else f"exits with {status}"

    def measure(self, programs_):
        """Builds the programs that were not measured yet, without a mutation, and records their duration and the tests that fail."""
        programs_ = [name for name in programs_ if name not in self.progress.limits]
        if programs_ and not self.make([f"test_{name}" for name in programs_]):
            raise SystemExit(f"mutate: the tests do not build; see {self.log}")
        for name in programs_:
            failing = []
            while name not in self.progress.limits:
                began = time.monotonic()
                wrong = self.test(name, everything_but(failing), 300)
                if wrong is None or len(failing) > 5:
                    self.progress.add_program(name, max(SHORTEST_LIMIT, 4 * (time.monotonic() - began)), failing)
                else:
                    failing.append(wrong[0])

    def caught(self, programs_):
        """Returns the test that detects the mutation, None if there is none, or False if it does not compile."""
        for name in programs_:
            if not self.make([f"test_{name}"]):
                return False
            passed_after_all = list(self.progress.failing.get(name, []))
            while wrong := self.test(name, everything_but(passed_after_all)):
                test, how = wrong
                if self.test(name, test if "." in test else "*"):
                    return f"{name}: {test} {how}"
                passed_after_all.append(test)
        return None

    def try_one(self, mutation, programs_):
        """Returns what caught() does for a source in which the line of the mutation is replaced."""
        name, number, _, line = mutation
        original = (self.source / name).read_text(encoding="utf-8")
        lines = original.split("\n")
        lines[number - 1] = line
        self.write(name, "\n".join(lines))
        try:
            return self.caught(programs_)
        finally:
            self.write(name, original)


def everything_but(tests):
    return "*" if not tests else "-" + ":".join(tests)


def start(command, out, folder):
    process = subprocess.Popen(list(map(str, command)), stdout=out, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
                               cwd=folder, start_new_session=True)
    RUNNING.add(process)
    return process


def wait_for(process, limit):
    """Returns the exit status, or None after the limit. Ends all processes of the group."""
    try:
        return process.wait(limit)
    except subprocess.TimeoutExpired:
        return None
    finally:
        end_group(process)
        process.wait()
        RUNNING.discard(process)


def end_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


def stop(number, _):
    """Ends the run at a signal. The next run restores the source that is mutated now."""
    for process in list(RUNNING):
        end_group(process)
    os._exit(128 + number)
