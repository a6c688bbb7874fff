package wiring

import (
	"fmt"
	"os"
	"path/filepath"
)

// dropInName sorts behind the names that others use, so that its ExecStart= is the last.
const dropInName = "zz-rekindle.conf"

// argsVariable holds the arguments that the agent gives kubelet. It is empty unless the
// agent serves.
const argsVariable = "REKINDLE_KUBELET_ARGS"

const dropIn = `# Made by rekindle-agent each time systemd loads its units, from kubelet's unit as it is
# then. Nothing here is in force unless the agent has written %[3]s.
[Unit]
Wants=rekindle-agent.service %[2]s
After=rekindle-agent.service %[2]s

[Service]
Environment=%[4]s=
EnvironmentFile=-%[3]s
ExecStart=
ExecStart=%[1]s $%[4]s
`

// Generate writes the drop-in for kubelet's unit into a directory of systemd's, as a
// generator does (systemd.generator(7)). Kubelet's command line is taken from the unit's
// own files below root, so a package upgrade that changes it is never hidden.
func Generate(root, dir, kubeletUnit, containerdUnit string) error {
	start, err := command(root, kubeletUnit)
	if err != nil {
		return err
	}
	dir = filepath.Join(dir, kubeletUnit+".d")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	content := fmt.Sprintf(dropIn, start, containerdUnit, filepath.Join(RunDir, envFile), argsVariable)
	return os.WriteFile(filepath.Join(dir, dropInName), []byte(content), 0o644)
}
