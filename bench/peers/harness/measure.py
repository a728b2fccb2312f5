# SPDX-License-Identifier: Apache-2.0
"""Runs two sides alternately until the spread is small or the time is up: bench/support/harness.cpp in Python."""

from __future__ import annotations

import math
import statistics
import time
from dataclasses import dataclass, replace
from typing import Callable

LIMIT = 1.0
Times = dict[str, float]  # by name of the figure
Turn = Callable[[], Times]


@dataclass(frozen=True)
class Budget:
    warm_up: int
    least_rounds: int
    most_rounds: int
    most_seconds: float
    small_spread: float = 0.02

    def at_most(self, rounds: int) -> Budget:
        """Returns a budget with at most `rounds` rounds, for sides that take seconds."""
        least, most = min(self.least_rounds, rounds), min(self.most_rounds, rounds)
        return replace(self, warm_up=0, least_rounds=least, most_rounds=most)


@dataclass(frozen=True)
class Figure:
    ours: float
    theirs: float
    ratio: float
    spread: float
    n: int
    limit: float = LIMIT

    @property
    def within(self) -> bool:
        return self.ratio <= self.limit


def spread_of(ratios: list[float], limit: float) -> float:
    """Returns half the 95 % confidence interval of the median, estimated from the median absolute deviation, as a fraction of
    the limit; 1 for a single round."""
    if len(ratios) < 2:
        return 1.0
    middle = statistics.median(ratios)
    deviation = statistics.median(abs(ratio - middle) for ratio in ratios)
    return deviation * 1.4826 * 1.2533 * 1.96 / math.sqrt(len(ratios)) / limit


def _figure(ours: list[float], theirs: list[float]) -> Figure:
    ratios = [a / b for a, b in zip(ours, theirs)]
    spread = spread_of(ratios, LIMIT)
    return Figure(statistics.median(ours), statistics.median(theirs), statistics.median(ratios), spread, len(ratios))


def compare(ours: Turn, theirs: Turn, budget: Budget) -> dict[str, Figure]:
    for _ in range(budget.warm_up):
        theirs()
        ours()
    rounds: list[tuple[Times, Times]] = []
    end = time.monotonic() + budget.most_seconds
    while len(rounds) < budget.most_rounds and (len(rounds) < budget.least_rounds or time.monotonic() < end):
        if len(rounds) % 2 == 0:
            mine = ours()
            rounds.append((mine, theirs()))
        else:
            other = theirs()
            rounds.append((ours(), other))
        if len(rounds) >= budget.least_rounds and all(
            figure.spread <= budget.small_spread for figure in _figures(rounds).values()
        ):
            break
    return _figures(rounds)


def _figures(rounds: list[tuple[Times, Times]]) -> dict[str, Figure]:
    return {
        name: _figure([ours[name] for ours, _ in rounds], [theirs[name] for _, theirs in rounds]) for name in rounds[0][0]
    }
