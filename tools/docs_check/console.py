# SPDX-License-Identifier: Apache-2.0
"""Runs the console blocks of a page: one shell per prompt and one directory per page, in order."""
import os
import re
import select
import signal
import subprocess
import time

from .pages import Mistake

PROMPT = re.compile(r"^([\w-]*)([$#]) +(.*)$")
HERE = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
COMMAND_SECONDS = 90


def commands(block):
    """Yields (line, prompt, command, expected output) of a console block."""
    found, at = [], 0
    while at < len(block.lines):
        prompt = PROMPT.match(block.lines[at])
        if not prompt or prompt[2] == "#":
            if found:
                found[-1][3].append(block.lines[at])
            at += 1
            continue
        line, command = block.line + at, [prompt[3]]
        while command[-1].endswith("\\") and at + 1 < len(block.lines):
            at += 1
            command.append(block.lines[at].removeprefix("> "))
        if here := HERE.search(command[-1]):
            while at + 1 < len(block.lines) and command[-1].strip() != here[2]:
                at += 1
                command.append(block.lines[at].removeprefix("> "))
        found.append((line, prompt[1], "\n".join(command), []))
        at += 1
    return found


def matches(shown, printed):
    """Returns whether the output matches the page: any number matches a number, any time matches a time (121 ms matches 1.3 s, on
    a busy machine), … matches anything, and a line that consists of … matches any lines. Runs of blanks are equal. The number of
    compiles must be that of the page."""
    number, unit, compiles = r"\d+(?:\.\d+)?", r"(?:ns|µs|ms|s)\b", r"\b\d+ compiled\b|\bcompiled \d+\b(?!\.)"

    def pattern(line):
        parts = re.split(rf"(…|{compiles}|\b{number} {unit}|\b{number}\b|\s+)", line.strip())
        kinds = [("…", ".*"), (r"\s+", r"\s+"), (rf"{number} {unit}", rf"{number} {unit}"), (number, number)]
        return "".join(next((any_of for kind, any_of in kinds if re.fullmatch(kind, part)), re.escape(part)) for part in parts)
    wanted = "\n".join(r"(?:.*\n)*?.*" if line.strip() == "…" else pattern(line) for line in shown if line.strip())
    lines = "\n".join(line.strip() for line in printed.splitlines() if line.strip())
    return re.fullmatch(wanted, lines) is not None


class Shell:
    """A bash process that runs one command after another and reports the exit code of each."""

    def __init__(self, folder, environment, outputs):
        self.outputs = outputs
        reading, writing = os.pipe()
        self.ended = reading
        # A separate session, so that processes that a page left in the background end with the shell.
        self.process = subprocess.Popen(
            ["bash", "--norc", "--noprofile"], cwd=folder, env=environment, stdin=subprocess.PIPE, text=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, pass_fds=[writing], start_new_session=True)
        os.close(writing)
        self.writing = writing

    def run(self, command):
        """Returns (exit code, output); the exit code is None if the command timed out."""
        script, output = self.outputs / "command", self.outputs / "output"
        script.write_text(command + "\n", encoding="utf-8")
        self.process.stdin.write(f". '{script}' </dev/null >'{output}' 2>&1; echo $? >&{self.writing}\n")
        self.process.stdin.flush()
        code = self.answer(time.monotonic() + COMMAND_SECONDS)
        return code, output.read_text(encoding="utf-8", errors="replace") if output.exists() else ""

    def answer(self, deadline):
        text = b""
        while not text.endswith(b"\n"):
            ready, _, _ = select.select([self.ended], [], [], max(0, deadline - time.monotonic()))
            got = os.read(self.ended, 64) if ready else b""
            if not got:
                return None
            text += got
        return int(text)

    def end(self):
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.stdin.close()
        self.process.wait()
        os.close(self.ended)


class Shells:
    def __init__(self, workspace, page, folder):
        self.workspace, self.page, self.folder = workspace, page, folder
        self.shells = {}
        self.place = folder / "page"
        self.place.mkdir(parents=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for shell in self.shells.values():
            shell.end()

    def shell(self, prompt):
        """Returns the shell of a prompt. Each prompt is a separate host with its own home and cache, but shares the page's directory."""
        if prompt not in self.shells:
            home = self.folder / f"home-{prompt or 'main'}"
            outputs = self.folder / f"outputs-{prompt or 'main'}"
            home.mkdir()
            outputs.mkdir()
            shell = Shell(self.place, self.workspace.environment(home, self.page.driver), outputs)
            self.shells[prompt] = shell
            for name in self.page.setups:
                file = self.workspace.setup(self.page, name)
                self.must(shell, f"FIRST={int(len(self.shells) == 1)} PROMPT={prompt}; . '{file}'", 1, f"the setup '{name}' fails")
        return self.shells[prompt]

    def must(self, shell, command, line, message, wanted=0):
        code, printed = shell.run(command)
        if code is None:
            raise Mistake(self.page.name, line, f"{message}: it did not finish within {COMMAND_SECONDS} s, or ended its shell", printed)
        if code != wanted:
            raise Mistake(self.page.name, line, f"{message}: exit code {code}", printed)
        return printed

    def write(self, block):
        file = self.place / block.notes["file"]
        file.parent.mkdir(parents=True, exist_ok=True)
        if self.page.setups:
            self.shell("")  # the variables that a setup exports can be used in a file, too
        text = self.page.read_as_meant(block.text)
        file.write_text(text, encoding="utf-8")
        if re.search(r"\$\{?\w|\$\(", "".join(meant for _, _, meant in self.page.readings)):
            self.expand(file, block)

    def expand(self, file, block):
        """Expands the $(command) of a replaced text in a file, as the shell does in commands."""
        text = file.read_text(encoding="utf-8")
        for _, _, meant in self.page.readings:
            if meant.startswith("$") and meant in text:
                text = text.replace(meant, self.must(self.shell(""), f"printf %s {meant}", block.line, "a replaced text fails"))
        file.write_text(text, encoding="utf-8")

    def before(self, block):
        """Runs the commands that a block needs but the page does not show."""
        if command := block.notes.get("before"):
            self.must(self.shell(""), self.page.read_as_meant(command), block.line, f"'{command}' before this block fails")

    def run(self, block):
        found = commands(block)
        if not found:
            raise Mistake(block.page, block.line, "a console block without a line that begins with '$ '")
        for at, (line, prompt, command, shown) in enumerate(found):
            wanted = int(block.notes.get("exits", 0)) if at + 1 == len(found) else 0
            meant = self.page.read_as_meant(command)
            printed = self.must(self.shell(prompt), meant, line, f"'{command.split('  #')[0].strip()}' fails", wanted)
            if "output" not in block.notes and shown and not matches(shown, printed):
                raise Mistake(block.page, line + 1, "the output differs from the page; actual output:", printed)
