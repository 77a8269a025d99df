"""Whether a coarse Laplacian has more entries than the fine one, which makes coarsening dearer."""

from sheafcoarsen.operators import count_nonzeros
from sheafcoarsen.sheaf import CellularSheaf


def laplacian_growth(fine: CellularSheaf, coarse: CellularSheaf, *, compressed: bool) -> str | None:
    """Say by how much the Laplacian grew and what helps; None where it did not grow.

    From graphs and dimensions alone: neither Laplacian is formed. Where edge stalks are
    ``compressed`` already, that is not advised.
    """
    before, after = count_nonzeros(fine), count_nonzeros(coarse)
    if after <= before:
        return None
    shorter = "" if compressed else ", compress=True shortens long maps"
    return (
        f"its Laplacian has {after:,} entries, the fine one {before:,}: fewer modes or larger "
        f"clusters make it sparser{shorter}"
    )
