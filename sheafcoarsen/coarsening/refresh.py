"""Whether a sheaf may take the place of the one that was coarsened: new maps, nothing else."""

from sheafcoarsen.sheaf import CellularSheaf, check_same_topology


def check_topology(fine: CellularSheaf, sheaf: CellularSheaf, maker: str) -> None:
    """Refuse a sheaf on another graph, or with other stalks, than what ``maker`` coarsened."""
    wanted = "the graph and the stalks of the sheaf that was coarsened"
    check_same_topology(fine, sheaf, wanted, f"use {maker} for another graph")
