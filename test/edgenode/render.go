package edgenode

import (
	"bytes"
	"embed"
	"fmt"
	"text/template"

	"rekindle.edge/test/images"
)

//go:embed files
var embedded embed.FS

// toolsInNode is where the test tools are mounted inside of a node.
const toolsInNode = "/opt/edge/bin"

// settings fill the templates in files/.
type settings struct {
	Name, NodeIP, PodCIDR string
	Kubelet, Labels       string
	CgroupV2, RestrictOOM bool
	Logind                bool
}

// PauseImage is called by the containerd template.
func (settings) PauseImage() string { return images.Pause }

// render fills one of the files.
func render(name string, s settings) ([]byte, error) {
	text, err := embedded.ReadFile("files/" + name)
	if err != nil {
		return nil, err
	}
	t, err := template.New(name).Option("missingkey=error").Parse(string(text))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var out bytes.Buffer
	if err := t.Execute(&out, s); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out.Bytes(), nil
}
