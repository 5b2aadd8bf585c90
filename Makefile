# Needs Python 3.11+ and make. Everything it installs lands in .venv.
#   PYTHON=/path/to/python3   which interpreter .venv is made with
#   WHEELS=/path/to/wheels    install from this folder alone, with no network
#   COVERAGE=1                make test counts branches; make test-long adds its own, and fails if both together
#                             stay below the bound of pyproject.toml
#   DATA=/path/to/data        real data sets for reproduce; OUT=FOLDER is where it writes

SHELL := /bin/sh
.DEFAULT_GOAL := help
.PHONY: help setup demo test test-long check docs bench bench-against bench-peers mutants torture torture-js clean reproduce reproduce-quick
# Two installations into one environment at a time would break it, even under make -j.
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
PEERS := .venv-peers
# The first of these that runs and is new enough: a version manager's stub may exist and refuse.
CANDIDATES := python3 python3.14 python3.13 python3.12 python3.11 python
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
# uv is quicker, but reads none of pip's settings: where it fails, pip gets its turn.
WHEEL_OPTIONS := $(if $(WHEELS),--no-index --find-links "$(abspath $(WHEELS))")
WORKERS ?= 2
# Seconds of hostile load in torture.
HOSTILE ?= 600
AGAINST ?= HEAD~1
# Where reproduce leaves its report, and the real data sets, where there are any.
OUT ?= reproduction
DATA ?= $(wildcard ../shared/data)
DATA_OPTION = $(if $(DATA),--data-dir "$(DATA)")

export PIP_DISABLE_PIP_VERSION_CHECK := 1
# An activated environment or a user's site must not leak into this one; and what is compiled is kept.
export PYTHONNOUSERSITE := 1
unexport PYTHONPATH PYTHONHOME PYTHONDONTWRITEBYTECODE

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-15s %s\n", $$1, $$2}' Makefile

setup: $(VENV)/.installed ## install the library, every extra and the tools into .venv

demo: $(VENV)/.installed-run ## the main job on real data: devices, collector, dashboard
	$(BIN)/loloha demo

# Workers share the cores: threads of linear algebra would only wait for each other.
test test-long: export OPENBLAS_NUM_THREADS := 1
# One more than cores: a third of a run waits for disks, databases and processes.
test: $(VENV)/.installed ## run the tests; COVERAGE=1 counts branches, in three times the time
	$(BIN)/python -m pytest -n $$(($(WORKERS) + 1)) --dist loadfile $(if $(COVERAGE),--cov --cov-report= --cov-fail-under=0)

test-long: $(VENV)/.installed ## run the rest: all variants of the laws, Spark, browsers; COVERAGE=1 adds to what test counted
	$(BIN)/python -m pytest -n $(WORKERS) -m long $(if $(COVERAGE),--cov --cov-append)

check: $(VENV)/.installed docs ## lint, format, types, documentation, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --level error tests/user.py
	$(BIN)/python -m pytest -q tests/test_layers.py

# -E reads every page again: one read before would keep its warnings to itself.
docs: $(VENV)/.installed ## build docs/_build/html, warnings as errors
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html -d docs/_build/doctrees docs docs/_build/html

bench: $(VENV)/.installed ## measure the speed, beside the straightforward method
	$(BIN)/python -m benchmarks

bench-against: $(VENV)/.installed ## the hot paths here and at AGAINST (HEAD~1), by turns, as ratios
	$(BIN)/python -m benchmarks --against $(AGAINST)

bench-peers: $(PEERS)/.installed ## measure the same work by other tools, in an environment of its own
	$(PEERS)/bin/python benchmarks/peers.py --out docs/peers-table.md

reproduce: $(VENV)/.installed ## make the paper's whole evaluation anew, both calibrations
	$(BIN)/loloha reproduce all --calibration tight --jobs $(WORKERS) --out $(OUT) $(DATA_OPTION)

reproduce-quick: $(VENV)/.installed ## the same at a reduced size, in about a minute
	$(BIN)/loloha reproduce all --calibration tight --quick --jobs $(WORKERS) --out $(OUT)-quick $(DATA_OPTION)

torture: $(VENV)/.installed ## trouble collectors and devices 50 times each, on each store; then HOSTILE seconds of attacks
	$(BIN)/python tests/torture.py --store sqlite
	$(BIN)/python tests/torture_device.py
	$(BIN)/python tests/hostile.py --seconds $(HOSTILE)
	@if [ -n "$$LOLOHA_TEST_POSTGRES" ]; then $(BIN)/python tests/torture.py --store postgresql \
	&& $(BIN)/python tests/torture.py --store postgresql --collectors 3; \
	else echo "no PostgreSQL: LOLOHA_TEST_POSTGRES is not set"; fi

torture-js: ## kill a JavaScript device 50 times
	cd clients/js && LOLOHA_KILLS=50 node --test test/file.test.js

mutants: $(VENV)/.installed ## plant known bugs and see each one caught
	$(BIN)/python tests/mutants.py

clean: ## remove .venv and everything built
	rm -rf $(VENV) $(PEERS) build dist docs/_build .coverage .coverage.* .hypothesis .mypy_cache .pytest_cache .ruff_cache

# Without ensurepip (Debian keeps it in a package of its own) the interpreter's pip, or uv, fills the environment.
$(BIN)/python:
	@found=; for python in $(if $(PYTHON),"$(PYTHON)",$(CANDIDATES)); do \
		if "$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Python must be 3.11 or newer, found none as $(or $(PYTHON),$(CANDIDATES));" \
			"install one, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	"$$found" -m venv $(VENV) >/dev/null 2>&1 || "$$found" -m venv --clear --without-pip $(VENV)

# The command line, the compiled kernels and the collector: what the demo needs, and no more.
$(VENV)/.installed-run: pyproject.toml | $(BIN)/python
	$(call install,.[cli$(comma)fast$(comma)collector])
	@touch $@

# What the peers need, as far as they work: pure-ldp breaks with xxhash 4, and imports two libraries
# that it does not declare.
$(PEERS)/.installed: pyproject.toml | $(BIN)/python
	rm -rf $(PEERS) && $(BIN)/python -m venv $(PEERS)
	$(PEERS)/bin/python -m pip install --quiet $(WHEEL_OPTIONS) -e '.[fast]' \
		pure-ldp==1.2.0 multi-freq-ldpy==0.2.5 'xxhash<4' scikit-learn statsmodels
	@touch $@

# Holds all that the demo needs too.
$(VENV)/.installed: pyproject.toml | $(BIN)/python
	$(call install,.[dev])
	@touch $@ $(VENV)/.installed-run

comma := ,
define install
@echo "installing $(1) into $(VENV), a minute or two ..."
@if command -v uv >/dev/null 2>&1 && \
	uv pip install --quiet --python $(BIN)/python $(WHEEL_OPTIONS) -e '$(1)'; then :; \
elif $(BIN)/python -m pip --version >/dev/null 2>&1; then \
	$(BIN)/python -m pip install --quiet $(WHEEL_OPTIONS) -e '$(1)'; \
else \
	"$$($(BIN)/python -c 'import sys; print(sys._base_executable)')" -m pip \
		--python $(BIN)/python install --quiet $(WHEEL_OPTIONS) -e '$(1)'; \
fi
endef
