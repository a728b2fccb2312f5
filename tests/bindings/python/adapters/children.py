# SPDX-License-Identifier: Apache-2.0
"""Forked child processes, which share the modules that this process has already imported."""

import multiprocessing
import traceback

_fork = multiprocessing.get_context("fork")


class Child:
    def __init__(self, function, *arguments):
        self._pipe, theirs = _fork.Pipe()
        self._process = _fork.Process(target=_run, args=(theirs, function, arguments))
        self._process.start()
        theirs.close()

    def tell(self, word):
        self._pipe.send(word)

    def answer(self, seconds=240):
        """Returns the next message or the result of the child; raises its exception."""
        if not self._pipe.poll(seconds):
            self._process.kill()
            raise TimeoutError(f"nothing from a child process after {seconds} s")
        kind, value = self._pipe.recv()
        if kind == "raised":
            raise AssertionError(f"a child process raised:\n{value}")
        return value

    def end(self, seconds=240):
        self._process.join(seconds)
        if self._process.is_alive():
            self._process.kill()


def in_eight_children(function, *arguments):
    """Returns the results of eight processes that call the function at the same time."""
    children = [Child(function, *arguments) for _ in range(8)]
    answers = [child.answer() for child in children]
    for child in children:
        child.end()
    return answers


def damage(entry, how, offset):
    """Cuts the file of an entry in two, or flips a bit of its ELF image at an offset."""
    data = bytearray(entry.read_bytes())
    if how == "truncated":
        del data[len(data) // 2 :]
    else:
        data[data.index(b"\x7fELF") + offset] ^= 1
    entry.write_bytes(data)


def _run(pipe, function, arguments):
    try:
        pipe.send(("returned", function(*arguments)))
    except BaseException:
        pipe.send(("raised", traceback.format_exc()))


def in_child(function, *arguments):
    child = Child(function, *arguments)
    answer = child.answer()
    child.end()
    return answer
