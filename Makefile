# Everything here sets itself up: `make test` on a fresh machine needs Python 3.11+ and make, nothing else.
# PYTHON=/path/to/python picks an interpreter.

SHELL := /bin/bash
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory
# Without compiled files each process of a test would compile what it imports, and each worker of pytest all tests.
export PYTHONDONTWRITEBYTECODE :=

BIN := .venv/bin
# uv chooses and downloads in a fraction of the time that pip takes. If it cannot be had or fails, pip installs. It uses
# the index that pip is set to, and keeps its cache beside what is installed, so that files are linked, not copied.
PIP := $(BIN)/python -m pip --disable-pip-version-check
PIP_INSTALL := $(PIP) install --quiet --no-compile --constraint constraints.txt
UV_INSTALL := UV_DEFAULT_INDEX="$${PIP_INDEX_URL:-$$($(PIP) config get global.index-url 2>/dev/null)}" \
	$(BIN)/uv pip install --quiet --python $(BIN)/python --cache-dir .venv/uv --constraint constraints.txt
install_extras = ($(PIP_INSTALL) uv && $(UV_INSTALL) --editable '.[$(1)]') || $(PIP_INSTALL) --editable '.[$(1)]'
EXTRAS := review,testgen,data,serve
DEV_EXTRAS := $(EXTRAS),dev
# What pip would do on one core.
COMPILE := $(BIN)/python -m compileall -qq -j 0
# Of npm: the official client for node and a server of MCP, and with `make npm` coding agents (700 MB).
NPM := timeout 300 npm install --silent --no-audit --no-fund --prefix .venv/npm
NPM_CLIENTS := openai @modelcontextprotocol/server-everything
# Twice the cores of the smallest machine: many tests wait for processes and for the network.
WORKERS ?= 4
# Each worker has its part from the start, so that a server or a browser is started once for the tests of a module.
PYTEST = $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal
PYTEST_ARGS ?=
# Debian's Chromium, for the tests of the page; only root can install it.
BROWSER := (test "$$(id -u)" = 0 && apt-get -qq update && apt-get -qq install --no-install-recommends chromium) >/dev/null 2>&1

.PHONY: help install dev check test soak coverage lint format run docs pictures looks golden figures judge outside generated temporal bench npm clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s  %s\n", $$1, $$2 }' Makefile

install: .venv/.installed ## the chargehand command in .venv/
	@:

dev: .venv/.dev ## install, with everything tests and linters need
	@:

# Few of its tests wait, and each worker collects them all.
check: WORKERS := 2
check: dev ## lint, types, import layers, and the tests that take seconds
	@echo "== pytest, without the slow tests"
	@$(call beside_lint,$(PYTEST) -m 'not slow' $(PYTEST_ARGS))

# A busy machine makes one in thousands of limits of time late: a test that fails is tried twice more, and named (RERUN).
# `make check` and `make soak` give no second try.
test: dev ## lint, types, import layers, and the tests, with a tenth of the large counts
	@echo "== pytest"
	@$(call beside_lint,$(PYTEST) --reruns 2 -raR $(PYTEST_ARGS))

soak: dev ## the same with all kills, faults, simulations and fuzzing: before an issue is closed
	@echo "== pytest, full counts"
	@$(call beside_lint,CHARGEHAND_SOAK=1 $(PYTEST) $(PYTEST_ARGS))

# A command for tests, with the linters beside it: alone the check of types keeps one core busy and leaves the others idle.
# The tests start hundreds of processes, and each would compile chargehand again where Python may keep nothing compiled.
beside_lint = $(COMPILE) src; \
	$(MAKE) lint > .venv/lint.txt 2>&1 & lint=$$!; \
	$(1); tests=$$?; wait $$lint; linted=$$?; \
	cat .venv/lint.txt; test $$tests = 0 -a $$linted = 0

coverage: dev ## the tests with branch coverage, and what they leave out
	@$(PYTEST) --cov --cov-report=term $(PYTEST_ARGS)

lint: dev ## ruff, types, import layers
	@echo "== ruff check"
	@$(BIN)/ruff check .
	@echo "== ruff format --check"
	@$(BIN)/ruff format --check .
	@echo "== types (basedpyright, strict)"
	@$(BIN)/basedpyright
	@echo "== import layers"
	@$(BIN)/lint-imports --no-logo

format: dev ## fix and format the code
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

