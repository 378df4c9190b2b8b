# Every target sets up what it needs. PYTHON=python3.12 make setup uses another Python (3.10 to 3.13), SPARK=4.1 another
# Spark, in an environment of its own.
PYTHON ?= python3
SPARK ?= 4.2
ifeq ($(SPARK),4.2)
VENV := .venv
CONSTRAINTS := constraints.txt
MARKED :=
else ifneq ($(filter 4.1,$(SPARK)),)
VENV := .venv-spark$(SPARK)
CONSTRAINTS := $(VENV)/constraints.txt
MARKED := -m 'versions and not slow'
else
$(error SPARK=$(SPARK) is not supported: SPARK=4.2, the default, or SPARK=4.1)
endif
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CASES ?= ../shared/cases
ROUNDS ?= 100
WHERE ?= local
bench bench-full bench-sql bench-s3 bench-semantics: ROWS ?= 1000000
SEED ?= 0
# Tests start many processes, and each would compile all modules that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup demo demo-sql demo-connect test slow test-connect cluster azurite faults faults-short soak cases bench bench-peers flink-vectors flink-scripts bench-full bench-sql bench-s3 bench-semantics bench-sizing bench-formats bench-publish bench-quality bench-monitoring check lint types imports docs format wheel pack clean
.DELETE_ON_ERROR:

help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

##@ Run
demo: $(READY) ## Broker, changelog, ingest, publish, check and verify, all on this machine
	$(BIN)/bridge demo

demo-sql: $(READY) ## A script in Flink SQL: page views are counted by region, from topic to topic
	$(BIN)/bridge demo --sql

demo-connect: $(READY) ## The same as make demo, through a Spark Connect server of its own process
	$(BIN)/python -m tests.backend.connect_server $(BIN)/bridge demo --folder .work/demo-connect

##@ Develop
setup: $(READY) ## Make .venv from constraints.txt and fetch the jars; instant when done

test: $(READY) ## Run the tests (SPARK=4.1: those of what differs between versions, on another Spark with its Delta)
	env -u BRIDGE_CASES_DIR $(BIN)/pytest --numprocesses=2 --dist=loadfile --no-loadscope-reorder $(MARKED)

slow: $(READY) ## Run the tests that take minutes (make test leaves them out)
	env -u BRIDGE_CASES_DIR $(BIN)/pytest -m slow

test-connect: $(READY) ## Run commands and suites through a Spark Connect server of its own process (make slow does, too)
	env -u BRIDGE_CASES_DIR $(BIN)/pytest tests/backend -m "slow or not slow" --numprocesses=2 --dist=loadfile

cluster: $(READY) ## Run what docs/cluster.md shows on a standalone cluster of this machine; kill an executor, a worker
	env -u BRIDGE_CASES_DIR $(BIN)/pytest tests/cluster -m "slow or not slow"

azurite: $(READY) ## Run what must hold on an object store on a local server of Azure's (npm install --global azurite@3)
	env -u BRIDGE_CASES_DIR BRIDGE_TEST_STORE=azure $(BIN)/pytest -m "slow or not slow" tests/lake/test_store.py \
	  tests/test_storage_table_store_histories.py tests/test_small_files_s3.py \
	  tests/pipelines/ingest/test_run_object_store.py

faults: $(READY) ## Play ROUNDS=100 rounds of faults drawn by SEED, judge what is left, add them to docs/reliability.md (WHERE=cluster: on a standalone cluster)
	$(BIN)/python -m tests.faults --rounds $(ROUNDS) --seed $(SEED) --where $(WHERE) \
	  --ledger docs/reliability$(if $(filter cluster,$(WHERE)),-cluster).jsonl

faults-short: $(READY) ## Ten lanes of other configurations each, scripts and jobs among them, each hit at least once, in minutes; draws a seed and prints it (SEED=7 repeats one; PLAIN=1 leaves scripts, jobs and users' writes out; LEDGER=1 adds the rounds to docs/reliability.md)
	$(BIN)/python -m tests.faults --episodes 2 --lanes $(if $(PLAIN),6 --plain,5) --blows 1 --seed $(SEED) \
	  $(if $(LEDGER),--ledger docs/reliability.jsonl)

soak: $(READY) ## Run ingest and publish for MINUTES=30 at 2,000 changes a second, drawn by SEED; fail if latency or memory grow (KILLS=1: with faults, fail unless their alerts fire, and no others; S3=1: on a local S3 server behind 20 ms a request)
	$(BIN)/python -m benchmarks.soak $(if $(MINUTES),--minutes $(MINUTES)) $(if $(KILLS),--kills) $(if $(S3),--s3) $(if $(filter-out file,$(origin SEED)),--seed $(SEED))

cases: $(READY) ## Run the acceptance cases in CASES (default ../shared/cases)
	BRIDGE_CASES_DIR="$${BRIDGE_CASES_DIR:-$(CASES)}" $(BIN)/python -m tests.cases

bench: $(READY) ## Time an ingest beside Delta's recipe and Flink, under 20 minutes (ROWS=1000000)
	$(BIN)/python -m benchmarks --rows $(ROWS) $(if $(ONLY),--only $(ONLY)) \
	  $$([ $(ROWS) -lt 1000000 ] || echo --report docs/performance.md)

