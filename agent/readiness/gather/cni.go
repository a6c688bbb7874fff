package gather

import (
	"encoding/json"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"rekindle.edge/agent/mirror"
	"rekindle.edge/agent/readiness"
)

const (
	cniDir = "/etc/cni/net.d"
	// subnetFile is flannel's, unless its configuration names another.
	subnetFile = "/run/flannel/subnet.env"
)

type cniConfig struct {
	cniPlugin
	Plugins []cniPlugin `json:"plugins"`
}

type cniPlugin struct {
	Type       string `json:"type"`
	SubnetFile string `json:"subnetFile"`
	Kubeconfig string `json:"kubeconfig"`
	Kubernetes struct {
		Kubeconfig string `json:"kubeconfig"`
	} `json:"kubernetes"`
}

// cni looks at the configuration that the runtime takes: the first of the directory.
func (g *Gatherer) cni(facts *readiness.Facts) {
	entries, err := os.ReadDir(g.Root + cniDir)
	if err != nil {
		return // elsewhere, or none: the runtime says whether its network is ready
	}
	c := &facts.Node.CNI
	c.Looked = true
	for _, entry := range entries {
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		data, err := os.ReadFile(g.Root + filepath.Join(cniDir, entry.Name()))
		var config cniConfig
		if err != nil || json.Unmarshal(data, &config) != nil {
			continue // the runtime takes the next one
		}
		path := filepath.Join(cniDir, entry.Name())
		c.Configured = g.mounts.of(cniDir).kind != "tmpfs" || listed(path, facts)
		for _, plugin := range append(config.Plugins, config.cniPlugin) {
			g.plugin(plugin, facts)
		}
		return
	}
}

func listed(path string, facts *readiness.Facts) bool {
	return facts.Policy != nil && slices.Contains(facts.Policy.Snapshot.NodeFiles, path)
}

func (g *Gatherer) plugin(plugin cniPlugin, facts *readiness.Facts) {
	c := &facts.Node.CNI
	if plugin.Type == "flannel" {
		file := plugin.SubnetFile
		if file == "" {
			file = subnetFile
		}
		if kind := g.mounts.of(file).kind; (kind == "tmpfs" || kind == "ramfs") && !listed(clean(file), facts) {
			c.Lost = append(c.Lost, clean(file))
		}
	}
	kubeconfig := plugin.Kubeconfig
	if kubeconfig == "" {
		kubeconfig = plugin.Kubernetes.Kubeconfig
	}
	if kubeconfig == "" {
		return
	}
	config, err := clientcmd.LoadFromFile(g.Root + kubeconfig)
	if err != nil {
		c.Asks = plugin.Type
		return
	}
	current := config.Contexts[config.CurrentContext]
	if current == nil || !g.isLocal(config.Clusters[current.Cluster]) {
		c.Asks = plugin.Type
		return
	}
	if ends := g.ends(config.AuthInfos[current.AuthInfo]); !ends.IsZero() && (c.CredentialEnds.IsZero() || ends.Before(c.CredentialEnds)) {
		c.CredentialEnds = ends
	}
}

// isLocal says whether a cluster is the agent's local API.
func (g *Gatherer) isLocal(cluster *clientcmdapi.Cluster) bool {
	if cluster == nil {
		return false
	}
	server, err := url.Parse(cluster.Server)
	if err != nil {
		return false
	}
	host := server.Hostname()
	address := net.ParseIP(host)
	return host == "localhost" || host == g.Settings.LinkLocalAddress || address != nil && address.IsLoopback()
}

// ends is when a token runs out, by which a plugin calls the local API; zero: not known. A
// client certificate that is not the node's is refused anyway.
func (g *Gatherer) ends(user *clientcmdapi.AuthInfo) time.Time {
	if user == nil {
		return time.Time{}
	}
	token := user.Token
	if user.TokenFile != "" {
		data, _ := os.ReadFile(g.Root + user.TokenFile) // unreadable: not known
		token = strings.TrimSpace(string(data))
	}
	if token == "" {
		return time.Time{}
	}
	end, _ := mirror.TokenEnd(token)
	return end
}
