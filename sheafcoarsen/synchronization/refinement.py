"""Gauss-Newton refinement of poses."""

from typing import NamedTuple

import numpy as np

from sheafcoarsen.exceptions import NotConverged
from sheafcoarsen.operators import coboundary
from sheafcoarsen.solve import Solver
from sheafcoarsen.synchronization.connection import Connection
from sheafcoarsen.synchronization.linearization import PoseSheaf
from sheafcoarsen.synchronization.residuals import edge_turns

MOST_STEPS = 100
"""Largest number of steps."""

ENOUGH = 1e-9
"""Expected further decrease, relative to the cost, below which refinement has converged.

Extrapolated from the last two steps, whose decreases are about geometric.
"""

HALVINGS = 20
"""Largest number of halvings of a step that would raise the cost."""

SUFFICIENT = 1e-4
"""Least decrease of the cost relative to that of the linear model (Armijo)."""

TOLERANCE = 1e-6
"""Tolerance of the linear solver; steps need not be exact."""


class Refined(NamedTuple):
    """Poses after refinement, and the costs before every step and after the last."""

    rotations: np.ndarray
    positions: np.ndarray | None
    costs: list[float]
    converged: bool


def refined_poses(
    connection: Connection, rotations: np.ndarray, positions: np.ndarray | None, steps: int = 0
) -> Refined:
    """Return poses of lower cost near the given ones; those at ``connection.fixed`` are fixed.

    Every step solves the least-squares problem min norm(delta x - r) of the pose sheaf, refilled at
    the current poses, and is halved until the cost decreases.
    """
    bad = unrefinable(connection, rotations)
    if bad is not None:
        raise ValueError(f"`refine` needs {bad}: refine=False rounds the frames alone")
    problem = PoseSheaf(connection)
    sheaf, r = problem.at(rotations, positions)
    cost = float(r @ r)
    costs = [cost]
    solve, decrease = None, 0.0
    for _ in range(steps or MOST_STEPS):
        if solve is None:
            solve = Solver(sheaf, fixed=connection.fixed)
        else:
            solve.update(sheaf)
        delta = coboundary(sheaf)
        try:
            x = solve(delta.T @ r, tol=TOLERANCE)
        except NotConverged as error:  # its result may still reduce the cost
            x = np.asarray(error.result)
        along = delta @ x
        # norm(r - s delta x)^2 = cost - (2 s - s^2) gain for an exact step
        gain = float(2 * (r @ along) - along @ along)
        if not gain >= 0:
            return Refined(rotations, positions, costs, False)
        length, found = 1.0, None
        for _ in range(HALVINGS):
            there = problem.after(rotations, positions, length * x)
            new_sheaf, new_r = problem.at(*there)
            new_cost = float(new_r @ new_r)
            if new_cost <= cost - SUFFICIENT * length * gain:
                found = there
                break
            length /= 2
        if found is None:
            return Refined(rotations, positions, costs, True)
        (rotations, positions), sheaf, r = found, new_sheaf, new_r
        before, decrease, cost = decrease, cost - new_cost, new_cost
        costs.append(cost)
        ratio = decrease / before if length == 1 and before > 0 else 1.0
        if decrease <= ENOUGH * cost or decrease * ratio <= ENOUGH * cost * (1 - ratio):
            return Refined(rotations, positions, costs, True)
    return Refined(rotations, positions, costs, False)


def unrefinable(connection: Connection, rotations: np.ndarray) -> str | None:
    """Return the requirement of Gauss-Newton that is not satisfied, or None."""
    if connection.dim not in (2, 3) or connection.transports.dtype.kind == "c":
        return f"rotations of the plane or of space, got {connection.group}"
    reflects = np.linalg.det(edge_turns(connection, rotations)) < 0
    bad = np.flatnonzero(reflects & (connection.weights > 0))
    if bad.size:
        u, v = connection.edges[bad[0]].tolist()
        return (
            f"frames that agree with every edge up to a rotation, but edge {bad[0]} ({u} -> {v}) "
            f"reflects"
        )
    return None
