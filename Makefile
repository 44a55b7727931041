# Everything a newcomer needs: `make demo` and `make test` do their own set-up in .venv.
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
# Everybody gets the same versions, of what builds the package too (newer pips ask the second one).
LOCKED := PIP_CONSTRAINT=constraints.txt PIP_BUILD_CONSTRAINT=constraints.txt
PIP    := $(LOCKED) $(BIN)/python -m pip --quiet --disable-pip-version-check
# Where the oldest versions allowed are tried, and with what: they have no wheels for a new Python.
LOWEST := .venv-lowest
LOWEST_PYTHON ?= $(shell for p in python3.11 python3.12 $(PYTHON); do $$p -c "" 2>/dev/null && echo $$p && break; done)
# Of the tests that need pytest only, those that call most of the libraries.
LOWEST_TESTS := tests/unit/test_plain_install.py tests/unit/test_kernels.py \
  tests/unit/test_truth.py tests/unit/reading/test_reading_csv.py \
  tests/cli/test_whole_outputs.py tests/cli/test_evaluate_and_compare.py
# Tests run on all cores; PYTEST_ARGS adds to this.
PYTEST := $(BIN)/python -m pytest -n auto
# Python keeps what it has compiled, whatever the environment says: tests start it very often.
unexport PYTHONDONTWRITEBYTECODE
# The linter of the pages' JavaScript.
OXLINT := oxlint@1.89.0
# Where to put all wheels of an install, and extras that are to be among them, such as geo,sql.
WHEELHOUSE ?= dist/wheelhouse
EXTRAS ?=
# Public data sets for benchmarks, if you have them; made-up countries of their size otherwise.
DATA   ?=

.DEFAULT_GOAL := help
.PHONY: help demo test test-gate test-all lint lint-js types kernels lowest docs dist wheelhouse lock bench audit fuzz clean

help:            ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

$(VENV)/.run: pyproject.toml constraints.txt
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "Setting up inftda in $(VENV) (once) ..."
	@$(PIP) install -e .
	@touch $@

$(VENV)/.dev: $(VENV)/.run
	@echo "Installing what the tests need in $(VENV) (once) ..."
	@$(PIP) install -e '.[dev]'
	@touch $@

$(LOWEST)/.run: pyproject.toml .ci/lowest.py
	@echo "Setting up the oldest versions allowed in $(LOWEST) (once) ..."
	@rm -rf $(LOWEST) && $(LOWEST_PYTHON) -m venv $(LOWEST)
	@$(LOWEST_PYTHON) .ci/lowest.py > $(LOWEST)/versions.txt
	@$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  --only-binary :all: -c $(LOWEST)/versions.txt -e . pytest
	@touch $@

demo: $(VENV)/.run    ## Release a small made-up country and say what happened
	@$(BIN)/inftda demo --out demo-output --force

# Lint, types and the compilation of kernels need one core each, so two go on at a time.
test: $(VENV)/.dev    ## Lint, types and the fast tests: about two minutes on two cores
	@$(MAKE) --no-print-directory -j 2 --output-sync lint types kernels
	@$(PYTEST) --dist worksteal $(PYTEST_ARGS)

# Tests that share a server or a browser run on one core. The documentation is built by a test.
test-gate: $(VENV)/.dev  ## What CI runs after `make test`: some of Spark, Chromium, stores, the audit, the lab
	@.ci/shout push
	@$(MAKE) --no-print-directory -j 2 --output-sync lint-js kernels
	@$(PYTEST) --dist loadgroup -m "slow and not nightly" $(PYTEST_ARGS)
	@$(PYTEST) -q lab/tests
	@.ci/shout push

test-all: $(VENV)/.dev  ## Everything, in full, and the oldest versions allowed: before a release
	@.ci/shout
	@$(MAKE) --no-print-directory -j 2 --output-sync lint types lint-js kernels
	@$(PYTEST) --dist loadgroup -m "slow or not slow" $(PYTEST_ARGS)
	@$(BIN)/python -m pytest -q -m "slow or not slow" lab/tests
	@$(MAKE) --no-print-directory lowest
	@.ci/shout

lint: $(VENV)/.dev    ## ruff: style and formatting
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types: $(VENV)/.dev   ## mypy, strict
	@$(BIN)/mypy

lint-js:              ## oxlint: the JavaScript of the pages, module by module (needs npx)
	@if npx --yes $(OXLINT) --version > /dev/null 2>&1; \
	then npx --yes $(OXLINT) --config .ci/oxlint.json src/inftda/pages/assets src/inftda/app/assets tests/page; \
	else echo "THE PAGES' JAVASCRIPT IS NOT LINTED: $(OXLINT) cannot be had by npx" >&2; fi

kernels: $(VENV)/.dev # compile them once, not in every process of the tests
	@$(BIN)/python .ci/warm.py > /dev/null

# Its own cache of kernels: the checkout's would be thrown away by another version of numba.
lowest: export NUMBA_CACHE_DIR := $(LOWEST)/numba
lowest: $(LOWEST)/.run  ## Demo, self-test and some tests with the oldest versions allowed
	@$(LOWEST)/bin/inftda demo --out $(LOWEST)/demo --force
	@$(LOWEST)/bin/inftda release --help > /dev/null
	@$(LOWEST)/bin/inftda selftest
	@$(LOWEST)/bin/python -m pytest -q -W default -m "slow or not slow" $(LOWEST_TESTS)

docs: $(VENV)/.dev    ## Build the documentation into site/, strictly
	@echo "Building the documentation: some 15 seconds ..."
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html"

dist: $(VENV)/.dev    ## Build the source archive and the wheel into dist/
	@$(BIN)/python -m hatchling build -d dist

wheelhouse: $(VENV)/.run  ## All that an install without a network needs (EXTRAS=geo,sql for more)
	@rm -rf $(WHEELHOUSE)
	@$(PIP) wheel -w $(WHEELHOUSE) '.$(EXTRAS:%=[%])'
	@echo "Install with: pip install --no-index --find-links $(WHEELHOUSE) 'inftda-od$(EXTRAS:%=[%])'"

lock: $(VENV)/.run    ## Raise all versions of constraints.txt to the newest
	@$(PIP) install uv
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --all-extras \
	  --no-annotate --custom-compile-command "make lock" -o constraints.txt pyproject.toml

bench: $(VENV)/.dev   ## Run all benchmarks and write docs/performance.md
	@INFTDA_DATA=$(DATA) $(BIN)/python benchmarks/run.py

audit: $(VENV)/.dev   ## The long black-box audit: claims, lower bounds, planted faults
	@PYTHONPATH=tests $(BIN)/python benchmarks/audit_report.py

fuzz: $(VENV)/.dev    ## Far more damaged input than `make test-all` tries
	@FUZZ_EXAMPLES=1000 $(PYTEST) -m nightly tests/bad_input/test_fuzz.py

clean:                ## Remove everything made here
	rm -rf $(VENV) $(LOWEST) build dist site demo-output .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +
