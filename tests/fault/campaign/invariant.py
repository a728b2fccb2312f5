# SPDX-License-Identifier: Apache-2.0
"""Runs one fault and checks the invariants: the caller gets the right code or a clear error in bounded time, a later process
without faults gets the right code, and no file is left behind that this process, `kiln cache gc` or `kiln status` does not
remove."""
import dataclasses
import hashlib
import os
import re
import subprocess
import time

import faults
import environment_faults
from operations import Folder, digest_of

LIMIT = 30  # seconds until any result
# Permanent files of a cache and a runtime directory: entries and their metadata by digest, and one file of each of
# these.
KEPT = re.compile(r"(cache/(v1|fetched-\w+/v1)/((entries|hints|history)/\w\w/\w{62,64}|activity/\d+|digests|usage|gc|locks"
                  r"|CACHEDIR\.TAG)"
                  r"|shared/(ac|cas)/\w\w/\w{64}|run/kiln/(locks|digesting|digests|slots|checks/(locks|\w{64}\.kpcv)))$")


@dataclasses.dataclass
class Reference:
    """The results without faults."""
    output: str = None       # digest of the written or printed output
    then_output: str = None
    files: frozenset = frozenset()
    calls: list = None       # (process, call, occurrence)


@dataclasses.dataclass
class Outcome:
    fault: object
    met: int = 1
    seconds: float = 0
    where: str = ""
    answer: str = ""         # right, or error
    problems: list = dataclasses.field(default_factory=list)


def parsed(path):
    report = {"calls": []}
    with open(path, encoding="utf-8", errors="replace") as lines:
        for line in lines:
            word, _, rest = line.rstrip("\n").partition(" ")
            if word == "call":
                process, name, occurrence, text = rest.split(" ", 3)
                report["calls"].append((int(process), name, int(occurrence), text))
            elif word:
                report[word] = rest
    return report


def printed(ran):
    return " ".join(ran.stdout.decode(errors="replace").split())


def written(operation, output, folder, ran):
    """Returns the digest of the output, or None."""
    if output == "-":
        return hashlib.sha256(ran.stdout).hexdigest() if ran.stdout else None
    return digest_of(folder.path("work", output)) if output else None


