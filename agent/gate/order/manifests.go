package order

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"sigs.k8s.io/yaml"
)

// Fingerprint gives a text that changes whenever the files in a directory do. The directory
// is asked for each time, since kubelet may be configured anew; empty: there is none.
func Fingerprint(directory func() string) func() string {
	return func() string {
		dir := directory()
		if dir == "" {
			return ""
		}
		entries, err := os.ReadDir(dir)
		if err != nil {
			return ""
		}
		var text strings.Builder
		for _, e := range entries {
			if info, err := e.Info(); err == nil {
				fmt.Fprintf(&text, "%s %d %d\n", e.Name(), info.Size(), info.ModTime().UnixNano())
			}
		}
		return text.String()
	}
}

// ManifestDir is where a kubelet with these arguments looks for static pods; empty: nowhere.
func ManifestDir(args []string) string {
	dir, config := "", ""
	for i, arg := range args {
		flag, value, joined := strings.Cut(strings.TrimLeft(arg, "-"), "=")
		if !joined && i+1 < len(args) {
			value = args[i+1]
		}
		switch flag {
		case "pod-manifest-path":
			dir = value // wins over the file
		case "config":
			config = value
		}
	}
	if dir != "" || config == "" {
		return dir
	}
	var file struct {
		StaticPodPath string `json:"staticPodPath"`
	}
	data, err := os.ReadFile(config)
	if err != nil || yaml.Unmarshal(data, &file) != nil || file.StaticPodPath == "" {
		return ""
	}
	if !filepath.IsAbs(file.StaticPodPath) {
		return filepath.Join(filepath.Dir(config), file.StaticPodPath)
	}
	return file.StaticPodPath
}
