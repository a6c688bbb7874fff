package localapi

import (
	"context"
	"net"
	"net/http"
	"net/netip"
	"sync/atomic"
	"time"
)

// Kubelet says whether kubelet's process holds the end of a TCP connection that has the
// address local, with the other end at the address remote.
type Kubelet func(ctx context.Context, local, remote netip.AddrPort) (bool, error)

// kubeletTimeout bounds the look for the process behind a connection.
const kubeletTimeout = 2 * time.Second

// A kubelet that rotates its certificate shows none once it has expired, and none at all
// when it starts after that: an outage that is longer than the certificate's life would
// leave the node without pods. Its process is known by the service manager then, and its
// connection by the kernel.

// connection is what is known of one connection.
type connection struct {
	// local and remote are kubelet's end and ours.
	local, remote netip.AddrPort
	kubelets      atomic.Bool
}

type connectionKey struct{}

func withConnection(ctx context.Context, conn net.Conn) context.Context {
	theirs, ok := conn.RemoteAddr().(*net.TCPAddr)
	ours, ok2 := conn.LocalAddr().(*net.TCPAddr)
	if !ok || !ok2 {
		return ctx
	}
	return context.WithValue(ctx, connectionKey{}, &connection{local: theirs.AddrPort(), remote: ours.AddrPort()})
}

// isKubelet says whether a request without credentials is kubelet's, which has none left.
func (s *Server) isKubelet(r *http.Request) bool {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok || s.Kubelet == nil || len(r.TLS.PeerCertificates) > 0 || r.Header.Get("Authorization") != "" || !conn.local.Addr().IsLoopback() {
		return false
	}
	// Kubelet may have a new one by now.
	if identity := s.upstream.reread(); identity == nil || time.Now().Before(identity.Certificate.Leaf.NotAfter) {
		return false
	}
	if conn.kubelets.Load() {
		return true
	}
	ctx, cancel := context.WithTimeout(r.Context(), kubeletTimeout)
	defer cancel()
	is, err := s.Kubelet(ctx, conn.local, conn.remote)
	if err != nil {
		s.log.Error(err, "Process behind a request without a certificate cannot be told, it is refused")
	}
	if is {
		conn.kubelets.Store(true)
		s.log.Info("Kubelet shows no certificate, since its own has expired; it is known by its process")
	}
	return is
}
