package localapi

import (
	"crypto/tls"
	"net"
	"net/http"
	"time"
)

// Bounds of a connection to the API server. A link that swallows packets is found by its
// silence long before these end.
const (
	dialTimeout      = 10 * time.Second
	handshakeTimeout = 10 * time.Second
	pingAfter        = 15 * time.Second
	pingTimeout      = 15 * time.Second
	idleTimeout      = 90 * time.Second
)

// route is a set of connections to the API server, apart by whose credentials they carry
// and by whether they can be upgraded to another protocol.
type route struct {
	identity *Identity
	shared   map[caller]*http.Transport
	upgrades map[caller]*http.Transport
}

func newRoute(identity *Identity) *route {
	var multiplexed, plain http.Protocols
	multiplexed.SetHTTP1(true)
	multiplexed.SetHTTP2(true)
	plain.SetHTTP1(true)
	r := &route{identity: identity, shared: map[caller]*http.Transport{}, upgrades: map[caller]*http.Transport{}}
	for _, c := range []caller{node, bearer} {
		r.shared[c] = identity.transport(c, &multiplexed)
		r.upgrades[c] = identity.transport(c, &plain)
	}
	return r
}

func (i *Identity) transport(c caller, protocols *http.Protocols) *http.Transport {
	config := i.trust.Clone()
	config.NextProtos = nil
	if c == node {
		// Not Certificates: Go withholds those that no authority named by the server signed.
		config.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return &i.Certificate, nil
		}
	}
	return &http.Transport{
		Proxy:               i.proxy,
		DialContext:         (&net.Dialer{Timeout: dialTimeout, KeepAlive: pingAfter}).DialContext,
		TLSClientConfig:     config,
		TLSHandshakeTimeout: handshakeTimeout,
		// The caller's own Accept-Encoding goes through.
		DisableCompression:  true,
		MaxIdleConnsPerHost: 16,
		IdleConnTimeout:     idleTimeout,
		Protocols:           protocols,
		HTTP2:               &http.HTTP2Config{SendPingTimeout: pingAfter, PingTimeout: pingTimeout},
	}
}

// transport for a request.
func (r *route) transport(c caller, upgrade bool) *http.Transport {
	if upgrade {
		return r.upgrades[c]
	}
	return r.shared[c]
}

// retire lets connections go as their requests end.
func (r *route) retire() {
	for _, c := range []caller{node, bearer} {
		r.shared[c].CloseIdleConnections()
		r.upgrades[c].CloseIdleConnections()
	}
}
