"""Linear algebra in rational numbers."""

from fractions import Fraction


def fractions(A) -> list[list[Fraction]]:
    """Return the rows of a matrix as fractions."""
    return [[Fraction(float(entry)) for entry in row] for row in A]


def dot(a, b) -> Fraction:
    """Return the sum of products of entries."""
    return sum((x * y for x, y in zip(a, b, strict=True)), Fraction(0))


def solved(M, right) -> list[list[Fraction]]:
    """Return M^{-1} right by elimination."""
    rows = [[*a, *b] for a, b in zip(M, right, strict=True)]
    for k in range(len(M)):
        at = next(i for i in range(k, len(M)) if rows[i][k] != 0)
        rows[k], rows[at] = rows[at], rows[k]
        rows[k] = [a / rows[k][k] for a in rows[k]]
        for i in range(len(M)):
            if i != k:
                rows[i] = [a - rows[i][k] * b for a, b in zip(rows[i], rows[k], strict=True)]
    return [row[len(M) :] for row in rows]
