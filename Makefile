# Every target does its own set-up: only Python 3.11 or newer with pip, and make, are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-nojit lint bench clean

help:
	@echo "make demo        set up and coarsen a real graph that ships with networkx"
	@echo "make test        set up and run the whole verification suite"
	@echo "make test-nojit  the same with kernels as plain Python, fewer examples"
	@echo "make lint        ruff, types and import contracts"
	@echo "make bench       benchmarks against named yardsticks (small size)"
	@echo "make clean       remove the virtual environment and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sheafcoarsen needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/installed
	$(BIN)/python -m sheafcoarsen demo

test: $(VENV)/installed-test
	$(BIN)/python -m pytest

test-nojit: $(VENV)/installed-test
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -m "not real_data"

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/installed-bench
	$(BIN)/python benchmarks/large_sparse.py

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
