# Everything a developer types. `make` alone lists the targets.
#
# Set-up happens by itself and once: a virtual environment in .venv, tools of pinned versions in it, one cargo target
# directory for everything, stamps in build/stamps that say what is up to date.

SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
MAKEFLAGS += --no-builtin-rules --no-print-directory
.DEFAULT_GOAL := help

# rustup puts cargo here, which a shell opened before its installation does not know.
export PATH := $(PATH):$(HOME)/.cargo/bin
export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PIP_DISABLE_PIP_VERSION_CHECK := 1
export PIP_NO_INPUT := 1

VENV := $(CURDIR)/.venv
PY := $(VENV)/bin/python
STAMPS := build/stamps
# One interpreter for every build, so that switching between targets rebuilds nothing.
export PYO3_PYTHON := $(PY)

# The first of these that is new enough and can make virtual environments; `make PYTHON=...` to choose.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14 python3.10; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 10))' 2>/dev/null && { echo "$$p"; break; }; done)

RUST_MINIMUM := 1.95
NEXTEST_PROFILE := $(if $(CI),ci,default)

RUST_SOURCES := Cargo.toml Cargo.lock $(shell find crates -name '*.rs' -o -name Cargo.toml -o -path '*/tests/data/*' -type f)
PYTHON_SOURCES := $(shell find python -type f -not -name '_mxrt*.so' -not -path '*/__pycache__/*')
WHEEL_SOURCES := pyproject.toml README.md LICENSE $(RUST_SOURCES) $(PYTHON_SOURCES)

.PHONY: help
help: ## list the targets
	@echo "make TARGET, where TARGET is one of"
	@grep -hE '^[a-z0-9-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z0-9-]+):.*## (.*)/  \1|\2/' | column -t -s '|'

# ---- tools -------------------------------------------------------------------------------------

.PHONY: check-tools
check-tools: ## say which of the tools that must be there beforehand are missing
	@missing=0; \
	say() { missing=1; echo "missing: $$1"; echo "         $$2"; }; \
	if ! command -v cargo >/dev/null || ! rustc --version >/dev/null 2>&1; then \
		say "Rust $(RUST_MINIMUM) or newer" "curl --proto '=https' --tlsv1.2 -sSf https://sh.rustup.rs | sh"; \
	else \
		have=$$(rustc --version | cut -d' ' -f2); \
		if [ "$$(printf '%s\n' "$(RUST_MINIMUM)" "$$have" | sort -V | head -n 1)" != "$(RUST_MINIMUM)" ]; then \
			say "Rust $(RUST_MINIMUM) or newer (this one is $$have)" "rustup update stable"; fi; \
	fi; \
	command -v cc >/dev/null || say "a C compiler and linker (cc)" \
		"Debian, Ubuntu: sudo apt-get install build-essential; Fedora: sudo dnf install gcc"; \
	[ -n "$(PYTHON)" ] || say "Python 3.10 or newer with its venv module" \
		"Debian, Ubuntu: sudo apt-get install python3 python3-venv; or make PYTHON=/path/to/python3"; \
	[ $$missing = 0 ] || { echo "Install what is missing and run make again."; exit 1; }

.PHONY: check-rust-tools
check-rust-tools: check-tools
	@cargo fmt --version >/dev/null 2>&1 && cargo clippy --version >/dev/null 2>&1 || { \
		echo "missing: rustfmt or clippy"; echo "         rustup component add rustfmt clippy"; exit 1; }

$(STAMPS)/venv: | check-tools
	@mkdir -p $(STAMPS)
	$(PYTHON) -m venv --clear $(VENV)
	@touch $@

$(STAMPS)/build-tools: requirements/build.txt $(STAMPS)/venv
	$(PY) -m pip install --quiet -r requirements/build.txt
	@touch $@

$(STAMPS)/test-tools: requirements/test.txt $(STAMPS)/build-tools
	$(PY) -m pip install --quiet -r requirements/test.txt
	@touch $@

