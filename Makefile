# `make demo` and `make test` need Python 3.11 or newer, git and a package registry; nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check -qq
CONSTRAINTS := deploy/constraints.txt
RUN := $(VENV)/.installed
DEVELOP := $(VENV)/.installed-for-development
OTHERS := $(VENV)-others
# For the tests that show why it is refused, out of reach of everything else.
UVLOOP := $(VENV)-uvloop
SIZE ?= 10000
FUZZ ?= 60

.PHONY: help demo models serve test lint eval-retrieval eval-answers eval-retries eval-verification eval-formats bench bench-extract bench-ingest bench-memory bench-search mutation fuzz clean
.DELETE_ON_ERROR:

help:
	@echo "make demo            set everything up, read the sample handbook, answer four questions with sources"
	@echo "make serve           open the page of the demo in a browser (Ctrl-C stops)"
	@echo "make models          fetch the embedded models (demo and test do so themselves)"
	@echo "make test            linters, types and all tests"
	@echo "make lint            linters and types only"
	@echo "make eval-retrieval  measure search on public questions, results under docs/benchmarks/"
	@echo "make eval-answers    measure answers, citations and refusals of the agent beside a bare loop"
	@echo "make eval-retries    what searching again in other words gains: 0, 1, 2 times, 40 questions"
	@echo "make eval-verification  how well unsupported sentences are told from supported ones, both languages"
	@echo "make eval-formats    read public files of every kind, and count how they end"
	@echo "make bench           measure speed, results under docs/benchmarks/"
	@echo "make bench-extract   reading of each format beside unstructured's own partitioners"
	@echo "make bench-ingest    a thousand documents beside the embedder alone"
	@echo "make bench-memory    memory of ingestion, up to ten thousand documents"
	@echo "make bench-search    search in a tenant of SIZE chunks (10000, 100000, 1000000) beside Chroma, LanceDB and ts_rank"
	@echo "make mutation        take every guard away, one at a time: a test must turn red for each"
	@echo "make fuzz            made-up files, URLs, citations and bodies for FUZZ seconds each, FUZZ requests a route and kind"
	@echo "make clean           remove .venv and caches (the data under .intramuros/ stays)"

demo: $(RUN)
	@$(BIN)/intramuros demo

serve: $(RUN)
	@$(BIN)/intramuros serve

models: $(RUN)
	@$(BIN)/intramuros models pull

# Two at a time: more wait for each other's models, databases and browsers. A file's tests stay together.
test: lint models $(UVLOOP)/.installed
	$(BIN)/python -m pytest --numprocesses 2 --dist loadfile

lint: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

eval-retrieval: models
	@$(BIN)/python -m tests.evals
	@$(BIN)/python -m tests.bench page

eval-answers: models $(DEVELOP)
	@$(BIN)/python -m tests.evals answers
	@$(BIN)/python -m tests.bench page

eval-retries: models $(DEVELOP)
	@$(BIN)/python -m tests.evals answers retries-0 retries-1 retries-2 --model embedded --most 40

eval-verification: models $(DEVELOP)
	@$(BIN)/python -m tests.evals verification
	@$(BIN)/python -m tests.bench page

eval-formats: $(DEVELOP)
	@$(BIN)/python -m tests.evals formats

bench: models $(DEVELOP)
	@$(BIN)/python -m tests.bench

# unstructured's PDF reader is measured beside ours; what it needs is nothing that the product needs.
bench-extract: $(DEVELOP)
	@$(PIP) install --no-compile '.[compare]' --constraint $(CONSTRAINTS)
	@$(PIP) install --no-compile --no-deps unstructured-inference==1.6.14
	@$(BIN)/python -m tests.bench extract

bench-ingest: models $(DEVELOP)
	@$(BIN)/python -m tests.bench ingest

bench-memory: $(DEVELOP)
	@$(BIN)/python -m tests.bench memory

# The others get an environment of their own: they bring uvloop, which this program refuses.
bench-search: models $(DEVELOP) $(OTHERS)/.installed
	@$(BIN)/python -m tests.bench.search --size $(SIZE) --others-python $(OTHERS)/bin/python
	@$(BIN)/python -m tests.bench page

$(OTHERS)/.installed: pyproject.toml | $(VENV)/bin/python
	@$(PYTHON) -m venv $(OTHERS)
	@$(OTHERS)/bin/python -m pip --disable-pip-version-check -qq install --no-compile '.[compare-search]'
	@touch $@

$(UVLOOP)/.installed: | $(VENV)/bin/python
	@$(PIP) install --no-compile --target $(UVLOOP) uvloop==0.23.0
	@touch $@

mutation: $(DEVELOP)
	@$(BIN)/python -m tests.mutation

fuzz: $(DEVELOP)
	@$(PIP) install --no-compile --editable '.[embedded,dev,fuzz]' --constraint $(CONSTRAINTS)
	@mkdir -p build
	@for target in url body citation upload; do \
	  $(BIN)/python -m tests.fuzz $$target -max_total_time=$(FUZZ) -artifact_prefix=build/ || exit 1; done
	@INTRAMUROS_FUZZ=$(FUZZ) $(BIN)/python -m pytest -q tests/fuzz/test_api.py

clean:
	rm -rf $(VENV) $(OTHERS) $(UVLOOP) build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "error: $(PYTHON) is older than 3.11. Name a newer one: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(RUN): pyproject.toml $(CONSTRAINTS) | $(VENV)/bin/python
	@echo "Installing into $(VENV) (once, a few minutes) ..."
	@$(PIP) install --no-compile --editable '.[embedded]' --constraint $(CONSTRAINTS)
	@touch $@

$(DEVELOP): pyproject.toml $(CONSTRAINTS) | $(RUN)
	@echo "Installing the tools for development ..."
	@$(PIP) install --no-compile --editable '.[embedded,dev]' --constraint $(CONSTRAINTS)
	@touch $@
