# Test tools, built from the Go module proxy at the versions that each folder's
# go.mod pins. A target is rebuilt only when its go.mod or go.sum changes.
TOOLS := $(CURDIR)/bin/tools

K8S_VERSION        := $(shell sed -n 's,^\tk8s.io/kubernetes \(v[0-9.]*\).*,\1,p' test/tools/kubernetes/go.mod)
K8S_OLDEST_VERSION := $(shell sed -n 's,^\tk8s.io/kubernetes \(v[0-9.]*\).*,\1,p' test/tools/kubernetes-oldest/go.mod)

# build-tool FOLDER PACKAGE LDFLAGS TAGS: progress is one line a package compiled,
# counted, so that a cold build of ten minutes is seen to move.
define build-tool
	@mkdir -p $(TOOLS)
	@printf 'building %s (cold: minutes, warm: seconds)\n' '$(notdir $@)'
	@set -o pipefail; cd test/tools/$(1) && CGO_ENABLED=0 GOFLAGS=-buildvcs=false \
	    go build -v -trimpath -tags '$(4)' -ldflags '-s -w $(3)' -o $@ $(2) 2>&1 | $(CURDIR)/test/tools/progress.sh $(notdir $@)
endef

# k8s-version VERSION: what the release build stamps into the binaries.
k8s-version = -X k8s.io/component-base/version.gitVersion=$(1) -X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(1:v%=%))) -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(1:v%=%)))

K8S_TOOLS := kube-apiserver kube-controller-manager kube-scheduler kube-proxy kubelet kubectl
$(K8S_TOOLS:%=$(TOOLS)/%): $(TOOLS)/%: test/tools/kubernetes/go.mod test/tools/kubernetes/go.sum
	$(call build-tool,kubernetes,k8s.io/kubernetes/cmd/$*,$(call k8s-version,$(K8S_VERSION)))
$(TOOLS)/kubelet-oldest: test/tools/kubernetes-oldest/go.mod test/tools/kubernetes-oldest/go.sum
	$(call build-tool,kubernetes-oldest,k8s.io/kubernetes/cmd/kubelet,$(call k8s-version,$(K8S_OLDEST_VERSION)))
$(TOOLS)/etcd: test/tools/kubernetes/go.mod test/tools/kubernetes/go.sum
	$(call build-tool,kubernetes,go.etcd.io/etcd/server/v3)
CONTAINERD_TOOLS := containerd containerd-shim-runc-v2 ctr
$(CONTAINERD_TOOLS:%=$(TOOLS)/%): $(TOOLS)/%: test/tools/containerd/go.mod test/tools/containerd/go.sum
	$(call build-tool,containerd,github.com/containerd/containerd/v2/cmd/$*,,no_btrfs no_zfs no_devmapper)
# A suite of tests, not a program.
$(TOOLS)/critest: test/tools/critest/go.mod test/tools/critest/go.sum
	@mkdir -p $(TOOLS)
	@echo 'building critest (cold: minutes, warm: seconds)'
	@cd test/tools/critest && CGO_ENABLED=0 GOFLAGS=-buildvcs=false go test -c -trimpath -ldflags '-s -w' -o $@ sigs.k8s.io/cri-tools/cmd/critest
$(TOOLS)/golangci-lint: test/tools/lint/go.mod test/tools/lint/go.sum
	$(call build-tool,lint,github.com/golangci/golangci-lint/v2/cmd/golangci-lint)

# What each job needs, and no more.
TOOLS_TEST := $(addprefix $(TOOLS)/,etcd kube-apiserver kubectl)
TOOLS_E2E  := $(TOOLS_TEST) $(addprefix $(TOOLS)/,kube-controller-manager kube-scheduler kube-proxy kubelet $(CONTAINERD_TOOLS))
TOOLS_FULL := $(TOOLS_E2E) $(addprefix $(TOOLS)/,kubelet-oldest critest)
