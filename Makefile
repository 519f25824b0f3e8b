# Everything that is done to this repository, by name. `make help` lists it.

GO       ?= go
TOOL     := $(GO) tool -modfile=tools/go.mod
# Tests after vet: it has run.
TEST     := $(GO) test -vet=off
# Twice as many packages at once as there are processors, since tests wait as much as they compute.
BESIDE   := -p $$((2 * $$(getconf _NPROCESSORS_ONLN)))
CHAOS    := $(GO) test ./internal/chaos -count=1 -timeout=0 -v -run '^TestLives$$'
FUZZTIME ?= 10s
SEED     ?= 1
# Modules of their own, for what users of the library should not have to know: REAL ones run
# whole management servers and take minutes to build, as do the projects of INTEGRATIONS; those of
# tools and benchmarks have targets of their own, and so have LIVES and BROWSER.
REAL     := test/real/envoygateway test/real/istio test/real/consul test/real/consul/server test/real/older test/real/older/server
LIVES    := test/real/lives
BROWSER  := test/browser
INTEGRATIONS := $(patsubst %/go.mod,%,$(wildcard examples/integrations/*/go.mod))
MODULES  := $(filter-out tools bench/% $(REAL) $(LIVES) $(BROWSER) $(INTEGRATIONS),$(patsubst %/go.mod,%,$(wildcard */go.mod */*/go.mod */*/*/go.mod */*/*/*/go.mod)))

.PHONY: help
help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 14

.PHONY: check
check: fmt vet staticcheck tidy generated race costs mutate modules ## everything that must pass before a change lands

.PHONY: fmt
fmt: ## fail if a file is not gofmt-clean
	@out=$$(gofmt -l $$(git ls-files -co --exclude-standard '*.go')); test -z "$$out" || { echo "not gofmt-clean:"; echo "$$out"; exit 1; }

.PHONY: vet
vet: ## go vet
	$(GO) vet ./...

.PHONY: staticcheck
staticcheck: ## staticcheck
	$(TOOL) staticcheck ./...

.PHONY: tidy
tidy: ## fail if go.mod is not tidy
	$(GO) mod tidy -diff
	cd tools && $(GO) mod tidy -diff
	for d in $(MODULES) $(LIVES) $(BROWSER); do (cd $$d && $(GO) mod tidy -diff) || exit 1; done

.PHONY: generated
generated: ## fail if a generated file is out of date
	$(GO) run ./internal/conformance -check

.PHONY: generate
generate: ## make the generated files anew
	$(GO) run ./internal/conformance

# Go's ten minutes are too short for package client on a busy machine. The packages that take longest begin first, so that
# none of them runs alone at the end.
.PHONY: race
race: ## all tests, with the race detector
	$(TEST) -race $(BESIDE) -timeout 30m ./client ./view ./internal/chaos ./...

.PHONY: costs
costs: ## what hostile input costs in time and memory, which the race detector would multiply
	$(TEST) -run '^TestCost' $$(git grep -l --untracked '^func TestCost' -- '*_test.go' | sed 's|^|./|; s|/[^/]*$$||' | sort -u)

.PHONY: modules $(MODULES:%=modules/%)
modules: $(MODULES:%=modules/%) ## vet and test the modules of their own
$(MODULES:%=modules/%): modules/%:
	cd $* && $(GO) vet ./... && $(TEST) $(if $(filter test/%,$*),,-race) ./...

.PHONY: real
real: ## against Envoy Gateway, istiod, Consul and go-control-plane 0.13: minutes to build, and port 18000 has to be free
	for d in $(REAL); do (cd $$d && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -timeout 60m -count=1 ./...) || exit 1; done

.PHONY: integrations
integrations: ## other projects on this library: minutes to build
	for d in $(INTEGRATIONS); do (cd $$d && $(GO) mod tidy -diff && $(GO) vet ./... && $(GO) test -count=1 ./...) || exit 1; done

.PHONY: lives
lives: ## random lives against the caches of real servers, for twenty seconds
	cd $(LIVES) && $(GO) vet ./... && $(TEST) -count=1 ./...

.PHONY: browser
browser: ## the status page in Chromium (/usr/bin/chromium): SHOTS=DIR keeps pictures
	cd $(BROWSER) && $(GO) vet ./... && $(TEST) -count=1 ./... $(if $(SHOTS),-screenshots $(abspath $(SHOTS)))

.PHONY: release
release: ## set the version of all published modules: make release VERSION=v0.2.0
	$(GO) run ./internal/release $(VERSION)

.PHONY: short
short: ## the tests that are quick, for while you work; the others run in make check
	$(GO) test -short $(BESIDE) ./...

.PHONY: test
test: ## all tests
	$(GO) test ./...

.PHONY: update
update: ## rewrite scripts and golden files with what happens; read the diff
	$(GO) test ./internal/machine -run TestScripts -update
	$(GO) test ./internal/apigolden -update
	$(GO) test ./bootstrap -run TestCases -update

.PHONY: fuzz
fuzz: ## each fuzz target for FUZZTIME (10s)
	./.ci/fuzz $(FUZZTIME)

.PHONY: mutate
mutate: ## break rules of the machine, one at a time, and see that their scripts notice
	$(GO) run ./internal/conformance/mutate

.PHONY: chaos
chaos: ## break a live client in every way for a minute, and one with spare servers: make chaos SEED=7
	$(CHAOS) -seed $(SEED) -for 60s -reconnects 1000
	$(CHAOS) -seed $(SEED) -for 60s -fallback

.PHONY: chaos-long
chaos-long: ## the same for ten minutes each, every order of servers, then the faults that wait for keepalive
	$(CHAOS) -seed $(SEED) -for 10m
	$(CHAOS) -seed $(SEED) -for 10m -fallback
	$(GO) test ./internal/chaos -run TestFallbackOrders -fallback-steps 4
	$(CHAOS) -seed $(SEED) -for 5m -rounds 3 -only half-open,black-hole,sigstop-long,clock-long

.PHONY: bench
bench: ## the benchmarks of the packages
	$(GO) test -run '^$$' -bench . -benchmem ./internal/... ./xdstp

.PHONY: bench-smoke
bench-smoke: ## vet, test and build the benchmark modules, and run one small row
	for d in bench/kit bench/server bench/drivers/*/; do (cd $$d && $(GO) vet ./... && $(TEST) ./...) || exit 1; done
	BENCH_STRICT=1 ./bench/run.sh -only '^W1-sotw-cds-1k$$' -runs 1

.PHONY: bench-view
bench-view: ## the view of a whole configuration beside sets of watches and grpc-go
	cd bench/view && $(GO) run . -runs 5

.PHONY: bench-all
bench-all: ## this client beside others on every workload; wants a quiet machine for a quarter of an hour
	./bench/run.sh
