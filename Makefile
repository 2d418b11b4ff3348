# make demo, make test: each does all the set-up it needs, in .venv. make bench, make sanitize: see CONTRIBUTING.md.

PYTHON ?= python3
BIN := .venv/bin
SOURCES := pyproject.toml CMakeLists.txt constraints.txt README.md LICENSE \
           $(shell find include library bindings src -type f -not -name '*.pyc' -not -path '*/__pycache__*')
PIP_INSTALL = $(BIN)/pip install --quiet --disable-pip-version-check --no-build-isolation --constraint constraints.txt

.PHONY: demo test test-slow test-rest lint fuzz oracle bench sanitize test-aarch64 test-compiler wheels docs figures clean

demo: .venv/installed
	$(BIN)/spantree demo

# In two halves side by side: what is mostly compiling and enumerating, and the rest.
SLOW := tests/core tests/library tests/oracle
test: .venv/installed-test lint
	$(MAKE) --jobs=2 --output-sync=target test-slow test-rest

test-slow:
	$(BIN)/pytest $(SLOW)

test-rest:
	$(BIN)/pytest $(addprefix --ignore=,$(SLOW))

lint: .venv/installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	find include library bindings tests/core -name '*.hpp' -o -name '*.cpp' | xargs $(BIN)/clang-format --dry-run --Werror
	$(BIN)/mypy

# RUNS=1000000 inputs by default; CI gives SECONDS=60 instead.
fuzz: .venv/installed-fuzz
	$(BIN)/python tests/files/conllu_fuzz.py -max_len=64 $(if $(SECONDS),-max_total_time=$(SECONDS),-runs=$(or $(RUNS),1000000))

# Every quantity against enumeration, for longer than the tests: SEEDS=0:3 by default, ONLY="--structures ties" asks for less.
oracle: .venv/installed-test
	PYTHONPATH=tests $(BIN)/python -m oracle.search --seeds $(or $(SEEDS),0:3) $(ONLY)

bench: .venv/installed-bench
	$(BIN)/python benchmarks/run.py

# The site, in docs/_build/html; warnings are errors, links between pages are checked.
SPHINX = $(BIN)/sphinx-build --fail-on-warning --keep-going --quiet docs
docs: .venv/installed-docs
	$(SPHINX) docs/_build/html
	$(BIN)/python docs/check_links.py docs/_build/html

# Measures everything again and puts it into README and site: on a machine that does nothing else.
figures: .venv/installed-bench .venv/installed-docs
	-$(BIN)/python benchmarks/run.py --json docs/performance.json
	$(BIN)/python docs/figures.py

sanitize: .venv/installed-test
	$(BIN)/pytest tests/core

CPLUSPLUS := $(shell find include library -type f)
CXX_FLAGS = -std=c++20 -O2 -pthread -Iinclude -Wall -Wextra -Wpedantic -Werror -Wno-psabi -fno-math-errno -fno-trapping-math \
            -ffp-contract=off
OBJECTS = $(patsubst library/%.cpp,build/$(1)/library/%.o,$(wildcard library/*.cpp))

# The core's tests and the C++ library on another architecture: Debian's g++-aarch64-linux-gnu and qemu-user. With --jobs=2,
# two files are compiled at a time.
AARCH64 = aarch64-linux-gnu-g++ $(CXX_FLAGS)
AARCH64_PROGRAMS := $(addprefix build/aarch64/,registers decode_fuzz inference_fuzz projective_fuzz sampling_fuzz outside)
test-aarch64: $(AARCH64_PROGRAMS)
	for program in $^; do echo $$program && qemu-aarch64 $$program || exit 1; done

build/aarch64/outside: tests/library/outside/outside.cpp $(call OBJECTS,aarch64)
	$(AARCH64) -static $^ -o $@

build/aarch64/library/%.o: library/%.cpp $(CPLUSPLUS)
	mkdir -p $(@D)
	$(AARCH64) -c $< -o $@

build/aarch64/%: tests/core/%.cpp $(CPLUSPLUS)
	mkdir -p $(@D)
	$(AARCH64) -static $< -o $@

# The C++ library with another compiler, for one kind of registers, and a program that uses it: COMPILER=clang++-19.
COMPILER ?= clang++
test-compiler: build/$(COMPILER)/outside
	$<

build/$(COMPILER)/outside: tests/library/outside/outside.cpp $(call OBJECTS,$(COMPILER))
	$(COMPILER) $(CXX_FLAGS) $^ -o $@

build/$(COMPILER)/library/%.o: library/%.cpp $(CPLUSPLUS)
	mkdir -p $(@D)
	$(COMPILER) $(CXX_FLAGS) -DSPANTREE_BASELINE_ONLY -c $< -o $@

# The sdist and wheels into dist/, each wheel tried in an environment of its own; OPTIONS=--aarch64 cross-compiles one
# for 64-bit ARM too.
# That of 3.12 is for all later ones too (abi3).
PYTHONS ?= python3.10 python3.11 python3.12 python3.13
wheels: .venv/xla
	$(BIN)/python tools/wheels.py --xla $(XLA) $(OPTIONS) $(PYTHONS)

# The build tools live in .venv too, so that a re-install compiles only what changed.
.venv/tools: constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt scikit-build-core nanobind cmake ninja
	touch $@

# Headers for spantree.jax, all that is kept of a jaxlib: of the oldest one, because what is built with them runs on all later
# ones, while what is built with newer ones would not run on it. They are the same for every Python.
XLA := $(CURDIR)/.venv/xla
.venv/xla: .venv/tools
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-compile --only-binary :all: --python-version 3.11 \
	    --target .venv/jaxlib jaxlib==0.6.2
	rm -rf $@
	mv .venv/jaxlib/jaxlib/include $@
	rm -rf .venv/jaxlib

.venv/installed: .venv/tools $(SOURCES)
	$(PIP_INSTALL) '.[cli]'
	touch $@

.venv/installed-test: .venv/tools .venv/xla $(SOURCES)
	$(PIP_INSTALL) --config-settings=cmake.define.SPANTREE_XLA_INCLUDE=$(XLA) '.[test]'
	touch .venv/installed $@

.venv/installed-fuzz: .venv/tools .venv/xla $(SOURCES)
	$(PIP_INSTALL) --config-settings=cmake.define.SPANTREE_XLA_INCLUDE=$(XLA) '.[fuzz]'
	touch .venv/installed .venv/installed-test $@

.venv/installed-bench: .venv/tools .venv/xla $(SOURCES)
	$(PIP_INSTALL) --config-settings=cmake.define.SPANTREE_XLA_INCLUDE=$(XLA) '.[bench]'
	touch .venv/installed $@

.venv/installed-docs: .venv/tools .venv/xla $(SOURCES)
	$(PIP_INSTALL) --config-settings=cmake.define.SPANTREE_XLA_INCLUDE=$(XLA) '.[docs]'
	touch .venv/installed $@

clean:
	rm -rf .venv build
