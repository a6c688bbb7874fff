package lab

import (
	"errors"
	"os"
	"path/filepath"
)

// ModuleRoot is the folder of the module that the working directory lies in.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("no go.mod in the working directory or above it: run in the repository, or name folders by option")
		}
		dir = parent
	}
}
