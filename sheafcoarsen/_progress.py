"""A tqdm bar when asked for, silence otherwise."""

import tqdm


def bar(total: int, description: str, show: bool):
    """Return a progress bar over ``total`` steps, a notebook's own kind in a notebook; a silent one unless ``show``."""
    if not show:
        return tqdm.tqdm(total=total, disable=True)
    from tqdm import auto  # only now: in a notebook without ipywidgets its import warns

    return auto.tqdm(total=total, desc=description)
