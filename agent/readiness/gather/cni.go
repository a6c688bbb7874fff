package gather

import (
	"cmp"
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

	"rekindle.edge/agent/readiness"
	"rekindle.edge/agent/satoken"
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
	dir := cmp.Or(g.cniDir, cniDir)
	entries, err := os.ReadDir(g.Root + dir)
	if err != nil {
		return // elsewhere, or none: the runtime says whether its network is ready
	}
	c := &facts.Node.CNI
	c.Looked, c.Dir = true, dir
	for _, entry := range entries {
		if !slices.Contains([]string{".conf", ".conflist", ".json"}, filepath.Ext(entry.Name())) {
			continue
		}
		data, err := os.ReadFile(g.Root + filepath.Join(dir, entry.Name()))
		var config cniConfig
		if err != nil || json.Unmarshal(data, &config) != nil {
			continue // the runtime takes the next one
		}
		c.Configured = !g.emptied(filepath.Join(dir, entry.Name()), facts)
		for _, plugin := range append(config.Plugins, config.cniPlugin) {
			g.plugin(plugin, facts)
		}
		return
	}
}

func listed(path string, facts *readiness.Facts) bool {
	return facts.Policy != nil && slices.Contains(facts.Policy.Snapshot.NodeFiles, path)
}

// agentDir is in memory, and the agent makes it again before the runtime starts.
const agentDir = "/run/rekindle"

// emptied says whether a restart loses a file: it is in memory, and neither the agent makes
// it nor the policy keeps it.
func (g *Gatherer) emptied(path string, facts *readiness.Facts) bool {
	kind := g.mounts.of(path).kind
	return (kind == "tmpfs" || kind == "ramfs") && !below(clean(path), agentDir) && !listed(clean(path), facts)
}

// keeps notes which files of a plugin a restart loses.
func (g *Gatherer) keeps(facts *readiness.Facts, paths ...string) {
	c := &facts.Node.CNI
	for _, path := range paths {
		if path != "" && g.emptied(path, facts) && !slices.Contains(c.Lost, clean(path)) {
			c.Lost = append(c.Lost, clean(path))
		}
	}
}

func (g *Gatherer) plugin(plugin cniPlugin, facts *readiness.Facts) {
	c := &facts.Node.CNI
	if plugin.Type == "flannel" {
		file := plugin.SubnetFile
		if file == "" {
			file = subnetFile
		}
		g.keeps(facts, file)
	}
	kubeconfig := plugin.Kubeconfig
	if kubeconfig == "" {
		kubeconfig = plugin.Kubernetes.Kubeconfig
	}
	if kubeconfig == "" {
		return
	}
	g.keeps(facts, kubeconfig)
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
	if user := config.AuthInfos[current.AuthInfo]; user != nil {
		g.keeps(facts, user.TokenFile, user.ClientCertificate, user.ClientKey)
	}
	g.keeps(facts, config.Clusters[current.Cluster].CertificateAuthority)
	if ends := g.ends(config.AuthInfos[current.AuthInfo]); !ends.IsZero() && (c.CredentialEnds.IsZero() || ends.Before(c.CredentialEnds)) {
		c.CredentialEnds, c.Credential = ends, clean(kubeconfig)
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
	end, _ := satoken.End(token)
	return end
}
