# Every target makes its own environment from nothing but python3.
PYTHON ?= python3
VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check --quiet
# The versions that development uses, for every Python; `make test CONSTRAINTS=` takes the newest instead.
CONSTRAINTS ?= --constraint constraints.txt

.DEFAULT_GOAL := help
.PHONY: help demo test test-sail test-spark test-slow test-papers test-mutations papers papers-full coverage bench lint lock docs clean

help: ## what can be made
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-14s %s\n", $$1, $$2}'

$(VENV)/bin/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hubbub needs Python 3.11 or newer")'
	@$(PYTHON) -m venv $(VENV)
	@$(PIP) install --upgrade 'pip>=25.1,<27'

$(VENV)/demo.stamp: pyproject.toml | $(VENV)/bin/python
	@echo "installing hubbub ..."
	@$(PIP) install -e '.[demo]'
	@touch $@

$(VENV)/dev.stamp: pyproject.toml papers/pyproject.toml constraints.txt | $(VENV)/bin/python
	@echo "installing hubbub and its development tools ..."
	@$(PIP) install -e '.[all]' -e papers --group dev $(CONSTRAINTS)
	@touch $@ $(VENV)/demo.stamp

$(VENV)/docs.stamp: $(VENV)/dev.stamp
	@$(PIP) install --group docs $(CONSTRAINTS)
	@touch $@

# pyspark and the client of Spark Connect exclude each other: each has an environment of its own, on top of the one of development.
.PRECIOUS: .venv-%/bin/python
.venv-%/bin/python: | $(VENV)/dev.stamp
	@$(PYTHON) -m venv .venv-$*
	@.venv-$*/bin/python -c 'import site, sys; open(site.getsitepackages()[0] + "/development.pth", "w").write(f"import site; site.addsitedir({sys.argv[1]!r})")' \
		"$$($(PY) -c 'import site; print(site.getsitepackages()[0])')"

.venv-%/engine.stamp: pyproject.toml $(VENV)/dev.stamp | .venv-%/bin/python
	@echo "installing the engines of $* ..."
	@$(PY) -m pip --python .venv-$*/bin/python --disable-pip-version-check --quiet install --group $* $(CONSTRAINTS)
	@touch $@

demo: $(VENV)/demo.stamp ## the main job, end to end
	@$(VENV)/bin/hubbub demo

lint: $(VENV)/dev.stamp ## style, types, layers
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .
	@$(VENV)/bin/mypy
	@$(VENV)/bin/lint-imports

# Tests start hundreds of processes: without files of bytecode each of them would compile the package anew.
test test-slow test-papers coverage: export PYTHONDONTWRITEBYTECODE =

# Many tests wait for processes, browsers and real clocks: two more at work than there are processors.
WORKERS = $$(($$(getconf _NPROCESSORS_ONLN) + 2))
IN_MEMORY = sh tests/in_memory.sh

test: $(VENV)/dev.stamp .venv-sail/engine.stamp ## doctests and tests, and lint at the same time; the slowest 20 are named at the end
	@mkdir -p build
	@$(MAKE) --no-print-directory lint > build/lint.txt 2>&1 & lint=$$!; \
	$(MAKE) --no-print-directory test-sail > build/sail.txt 2>&1 & sail=$$!; \
	$(IN_MEMORY) $(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal --durations 20; tests=$$?; \
	wait $$lint; linted=$$?; cat build/lint.txt; wait $$sail; sailed=$$?; cat build/sail.txt; exit $$((tests || linted || sailed))

test-sail: .venv-sail/engine.stamp ## the behaviour of every engine, on Sail and with the recipes of docs/spark.md; a part of `make test`
	@HUBBUB_ENGINE=sail $(IN_MEMORY) .venv-sail/bin/python -m pytest tests/spark/engine

test-spark: .venv-spark/engine.stamp ## the same on Spark, with streams and kills (needs Java 17)
	@HUBBUB_ENGINE=spark $(IN_MEMORY) .venv-spark/bin/python -m pytest -m "" tests/spark/engine

test-slow: $(VENV)/dev.stamp ## the statistical sweeps, the long forms of short tests, many examples of each property
	@$(IN_MEMORY) $(PY) -m pytest -m slow tests papers/tests
	@HUBBUB_EXAMPLES=long $(IN_MEMORY) $(PY) -m pytest -m 'hypothesis and not slow' tests

test-papers: $(VENV)/dev.stamp ## every figure and table of the papers, at a small size
	@$(PY) -m pytest -m papers papers/tests

papers: $(VENV)/dev.stamp ## the gallery of every figure and table within 3 hours on two cores, build/papers/index.html; goes on where it was left
	@$(VENV)/bin/hubbub reproduce gallery --hours 3 --workers 2 --out build/papers

papers-full: $(VENV)/dev.stamp ## the gallery in full, without a limit; its records are kept in papers/src/hubbub_papers/results
	@$(VENV)/bin/hubbub reproduce gallery --workers 2 --out build/papers-full --keep papers/src/hubbub_papers/results

test-mutations: $(VENV)/dev.stamp ## a test fails for each security decision that is mutated; ONLY="shuffler:" tries some of them
	@$(PY) tests/mutations.py $(ONLY)

coverage: $(VENV)/dev.stamp ## line coverage of `make test`, with the processes that tests start; build/coverage/index.html has the lines
	@mkdir -p build
	@$(IN_MEMORY) $(PY) -m pytest --numprocesses $(WORKERS) --dist worksteal --cov --cov-report html --cov-report term:skip-covered

bench: $(VENV)/dev.stamp ## speed, as ratios, against plain C and the best peers (needs a C compiler); writes docs/benchmarks.md
	@$(PY) benchmarks/run.py --page

lock: $(VENV)/dev.stamp ## write constraints.txt anew: the newest allowed versions, for Python 3.11 and later
	@$(PIP) install 'uv>=0.8,<1'
	@$(VENV)/bin/uv pip compile --quiet --universal --python-version 3.11 --all-extras --group dev --group docs --no-annotate \
		--upgrade --custom-compile-command 'make lock' --output-file constraints.txt pyproject.toml

docs: $(VENV)/docs.stamp ## the API reference, in build/docs
	@$(VENV)/bin/pdoc --output-directory build/docs hubbub '!hubbub.kernels'
	@echo "open build/docs/index.html"

clean: ## remove what the targets made
	@rm -rf $(VENV) .venv-sail .venv-spark build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
