package main

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
)

// columns are the times of the table.
var columns = []struct {
	title string
	value func(record) *float64
}{
	{"kubelet to first", func(r record) *float64 { return number(r.FirstReady) }},
	{"kubelet to last", func(r record) *float64 { return number(r.LastReady) }},
	{"boot to last", func(r record) *float64 { return number(r.BootToLast) }},
	{"last serving", func(r record) *float64 { return r.Extra[lastServing] }},
}

// table shows, case by case, the median of each time and its spread, in seconds; a case
// that was cut off in several ways has a line for each. What some cases measure beside is
// below.
func table(records []record) string {
	rows := [][]string{{"case", "wan", "runs", "ready"}}
	for _, column := range columns {
		rows[0] = append(rows[0], column.title)
	}
	figures := [][]string{{"case", "wan", "runs", "figure", "median (spread)"}}
	for _, group := range groups(records) {
		bench, _ := caseNamed(group[0].Case)
		head := []string{bench.name, group[0].WAN, strconv.Itoa(len(group))}
		if bench.measure == nil {
			ready, pods := 0, 0
			for _, r := range group {
				ready, pods = ready+r.Ready, pods+r.Pods
			}
			rows = append(rows, slices.Concat(head, []string{fmt.Sprintf("%d/%d", ready, pods)}, times(group)))
		}
		for _, name := range bench.figures {
			s := summarize(values(group, func(r record) *float64 { return r.Extra[name] }))
			figures = append(figures, slices.Concat(head, []string{name, fmt.Sprintf("%s (%s-%s)", plain(s.median), plain(s.least), plain(s.most))}))
		}
	}
	var out strings.Builder
	for _, part := range [][][]string{rows, figures} {
		if len(part) == 1 {
			continue
		}
		w := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
		for _, row := range part {
			_, _ = fmt.Fprintln(w, strings.Join(row, "\t"))
		}
		_ = w.Flush() // a Builder takes all
	}
	return out.String()
}

// groups are the records of one case and one way to be cut off, in the order of the cases.
func groups(records []record) [][]record {
	var all [][]record
	for _, name := range caseNames() {
		byWAN := map[string][]record{}
		for _, r := range records {
			if r.Case == name {
				byWAN[r.WAN] = append(byWAN[r.WAN], r)
			}
		}
		for _, wan := range slices.Sorted(maps.Keys(byWAN)) {
			all = append(all, byWAN[wan])
		}
	}
	return all
}

// times are one group's columns: median (least-most).
func times(runs []record) []string {
	var cells []string
	for _, column := range columns {
		s := summarize(values(runs, column.value))
		cells = append(cells, fmt.Sprintf("%s (%s-%s)", seconds(s.median), seconds(s.least), seconds(s.most)))
	}
	return cells
}

func values(runs []record, value func(record) *float64) []*float64 {
	var all []*float64
	for _, r := range runs {
		all = append(all, value(r))
	}
	return all
}

func number(ms *int64) *float64 {
	if ms == nil {
		return nil
	}
	value := float64(*ms)
	return &value
}

// seconds prints milliseconds as seconds; null is a time that never came.
func seconds(ms *float64) string {
	if ms == nil {
		return "never"
	}
	return fmt.Sprintf("%.1f", *ms/1000)
}

// plain prints a figure with the digits that tell something.
func plain(value *float64) string {
	switch {
	case value == nil:
		return "none"
	case *value != 0 && *value < 10 && *value > -10:
		return strconv.FormatFloat(*value, 'g', 3, 64)
	}
	return strconv.FormatFloat(*value, 'f', 0, 64)
}