# ---- build -------------------------------------------------------------------------------------

# A module left in the source tree by `maturin develop` would be taken for part of the package.
$(STAMPS)/wheel: $(WHEEL_SOURCES) $(STAMPS)/build-tools | check-tools
	@rm -f python/mxrt/_mxrt*.so dist/mxrt-*.whl
	$(PY) -m maturin build --release --locked --out dist
	@touch $@

$(STAMPS)/installed: $(STAMPS)/wheel
	$(PY) -m pip install --quiet dist/mxrt-*.whl
	$(PY) -m pip install --quiet --force-reinstall --no-deps dist/mxrt-*.whl
	@touch $@

.PHONY: wheel
wheel: $(STAMPS)/wheel ## build the wheel into dist/
	@ls -l dist/mxrt-*.whl

.PHONY: wheel-portable
wheel-portable: $(STAMPS)/build-tools requirements/zig.txt | check-tools ## build a wheel for older systems (manylinux2014, linked by zig) into dist/portable/
	$(PY) -m pip install --quiet -r requirements/zig.txt
	@rm -f python/mxrt/_mxrt*.so
	PATH="$(VENV)/bin:$$PATH" $(PY) -m maturin build --release --locked --zig --compatibility manylinux2014 --out dist/portable
	@ls -l dist/portable/

.PHONY: install
install: $(STAMPS)/installed ## build the wheel and install it into .venv

# ---- run ---------------------------------------------------------------------------------------

.PHONY: demo
demo: $(STAMPS)/installed ## set everything up and show models answering many threads (about a minute after the build)
	@$(VENV)/bin/mxrt demo

# ---- test --------------------------------------------------------------------------------------

.PHONY: test
test: lint test-rust loom test-python check-types ## everything: formatting, lints, Rust tests, models, the wheel, Python tests, types
	@echo "make test: all passed"

.PHONY: lint
lint: check-rust-tools $(STAMPS)/test-tools ## rustfmt, clippy, ruff
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	$(PY) -m ruff check .
	$(PY) -m ruff format --check .

.PHONY: test-rust
test-rust: $(STAMPS)/build-tools | check-tools ## Rust unit, integration and documentation tests
	@if cargo nextest --version >/dev/null 2>&1; then \
		cargo nextest run --workspace --locked --profile $(NEXTEST_PROFILE); \
	else \
		echo "cargo-nextest is not installed: cargo test takes its place (ten minutes for all tests of a file together)"; \
		timeout --kill-after=10 1200 cargo test --workspace --locked --lib --bins --tests; \
	fi
	timeout --kill-after=10 600 cargo test --workspace --locked --doc

.PHONY: test-python
test-python: $(STAMPS)/installed $(STAMPS)/test-tools ## Python tests, recorded MXNet results and models, against the installed wheel
	$(PY) -m pytest $(PYTEST_ARGS)

.PHONY: check-types
check-types: $(STAMPS)/installed $(STAMPS)/test-tools ## mypy on the package; its stubs against the built module
	$(PY) -m mypy
	$(PY) -m mypy.stubtest mxrt --ignore-disjoint-bases --allowlist scripts/stubtest_allowlist.txt

# ---- measure -----------------------------------------------------------------------------------

.PHONY: bench
bench: $(STAMPS)/installed $(STAMPS)/test-tools ## measure: criterion for the Rust parts, pytest-benchmark from Python
	cargo bench --workspace --locked --bench '*'
	$(PY) -m pytest benches --benchmark-only --benchmark-group-by=group -o timeout=600

.PHONY: bench-peers
bench-peers: $(STAMPS)/installed ## compare with MXNet 1.9.1, onnxruntime and OpenVINO, in turns on this machine
	$(PY) benches/peers/compare.py $(PEERS_ARGS)

# ---- prove ---------------------------------------------------------------------------------------
# docs/testing.md says what each of these shows.

