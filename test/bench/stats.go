package main

import "slices"

// A summary of times in which null, a time that never came, is later than any other.
type summary struct {
	least, median, most *int64
}

// summarize takes the nearest rank as the median, so that it is a time that was measured.
func summarize(values []*int64) summary {
	if len(values) == 0 {
		return summary{}
	}
	sorted := slices.Clone(values)
	slices.SortFunc(sorted, later)
	return summary{least: sorted[0], median: sorted[(len(sorted)-1)/2], most: sorted[len(sorted)-1]}
}

func later(a, b *int64) int {
	switch {
	case a == nil && b == nil:
		return 0
	case a == nil:
		return 1
	case b == nil:
		return -1
	}
	return int(*a - *b)
}
