"""The rows that are behaviours: what one side does, in words, and whether one would want it to."""

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
ASKED_AGAIN = 8  # of so many one, the last: fewer than the bound has room for


class CannotTell(Exception):
    """This machine does not allow to see it."""


@dataclass(frozen=True)
class Behaviour:
    words: str
    good: bool


def _error(answer: Answer) -> str:
    """Its beginning, without the paths that messages name."""
    first = re.sub(r"[\"']?/[^\s\"':]+[\"']?", "…", (answer.error or "").split("\n")[0])
    return "an error: " + first[:100].strip()


def eight_cold(crowd: Crowd) -> Behaviour:
    """Of the worst round."""
    side = crowd.side
    worst = 0
    for answers in crowd.rounds:
        if errors := [answer for answer in answers if answer.error is not None]:
            return Behaviour(f"{len(errors)} of {CROWD} get {_error(errors[0])}", False)
        if len({answer.sha256 for answer in answers}) != 1 and side.kind == "unit":
            return Behaviour("they get different code", False)
        if any(answer.compiles is None for answer in answers):
            raise CannotTell("how often it compiles it does not say")
        worst = max(worst, sum(answer.compiles or 0 for answer in answers))
    return Behaviour(f"{worst} compile{'s' if worst != 1 else ''}", worst == 1)


def stale_header(hosts: Hosts, side: Side, _quick: bool) -> Behaviour:
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
        raise Broken(f"{side.title}: the edit makes no other code, so nothing is seen")
    if new.error is not None:
        return Behaviour(_error(new), False)
    if new.sha256 == truth.sha256:
        return Behaviour("compiles again", True)
    return Behaviour("serves the old code" if new.sha256 == old.sha256 else "serves code that is neither", False)


def _payloads(cache: Path, size: int) -> list[Path]:
    """The files that hold the code: those at least a quarter as large, since some compress; else the largest one."""
    files = sorted((path for path in cache.rglob("*") if path.is_file()), key=lambda path: path.stat().st_size)
    if not files:
        raise Broken("there is nothing in the folder to damage")
    return [path for path in files if path.stat().st_size * 4 >= size] or files[-1:]


def _overwrite(path: Path, data: bytes) -> None:
    """In place, as a bad disk does: the same file with its owner and mode."""
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


def _after_damage(hosts: Hosts, side: Side, damage: Callable[[Path], None]) -> Behaviour:
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
        first = "right code" if hurt.sha256 == whole.sha256 else "wrong code served"
    right = later.error is None and later.sha256 == whole.sha256
    healed = right and not later.compiles
    then = "healed" if healed else "never healed" if right else "and again by the next process"
    return Behaviour(f"{first}, {then}", first == "right code" and healed)


def corrupt_entry(hosts: Hosts, side: Side, _quick: bool) -> Behaviour:
    seen = {name: _after_damage(hosts, side, damage) for name, damage in DAMAGES.items()}
    good = all(behaviour.good for behaviour in seen.values())
    words = {behaviour.words for behaviour in seen.values()}
    if len(words) == 1:
        return Behaviour(words.pop(), good)
    return Behaviour("; ".join(f"{name}: {behaviour.words}" for name, behaviour in seen.items()), good)


def _must_be_bound(folder: Path) -> bool:
    """Whether processes must be started without the right of root to write into this folder."""
    if os.geteuid() != 0:
        return False
    try:
        tried = subprocess.run([*BOUND_BY_PERMISSIONS, "test", "-w", folder], capture_output=True)
    except FileNotFoundError:
        raise CannotTell("this is root, who may write everywhere, and there is no setpriv to take that away") from None
    if tried.returncode != 1 or tried.stderr:
        raise CannotTell("this is root, who may write everywhere, and setpriv cannot take that away here")
    return True


def unwritable(hosts: Hosts, side: Side, _quick: bool) -> Behaviour:
    host = hosts()
    locked = host.root / "locked"
    locked.mkdir()
    locked.chmod(0o555)
    answer = host.run(side, locked / "cache", bound=_must_be_bound(locked))
    locked.chmod(0o755)
    if (locked / "cache").exists():
        raise Broken("the folder was not unwritable at all")
    if answer.error is not None:
        return Behaviour(_error(answer), False)
    return Behaviour("gives the code", True)


def _size_of(folder: Path) -> int:
    return sum(path.lstat().st_size for path in folder.rglob("*") if path.is_file())


def _kept(host: Host, side: Side, cache: Path, limit: int, last: list[int]) -> Optional[list[bool]]:
    """Of each of the last that were used, whether it needs no compile; nothing where it does not say."""
    answers = [host.run(side, cache, limit=limit, variant=variant) for variant in last]
    if any(answer.compiles is None for answer in answers):
        return None
    return [answer.error is None and answer.compiles == 0 for answer in answers]


def size_bound(hosts: Hosts, side: Side, quick: bool) -> Behaviour:
    """Good is: the bound holds, and what was used last of all is still there. Of the others before it, caches may think
    differently: the number is told."""
    host = hosts()
    count = QUICK_VARIANTS if quick else VARIANTS
    alone = host.run(side, host.new_cache(), variant=1).of_sound_mind(side)
    limit = count * alone.bytes // 3
    cache = host.new_cache()
    for variant in range(1, count + 1):
        answer = host.run(side, cache, limit=limit, variant=variant)
        if answer.error is not None:
            return Behaviour(f"{_error(answer)} at unit {variant}", False)
    share = _size_of(cache) / limit
    last = list(range(count, count - count // ASKED_AGAIN, -1))
    kept = _kept(host, side, cache, limit, last)
    words = f"{share:.2f} of the bound"
    if kept is None:
        return Behaviour(f"{words}; what is left of the last used it does not say", share <= 1)
    return Behaviour(f"{words}, {sum(kept)} of the {len(last)} last used kept", share <= 1 and kept[0])


BEHAVIOURS: dict[str, Callable[[Hosts, Side, bool], Behaviour]] = {
    "stale_header": stale_header,
    "corrupt_entry": corrupt_entry,
    "unwritable": unwritable,
    "size_bound": size_bound,
}
