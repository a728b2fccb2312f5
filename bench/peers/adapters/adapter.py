# SPDX-License-Identifier: Apache-2.0
"""The common part of the Python adapters; README.md defines an adapter."""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import NoReturn, Optional, Protocol

NOT_HERE = 77


@dataclass
class Question:
    cache: str
    source: str
    path: str  # path of the file
    name: str
    include: str
    arch: str
    times: int
    limit: Optional[int]


class Peer(Protocol):
    """Requests the code once; exceptions of the peer pass through."""

    @property
    def compiles(self) -> Optional[int]: ...

    def get(self, asked: Question) -> bytes: ...


@dataclass
class _Answer:
    ns: list[int] = field(default_factory=list)
    since_main_ns: int = 0
    code: bytes = b""
    error: Optional[str] = None


def not_here(why: object) -> NoReturn:
    print(why, file=sys.stderr)
    sys.exit(NOT_HERE)


def _question() -> Question:
    parser = argparse.ArgumentParser()
    for name in ("cache", "source", "include", "arch"):
        parser.add_argument(name)
    parser.add_argument("--times", type=int, default=1)
    parser.add_argument("--limit", type=int)
    words = parser.parse_args()
    path = Path(words.source)
    return Question(words.cache, path.read_text(), words.source, path.name, words.include, words.arch, words.times, words.limit)


def ask(peer: Peer, version: str, started_ns: int) -> None:
    """Runs an adapter. `started_ns` is time.monotonic_ns() at the first statement of the program, before its imports."""
    if sys.argv[1:] == ["--version"]:
        print(version)
        return
    asked = _question()
    answer = _Answer()
    for i in range(asked.times):
        before = time.monotonic_ns()
        try:
            answer.code = peer.get(asked)
        except Exception as error:  # noqa: BLE001 - any exception of a peer is its answer
            answer.error = f"{type(error).__name__}: {error}"
            break
        after = time.monotonic_ns()
        answer.ns.append(after - before)
        if i == 0:
            answer.since_main_ns = after - started_ns
    line = {
        "ns": answer.ns,
        "since_main_ns": answer.since_main_ns,
        "sha256": hashlib.sha256(answer.code).hexdigest(),
        "bytes": len(answer.code),
        "compiles": peer.compiles,
        "error": answer.error,
    }
    print(json.dumps(line))
