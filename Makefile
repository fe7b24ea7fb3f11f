# Every target works on a fresh clone; CI runs exactly these.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt
READY  := $(VENV)/.ready

# Real tables beside the checkout are used where they are; tests that need them skip otherwise.
PRECISIONNET_DATA ?= $(wildcard $(abspath ../shared/data))
export PRECISIONNET_DATA

# Compiled modules are kept: each worker of a test run would compile all tests, and each process that a test starts all of
# the package.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: conventions setup demo test test-other-kernels test-slow test-all test-browser lint format docs site results experiments figures bench-precision bench-report bench-scale bench-grid bench-train bench-files evidence accuracy honest tables study-recipe clean gap

setup: $(READY)

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(PIP) -e '.[test,lint]'
	touch $@

demo: $(READY)
	$(BIN)/precisionnet demo --out demo-output

test: $(READY)
	$(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not browser"

# The default tests again with the kernels of another processor: finds tests that compare bits or digits made on one
# processor with those of another. Each setting changes bits on a machine with AVX-512 (on an older one some do nothing):
#   OPENBLAS_CORETYPE         NumPy's and SciPy's BLAS and LAPACK (eigenvalues, Cholesky factors)
#   NPY_DISABLE_CPU_FEATURES  NumPy's own loops (exp, log, power)
#   ATEN_CPU_CAPABILITY       torch's own loops (softmax)
#   MKL_ENABLE_INSTRUCTIONS   torch's products and exp, tanh
#   NUMBA_CPU_NAME            our kernels; tests/kernels.py keeps them in a folder of their own
OTHER_KERNELS := OPENBLAS_CORETYPE=Haswell NPY_DISABLE_CPU_FEATURES="X86_V4 AVX512_ICL AVX512_SPR" \
  ATEN_CPU_CAPABILITY=avx2 MKL_ENABLE_INSTRUCTIONS=AVX2 NUMBA_CPU_NAME=generic

test-other-kernels: $(READY)
	$(OTHER_KERNELS) $(BIN)/python -m pytest -n auto --dist worksteal -m "not slow and not browser"

# The slow tests, and every test with drawn examples with many new ones.
test-slow: $(READY)
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n auto -m "(slow or hypothesis) and not browser"

# Everything but the browser: slow tests, too.
test-all: $(READY)
	$(BIN)/python -m pytest -n auto -m "not browser"

# The report in headless Chromium; installs Debian's where it is missing and may be installed.
test-browser: $(READY)
	@if ! command -v chromium >/dev/null || ! command -v chromedriver >/dev/null; then \
	  if command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ]; then \
	    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium chromium-driver >/dev/null; \
	  else echo "no Chromium here: the browser tests will be skipped"; fi; fi
	$(PIP) -e '.[browser]'
	$(BIN)/python -m pytest -m browser -rs

lint: $(READY)
	$(BIN)/ruff check src tests tools benchmarks examples docs/conf.py
	$(BIN)/ruff format --check src tests tools benchmarks examples docs/conf.py
	$(BIN)/mypy
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff check --fix src tests tools benchmarks examples docs/conf.py
	$(BIN)/ruff format src tests tools benchmarks examples docs/conf.py

# docs/parameters.md from the one table of parameters.
docs: $(READY)
	$(BIN)/python tools/parameter_page.py > docs/parameters.md

# The documentation as a site, in site-output/html: every example is run, warnings are errors, links between pages are checked.
# Links to other sites are not: that would need them to be there.
site: $(READY)
	$(PIP) -e '.[site]'
	OMP_NUM_THREADS=1 $(BIN)/python -m sphinx -q -W --keep-going -j 2 -b html -d site-output/doctrees docs site-output/html
	$(BIN)/python tools/check_site.py site-output/html

# The figures that README.md quotes, from the real tables.
results: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	$(BIN)/python tools/measure_abide.py

# The paper's experiments, whole: about an hour and a half on two cores. Interrupted, it goes on where it was.
experiments: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	for name in synthetic abide ants; do $(BIN)/precisionnet reproduce $$name --reading paper --out results/$$name || exit 1; done
	for name in theorem convergence stability; do $(BIN)/precisionnet reproduce $$name --out results/$$name || exit 1; done

