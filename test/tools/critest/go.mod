// Test tools only: the product never imports from here.
module rekindle.edge/test/tools/critest

go 1.26.6

require sigs.k8s.io/cri-tools v1.37.0
