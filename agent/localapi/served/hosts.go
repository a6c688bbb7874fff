package served

import (
	"bufio"
	"bytes"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// registryOf is the registry that an image is of.
func registryOf(image string) string {
	first, _, ok := strings.Cut(image, "/")
	if !ok || first != "localhost" && !strings.ContainsAny(first, ".:") {
		return "docker.io"
	}
	return first
}

// hostRoots are where containerd looks for what stands for a registry, by default.
var hostRoots = []string{"/etc/containerd/certs.d", "/etc/docker/certs.d"}

// endpoints are the URLs that containerd asks for a registry's tags, in its order: the
// mirrors of its hosts.toml, then the registry itself.
func endpoints(root, registry string) []string {
	own := []string{"https://" + registry}
	switch host, port := split(registry); {
	case registry == "docker.io":
		own = []string{"https://registry-1.docker.io"}
	case local(host) && port != "443" && port != "":
		own = []string{"https://" + registry, "http://" + registry}
	}
	data := hostsFile(root, registry)
	if data == nil {
		return own
	}
	mirrors, server := parseHosts(data)
	if server != "" {
		own = []string{server}
	}
	return append(mirrors, own...)
}

func split(registry string) (host, port string) {
	host, port, err := net.SplitHostPort(registry)
	if err != nil {
		return registry, ""
	}
	return host, port
}

func local(host string) bool {
	address, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && address.IsLoopback()
}

// hostsFile is nil if there is none.
func hostsFile(root, registry string) []byte {
	names := []string{registry, "_default"}
	if host, port := split(registry); port != "" {
		names = append([]string{host + "_" + port + "_"}, names...)
	}
	for _, dir := range hostRoots {
		for _, name := range names {
			dir := filepath.Join(root, dir, name)
			if _, err := os.Stat(dir); err != nil {
				continue
			}
			data, err := os.ReadFile(filepath.Join(dir, "hosts.toml"))
			if err != nil {
				return nil // certificates only
			}
			return data
		}
	}
	return nil
}

var (
	hostHeader = regexp.MustCompile(`^\[\s*host\s*\.\s*(?:"([^"]+)"|'([^']+)')\s*\]`)
	setting    = regexp.MustCompile(`^(server|capabilities)\s*=\s*(.*)$`)
)

// parseHosts reads of a hosts.toml which mirrors are asked for tags, and the server. It
// knows that much of TOML.
func parseHosts(data []byte) (mirrors []string, server string) {
	type mirror struct {
		url      string
		resolves bool
	}
	var all []mirror
	section := false
	lines := bufio.NewScanner(bytes.NewReader(data))
	for lines.Scan() {
		line := strings.TrimSpace(lines.Text())
		if header := hostHeader.FindStringSubmatch(line); header != nil {
			all, section = append(all, mirror{url: header[1] + header[2], resolves: true}), true
			continue
		}
		if strings.HasPrefix(line, "[") {
			section = true // a mirror's own headers, which set neither of the two
			continue
		}
		set := setting.FindStringSubmatch(line)
		switch {
		case set == nil:
		case set[1] == "server" && !section:
			value, _, _ := strings.Cut(strings.TrimLeft(set[2], `"'`), set[2][:1])
			server = value
		case set[1] == "capabilities" && len(all) > 0:
			all[len(all)-1].resolves = strings.Contains(set[2], "resolve")
		}
	}
	for _, m := range all {
		if m.resolves {
			mirrors = append(mirrors, withScheme(m.url))
		}
	}
	if server != "" {
		server = withScheme(server)
	}
	return mirrors, server
}

func withScheme(url string) string {
	if strings.HasPrefix(url, "http") {
		return url
	}
	return "https://" + url
}
