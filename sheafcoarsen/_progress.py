"""A tqdm bar when asked for, silence otherwise."""

from tqdm import tqdm


def bar(total: int, description: str, show: bool):
    """Return a progress bar over ``total`` steps; a silent one unless ``show``."""
    return tqdm(total=total, desc=description, disable=not show)
