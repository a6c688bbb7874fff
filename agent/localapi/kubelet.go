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
	known := conn.kubelets.Load()
	is, err := s.ownedByKubelet(r.Context(), conn)
	if err != nil {
		s.log.Error(err, "Process behind a request without a certificate cannot be told, it is refused")
	}
	if is && !known {
		s.log.Info("Kubelet shows no certificate, since its own has expired; it is known by its process")
	}
	return is
}

// fromKubelet says whether the process behind a request of the node's own is kubelet's.
func (s *Server) fromKubelet(r *http.Request) bool {
	conn, ok := r.Context().Value(connectionKey{}).(*connection)
	if !ok || s.Kubelet == nil {
		return false
	}
	is, err := s.ownedByKubelet(r.Context(), conn)
	if err != nil {
		s.log.Error(err, "Process behind a request cannot be told, it is not taken for kubelet's", "userAgent", r.UserAgent())
	}
	return is
}

// ownedByKubelet says whether kubelet's process holds the other end of a connection.
func (s *Server) ownedByKubelet(ctx context.Context, conn *connection) (bool, error) {
	if conn.kubelets.Load() {
		return true, nil
	}
	ctx, cancel := context.WithTimeout(ctx, kubeletTimeout)
	defer cancel()
	is, err := s.Kubelet(ctx, conn.local, conn.remote)
	if is {
		conn.kubelets.Store(true)
	}
	return is, err
}
