"""Pages without pictures."""

import pytest


@pytest.fixture
def without_drawing(monkeypatch):
    """Put blank pictures in the page, where words are looked at: drawing takes most of the time."""
    monkeypatch.setattr("sheafcoarsen.html_report._report.drawn", lambda *_, **__: "data:,")
