# Two commands on a fresh machine: `make run`, `make test`. `make` alone lists the rest.
.DEFAULT_GOAL := help
SHELL := /bin/bash
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/ready
export TORCH_EXTENSIONS_DIR := $(abspath $(VENV))/torch_extensions
export MLFLOW_DISABLE_TELEMETRY := true
RECIPE ?= demo
PORT ?= 5000

.PHONY: help
help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-9s %s\n", $$1, $$2}'

$(READY): requirements.txt requirements-dev.txt pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt
	$(BIN)/python -m pip install --quiet --no-deps --editable .
	$(BIN)/python -m components.warm
	touch $@

.PHONY: setup
setup: $(READY) ## make .venv with everything pinned, and build DeepSpeed's operator once

.PHONY: run
run: $(READY) ## the whole life cycle on real text (RECIPE=demo)
	$(BIN)/clearstory run $(RECIPE)

.PHONY: test
test: $(READY) ## one small case of every property, and the whole DAG on 40 documents
	$(BIN)/python -m pytest -q

.PHONY: check
check: $(READY) ## format, lint, types, import contracts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

.PHONY: slow
slow: $(READY) ## the matrices and long figures
	$(BIN)/python -m pytest -q -m slow

.PHONY: chaos
chaos: $(READY) ## kills and faults
	$(BIN)/python -m pytest -q -m chaos

.PHONY: bench
bench: $(READY) ## speed as ratios against straightforward references
	$(BIN)/python -m benchmarks

.PHONY: ui
ui: $(READY) ## MLflow on the runs of this folder (PORT=5000)
	$(BIN)/clearstory ui --port $(PORT)

.PHONY: compile
compile: $(READY) ## the pipeline as IR YAML in build/
	$(BIN)/python -m pipelines.compile lifecycle $(RECIPE)

.PHONY: format
format: $(READY) ## rewrite files as `make check` wants them
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: clean
clean: ## remove runs, builds and caches of tools; .venv and fetched packages stay
	rm -rf runs build .mypy_cache .ruff_cache .pytest_cache *.egg-info
