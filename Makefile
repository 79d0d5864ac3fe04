# Everything runs in .venv, which is made on first use and brought up to date when pyproject.toml changes.

PYTHON ?= python3
WORKERS ?= 2

BIN := .venv/bin
READY := .venv/.ready

# One example at a time leaves nothing for BLAS to share out: its threads would only get in each other's way.
export OMP_NUM_THREADS := 1
export OPENBLAS_NUM_THREADS := 1
export MKL_NUM_THREADS := 1

.DEFAULT_GOAL := help
.PHONY: help demo demo-python test test-compiled test-python soak lint format bench bench-streams screenshot papers papers-quick clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(READY): pyproject.toml
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --quiet --disable-pip-version-check --editable ".[dev]"
	@touch $@

demo: $(READY) ## Learn a file that comes with River by the command line, and show how good the model is
	$(BIN)/bayou learn "$$($(BIN)/python -c 'import river.datasets as d; print(d.__path__[0])')/phishing.csv.gz" --target is_phishing

demo-python: $(READY) ## The same in Python: a data set as a stream, how good and how sure the model is, and its weights
	$(BIN)/python examples/demo.py

test: test-compiled test-python ## Run every test: with compiled kernels, then the contracts in plain Python

test-compiled: $(READY) ## Run every test with compiled kernels
	$(BIN)/python -m pytest -n $(WORKERS)

test-python: $(READY) ## Run the contract tests with the kernels as plain Python
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n $(WORKERS) tests/contracts

soak: $(READY) ## Run more of the tests that draw at random, in about ten minutes: before a release
	$(BIN)/python -m pytest -n $(WORKERS) -m soak

lint: $(READY) ## Check style, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY) ## Put the sources in the form that lint asks for
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

bench: $(READY) ## Compare speed with scikit-learn, River and padasip
	$(BIN)/python -m benchmarks

bench-streams: $(READY) ## Compare what is predicted along streams with baselines and peers; DATA=folder adds files
	$(BIN)/python -m benchmarks.streams $(if $(DATA),--data $(DATA))

screenshot: $(READY) ## Take the picture of the dashboard that the documentation shows, with Chromium
	$(BIN)/python -m tests.service.screenshot docs/images/dashboard.png

papers: $(READY) ## Reproduce every figure and table of the papers, in about twenty minutes
	$(BIN)/python -m bayou.papers run --all

papers-quick: $(READY) ## Reproduce those that are quick, with fewer replicas, in about two minutes
	$(BIN)/python -m bayou.papers run --all --quick

clean: ## Remove the environment and everything generated
	rm -rf .venv build dist out .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .schemathesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
