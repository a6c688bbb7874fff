package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/unit"
)

// searchPath is where systemd looks for units, the strongest first, as systemd.unit(5)
// lists it. Directories that generators write to are left out: they may hold our own
// drop-in of an earlier load.
var searchPath = []string{
	"/etc/systemd/system.control",
	"/run/systemd/system.control",
	"/run/systemd/transient",
	"/etc/systemd/system",
	"/etc/systemd/system.attached",
	"/run/systemd/system",
	"/run/systemd/system.attached",
	"/usr/local/lib/systemd/system",
	"/usr/lib/systemd/system",
	"/lib/systemd/system",
}

// unitFiles are the files below root that make a unit up, in the order in which systemd
// reads them: the unit file, then the drop-ins by name.
func unitFiles(root, name string) ([]string, error) {
	main := ""
	for _, dir := range searchPath {
		path := filepath.Join(root, dir, name)
		if _, err := os.Lstat(path); err == nil {
			main = path
			break
		}
	}
	if main == "" {
		return nil, fmt.Errorf("there is no unit %s: is kubelet a service of systemd?", name)
	}
	kind := strings.TrimPrefix(filepath.Ext(name), ".")
	dropins := map[string]string{}
	for _, dir := range slices.Backward(searchPath) {
		// Settings for one unit are stronger than those for all of its type.
		for _, sub := range []string{kind + ".d", name + ".d"} {
			entries, err := os.ReadDir(filepath.Join(root, dir, sub))
			if err != nil && !errors.Is(err, fs.ErrNotExist) {
				return nil, err
			}
			for _, entry := range entries {
				if strings.HasSuffix(entry.Name(), ".conf") {
					dropins[entry.Name()] = filepath.Join(root, dir, sub, entry.Name())
				}
			}
		}
	}
	files := []string{main}
	for _, name := range slices.Sorted(maps.Keys(dropins)) {
		files = append(files, dropins[name])
	}
	return files, nil
}

// command is the one command line that a service unit starts, as its files word it.
func command(root, name string) (string, error) {
	files, err := unitFiles(root, name)
	if err != nil {
		return "", err
	}
	var commands []string
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return "", fmt.Errorf("unit %s: %w", name, err)
		}
		options, err := unit.DeserializeOptions(strings.NewReader(string(content)))
		if err != nil {
			return "", fmt.Errorf("unit %s, %s: %w", name, file, err)
		}
		for _, option := range options {
			switch {
			case option.Section != "Service" || option.Name != "ExecStart":
			case option.Value == "":
				commands = nil
			default:
				commands = append(commands, option.Value)
			}
		}
	}
	if len(commands) != 1 {
		return "", fmt.Errorf("unit %s starts %d commands (ExecStart=); exactly one can be given arguments", name, len(commands))
	}
	return commands[0], nil
}
