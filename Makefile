# Every target does its own set-up: only Python 3.11 or newer with pip, and make, are needed.
PYTHON ?= python3
VENV := .venv
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := $(VENV)/$(SCRIPTS)
PIP := -m pip --disable-pip-version-check
SIZE ?= small

.DEFAULT_GOAL := help
.PHONY: help demo test test-deep test-distributed test-lowest coverage notebooks lint docs bench \
  packages clean

# the statements of the paper and what holds for any sheaf; the deep profile draws 20 times as many
DEEP := tests/theory tests/unit/verification

help:
	@echo "make demo         set up and coarsen a real graph that ships with networkx"
	@echo "make test         set up and run the whole verification suite"
	@echo "make test-distributed  runs from store to store whose processes are killed"
	@echo "make test-deep    theorems and properties with 20 times the examples"
	@echo "make test-lowest  the suite with kernels as plain Python, NaN in all uninitialised memory and"
	@echo "                  fewer examples, with the lowest versions that pyproject.toml promises"
	@echo "make coverage     which lines no test reaches, in kernels too"
	@echo "make notebooks    run every notebook, and compare what it prints with what is stored"
	@echo "make lint         ruff, types and import contracts"
	@echo "make docs         the site, with the notebooks' pictures, in docs/_build"
	@echo "make bench        benchmarks against named yardsticks (SIZE=smoke, small, medium or large)"
	@echo "make packages     build sdist and wheel, and try each in an environment of its own"
	@echo "make clean        remove the virtual environments and caches"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo \
	  "sheafcoarsen needs Python 3.11 or newer; choose one with: make PYTHON=python3.12 ..." >&2; \
	  exit 1; }
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install --quiet --editable .
	@touch $@

$(VENV)/installed-%: pyproject.toml | $(BIN)/python
	$(BIN)/python $(PIP) install --quiet --editable ".[$*]"
	@touch $@

demo: $(VENV)/installed
	$(BIN)/python -m sheafcoarsen demo

# as many processes as processors, whole files to each: a kernel is compiled once
test: $(VENV)/installed-test
	$(BIN)/python -m pytest -n auto --dist loadfile -m "not cluster"

# one test after the other: they wait for processes of their own
test-distributed: $(VENV)/installed-cluster
	$(BIN)/python -m pytest -m cluster tests/robustness

test-deep: $(VENV)/installed-test
	SHEAFCOARSEN_DEEP=1 $(BIN)/python -m pytest $(DEEP)

# The kernels as plain Python, with the lowest versions, and numpy.empty with NaN, which shows whoever
# reads memory before it is written; then the demo compiled, into a folder of its own, since two
# versions of numba would overwrite each other's.
LOWEST := $(VENV)-lowest
$(LOWEST)/installed: pyproject.toml
	$(PYTHON) -m venv --clear $(LOWEST)
	$(PYTHON) -c 'import tomllib; project = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  print(*(line.replace(">=", "==") for line in project["dependencies"]), sep="\n")' \
	  > $(LOWEST)/lowest.txt
	$(LOWEST)/$(SCRIPTS)/python $(PIP) install --quiet --constraint $(LOWEST)/lowest.txt \
	  --editable ".[test]"
	@touch $@

# networkx of that time looks for pandas whenever it makes a graph, and says so
test-lowest: $(LOWEST)/installed
	NUMBA_DISABLE_JIT=1 SHEAFCOARSEN_POISON=1 \
	  $(LOWEST)/$(SCRIPTS)/python -m pytest -p no:cacheprovider -n auto --dist loadfile \
	  -W "ignore:pandas not found:ImportWarning" -m "not real_data and not cluster and not large" tests
	NUMBA_CACHE_DIR=$(CURDIR)/$(LOWEST)/cache $(LOWEST)/$(SCRIPTS)/python -m sheafcoarsen demo

# lines that no test reaches, kernels included, since they run as plain Python: half an hour
coverage: $(VENV)/installed-test
	$(BIN)/python $(PIP) install --quiet coverage
	NUMBA_DISABLE_JIT=1 COVERAGE_FILE=$(VENV)/coverage $(BIN)/python -m coverage run --branch \
	  --source=sheafcoarsen -m pytest -m "not real_data and not cluster and not large" tests
	COVERAGE_FILE=$(VENV)/coverage $(BIN)/python -m coverage report --show-missing --skip-covered

# they run on a copy, which the site shows with their outputs; what they print is compared with the
# outputs that are stored
RUN := docs/notebooks
$(RUN)/.ran: $(wildcard notebooks/*.ipynb notebooks/data/*) $(shell find sheafcoarsen -name '*.py') \
  | $(VENV)/installed-test $(VENV)/installed-notebooks
	rm -rf $(RUN)
	cp -r notebooks $(RUN)
	$(BIN)/python -m pytest -p no:hypothesispytest --nbmake --nbmake-timeout=300 --overwrite \
	  --durations=0 $(RUN)
	$(BIN)/python -m tests.docs.notebook_outputs compare
	@touch $@

notebooks: $(RUN)/.ran

lint: $(VENV)/installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/installed-docs $(RUN)/.ran
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build
	$(BIN)/python docs/links.py docs/_build
	@echo "docs/_build/index.html"

bench: $(VENV)/installed-bench $(VENV)/installed-cluster
	$(BIN)/python -m benchmarks.large_sparse --size $(SIZE)
	$(BIN)/python -m benchmarks.answers --size $(SIZE)
	$(BIN)/python -m benchmarks.synchronization --rounds $(if $(filter smoke,$(SIZE)),1,9)
	$(BIN)/python -m benchmarks.distributed --size $(SIZE) $(if $(filter smoke,$(SIZE)),--only memory)

packages: $(VENV)/installed-dev
	.ci/packages $(BIN)/python

clean:
	rm -rf $(VENV) $(LOWEST) docs/_build docs/generated docs/api.rst docs/api \
	  docs/notebooks docs/jupyter_execute docs/gallery.md docs/_static/thumbnails build dist \
	  .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