LOOM := RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=$(CARGO_TARGET_DIR)/loom CARGO_PROFILE_RELEASE_LTO=off

.PHONY: loom
loom: | check-tools ## models of the engine's protocol under loom (seconds); LOOM_MAX_PREEMPTIONS=4 for deeper ones
	MXRT_TEST_SECONDS=1700 $(LOOM) timeout --kill-after=10 1800 cargo test -q -p mxrt-engine --lib --release --locked

.PHONY: mutants
mutants: | check-tools ## break the engine in every way of the list and see whether the tests notice (an hour); ARGS="token fork" for some
	$(PYTHON) scripts/mutants.py $(ARGS)

.PHONY: mutants-check
mutants-check: | check-tools ## whether the list of mutants still fits the source (a second)
	$(PYTHON) scripts/mutants.py --check

SECONDS_OF_SOAK := $(or $(SECONDS_TO_RUN),3600)
SEEDS_OF_DEVICES ?= 100
.PHONY: soak-devices
soak-devices: $(STAMPS)/installed $(STAMPS)/test-tools ## every model on simulated devices in 100 orders of their work, against the CPU's bits; SEEDS_OF_DEVICES=10 for a tenth
	@mkdir -p build/zoo
	for kind in ThreadedEngineAsync ThreadedEnginePerDeviceAsync; do \
		MXNET_ENGINE_TYPE=$$kind $(PY) tests/device_models.py --seeds $(SEEDS_OF_DEVICES) --zoo-dir build/zoo \
			$$(cd tests/models && ls -d */ zoo/*/ | sed 's,/$$,,' | grep -v '^zoo$$\|^__'); done

.PHONY: soak
soak: | check-tools ## random programs of 100,000 ops against an interpreter for an hour; SECONDS_TO_RUN=60 for a minute
	MXRT_TEST_SECONDS=$$(($(SECONDS_OF_SOAK) + 600)) MXRT_SOAK_SECONDS=$(SECONDS_OF_SOAK) cargo test -q -p mxrt-engine --locked --test soak -- --nocapture

SEEDS := $(or $(SEEDS_TO_RUN),10000)
.PHONY: soak-scenarios
soak-scenarios: | check-tools ## the scenarios of the simulated device with 10,000 seeds each (minutes); SEEDS_TO_RUN=100000 for more
	MXRT_SIM_SEEDS=$(SEEDS) cargo test -q -p mxrt-sim --locked --tests

.PHONY: tsan
tsan: | check-tools ## the engine's tests under ThreadSanitizer (a minute after the build); SECONDS_TO_RUN=600 for longer
	scripts/sanitize.sh thread $(SECONDS_TO_RUN)

.PHONY: asan
asan: | check-tools ## the tests of engine and kernels under AddressSanitizer (minutes after the build); SECONDS_TO_RUN=600 for longer
	scripts/sanitize.sh address $(SECONDS_TO_RUN)

.PHONY: memcheck
memcheck: | check-tools ## some of the tests of engine and kernels under valgrind
	scripts/sanitize.sh memcheck

.PHONY: check-aarch64
check-aarch64: | check-tools ## whether all crates compile where none of the kernels' instruction sets is (rustup target add aarch64-unknown-linux-gnu)
	RUSTFLAGS=-Dwarnings cargo check --workspace --target aarch64-unknown-linux-gnu --locked

.PHONY: exits
exits: $(STAMPS)/installed $(STAMPS)/test-tools ## leave the interpreter in the middle of everything, 1,000 times each way (an hour); REPEAT=50 for less
	MXRT_EXITS=$(or $(REPEAT),1000) $(PY) -m pytest tests/test_exits.py

.PHONY: clean
clean: ## remove everything that was built
	rm -rf build dist target .venv .pytest_cache .mypy_cache .ruff_cache .benchmarks python/mxrt/_mxrt*.so
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
