# outbox-relay: what a person or CI runs. `make help` lists it.
#
# Tests that need servers live in files that begin with `//go:build !unit` (by convention *_server_test.go); nothing is
# ever skipped at run time. `make test` runs everything, `make test-unit` leaves those files out by `-tags unit`.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO ?= go
CACHE := $(or $(OUTBOX_RELAY_CACHE),$(HOME)/.cache/outbox-relay)
LINT := $(CACHE)/bin/golangci-lint
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
LDFLAGS := -s -w -X main.version=$(VERSION)

# TEST narrows what is tested (TEST=./store/...), TESTFLAGS adds go test flags (TESTFLAGS='-run Mark -v').
TEST ?= ./...
TESTFLAGS ?=
GOTESTFLAGS := -race -shuffle=on -timeout 25m $(TESTFLAGS)

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## install what tests and lint need, if it is missing (as root or with sudo)
	@scripts/setup.sh all

.PHONY: test
test: setup lint bin/rig bin/suite ## everything: lint, then all tests in three parts (test/suite), as CI does
	@bin/rig exec -- bin/suite $(TEST) -- $(GOTESTFLAGS)

.PHONY: test-unit
test-unit: ## the tests that need no servers, in under a minute
	@$(GO) test -race -shuffle=on -tags unit $(TESTFLAGS) $(TEST)

.PHONY: lint
lint: ## golangci-lint with .golangci.yml
	@scripts/setup.sh lint
	@$(LINT) run

.PHONY: fmt
fmt: ## format the code as lint wants it
	@scripts/setup.sh lint
	@$(LINT) fmt

.PHONY: build
build: ## bin/outbox-relay
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o bin/outbox-relay ./cmd/outbox-relay

.PHONY: rig
rig: bin/rig ## start the servers and print a configuration to try the relay by hand; Ctrl-C ends them
	@scripts/setup.sh servers
	@bin/rig up

.PHONY: demo
demo: ## the whole thing on this machine, with a verdict
	@scripts/demo.sh

# The stories of bounds and of two leaders at full size. Each line of bench has servers of its own: what one has written is
# not the next one's binlog.
FULL_BOUNDS := TestMillionRow|TestTwoMillionRows|TestKafkaAwayFor5Minutes|TestMarksWaitFor30s
FULL_LEADERS := TestLeaderStoppedFor20s|TestLockTroubleAtFullLength|TestTakeoverWithinASecond|TestKickedRowsWithinTwoSeconds

.PHONY: orders
orders: ## the example of two services on this machine, with a verdict
	@scripts/setup-apt.sh mariadb-server
	@CGO_ENABLED=0 $(GO) build -o bin/ ./cmd/outbox-relay ./test/orders
	@CGO_ENABLED=0 $(GO) build -o bin/orders-services ./examples/orders
	@bin/orders

.PHONY: bench
bench: bin/rig ## what the relay reaches here: catching up, latency, memory, kills (no race detector; a quiet machine)
	@scripts/setup.sh servers
	@bin/rig exec -- $(GO) test -tags bench -count=1 -timeout 30m -v -run 'TestBacklog|TestLatency|TestStagedBodies|TestArchiveMillion|TestHundredKills|TestMillionForAMissingTopic' ./test/bench ./test/stories
	@bin/rig exec -- $(GO) test -tags bench -count=1 -timeout 30m -v -run '$(FULL_BOUNDS)' ./test/stories
	@bin/rig exec -- $(GO) test -tags bench -count=1 -timeout 30m -v -run '$(FULL_LEADERS)' ./test/stories
	@bin/rig exec -- $(GO) test -tags bench -count=1 -timeout 30m -v -run 'TestFiftyKillsOfConsumers' ./test/inbox
	@$(GO) test -tags bench -count=1 -timeout 5m -v -run 'TestPutCost' ./outbox

.PHONY: bin/rig
bin/rig:
	@$(GO) build -o $@ ./test/rig/cmd/rig

.PHONY: bin/suite
bin/suite:
	@$(GO) build -o $@ ./test/suite

.PHONY: clean
clean: ## remove what was built (the cache outside the checkout stays)
	rm -rf bin
