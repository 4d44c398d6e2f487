# Each target bootstraps what it needs from an empty clone; all but Python and make is installed here.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test lint bench setup clean

demo: $(VENV)/ready            ## sample data → findings → dashboard on http://127.0.0.1:8050
	$(BIN)/infractl demo

test: setup                    ## the whole suite
	$(BIN)/python -m pytest

lint: $(VENV)/ready            ## format, rules, types, import floors
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/ready           ## side-by-side ratios against named peers
	for file in benchmarks/*.py; do $(BIN)/python $$file || exit 1; done

setup: $(VENV)/ready
	sh tests/debian_packages.sh

$(VENV)/ready: requirements.txt pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "infractl needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV) || { sh tests/debian_packages.sh python3-venv && $(PYTHON) -m venv $(VENV); }
	$(BIN)/python -m pip install --quiet --require-hashes -r requirements.txt
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV) infractl-data
