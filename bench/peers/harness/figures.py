# SPDX-License-Identifier: Apache-2.0
"""The rows that are times. A turn runs one process, or eight, of one side."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from typing import Callable

from .adapters import Answer, Broken, Host, together
from .measure import Budget, Times, Turn
from .table import Side

CROWD = 8
# Enough for a median of a few microseconds; slow sides are called less often.
OFTEN = 200
SELDOM = 4
LONG_NS = 5_000_000

Hosts = Callable[[], Host]


@dataclass(frozen=True)
class Scenario:
    """A measured scenario. `turn` prepares a side and returns the function that a round calls. The names of its times are rows
    of the output."""

    units: dict[str, str]
    turn: Callable[[Hosts, Side], Turn]
    full: Budget
    quick: Budget


def _ms(ns: float) -> float:
    return ns / 1e6


def cold(hosts: Hosts, side: Side) -> Turn:
    """Measures a new cache directory on a host that has run the program before."""
    host = hosts()

    def turn() -> Times:
        return {"cold": _ms(host.run(side, host.new_cache()).of_sound_mind(side).ns[0])}

    return turn


def cold_new_host(hosts: Hosts, side: Side) -> Turn:
    """Measures a host without any files of earlier runs. The page cache is not cleared."""

    def turn() -> Times:
        host = hosts()
        answer = host.run(side, host.new_cache()).of_sound_mind(side)
        host.gone()
        return {"cold_new_host": _ms(answer.ns[0])}

    return turn


def _filled(hosts: Hosts, side: Side) -> Callable[[int], Answer]:
    """Returns a function that requests the code several times in a process, after an earlier process filled the cache."""
    host = hosts()
    cache = host.new_cache()
    truth = host.run(side, cache).of_sound_mind(side)

    def ask(times: int) -> Answer:
        answer = host.run(side, cache, times=times).of_sound_mind(side)
        if answer.sha256 != truth.sha256 and side.kind == "unit":
            raise Broken(f"{side.title}: served other code than was stored")
        if "disk" in side.offers and answer.compiles:
            raise Broken(f"{side.title}: compiled code that an earlier process had stored")
        return answer

    return ask


def warm_in_process(hosts: Hosts, side: Side) -> Turn:
    ask = _filled(hosts, side)
    times = OFTEN if ask(2).ns[1] < LONG_NS else SELDOM

    def turn() -> Times:
        return {"warm_in_process": statistics.median(ask(times).ns[1:]) / 1e3}

    return turn


def warm_new_process(hosts: Hosts, side: Side) -> Turn:
    ask = _filled(hosts, side)

    def turn() -> Times:
        answer = ask(1)
        return {"warm_new_process": _ms(answer.ns[0]), "warm_new_process_since_main": _ms(answer.since_main_ns)}

    return turn


class Crowd:
    """Eight processes at once on a cold key, from the start of the first to the end of the last. Stores their answers, because
    the total number of compiles and errors are behaviors."""

    def __init__(self, hosts: Hosts, side: Side) -> None:
        self.side = side
        self.rounds: list[list[Answer]] = []
        self._host = hosts()

    def __call__(self) -> Times:
        seconds, answers = together(self._host, self.side, self._host.new_cache(), CROWD)
        self.rounds.append(answers)
        return {"eight_cold": seconds * 1e3}


SCENARIOS = {
    "cold": (
        Scenario({"cold": "ms"}, cold, Budget(1, 7, 15, 5), Budget(1, 2, 2, 0)),
        Scenario({"cold_new_host": "ms"}, cold_new_host, Budget(0, 5, 9, 4), Budget(0, 1, 1, 0)),
    ),
    "warm_in_process": (
        Scenario({"warm_in_process": "us"}, warm_in_process, Budget(0, 5, 15, 3), Budget(0, 2, 2, 0)),
    ),
    "warm_new_process": (
        Scenario(
            {"warm_new_process": "ms", "warm_new_process_since_main": "ms"},
            warm_new_process, Budget(2, 9, 60, 4), Budget(0, 3, 3, 0),
        ),
    ),
    "eight_cold": (Scenario({"eight_cold": "ms"}, Crowd, Budget(0, 3, 5, 6), Budget(0, 1, 1, 0)),),
}
