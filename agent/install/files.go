package install

import (
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	units "rekindle.edge/config/agent"

	"rekindle.edge/agent/config"
)

// Where things go on the node.
const (
	binaryPath    = "/usr/local/bin/rekindle-agent"
	unitDir       = "/etc/systemd/system"
	generatorPath = "/etc/systemd/system-generators/rekindle-kubelet"
)

// file is one file, or symbolic link, of the installed agent.
type file struct {
	path string
	mode fs.FileMode
	data []byte
	// link is the target of a symbolic link; data and mode do not count then.
	link string
}

// wanted are the files of an installed agent, for the units and the address that the
// configuration names.
func wanted(binary []byte, settings config.Config) ([]file, error) {
	defaults := config.Default()
	rename := strings.NewReplacer(
		defaults.KubeletUnit, settings.KubeletUnit,
		defaults.ContainerdUnit, settings.ContainerdUnit,
		defaults.LinkLocalAddress, settings.LinkLocalAddress,
	)
	files := []file{{path: binaryPath, mode: 0o755, data: binary}}
	err := fs.WalkDir(units.Files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := units.Files.ReadFile(name)
		if err != nil {
			return err
		}
		f := file{path: filepath.Join(unitDir, name), mode: 0o644, data: []byte(rename.Replace(string(data)))}
		if strings.HasSuffix(name, ".generator") {
			f.path, f.mode = generatorPath, 0o755
		}
		files = append(files, f)
		if target := wantedBy(f.data); target != "" {
			files = append(files, file{path: filepath.Join(unitDir, target+".wants", name), link: f.path})
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("unit files: %w", err)
	}
	return files, nil
}

// wantedBy is the target that a unit is to be enabled in.
func wantedBy(unit []byte) string {
	for line := range strings.Lines(string(unit)) {
		if target, ok := strings.CutPrefix(line, "WantedBy="); ok {
			return strings.TrimSpace(target)
		}
	}
	return ""
}

// paths of files.
func paths(files []file) []string {
	var paths []string
	for _, f := range files {
		paths = append(paths, f.path)
	}
	return paths
}
