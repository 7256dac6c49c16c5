# `make` alone lists the targets.

CARGO ?= cargo
PGREDO := target/release/pgredo
SAMPLE ?= ddl
DEMO := target/demo

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-13s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: check
check: ## format, lints, unit tests, samples and documentation; needs no server
	$(CARGO) fmt --check
	$(CARGO) clippy --all-targets -- -D warnings
	$(CARGO) test --lib --bins
	$(CARGO) test --test tidy --test samples
	RUSTDOCFLAGS=-Dwarnings $(CARGO) doc --no-deps

.PHONY: postgres
postgres: ## lay out the PostgreSQL servers of the tests in .pg
	tests/get-postgres.sh

.PHONY: test
test: check postgres ## everything, with crashes of real servers; what CI runs
	$(CARGO) test --no-fail-fast

.PHONY: demo
demo: ## replay a bundled crash, with no PostgreSQL installed (SAMPLE=ddl, pgbench or locks)
	$(CARGO) build --release
	rm -rf $(DEMO)
	mkdir -p $(DEMO)
	tar -I zstd -xf wal-samples/$(SAMPLE)/crash.tar.zst -C $(DEMO)
	@echo; echo "== The directory at the crash"
	$(PGREDO) control $(DEMO)/data | grep -E 'cluster state|REDO location'
	@echo; echo "== The replay, and what it asked of the kernel"
	$(PGREDO) replay -D $(DEMO)/data --in-place --stats text
	@echo; echo "== The directory now"
	$(PGREDO) control $(DEMO)/data | grep -E 'cluster state|REDO location'
	$(PGREDO) fingerprint $(DEMO)/data >$(DEMO)/fingerprint.txt
	diff wal-samples/$(SAMPLE)/fingerprint.txt $(DEMO)/fingerprint.txt
	@wc -l <$(DEMO)/fingerprint.txt | xargs -I{} echo "all {} files are what PostgreSQL's own recovery leaves"

.PHONY: samples
samples: ## make the samples of wal-samples anew; needs `make postgres`
	$(CARGO) test --test make_samples

.PHONY: coverage
coverage: ## count the kinds of records in the crash images, for tests/coverage.md
	PGREDO_WRITE_COVERAGE=1 $(CARGO) test --test coverage

.PHONY: test-regress
test-regress: ## recover PostgreSQL's own regression suite (CONSISTENCY=all: 9 GB of WAL)
	$(CARGO) build --release
	tests/regress.sh

.PHONY: strace
strace: ## count system calls of PostgreSQL's recovery and of pgredo (SCALE=100 SECONDS_RUN=60)
	$(CARGO) build --release
	tests/strace-compare.sh

.PHONY: bench
bench: ## run the benchmarks
	$(CARGO) bench
