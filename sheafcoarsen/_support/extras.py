"""Optional packages: what to install where one is missing."""


def check_matplotlib() -> None:
    """Say what to install where matplotlib is missing."""
    try:
        import matplotlib.axes  # noqa: F401
    except ModuleNotFoundError as error:
        if error.name != "matplotlib":
            raise
        raise ImportError('pictures need matplotlib: pip install "sheafcoarsen[plot]"') from None
