"""Compare the stored outputs of notebooks with those of a fresh run, or store the fresh ones.

    python -m tests.docs.notebook_outputs compare   notebooks/ against docs/notebooks/, as CI does
    python -m tests.docs.notebook_outputs store     take the outputs of docs/notebooks/

``make notebooks`` runs the notebooks in docs/notebooks and compares.
"""

import base64
import io
import json
import platform
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STORED, FRESH = ROOT / "notebooks", ROOT / "docs" / "notebooks"
WIDTH, COLOURS = 800, 40
"""Largest width of a stored picture in pixels, and its number of colours."""

VARYING = re.compile(
    r"\d[\d.]*\s?(?:ns|us|µs|ms|s|MB|kB)\b"  # times and sizes
    r"|(?<=ratio )\S+|0x[0-9a-f]+"  # rounding, addresses
    r"|(?<=[\d ]) +\d+%$"  # a level's share of the time
    r"|(?<=  )\S+(?= +(?:exact|probe|dense) +ok)",  # ratios of a verification
    re.MULTILINE,
)
NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?")
ROUNDING = 1e-6
"""Numbers below it are rounding, and equal."""
PORTABLE = (platform.system(), platform.machine()) == ("Linux", "x86_64")
"""Whether numbers are compared: outputs are stored by such a machine."""


def text_of(cell: dict) -> str:
    """Return what a cell prints and shows as text, and a mark for each picture."""
    parts = []
    for output in cell.get("outputs", ()):
        data = output.get("data", {})
        if output["output_type"] == "stream" and output["name"] == "stdout":
            parts.append("".join(output["text"]))
        elif "image/png" in data:
            parts.append("\n<picture>\n")
        elif "text/plain" in data:
            parts.append("".join(data["text/plain"]) + "\n")
    return "".join(parts)


def same(stored: str, fresh: str, numbers: bool = True) -> bool:
    """Return whether two texts agree up to times, white space and rounding of numbers."""
    ours, theirs = (VARYING.sub("~", text) for text in (stored, fresh))
    words = [NUMBER.sub("#", text).split() for text in (ours, theirs)]
    if words[0] != words[1]:
        return False
    pairs = zip(NUMBER.findall(ours), NUMBER.findall(theirs), strict=True)
    return not numbers or all(_near(a, b) for a, b in pairs)


def _near(a: str, b: str) -> bool:
    """Return whether two numbers differ by one unit of the last digit or a thousandth."""
    x, y = float(a), float(b)
    digits = len(a.partition("e")[0].partition(".")[2])
    exponent = int(a.partition("e")[2] or 0)
    unit = 1.01 * 10.0 ** (exponent - digits) if digits else 0.0
    return abs(x - y) <= max(unit, 1e-3 * abs(x), ROUNDING)


def differences(stored: dict, fresh: dict, numbers: bool = True) -> list[str]:
    """Return the ids of cells whose texts differ."""
    cells = zip(stored["cells"], fresh["cells"], strict=True)
    return [a["id"] for a, b in cells if not same(text_of(a), text_of(b), numbers)]


def shrunk(png: str) -> str:
    """Return a picture, no wider than WIDTH and in few colours, as base64."""
    from PIL import Image

    with Image.open(io.BytesIO(base64.b64decode(png))) as image:
        flat = Image.new("RGB", image.size, "white")
        flat.paste(image, mask=image.getchannel("A") if image.mode == "RGBA" else None)
    if flat.width > WIDTH:
        flat = flat.resize((WIDTH, round(WIDTH * flat.height / flat.width)), Image.LANCZOS)
    out = io.BytesIO()
    few = flat.quantize(COLOURS, method=Image.Quantize.FASTOCTREE)
    few.save(out, "png", optimize=True)
    return base64.b64encode(out.getvalue()).decode("ascii")


def store(stored: dict, fresh: dict) -> None:
    """Put the outputs of a fresh run into a stored notebook, without what is said on stderr."""
    counter = 0
    for cell, new in zip(stored["cells"], fresh["cells"], strict=True):
        if cell["cell_type"] != "code":
            continue
        counter += 1
        outputs = [x for x in new["outputs"] if x.get("name") != "stderr"]
        for output in outputs:
            if "data" in output:
                output["metadata"] = {}
            if output["output_type"] == "execute_result":
                output["execution_count"] = counter
            if "image/png" in output.get("data", ()):
                output["data"]["image/png"] = shrunk("".join(output["data"]["image/png"]))
        cell.update(execution_count=counter, outputs=outputs)


def main(action: str) -> int:
    """Compare or store all notebooks; return the exit status."""
    failed = 0
    for path in sorted(STORED.glob("*.ipynb")):
        ours, theirs = (
            json.loads((folder / path.name).read_text("utf-8")) for folder in (STORED, FRESH)
        )
        if action == "store":
            store(ours, theirs)
            text = json.dumps(ours, indent=1, ensure_ascii=False, sort_keys=True)
            path.write_text(text + "\n", encoding="utf-8")
        else:
            for name in differences(ours, theirs, PORTABLE):
                failed = 1
                print(f"{path.name}: the outputs of cell {name} differ from a fresh run")
    if failed:
        print("if they should: python -m tests.docs.notebook_outputs store")
    return failed


if __name__ == "__main__":
    if sys.argv[1:] not in (["compare"], ["store"]):
        sys.exit(__doc__)
    sys.exit(main(sys.argv[1]))
