package durable

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

const (
	// keptDamaged is how many damaged files are kept for inspection.
	keptDamaged = 3
	damagedMark = ".damaged-"
)

// keepDamaged gives a damaged file a second name, and drops the oldest of those kept.
func keepDamaged(path string) (string, error) {
	old, err := filepath.Glob(path + damagedMark + "*")
	if err != nil {
		return "", err
	}
	number := func(name string) int {
		n, _ := strconv.Atoi(name[strings.LastIndex(name, damagedMark)+len(damagedMark):])
		return n
	}
	slices.SortFunc(old, func(a, b string) int { return number(a) - number(b) })
	next := 1
	if len(old) > 0 {
		next = number(old[len(old)-1]) + 1
	}
	for ; len(old) >= keptDamaged; old = old[1:] {
		if err := os.Remove(old[0]); err != nil {
			return "", fmt.Errorf("dropping an old damaged store: %w", err)
		}
	}
	kept := path + damagedMark + strconv.Itoa(next)
	if err := os.Link(path, kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("keeping the damaged store: %w", err)
	}
	return kept, nil
}