# Their tables, figures and pages, made again from the committed rows alone; results/index.html shows the paper's experiments side by side.
figures: $(READY)
	$(BIN)/precisionnet experiments page results results/accuracy/*/

# What each convention that the paper leaves open is worth: about five minutes on one core, goes on where it was.
conventions: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.conventions.run

# A whole grid against its fits one after another; nothing else running; about a quarter of an hour.
bench-grid: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	$(BIN)/python -m benchmarks.grid.run

# An epoch of Algorithm 1 beside plain PyTorch and TAGConv, and a whole fit; nothing else running; about ten minutes.
bench-train: $(READY)
	$(BIN)/python -m benchmarks.train.run

# A model that is saved over and over: killed, and read beside writers; and what predict needs. About ten minutes.
bench-files: $(READY)
	$(BIN)/python -m benchmarks.files.run

# Simulations and cohorts behind what the evidence claims; about two hours on two quiet cores, goes on where it was.
evidence: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	$(BIN)/python -m benchmarks.evidence.coverage --out results/evidence/coverage.csv
	$(BIN)/python -m benchmarks.evidence.groups --out results/evidence/groups.csv
	for what in synthetic cohorts time; do OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.evidence.task $$what --out results/evidence/task_$$what.csv || exit 1; done
	$(BIN)/python -m benchmarks.evidence.page

# Planted shifts, the age bias on two cohorts, and people with autism: about a quarter of an hour, goes on where it was.
gap: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.gap.simulations
	for what in plain networks autism; do OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.gap.cohorts $$what || exit 1; done

# The solver beside its peers, one thread, nothing else running; about half an hour.
bench-precision: $(READY)
	$(PIP) -e '.[bench]'
	$(BIN)/python -m benchmarks.precision.run --limit 60 --largest 2000
	$(BIN)/python -m benchmarks.precision.run --limit 60 --only large_

# Weight of the page of a fit, and how soon it can be worked with, in headless Chromium; a minute, nothing else running.
bench-report: $(READY)
	$(PIP) -e '.[browser]'
	$(BIN)/python -m benchmarks.report.run

# The solver from rows up to 100,000 columns: seconds, memory, proved gap; about an hour on two quiet cores. The dense one
# at 10,000 columns on one core and two, and small problems beside the code of commit BEFORE; about half an hour. Then fits
# of up to 20,000 columns and to parquet files of up to a million rows, and workers of a cluster; about half an hour each.
# A filter beside PyTorch Geometric's on graphs of up to 20,000 nodes.
BEFORE ?= b779f4b
bench-scale: $(READY)
	$(BIN)/python -m benchmarks.scale.solver
	$(BIN)/python -m benchmarks.scale.dense --names large_rule --repeats 7
	earlier=$$(mktemp -d) && git worktree add --quiet --detach "$$earlier" $(BEFORE) && \
	  { $(BIN)/python -m benchmarks.precision.before --before "$$earlier"; done=$$?; \
	    git worktree remove --force "$$earlier"; exit $$done; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale.fit
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale.rows
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale.workers
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.scale.pyg
	$(BIN)/python -m benchmarks.scale.curves

# The defaults on few rows, as single networks, on sparse graphs and on classes; about a quarter of an hour.
accuracy: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.accuracy.run

# How honest the test of a fit is, and rows of another cohort; about half an hour on one quiet core, goes on where it was.
honest: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.honest.bias
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.honest.places

# The defaults beside tuned plain models and rivals on a suite of tables: a day on two cores, goes on where it was.
# PART=development is the half on which choices are made; the other half is run once, at the end.
PART ?= all
tables: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	$(PIP) -e '.[tables,rivals]'
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.tables.run --part $(PART) --jobs 2
	$(BIN)/python -m benchmarks.tables.page

# What each decision of the standard recipe is worth: hours on one core, goes on where it was.
study-recipe: $(READY)
	@test -n "$(PRECISIONNET_DATA)" || { echo "set PRECISIONNET_DATA to the folder of real tables"; exit 2; }
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.recipe.run

clean:
	rm -rf $(VENV) demo-output site-output docs/api docs/gallery docs/commands.rst docs/sg_execution_times.rst .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache .numba_cache
	find src -name "*.nb[ci]" -delete
