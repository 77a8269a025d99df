"""Size of the package: lines, files, functions, constants.

``python -m benchmarks.size`` prints the table for this checkout; ``python -m benchmarks.size
OTHER`` compares it with another checkout. ``--words`` counts unclear words in docstrings, comments
and messages instead.
"""

import argparse
import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

PACKAGE = "sheafcoarsen"
NOT_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}
WORDS = {
    "so many": r"so many",
    "room": r"rooms?",
    "judge": r"judge[ds]?|judging",
    "told": r"told",
    "beside": r"besides?",
    "stands": r"stands?",
    "found": r"found",
    "asked, asks": r"ask(ed|s)",
    "whole": r"whole",
    "share": r"shares?",
    "None where": r"none where",
    "beyond": r"beyond",
}
"""Patterns of words that have a clearer replacement, such as workspace for room."""

FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(text: str, tree: ast.Module) -> int:
    """Return the number of lines of code, without blank lines, comments and docstrings."""
    lines = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(tree):
        if is_string(node):
            lines.difference_update(range(node.lineno, node.end_lineno + 1))
    return len(lines)


def is_string(node: ast.AST) -> bool:
    """Return whether a statement consists of a string, as docstrings do."""
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def constants(tree: ast.Module) -> list[str]:
    """Return the upper-case names that a module assigns, including class attributes.

    Fields without a value, such as the matrix ``P`` of a NamedTuple, do not count.
    """
    bodies = [tree.body, *(node.body for node in tree.body if isinstance(node, ast.ClassDef))]
    found = []
    for statement in (statement for body in bodies for statement in body):
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets = [statement.target]
        for target in targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            found += [name.id for name in names if isinstance(name, ast.Name) and name.id.isupper()]
    return found


def exported(tree: ast.Module) -> list[str]:
    """Return the names in ``__all__``."""
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "__all__":
            return [ast.literal_eval(element) for element in statement.value.elts]
    return []


def public_functions(trees: dict[str, ast.Module]) -> int:
    """Return the number of public functions and methods.

    They are exported by the package or by one of its public modules.
    """
    modules = [PACKAGE, *(f"{PACKAGE}.{name}" for name in ("gallery", "plot", "distributed"))]
    names = {name for module in modules for name in exported(trees[module])}
    ranks = trees[f"{PACKAGE}.ranks"]
    names |= {node.name for node in ranks.body if isinstance(node, FUNCTIONS | ast.ClassDef)}
    count, seen = 0, set()
    for tree in trees.values():
        for node in tree.body:
            if getattr(node, "name", "_").startswith("_") or node.name not in names:
                continue
            if isinstance(node, FUNCTIONS):
                count += node.name not in seen
                seen.add(node.name)
            elif isinstance(node, ast.ClassDef):
                count += sum(
                    isinstance(method, FUNCTIONS) and not method.name.startswith("_")
                    for method in node.body
                )
    return count


def measured(root: Path) -> dict[str, float]:
    """Return the sizes of one checkout, by name."""
    sources = {path: path.read_text("utf-8") for path in sorted((root / PACKAGE).rglob("*.py"))}
    by_path = {path: ast.parse(text) for path, text in sources.items()}
    trees = {}
    for path, tree in by_path.items():
        parts = path.relative_to(root).with_suffix("").parts
        trees[".".join(parts).removesuffix(".__init__")] = tree
    functions = sum(
        isinstance(node, FUNCTIONS) for tree in by_path.values() for node in ast.walk(tree)
    )
    public = public_functions(trees)
    tests = [path.read_text("utf-8") for path in (root / "tests").rglob("*.py")]
    inits = [tree for path, tree in by_path.items() if path.name == "__init__.py"]
    return {
        "lines of the package": sum(len(text.splitlines()) for text in sources.values()),
        "lines of code": sum(code_lines(text, by_path[path]) for path, text in sources.items()),
        "files": len(sources),
        "functions": functions,
        "public functions and methods": public,
        "functions for each public one": (functions - public) / public,
        "module constants": sum(len(constants(tree)) for tree in by_path.values()),
        "names through `__init__`": sum(len(exported(tree)) for tree in inits),
        "lines of tests": sum(len(text.splitlines()) for text in tests),
        "files of tests": len(tests),
    }


def prose(text: str) -> Iterator[tuple[int, str, str]]:
    """Yield (line, kind, text) of the docstrings, comments and messages of a module."""
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], "comment", token.string
    nodes = list(ast.walk(ast.parse(text)))
    docstrings = {node.value for node in nodes if is_string(node)}
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            kind = "docstring" if node in docstrings else "message"
            if kind == "docstring" or " " in node.value:
                yield node.lineno, kind, node.value


def occurrences(name: str, text: str) -> list[str]:
    """Return the occurrences of one of `WORDS` in a text."""
    pattern = WORDS[name].replace(" ", r"\s+")
    return [match.group() for match in re.finditer(rf"\b({pattern})\b", text, re.IGNORECASE)]


def word_counts(root: Path) -> dict[str, float]:
    """Return the number of occurrences of each of `WORDS` in the package of a checkout."""
    paths = sorted((root / PACKAGE).rglob("*.py"))
    text = "\n".join(part for path in paths for *_, part in prose(path.read_text("utf-8")))
    return {name: len(occurrences(name, text)) for name in WORDS}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description="Size of the package")
    parser.add_argument("other", nargs="?", type=Path, help="another checkout, shown first")
    parser.add_argument("--words", action="store_true", help="count unclear words instead")
    options = parser.parse_args()
    other, count = options.other, word_counts if options.words else measured
    here = Path(__file__).parents[1]
    columns = [count(root) for root in ([other] if other else []) + [here]]
    print("| |" + (" other |" if other else "") + " here |")
    print("|---|" + "---:|" * len(columns))
    for name, value in columns[-1].items():
        digits = 1 if isinstance(value, float) else 0
        print(f"| {name} | " + " | ".join(f"{c[name]:,.{digits}f}" for c in columns) + " |")


if __name__ == "__main__":
    main()