bench-peers: $(READY) ## Fetch Flink and Paimon once (300 MB), so that the benchmarks run them, too
	$(BIN)/python -m benchmarks.flink

flink-vectors: $(READY) ## Ask Flink for the values of functions, operators and casts, and for documents of its formats; they become data of the tests
	$(BIN)/python -m benchmarks.flink_vectors

bench-full: $(READY) ## All parts, with tables of 20 and 100 million rows, hours (ONLY=tables,publish: parts); a page of each
	$(BIN)/python -m benchmarks --full --rows $(ROWS) $(if $(ONLY),--only $(ONLY)) \
	  $$([ $(ROWS) -lt 1000000 ] || echo --report docs/performance.md)

bench-sql: $(READY) ## Time a script in Flink SQL beside Flink and beside a whole aggregate (ROWS=1000000)
	$(BIN)/python -m benchmarks --rows $(ROWS) --only sql \
	  $$([ $(ROWS) -lt 1000000 ] || echo --report docs/performance-sql.md)

bench-s3: $(READY) ## Time batches into a table on a local S3 server behind 20 ms a request beside the same table on a disk (ROWS=1000000)
	$(BIN)/python -m benchmarks --rows $(ROWS) --only s3 \
	  $$([ $(ROWS) -lt 1000000 ] || echo --report docs/performance-s3.md)

bench-semantics: $(READY) ## Time sequence-by, histories and partial updates beside plain upserts and beside Delta's MERGE for SCD 2 (ROWS=1000000: 2,000,000 rows)
	$(BIN)/python -m benchmarks --rows $(ROWS) --only semantics \
	  $$([ $(ROWS) -lt 1000000 ] || echo --report docs/performance-semantics.md)

flink-scripts: $(READY) ## Run whole scripts on Flink and on the bridge, compare their results, write docs/sql-conformance.md (SEED=1,2,3: drawn scripts, too)
	$(BIN)/python -m benchmarks.flink_scripts $(if $(ONLY),--only $(ONLY)) \
	  $(if $(filter-out file,$(origin SEED)),--seed $(SEED)) $(if $(ONLY),,--report docs/sql-conformance.md)

bench-sizing: $(READY) ## What a million records cost in CPU, memory and shuffle; writes docs/sizing.md (ROWS=500000)
	$(BIN)/python -m benchmarks.sizing --rows $(or $(ROWS),500000) $(if $(ROWS),,--report docs/sizing.md)

bench-formats: $(READY) ## Time every format beside Spark's own functions (ROWS=150000)
	$(BIN)/python -m benchmarks.formats

bench-publish: $(READY) ## Time publishing beside a bare producer loop (ROWS=1000000)
	$(BIN)/python -m benchmarks.publish

bench-quality: $(READY) ## Time the quality gate beside no gate and beside Great Expectations (ROWS=1000000)
	$(BIN)/python -m benchmarks.quality

bench-monitoring: $(READY) ## What a batch pays for metrics, traces, events and lineage, by five drawn seeds
	$(BIN)/python -m benchmarks.monitoring_cost

check: lint types imports ## Lint, types and imports

lint: $(READY) ## Check style and formatting
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(READY) ## Check types
	$(BIN)/mypy

imports: $(READY) ## Check that imports flow down only
	$(BIN)/lint-imports

docs: $(READY) ## Build the docs into .work/site, to be opened from there: no server, no network
	env NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "open .work/site/index.html"

format: $(READY) ## Format the code, mend what can be mended
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

wheel: $(READY) ## Build the wheel into dist/
	rm -rf build dist
	$(BIN)/python -m build --wheel --no-isolation

pack: wheel ## Build what a cluster gets: dist/bridge.zip (--py-files), dist/environment.tar.gz (--archives)
	$(BIN)/python -m bridge.pack dist

clean: ## Remove what the targets have made
	rm -rf .venv .venv-spark* .work build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(READY): pyproject.toml constraints.txt $(wildcard constraints-spark$(SPARK).txt)
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 10) <= sys.version_info < (3, 14))' || { \
	  echo "$(PYTHON) is $$($(PYTHON) --version 2>&1); Python 3.10 to 3.13 is needed: make PYTHON=python3.12 setup" >&2; exit 1; }
	@command -v "$${JAVA_HOME:+$$JAVA_HOME/bin/}java" >/dev/null || { \
	  echo "no java found: install Java 17 and put it on PATH, or set JAVA_HOME" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@# What a file for another Spark names takes precedence.
	@[ $(CONSTRAINTS) = constraints.txt ] || awk -F '[=;]' '!/^#/ && FNR == NR {own[$$1]} FNR == NR || !($$1 in own)' \
	  constraints-spark$(SPARK).txt constraints.txt >$(CONSTRAINTS)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) setuptools
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint $(CONSTRAINTS) --no-build-isolation --editable '.[dev,spark,connect]'
	$(BIN)/python -m bridge.jars
	$(BIN)/python -m bridge.demo.rehearsal
	@touch $@