class Trial:
    """Repeated runs of an operation in a directory."""

    def __init__(self, operation, programs, template, slot):
        self.operation = operation
        self.template = Folder(template, programs)
        self.folder = Folder(slot, programs)
        self.programs = programs
        self.report = f"{slot}.report"
        self.outlive = 5  # seconds: a worker needs up to two to detect that its host is gone

    def inject(self, options):
        return [str(self.programs.inject), "--limit", str(LIMIT), "--outlive", str(self.outlive), "--report", self.report, *options, "--"]

    def then(self):
        operation = self.operation
        settings = operation.settings if operation.then_settings is None else operation.then_settings
        return self.folder.run(operation.then or operation.command, settings, LIMIT)

    def learn(self):
        """Runs the operation without faults, twice. Returns the reference results and its calls."""
        reference = Reference()
        self.folder.copy_of(self.template)
        ran = self.folder.run(self.operation.command, self.operation.settings, before=self.inject([]))
        report = parsed(self.report)
        if int(report["exit"]) not in self.operation.codes or (self.operation.output and int(report["exit"]) != 0):
            raise RuntimeError(f"{self.operation.name} returned {report['exit']}: {ran.stderr.decode(errors='replace')}")
        reference.calls = [call[:3] for call in report["calls"]]
        reference.output = written(self.operation, self.operation.output, self.folder, ran)
        then = self.then()
        if then.returncode not in self.operation.then_codes:
            raise RuntimeError(f"{self.operation.name}: then: {then.returncode}: {then.stderr.decode(errors='replace')}")
        reference.then_output = written(self.operation, self.operation.output, self.folder, then)
        reference.files = frozenset(self.folder.files())
        return reference

    def run(self, reference, fault):
        """Runs one fault."""
        outcome = Outcome(fault)
        full = environment_faults.Full(self.folder.root) if isinstance(fault, environment_faults.Disk) else None
        if full:
            full.begin(self.template)
            full.bound(fault)
        else:
            self.folder.copy_of(self.template)
        try:
            self.meet(fault, reference, outcome)
            if full:
                full.unbound()
            self.judge_the_next(reference, outcome)
        finally:
            if full:
                full.end()
        return outcome

    def meet(self, fault, reference, outcome):
        before = self.inject(fault.options()) + fault.before()
        ran = self.folder.run(self.operation.command, self.operation.settings, LIMIT + 20, before)
        report = parsed(self.report)
        code = int(report["exit"])
        outcome.met = int(report["met"]) if isinstance(fault, faults.Fault) else 1
        outcome.where = report["where"]
        outcome.seconds = float(report["seconds"])
        if int(report["late"]):
            outcome.problems.append(f"no result after {LIMIT} s")
        if int(report["strays"]):
            outcome.problems.append(f"{report['strays']} processes outlived it by {self.outlive} s")
        self.judge(reference, code, ran, outcome, fault.what == "kill" and fault.process == 0 and code == 137)

    def judge(self, reference, code, ran, outcome, killed=False):
        operation = self.operation
        outcome.answer = "right" if code == 0 else "killed" if killed else "error"
        errors = ran.stderr.decode(errors="replace")
        if not killed and code not in operation.codes:
            outcome.problems.append(f"returned {code}: {errors.strip()[-300:]!r}")
        if code != 0 and not killed and not errors.strip() and not re.match(r"writev?\(2\)", outcome.where):
            outcome.problems.append(f"returned {code} without a message")
        if code == 0 and operation.answers and printed(ran) not in operation.answers:
            outcome.problems.append(f"printed {printed(ran)!r}")
        if operation.answers and "wrong" in printed(ran):
            outcome.problems.append("wrong bytes")
        if operation.output:
            made = written(operation, operation.output, self.folder, ran)
            # Output to a pipe cannot be withdrawn; the exit code reports that it is incomplete.
            wanted = (reference.output,) if code == 0 else (reference.output, None)
            if made not in wanted and not (operation.output == "-" and code != 0):
                outcome.problems.append(f"returned {code} and its output is {'missing' if made is None else 'wrong'}")

    def left_behind(self, reference):
        return {name for name in self.folder.files() - reference.files if not KEPT.match(name)}

    def left_after_a_day(self, reference, left):
        """Returns the files that remain after another run, `kiln cache gc`, `kiln status` (status files of ended processes)
        and, for a shared directory, `kiln remote gc`. A process that replaces a file named by the user cannot know whether
        another writer is active, so it removes temporary files only after an hour, and in a shared directory after a day."""
        for name in left:
            os.utime(self.folder.path(name), (time.time() - 90000,) * 2, follow_symlinks=False)
        settings = self.operation.settings
        self.folder.run(self.operation.then or self.operation.command, settings, LIMIT)
        self.folder.run(["{kiln}", "cache", "gc"], settings, LIMIT)
        self.folder.run(["{kiln}", "status"], settings, LIMIT)
        if any(name.startswith("shared/") for name in left):
            self.folder.run(["{kiln}", "remote", "gc", "--yes", "--remote", "{shared}"], settings, LIMIT)
        return self.left_behind(reference)

    def judge_the_next(self, reference, outcome):
        operation = self.operation
        began = time.monotonic()
        try:
            then = self.then()
        except subprocess.TimeoutExpired:
            outcome.problems.append(f"the next process gave no result after {LIMIT} s")
            return
        errors = then.stderr.decode(errors="replace").strip()[-300:]
        if then.returncode not in operation.then_codes:
            outcome.problems.append(f"the next process returned {then.returncode}: {errors!r}")
        if operation.then_answers and printed(then) not in operation.then_answers:
            outcome.problems.append(f"the next process printed {printed(then)!r}: {errors!r}")
        if operation.output and written(operation, operation.output, self.folder, then) != reference.then_output:
            outcome.problems.append("the next process got wrong code")
        if time.monotonic() - began > LIMIT:
            outcome.problems.append(f"the next process took {time.monotonic() - began:.0f} s")
        left = self.left_behind(reference)
        if left:
            left = self.left_after_a_day(reference, left)
        if left:
            outcome.problems.append("left behind: " + ", ".join(sorted(left)[:4]))
        if operation.check:
            problem = operation.check(self.folder)
            if problem:
                outcome.problems.append(problem)
