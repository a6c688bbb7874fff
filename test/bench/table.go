package main

import (
	"bytes"
	"fmt"
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
	var out bytes.Buffer
	w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	fmt.Fprint(w, "case\truns\tready")
	for _, column := range columns {
		fmt.Fprintf(w, "\t%s", column.title)
	}
	fmt.Fprintln(w)
	for _, name := range caseNames() {
		var runs []record
		ready, pods := 0, 0
		for _, r := range records {
			if r.Case == name {
				runs, ready, pods = append(runs, r), ready+r.Ready, pods+r.Pods
			}
		}
		if len(runs) == 0 {
			continue
		}
		fmt.Fprintf(w, "%s\t%d\t%d/%d", name, len(runs), ready, pods)
		for _, column := range columns {
			var values []*int64
			for _, r := range runs {
				values = append(values, column.value(r))
			}
			s := summarize(values)
			fmt.Fprintf(w, "\t%s (%s-%s)", seconds(s.median), seconds(s.least), seconds(s.most))
		}
		fmt.Fprintln(w)
	}
	w.Flush()
	return out.String()
}

// seconds prints milliseconds as seconds; null is a time that never came.
func seconds(ms *int64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f", float64(*ms)/1000)
}
