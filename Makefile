SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

VERSION  ?= v0.1.0
PLATFORMS ?= linux/amd64 linux/arm64 linux/arm
# How every binary of the product is built; the Dockerfile uses the same flags.
BUILD_FLAGS := -trimpath -ldflags "-s -w -X main.version=$(VERSION)"

include test/tools/tools.mk

##@ Use

.PHONY: demo
demo: root packages $(TOOLS_E2E) build-host ## Cluster, edge node, power cut and the measured recovery, on this machine (root; KEEP=1 leaves it running)
	@KEEP=$(KEEP) go run ./test/demo

.PHONY: demo-clean
demo-clean: ## Removes what KEEP=1 make demo left running
	@go run ./test/demo clean

.PHONY: build
build: ## Static binaries of the manager and the agent for PLATFORMS, in bin/
	@set -e; for p in $(PLATFORMS); do \
	    out=bin/$${p//\//-}; echo "building $$out"; \
	    CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build $(BUILD_FLAGS) -o $$out/rekindle-manager .; \
	    CGO_ENABLED=0 GOOS=$${p%/*} GOARCH=$${p#*/} go build $(BUILD_FLAGS) -o $$out/rekindle-agent ./agent; \
	done

.PHONY: build-host
build-host: ## The same for this machine alone, as bin/rekindle-manager and bin/rekindle-agent
	@echo 'building bin/rekindle-manager bin/rekindle-agent'
	@CGO_ENABLED=0 go build $(BUILD_FLAGS) -o bin/rekindle-manager .
	@CGO_ENABLED=0 go build $(BUILD_FLAGS) -o bin/rekindle-agent ./agent

.PHONY: docker-build
docker-build: ## Container image of the manager (target manager) and of the agent (target agent)
	docker build --build-arg VERSION=$(VERSION) --target manager -t rekindle-manager:$(VERSION) .
	docker build --build-arg VERSION=$(VERSION) --target agent -t rekindle-agent:$(VERSION) .

##@ Test

# envtest looks here for etcd, kube-apiserver and kubectl.
export KUBEBUILDER_ASSETS ?= $(TOOLS)

.PHONY: test
test: $(if $(filter $(TOOLS),$(KUBEBUILDER_ASSETS)),$(TOOLS_TEST)) ## Unit tests with the race detector, and integration against a real API server; no root
	go test -race ./...

# One package at a time: each measures, and they would disturb one another.
E2E     = REKINDLE_E2E=1 REKINDLE_FULL=$(FULL) go test -count=1 -p 1 -v
E2E_SET = ./test/cluster/... ./test/edgenode/... $(patsubst %,./test/e2e/%/...,demo recovery offline readiness)
FOCUSED = -ginkgo.v -ginkgo.seed=1 $(if $(FOCUS),-ginkgo.focus='$(FOCUS)')
.PHONY: test-e2e
test-e2e: root packages $(TOOLS_E2E) $(if $(FULL),$(TOOLS_FULL)) build-host ## The product on real nodes that lose their power (root); FULL=1: everything, both kubelets
	$(E2E) -timeout $(if $(FULL),60m,25m) $(E2E_SET) $(if $(FULL),./test/e2e/...) $(FOCUSED)
	$(if $(FULL),REKINDLE_KUBELET=oldest $(E2E) -timeout 60m ./test/e2e/... $(FOCUSED))

.PHONY: torture
torture: root ## The store killed, damaged, on full and read-only disks, and power cuts while it writes (root)
	REKINDLE_TORTURE=1 go test -count=1 -timeout 30m -v ./agent/snapshot/torture
	go test -run '^$$' -fuzz FuzzDamagedFile -fuzztime 1m ./agent/snapshot/durable

CASES  ?= native-online,native-offline,floor
RUNS   ?= 5
PODS   ?= 10
WAN    ?= blackhole
CUTS   ?= 2
KUBELET ?= newest
OUT    ?= bench.jsonl
.PHONY: bench
bench: root packages $(TOOLS_E2E) $(if $(filter oldest,$(KUBELET)),$(TOOLS_FULL)) build-host ## Recovery times of CASES, RUNS times each, alternating (root)
	@go run ./test/bench -cases '$(CASES)' -runs '$(RUNS)' -pods '$(PODS)' -wan '$(WAN)' -cuts '$(CUTS)' -kubelet '$(KUBELET)' -out '$(OUT)'

##@ Develop

.PHONY: generate
generate: ## Deepcopy functions and CRDs from the types in api/
	go tool controller-gen object paths=./api/...
	go tool controller-gen crd paths=./api/... output:crd:dir=config/crd/bases

.PHONY: fmt
fmt: ## Format all Go files
	gofmt -w $$(git ls-files '*.go')

.PHONY: lint
lint: $(TOOLS)/golangci-lint ## golangci-lint with the reasons in .golangci.yml
	$(TOOLS)/golangci-lint run --allow-parallel-runners ./...

.PHONY: verify
verify: ## Generated files, formatting and go.mod are up to date
	@./test/verify.sh

.PHONY: tools test-tools e2e-tools
tools: $(TOOLS_FULL) $(TOOLS)/golangci-lint ## All test tools, built from the Go module proxy
test-tools: $(TOOLS_TEST)
e2e-tools: $(TOOLS_E2E)

# Asked for before anything is built.
.PHONY: root
root:
	@test "$$(id -u)" = 0 || { echo 'make $(MAKECMDGOALS): needs root, for namespaces, mounts and cgroups of the test nodes; run: sudo make $(MAKECMDGOALS)' >&2; exit 1; }

.PHONY: packages
packages: ## Debian packages that a test node needs (root, when one is missing)
	@./test/packages.sh

.PHONY: help
help: ## This list
	@awk 'BEGIN {FS = ":.*## "} \
	    /^##@/ {printf "\n%s\n", substr($$0, 5)} \
	    /^[a-z0-9-]+:.*## / {printf "  %-13s %s\n", $$1, $$2}' Makefile
