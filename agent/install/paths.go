package install

import "rekindle.edge/agent/config"

// Paths are the files of an installed agent.
func Paths(settings config.Config) ([]string, error) {
	files, err := wanted(nil, settings)
	return paths(files), err
}
