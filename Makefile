# `make help` lists the targets.

export CARGO_TERM_COLOR ?= auto
# Loom replaces the atomics, so its build is kept apart from the ordinary one.
LOOM = RUSTFLAGS="--cfg loom" CARGO_TARGET_DIR=target/loom
# So does shuttle. It warns that it takes every ordering for the strongest: the weaker are loom's.
# Its generic code ends up in the crate under test, of which little is built: optimising that pays.
SHUTTLE = RUSTFLAGS="--cfg shuttle" CARGO_TARGET_DIR=target/shuttle SHUTTLE_SILENCE_WARNINGS=1

# The crates, without what measures and breaks them.
DOC = cargo doc --no-deps --all-features --workspace --exclude 'frazil-bench*' --exclude frazil-storm

# What is published: everything but what has `publish = false`.
PACKAGE = cargo package --workspace --exclude 'frazil-bench*' --exclude frazil-storm --exclude frazil-rig --exclude frazil-api

.PHONY: help deps check fix test loom shuttle fuzz bench storm soak doc package api

help:
	@echo "make deps    install what the tests start and use (apt, as root or with sudo; PyPI)"
	@echo "make check   formatting, lints, docs, dependencies, house rules; changes nothing"
	@echo "make fix     format, and apply what the lints suggest"
	@echo "make test    deps, check, then every test; ends with a count"
	@echo "make loom    search the interleavings of the generator and of its replacement"
	@echo "make shuttle the same with more threads and calls, in schedules drawn by chance"
	@echo "make fuzz    inputs that nobody would write, for minutes (FUZZ_CASES=N of each kind)"
	@echo "make bench   measure beside the peers and print ratios (QUICK=1: a few seconds)"
	@echo "make storm   real processes and real stores under faults, every experiment (SEED=N, SCALE=S)"
	@echo "make soak    experiments that chance chooses, for a time (MINUTES=N, SEED=N)"
	@echo "make doc     build the API documentation"
	@echo "make api     write the public API of each crate anew into api/, after it has changed"
	@echo "make package the crates as they would be published, each built from its package"

deps:
	tools/deps

check:
	cargo fmt --all -- --check
	cargo clippy --workspace --all-targets --all-features -- -D warnings
	cargo clippy --workspace --lib --bins --all-features -- -D warnings -D clippy::unwrap_used -D clippy::panic
	RUSTDOCFLAGS="-D warnings" $(DOC) --document-private-items
	cargo check -p frazil-id --no-default-features
	cargo check -p frazil-id --no-default-features --features serde
	$(PACKAGE) --no-verify --allow-dirty --offline --quiet
	cargo run --quiet -p frazil-api -- check
	cargo run --quiet -p frazil-api -- self-test
	tools/tidy
	tools/tidy --self-test
	tools/deny
	tools/deny --self-test
	tools/mutants --check
	tools/mutants --self-test
	tools/picture --self-test
	tools/programs --self-test

fix:
	cargo fmt --all
	cargo clippy --workspace --all-targets --all-features --fix --allow-dirty --allow-staged

test:
	tools/test

loom:
	$(LOOM) cargo test -p frazil-id --lib loom_tests
	$(LOOM) cargo test -p frazil --lib loom_tests

shuttle:
	$(SHUTTLE) cargo test -p frazil-id --lib shuttle_tests
	$(SHUTTLE) cargo test --config profile.test.package.frazil.opt-level=2 -p frazil --lib shuttle_tests

fuzz:
	FUZZ_CASES=$(or $(FUZZ_CASES),100000) cargo test -p frazil-id -p frazil-coord -p frazil-server --test fuzz

bench: deps
	cargo run --profile dist -p frazil-bench -- $(if $(QUICK),--quick)
	cargo run --profile dist -p frazil-bench-versus -- $(if $(QUICK),--quick)
	cargo run --profile dist -p frazil-bench-versus --features fast-rng -- $(if $(QUICK),--quick)
	cargo run --profile dist -p frazil-bench-leases -- $(if $(QUICK),--quick)
	cargo build --profile dist -p frazil-cli
	cargo run --profile dist -p frazil-bench-serving -- $(if $(QUICK),--quick)

# The proofs come first (E08, E11), then what is played. What is tested is the release build; mutants
# are a debug build of a copy of the source.
STORM = cargo run --release -p frazil-storm --
STORM_ARGS = --scale $(or $(SCALE),0.1) $(if $(SEED),--seed $(SEED))

storm: deps
	cargo test -p frazil --test model
	$(MAKE) loom shuttle
	cargo build --release -p frazil-cli
	tools/mutants
	$(STORM) score $(STORM_ARGS)

soak: deps
	cargo build --release -p frazil-cli
	$(STORM) soak --minutes $(or $(MINUTES),30) $(STORM_ARGS)

doc:
	$(DOC)

package:
	$(PACKAGE)

api:
	cargo run --quiet -p frazil-api -- renew
