package main

import (
	"cmp"
	"slices"
)

// A summary of figures in which null, a time that never came, is later than any other.
type summary struct {
	least, median, most *float64
}

// summarize takes the nearest rank as the median, so that it is a figure that was measured.
func summarize(values []*float64) summary {
	if len(values) == 0 {
		return summary{}
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, later)
	return summary{least: sorted[0], median: sorted[(len(sorted)-1)/2], most: sorted[len(sorted)-1]}
}

func later(a, b *float64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return cmp.Compare(*a, *b)
}
