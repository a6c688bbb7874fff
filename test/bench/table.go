package main

import (
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
)

// columns are the times of the table.
var columns = []struct {
	title string
	value func(record) *int64
}{
	{"kubelet to first", func(r record) *int64 { return r.FirstReady }},
	{"kubelet to last", func(r record) *int64 { return r.LastReady }},
	{"boot to last", func(r record) *int64 { return r.BootToLast }},
	{"last serving", func(r record) *int64 { return r.Extra[lastServing] }},
}

// table shows, case by case, the median of each time and its spread, in seconds.
func table(records []record) string {
	head := []string{"case", "runs", "ready"}
	for _, column := range columns {
		head = append(head, column.title)
	}
	rows := [][]string{head}
	for _, name := range caseNames() {
		var runs []record
		ready, pods := 0, 0
		for _, r := range records {
			if r.Case == name {
				runs, ready, pods = append(runs, r), ready+r.Ready, pods+r.Pods
			}
		}
		if len(runs) > 0 {
			rows = append(rows, append([]string{name, strconv.Itoa(len(runs)), fmt.Sprintf("%d/%d", ready, pods)}, times(runs)...))
		}
	}
	var out strings.Builder
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, row := range rows {
		_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
	}
	_ = w.Flush() // a Builder takes all
	return out.String()
}

// times are one case's columns: median (least-most).
func times(runs []record) []string {
	var cells []string
	for _, column := range columns {
		var values []*int64
		for _, r := range runs {
			values = append(values, column.value(r))
		}
		s := summarize(values)
		cells = append(cells, fmt.Sprintf("%s (%s-%s)", seconds(s.median), seconds(s.least), seconds(s.most)))
	}
	return cells
}

// seconds prints milliseconds as seconds; null is a time that never came.
func seconds(ms *int64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f", float64(*ms)/1000)
}
