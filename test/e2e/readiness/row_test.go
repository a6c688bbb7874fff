package readiness

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"

	"rekindle.edge/test/edgenode"
)

// outcome of an outage, of a pod or of the node.
type outcome string

const (
	comesBack outcome = "comes back"
	staysDown outcome = "stays down"
	// staysEnded is a pod that had ended before the outage, and is not run again.
	staysEnded outcome = "stays ended"
	// staysOut is a node whose pods come back, and which is not let in by the API server when
	// the link is back.
	staysOut outcome = "stays out"
	inPart   outcome = "in part"
)

// step does something to the node or to the cluster.
type step func(context.Context)

// row is one line of the table. Reason and want are written by hand, before any run.
type row struct {
	name string
	// pod is how a web pod is changed. Rows of the node have plain pods, and a policy of
	// their own: fields of its spec in YAML that begins with a comma.
	pod    []change
	policy string
	// prepare what it needs before there are pods; put the fault in. Either may be nil.
	prepare, fault step
	// cut is how long the node is cut off before the link comes back; 0: it does not.
	cut time.Duration
	// reason that the verdict must have, blocking; empty: none may block.
	reason string
	want   outcome
	// core says that it runs without FULL=1.
	core bool
	// newest says that the oldest kubelet does not know of it.
	newest bool
}

// line is a row with what was seen.
type line struct {
	row
	said []string
	came outcome
	// unknown says that the verdict could not be told.
	unknown bool
}

func (l line) agrees() bool {
	says := len(l.said) == 0 && l.reason == "" || slices.Contains(l.said, l.reason)
	return says && !l.unknown && l.came == l.want
}

func (l line) String() string {
	said, mark := strings.Join(l.said, ", "), ""
	switch {
	case l.unknown:
		said = "unknown"
	case said == "":
		said = "comes back"
	}
	if !l.agrees() {
		mark = fmt.Sprintf("DISAGREE, written was %s %s", l.reason, l.want)
	}
	return strings.TrimSpace(fmt.Sprintf("%-34s verdict: %-36s outcome: %-12s %s", l.name, said, l.came, mark))
}

// table is what the specs of this run have seen.
var table []line

// closeTable prints the whole table, the count last.
func closeTable() (disagree []string) {
	agree := 0
	for _, l := range table {
		say("%s", l)
		if l.agrees() {
			agree++
		} else {
			disagree = append(disagree, l.String())
		}
	}
	say("verdict and outcome agree: %d of %d", agree, len(table))
	return disagree
}

// chosen are the rows that this run is to have.
func chosen(rows []row) []row {
	oldest := os.Getenv("REKINDLE_KUBELET") == string(edgenode.KubeletOldest)
	return slices.DeleteFunc(slices.Clone(rows), func(r row) bool { return !r.core && !full() || r.newest && oldest })
}

// phase that a pod has before the outage.
func (r row) phase() corev1.PodPhase {
	if r.want == staysEnded {
		return corev1.PodSucceeded
	}
	return corev1.PodRunning
}
