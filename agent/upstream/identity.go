// Package upstream reaches the API server with the node's own identity: kubelet's
// kubeconfig and client certificate.
package upstream

import (
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// nodeUserPrefix begins the user name of every kubelet.
const nodeUserPrefix = "system:node:"

// dialTimeout bounds a connection attempt: while a link swallows packets, nothing else
// ends it, and a link that comes back must be noticed soon.
const dialTimeout = 2 * time.Second

// find gives the first of these files that exists.
func find(paths []string) (string, error) {
	var errs []error
	for _, path := range paths {
		_, err := os.Stat(path)
		if err == nil {
			return path, nil
		}
		errs = append(errs, err)
	}
	return "", fmt.Errorf("no kubeconfig of kubelet: %w; name kubelet's file as kubeconfig in the agent's configuration", errors.Join(errs...))
}

// errNoName: the credentials are not of the kind that has a name in it.
var errNoName = errors.New("no client certificate to read the node's name from")

// load reads a kubeconfig as client configuration and finds the node's name. Name is taken
// where no certificate has one; a node's certificate must have the same.
func load(path, name string) (*rest.Config, string, error) {
	config, err := clientcmd.BuildConfigFromFlags("", path)
	if err != nil {
		return nil, "", fmt.Errorf("kubeconfig %s: %w; it must be kubelet's own", path, err)
	}
	// One dialer a configuration keeps transports shared; a dead peer is found by its
	// silence, see Run.
	config.Dial = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 15 * time.Second}).DialContext
	certified, err := nodeName(config)
	switch {
	case name == "" && errors.Is(err, errNoName):
		return nil, "", fmt.Errorf("kubeconfig %s: %w; set nodeName in the agent's configuration", path, err)
	case name == "" && err != nil:
		return nil, "", fmt.Errorf("kubeconfig %s: %w; name kubelet's own file as kubeconfig in the agent's configuration", path, err)
	case name == "":
		name = certified
	case err == nil && name != certified:
		return nil, "", fmt.Errorf("kubeconfig %s: the client certificate is of node %q, nodeName in the agent's configuration is %q; leave nodeName out, or name that node's kubeconfig",
			path, certified, name)
	}
	return config, name, nil
}

// nodeName reads the node's name from the subject of its client certificate.
func nodeName(config *rest.Config) (string, error) {
	data := config.CertData
	if len(data) == 0 {
		if config.CertFile == "" {
			return "", errNoName
		}
		var err error
		if data, err = os.ReadFile(config.CertFile); err != nil {
			return "", fmt.Errorf("reading the client certificate: %w", err)
		}
	}
	// kubelet keeps certificate and key in one file, in either order.
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" {
			continue
		}
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return "", fmt.Errorf("parsing the client certificate: %w", err)
		}
		name, ok := strings.CutPrefix(certificate.Subject.CommonName, nodeUserPrefix)
		if !ok || name == "" {
			return "", fmt.Errorf("the client certificate is of %q, not of a node (%sNAME)", certificate.Subject.CommonName, nodeUserPrefix)
		}
		return name, nil
	}
	return "", errors.New("the client certificate holds no CERTIFICATE block")
}
