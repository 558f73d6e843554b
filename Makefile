# Two commands matter: `make up` and `make test`. Both set up what they need in .venv first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# One process per core; the tests of a file run in one process.
PARALLEL := --numprocesses auto --dist loadfile
# These folders contain only tests of `make test-proof` and are slow to collect; schemathesis is for those alone.
WITHOUT_PROOF := --ignore tests/console --ignore tests/proof -p no:schemathesis
# Where `make mutants` compares with, and its further arguments: `make mutants BASE=main~5 MUTANTS="--minutes 3"`.
BASE ?= main
MUTANTS ?=

.PHONY: up test test-slow test-proof test-nightly mutants compat console typescript lint docs dist npm bench bench-peers clean

## set up and start the main job: the server, with a store to look at on the first run
up: $(VENV)/.ready
	$(BIN)/keepward serve --demo

## set up and pass the everyday tests
test: $(VENV)/.ready-dev
	$(BIN)/pytest $(PARALLEL) $(WITHOUT_PROOF) -o faulthandler_timeout=600 -m "not slow and not proof and not nightly"

## the long tests: many processes, crashes, big stores
test-slow: $(VENV)/.ready-dev
	$(BIN)/pytest $(PARALLEL) $(WITHOUT_PROOF) -m "slow and not proof"

## the console in a browser, and what others wrote against ours: protocol conformance, other SDKs, fuzzing, a load run;
## needs the npm registry
test-proof: $(VENV)/.ready-proof
	$(BIN)/pytest $(PARALLEL) -m "proof and not nightly"

## what takes longest: large stores in a browser, clients that people run, released packages of other systems
test-nightly: $(VENV)/.ready-proof
	$(BIN)/pytest -m nightly

## change one place at a time in the files that changed since BASE, and print which changes no everyday test notices
mutants: $(VENV)/.ready-mutants
	$(BIN)/python tools/mutants.py --base $(BASE) $(MUTANTS)

## each adapter on the oldest and the newest release that its extra allows, each in an environment of its own
compat: $(VENV)/.ready-dev
	$(BIN)/python tests/proof/compat.py

## build the console, and check its types
console: $(VENV)/.ready-proof
	$(BIN)/python tools/generate_reference.py build/reference
	$(BIN)/python tests/proof/node.py npm run --prefix console --silent check
	$(BIN)/python tests/proof/node.py npm run --prefix console --silent build

## build the TypeScript client from the operations of the API, and check its types and style
typescript: $(VENV)/.ready-proof
	$(BIN)/python tools/typescript.py build/typescript
	cp build/typescript/operations.ts clients/typescript/src/operations.ts
	$(BIN)/python tests/proof/node.py npm run --prefix clients/typescript --silent types
	$(BIN)/python tests/proof/node.py npm run --prefix clients/typescript --silent build
	$(BIN)/python tests/proof/node.py npm run --prefix clients/typescript --silent check

## style, types and import rules
lint: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

## the documentation as a site in build/docs; a broken link is an error
docs: $(VENV)/.ready-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

## the distributions in dist: the sdist, and the wheel that is built from it
dist: $(VENV)/.ready-dist
	$(BIN)/python -m build --no-isolation --outdir dist
	$(BIN)/twine check --strict dist/*

## the package of the TypeScript client in build/npm
npm: typescript
	mkdir -p build/npm
	$(BIN)/python tests/proof/node.py npm pack ./clients/typescript --pack-destination build/npm --ignore-scripts

## speed, as tables of ratios
bench: $(VENV)/.ready-dev
	$(BIN)/python -m benchmarks

## other memories beside ours, in an environment of their own (two gigabytes)
bench-peers: $(VENV)-peers/.ready
	$(VENV)-peers/bin/python -m benchmarks.peers

clean:
	rm -rf $(VENV) $(VENV)-peers build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

$(VENV)/.ready: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Keepward needs Python 3.11 or newer: make PYTHON=python3.12 up")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --constraint constraints.txt pip
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --editable '.[all]'
	test "$$KEEPWARD_EMBEDDER" = hashed || $(BIN)/keepward model install --quiet
	touch $@

$(VENV)/.ready-dev: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dev
	touch $@

$(VENV)/.ready-mutants: $(VENV)/.ready-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group mutants
	touch $@

$(VENV)/.ready-docs: $(VENV)/.ready-dev
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group docs
	touch $@

$(VENV)/.ready-dist: $(VENV)/.ready
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group dist
	touch $@

$(VENV)/.ready-proof: $(VENV)/.ready-dev tests/proof/package-lock.json console/package-lock.json clients/typescript/package-lock.json
	$(BIN)/python -m pip install --quiet --constraint constraints.txt --group proof
	$(BIN)/python tests/proof/node.py npm ci --prefix tests/proof
	$(BIN)/python tests/proof/node.py npm ci --prefix console
	$(BIN)/python tests/proof/node.py npm ci --prefix clients/typescript
	touch $@

$(VENV)-peers/.ready: benchmarks/peers/requirements.txt pyproject.toml
	$(PYTHON) -m venv $(VENV)-peers
	$(VENV)-peers/bin/python -m pip install --quiet --requirement benchmarks/peers/requirements.txt --editable .
	touch $@
