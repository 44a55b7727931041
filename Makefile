# Everything a newcomer needs: `make demo` and `make test` do their own set-up in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Where the oldest versions allowed are tried.
LOWEST := .venv-lowest
# Of the tests that need pytest only, those that call most of the libraries.
LOWEST_TESTS := tests/unit/test_plain_install.py tests/unit/test_compiled.py \
  tests/unit/test_counts.py tests/unit/reading/test_reading_csv.py \
  tests/cli/test_query_and_verify.py tests/cli/test_plan.py
# Tests run on all cores; PYTEST_ARGS adds to this.
PYTEST := $(BIN)/python -m pytest -n auto
# Public data sets for benchmarks, if you have them; made-up countries of their size otherwise.
DATA   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-all lint types lowest docs bench audit fuzz clean

help:            ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up inftda in $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing what the tests need in $(VENV) (once) ..."
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

$(LOWEST)/.run: pyproject.toml .ci/lowest.py
	@echo "Setting up the oldest versions allowed in $(LOWEST) (once) ..."
	@rm -rf $(LOWEST) && $(PYTHON) -m venv $(LOWEST)
	@$(PYTHON) .ci/lowest.py > $(LOWEST)/versions.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --only-binary :all: -c $(LOWEST)/versions.txt -e . pytest
	@touch $@

demo: $(VENV)/.run    ## Release a small made-up country and say what happened
	@$(BIN)/inftda demo --out demo-output

test: lint types      ## Lint, types and the fast tests
	@command -v java >/dev/null || echo "Java is missing: SPARK IS NOT TESTED (install a JRE, 17 or newer)" >&2
	@$(PYTEST) $(PYTEST_ARGS)

test-all: lint types  ## Also the slow tests
	@$(PYTEST) -m "slow or not slow" $(PYTEST_ARGS)

lint: $(VENV)/.dev    ## ruff: style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev   ## mypy, strict
	@$(BIN)/mypy

# Its own cache of kernels: the checkout's would be thrown away by another version of numba.
lowest: export NUMBA_CACHE_DIR := $(LOWEST)/numba
lowest: $(LOWEST)/.run  ## Demo, self-test and some tests with the oldest versions allowed
	@$(LOWEST)/bin/inftda demo --out demo-output
	@$(LOWEST)/bin/inftda release --help > /dev/null
	@$(LOWEST)/bin/inftda selftest
	@$(LOWEST)/bin/python -m pytest -q -W default $(LOWEST_TESTS)

docs: $(VENV)/.dev    ## Build the documentation into site/, strictly
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

bench: $(VENV)/.dev   ## Run all benchmarks and write docs/performance.md
	@INFTDA_DATA=$(DATA) $(BIN)/python benchmarks/run.py

audit: $(VENV)/.dev   ## The long black-box audit: claims, lower bounds, planted faults
	@PYTHONPATH=tests $(BIN)/python benchmarks/audit_report.py

fuzz: $(VENV)/.dev    ## Ten minutes of damaged input
	@$(BIN)/python tests/bad_input/fuzz.py --minutes 10

clean:                ## Remove everything made here
	rm -rf $(VENV) $(LOWEST) build dist site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