run: install ## the demo, then a review of the sample project in examples/shop: no key, no model, no network
	@$(BIN)/chargehand demo build/demo
	@echo; echo "== a review of examples/shop, without a model"
	@rm -rf build/shop && mkdir -p build/shop
	@git -C build/shop init --quiet --initial-branch=main
	@git -C build/shop fast-import --quiet < examples/shop/history.fi
	@git -C build/shop checkout --quiet --force search
	@$(BIN)/chargehand review build/shop --diff main
	@$(BIN)/chargehand trace last --format html -o build/review.html >/dev/null
	@echo; echo "Planted defects, all of them (examples/shop/README.md). The pages of both runs:"
	@echo "  $(CURDIR)/build/demo/page.html"; echo "  $(CURDIR)/build/review.html"

docs: install ## llms.txt and the pages under docs/reference that are made from the code
	@$(BIN)/python -m scripts.reference docs/reference

pictures: dev ## docs/images, from a run of the demo: needs tmux and chromium
	@$(BIN)/python -m scripts.pictures

looks: dev ## build/looks: the page at every width, of runs of every size and state, to be looked at: needs chromium
	@rm -rf build/looks
	@$(BIN)/python -m scripts.looks

golden: dev ## the wording of messages in tests/golden, as it is now
	@CHARGEHAND_GOLDEN=write $(BIN)/python -m pytest -q tests/golden

figures: dev ## the table of size and shape in docs/explanation/architecture.md
	@$(BIN)/python -m scripts.architecture --write

judge: dev ## how well a real model does in a team, beside one plain prompt: make judge GGUF=FILE
	@$(BIN)/python -m bench.judgement --gguf $(GGUF) --write

outside: dev ## what a review says about commits of other projects: make outside REPOS="FOLDER FOLDER"
	@$(BIN)/python -m bench.outside $(REPOS) -o build/outside.md

generated: dev ## how good the tests are that testgen writes for five packages from the index
	@$(BIN)/python -m bench.testgen --folder build/generated

temporal: dev ## a development server of Temporal, a worker and the page, on this machine: Ctrl-C ends them
	@$(BIN)/chargehand serve --engine temporal --dev

bench: dev ## the benchmarks
	@$(BIN)/python -m bench

npm: dev ## real coding agents for the tests: claude and codex from npm
	@$(NPM) $(NPM_CLIENTS) @anthropic-ai/claude-code @openai/codex

clean: ## remove .venv/, caches and build results
	@rm -rf .venv build dist .pytest_cache .ruff_cache .import_linter_cache .hypothesis .coverage .coverage.* htmlcov
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# Each stamp is older than what it was made from only when there is something to do.

.venv/.installed: .venv/.created pyproject.toml constraints.txt Makefile
	@echo "== installing chargehand into .venv/"
	@$(call install_extras,$(EXTRAS))
	@$(COMPILE) .venv/lib src || true
	@touch $@

# What is not Python's own comes at the same time: it waits for the network.
.venv/.dev: .venv/.created pyproject.toml constraints.txt Makefile
	@echo "== installing chargehand and the development tools into .venv/"
	@(command -v chromium >/dev/null || $(BROWSER) || echo "== no chromium: the tests in a browser are skipped") & \
	(command -v npm >/dev/null && $(NPM) $(NPM_CLIENTS) || echo "== no npm: the tests with clients for node are skipped") & \
	$(call install_extras,$(DEV_EXTRAS)); installed=$$?; \
	$(COMPILE) .venv/lib || true; wait; exit $$installed
	@touch .venv/.installed $@

# An interpreter on the PATH may be a shim that fails when run, so each candidate is run. One that can make a
# virtual environment is preferred over a newer one that cannot.
.venv/.created:
	@set -eu; new=; able=; \
	for candidate in $(or $(PYTHON),python3.13 python3.12 python3.11 python3 python); do \
		"$$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || continue; \
		new=$${new:-$$candidate}; \
		"$$candidate" -c 'import venv, ensurepip' >/dev/null 2>&1 || continue; \
		able=$$candidate; break; \
	done; \
	if [ -z "$$new" ]; then \
		echo "chargehand needs Python 3.11 or newer and found none; install it, or name it: make install PYTHON=/path/to/python" >&2; \
		exit 1; \
	fi; \
	if [ -z "$$able" ]; then \
		package=$$("$$new" -c 'import sys; print("python%d.%d-venv" % sys.version_info[:2])'); \
		if ! command -v apt-get >/dev/null; then \
			echo "$$new cannot make virtual environments: install its venv and ensurepip modules, then run make again" >&2; exit 1; \
		elif [ "$${CI:-}" = true ] && [ "$$(id -u)" = 0 ]; then \
			echo "== installing $$package"; \
			apt-get update -qq; DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "$$package" >/dev/null; \
		else \
			echo "$$new cannot make virtual environments; run this, then make again: sudo apt-get install $$package" >&2; exit 1; \
		fi; \
		able=$$new; \
	fi; \
	echo "== making .venv/ with $$("$$able" --version)"; \
	"$$able" -m venv .venv
	@touch $@
