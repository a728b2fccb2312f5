# SPDX-License-Identifier: Apache-2.0
"""The rows that are behaviors: a description of what one side does, and whether it is correct."""

from __future__ import annotations

import os
import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Callable, Optional

from .adapters import BOUND_BY_PERMISSIONS, Answer, Broken, Host
from .figures import CROWD, Crowd, Hosts
from .table import Side

VARIANTS = 32
QUICK_VARIANTS = 8
ASKED_AGAIN = 8  # one in this many is requested again, the last ones: fewer than fit into the limit


class CannotTell(Exception):
    """The behavior cannot be observed on this machine."""


@dataclass(frozen=True)
class Behavior:
    words: str
    good: bool


def _error(answer: Answer) -> str:
    """Returns the beginning of the error, without paths."""
    first = re.sub(r"[\"']?/[^\s\"':]+[\"']?", "…", (answer.error or "").split("\n")[0])
    return "an error: " + first[:100].strip()


def eight_cold(crowd: Crowd) -> Behavior:
    """Returns the behavior of the worst round."""
    side = crowd.side
    worst = 0
    for answers in crowd.rounds:
        if errors := [answer for answer in answers if answer.error is not None]:
            return Behavior(f"{len(errors)} of {CROWD} get {_error(errors[0])}", False)
        if len({answer.sha256 for answer in answers}) != 1 and side.kind == "unit":
            return Behavior("the processes get different code", False)
        if any(answer.compiles is None for answer in answers):
            raise CannotTell("it does not report its number of compiles")
        worst = max(worst, sum(answer.compiles or 0 for answer in answers))
    return Behavior(f"{worst} compile{'s' if worst != 1 else ''}", worst == 1)


def stale_header(hosts: Hosts, side: Side, _quick: bool) -> Behavior:
    host = hosts()
    cache = host.new_cache()
    old = host.run(side, cache).of_sound_mind(side)
    text = host.header.read_text()
    changed = text.replace("1.5f", "2.5f")
    if changed == text:
        raise Broken("the header has no 1.5f to edit")
    host.header.write_text(changed)
    new = host.run(side, cache)
    truth = host.run(side, host.new_cache()).of_sound_mind(side)
    if truth.sha256 == old.sha256:
        raise Broken(f"{side.title}: the edit does not change the code")
    if new.error is not None:
        return Behavior(_error(new), False)
    if new.sha256 == truth.sha256:
        return Behavior("compiles again", True)
    return Behavior("serves the old code" if new.sha256 == old.sha256 else "serves other code", False)


def _payloads(cache: Path, size: int) -> list[Path]:
    """Returns the files that hold the code: files at least a quarter as large, since some caches compress; else the largest."""
    files = sorted((path for path in cache.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    if not files:
        raise Broken("the cache directory is empty")
    return [path for path in files if path.stat().st_size * 4 >= size] or files[-1:]


def _overwrite(path: Path, data: bytes) -> None:
    """Overwrites a file in place, as a bad disk does, and keeps its owner and mode."""
    mode = path.stat().st_mode
    path.chmod(mode | 0o200)
    path.write_bytes(data)
    path.chmod(mode)


def _flip(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0x10
    _overwrite(path, bytes(data))


def _cut(path: Path) -> None:
    data = path.read_bytes()
    _overwrite(path, data[: len(data) // 2])


DAMAGES: dict[str, Callable[[Path], None]] = {
    "a flipped bit": _flip,
    "cut to half": _cut,
    "emptied": lambda path: _overwrite(path, b""),
}


def _after_damage(hosts: Hosts, side: Side, damage: Callable[[Path], None]) -> Behavior:
    host = hosts()
    cache = host.new_cache()
    whole = host.run(side, cache).of_sound_mind(side)
    for path in _payloads(cache, whole.bytes):
        damage(path)
    hurt = host.run(side, cache)
    later = host.run(side, cache)
    host.gone()
    if hurt.error is not None:
        first = _error(hurt)
    else:
        first = "correct code" if hurt.sha256 == whole.sha256 else "wrong code served"
    right = later.error is None and later.sha256 == whole.sha256
    healed = right and not later.compiles
    then = "repaired" if healed else "never repaired" if right else "also in the next process"
    return Behavior(f"{first}, {then}", first == "correct code" and healed)


def corrupt_entry(hosts: Hosts, side: Side, _quick: bool) -> Behavior:
    seen = {name: _after_damage(hosts, side, damage) for name, damage in DAMAGES.items()}
    good = all(behavior.good for behavior in seen.values())
    words = {behavior.words for behavior in seen.values()}
    if len(words) == 1:
        return Behavior(words.pop(), good)
    return Behavior("; ".join(f"{name}: {behavior.words}" for name, behavior in seen.items()), good)


def _must_be_bound(folder: Path) -> bool:
    """Returns whether processes must run without root's right to write into this directory."""
    if os.geteuid() != 0:
        return False
    try:
        tried = subprocess.run([*BOUND_BY_PERMISSIONS, "test", "-w", folder], capture_output=True)
    except FileNotFoundError:
        raise CannotTell("running as root, which ignores permissions, and setpriv is missing") from None
    if tried.returncode != 1 or tried.stderr:
        raise CannotTell("running as root, which ignores permissions, and setpriv does not work here")
    return True


def unwritable(hosts: Hosts, side: Side, _quick: bool) -> Behavior:
    host = hosts()
    locked = host.root / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    answer = host.run(side, locked / "cache", bound=_must_be_bound(locked))
    locked.chmod(0o755)
    if (locked / "cache").exists():
        raise Broken("the directory was writable")
    if answer.error is not None:
        return Behavior(_error(answer), False)
    return Behavior("returns the code", True)


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _kept(host: Host, side: Side, cache: Path, limit: int, last: list[int]) -> Optional[list[bool]]:
    """Returns for each of the last units whether it is still cached; None if the adapter does not report compiles."""
    answers = [host.run(side, cache, limit=limit, variant=variant) for variant in last]
    if any(answer.compiles is None for answer in answers):
        return None
    return [answer.error is None and answer.compiles == 0 for answer in answers]


def size_bound(hosts: Hosts, side: Side, quick: bool) -> Behavior:
    """Checks that the limit holds and that the most recently used unit is still cached. Caches can differ about the units
    before it, so their number is only reported."""
    host = hosts()
    count = QUICK_VARIANTS if quick else VARIANTS
    alone = host.run(side, host.new_cache(), variant=1).of_sound_mind(side)
    limit = count * alone.bytes // 3
    cache = host.new_cache()
    for variant in range(1, count + 1):
        answer = host.run(side, cache, limit=limit, variant=variant)
        if answer.error is not None:
            return Behavior(f"{_error(answer)} at unit {variant}", False)
    share = _size_of(cache) / limit
    last = list(range(count, count - count // ASKED_AGAIN, -1))
    kept = _kept(host, side, cache, limit, last)
    words = f"{share:.2f} of the limit"
    if kept is None:
        return Behavior(f"{words}; it does not report which units are cached", share <= 1)
    return Behavior(f"{words}, {sum(kept)} of the {len(last)} last used still cached", share <= 1 and kept[0])


BEHAVIORS: dict[str, Callable[[Hosts, Side, bool], Behavior]] = {
    "stale_header": stale_header,
    "corrupt_entry": corrupt_entry,
    "unwritable": unwritable,
    "size_bound": size_bound,
}
