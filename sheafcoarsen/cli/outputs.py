"""Output files of commands."""

import argparse

from sheafcoarsen._support import check_matplotlib, output_path, tables


def check_outputs(args: argparse.Namespace, endings: tuple[str, ...]) -> None:
    """Check that the outputs can be written, before the computation."""
    for option, path, allowed in (
        ("--out", args.out, endings),
        ("--report", args.report, (".html",)),
    ):
        if path is None:
            continue
        if not path.endswith(allowed):
            raise ValueError(f"{option} must name an {' or '.join(allowed)} file, got {path!r}")
        try:
            output_path(path)
        except OSError as error:
            raise type(error)(f"{option} {error}") from None
    if args.report is not None:
        check_matplotlib()


def show_times(times: dict[str, float]) -> None:
    """Print the time of each stage in seconds."""
    print("time    " + ", ".join(f"{name} {seconds:.3f} s" for name, seconds in times.items()))


def show_files(args: argparse.Namespace, remark: str = "") -> None:
    """Print the paths of written files, with a remark after that of the report."""
    if args.out is not None:
        print(f"saved   {tables.printable(args.out)}")
    if args.report is not None:
        print(f"report  {tables.printable(args.report)}{remark}")
