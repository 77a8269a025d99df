"""Interleaved timing: each candidate runs once per round, so a drift in speed affects all alike."""

import statistics
import time
from dataclasses import dataclass


@dataclass(frozen=True)
class Timings:
    """Seconds of every candidate in each round, and the result of its untimed first call."""

    seconds: dict[str, list[float]]
    answers: dict

    def median(self, name):
        """Return the median time of a candidate in seconds."""
        return statistics.median(self.seconds[name])

    def ratio(self, above, below):
        """Return the median over all rounds of the ratio of two candidates' times."""
        return statistics.median(
            a / b for a, b in zip(self.seconds[above], self.seconds[below], strict=True)
        )

    def fastest(self, names):
        """Return the candidate with the lowest median time."""
        return min(names, key=self.median)


def paired(candidates, rounds, pause=0.0, budget=40.0, clock=time.perf_counter) -> Timings:
    """Time functions without arguments in interleaved rounds.

    The first call of each function is not timed: it compiles, touches memory, and returns the
    answer to be checked.

    Parameters
    ----------
    pause : float
        Idle seconds before each call, for candidates that use several BLAS threads: these spin for
        some milliseconds after their work, and would slow down the next call.
    budget : float
        Seconds after which no new round begins.
    clock : callable
        Use ``time.process_time`` on a shared machine.
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
            del answer  # free the memory while no clock is running
        if time.perf_counter() - begin > budget:
            break
    return Timings(seconds, answers)
