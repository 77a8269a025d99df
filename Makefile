# Every target does its own set-up: only Python 3.11 or newer with pip, and make, are needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-deep test-nojit notebooks lint docs bench clean

# the statements of the paper and what holds for any sheaf; the deep profile draws 20 times the examples
DEEP := tests/theory tests/unit/verification

help:
	@echo "make demo        set up and coarsen a real graph that ships with networkx"
	@echo "make test        set up and run the whole verification suite"
	@echo "make test-deep   theorems and properties with 20 times the examples"
	@echo "make test-nojit  the suite with kernels as plain Python, fewer examples, and its coverage"
	@echo "make notebooks   run every notebook"
	@echo "make lint        ruff, types and import contracts"
	@echo "make docs        the API as a site, in docs/_build"
	@echo "make bench       benchmarks against named yardsticks (small size)"
	@echo "make clean       remove the virtual environment and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "sheafcoarsen needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-coverage: | $(BIN)/python
	$(PIP) install --quiet coverage
	@touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(PIP) install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/installed
	$(BIN)/python -m sheafcoarsen demo

test: $(VENV)/installed-test
	$(BIN)/python -m pytest

test-deep: $(VENV)/installed-test
	SHEAFCOARSEN_DEEP=1 $(BIN)/python -m pytest $(DEEP)

test-nojit: $(VENV)/installed-test $(VENV)/installed-coverage
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=$(VENV)/coverage $(BIN)/python -m coverage run --branch --source=sheafcoarsen \
	  -m pytest -m "not real_data"
	COVERAGE_FILE=$(VENV)/coverage $(BIN)/python -m coverage report --show-missing --skip-covered

notebooks: $(VENV)/installed-test $(VENV)/installed-notebooks
	$(BIN)/python -m pytest -p no:hypothesispytest --nbmake --nbmake-timeout=300 --durations=0 notebooks

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/installed-docs
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	@echo "docs/_build/index.html"

bench: $(VENV)/installed-bench
	$(BIN)/python -m benchmarks.large_sparse

clean:
	rm -rf $(VENV) docs/_build docs/generated docs/api.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache build dist
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
