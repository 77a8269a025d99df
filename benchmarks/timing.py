"""Interleaved timing: every candidate once per round, so a drift of the machine hits all alike."""

import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Seconds of every candidate, round by round, and what its untimed first call returned."""

    seconds: dict[str, list[float]]
    answers: dict

    def median(self, name):
        """Return the median of a candidate's seconds."""
        return statistics.median(self.seconds[name])

    def ratio(self, above, below):
        """Return the median over the rounds of one candidate's time over another's."""
        return statistics.median(
            a / b for a, b in zip(self.seconds[above], self.seconds[below], strict=True)
        )

    def fastest(self, names):
        """Return the candidate with the lowest median."""
        return min(names, key=self.median)


def paired(candidates, rounds, pause=0.0, budget=40.0, clock=time.perf_counter) -> Timings:
    """Time functions without arguments side by side.

    The first call of each is outside the clock: it compiles, touches memory, and gives the answer
    to be checked.

    Parameters
    ----------
    pause : float
        Idle seconds before each call. OpenBLAS threads spin for some milliseconds after their work
        and would slow down whatever comes next: for candidates that leave BLAS at its default.
    budget : float
        No new round begins after so many seconds.
    clock : callable
        Where the machine is shared, ``time.process_time``.
    """
    answers = {name: call() for name, call in candidates.items()}
    seconds = {name: [] for name in candidates}
    begin = time.perf_counter()
    for _ in range(rounds):
        for name, call in candidates.items():
            time.sleep(pause)
            start = clock()
            answer = call()
            seconds[name].append(clock() - start)
            del answer  # freeing it is nobody's time
        if time.perf_counter() - begin > budget:
            break
    return Timings(seconds, answers)
