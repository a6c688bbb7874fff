package localapi

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// Kubelet depends on the agent, and any pod may call it. So what strangers (whoever does not
// show the node's certificate) can have it hold at one time is bounded, and none of it is
// taken from what kubelet may.
const (
	// strangersShort and strangersLong are how many requests of strangers may run, short ones
	// and watches, logs and the like.
	strangersShort, strangersLong = 128, 512
	// strangersConnections bounds those to addresses that pods can reach.
	strangersConnections = 512
	// shortTime bounds a short request, also when its caller is slow to send or to read.
	shortTime = time.Minute
	// lastWord is the time to say that it is over.
	lastWord = 5 * time.Second
	// stuckTime is how long the reader of a long one may read nothing.
	stuckTime = time.Minute
	// strangersReplay is the largest body of a stranger that is kept to be sent again.
	strangersReplay = 64 << 10
	// idleConnection and headerBytes are net/http's bounds of a connection.
	idleConnection = 90 * time.Second
	headerBytes    = 128 << 10
)

// bounds are what strangers may have running, and for how long.
type bounds struct {
	short, long          places
	shortTime, stuckTime time.Duration
}

func newBounds() bounds {
	return bounds{make(places, strangersShort), make(places, strangersLong), shortTime, stuckTime}
}

// places are taken while a request runs.
type places chan struct{}

func (p places) take() bool {
	select {
	case p <- struct{}{}:
		return true
	default:
		return false
	}
}

func (p places) leave() { <-p }

// bounded runs a stranger's request within the bounds.
func (s *Server) bounded(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, run func(http.ResponseWriter, *http.Request)) {
	taken := s.strangers.short
	if long(r, info) {
		taken = s.strangers.long
	}
	if !taken.take() {
		writeStatus(w, apierrors.NewTooManyRequestsError("rekindle-agent: too many requests of pods and other programs run on this node, try again"))
		return
	}
	defer taken.leave()
	control := http.NewResponseController(w)
	if long(r, info) {
		if r.Header.Get("Upgrade") == "" {
			w = &attended{w, control, s.strangers.stuckTime}
		}
		run(w, r)
		return
	}
	// Errors: a connection that cannot do that ends with the context alone.
	end := time.Now().Add(s.strangers.shortTime)
	if r.ContentLength != 0 {
		_ = control.SetReadDeadline(end)
	}
	_ = control.SetWriteDeadline(end.Add(lastWord))
	ctx, cancel := context.WithDeadline(r.Context(), end)
	defer cancel()
	run(w, r.WithContext(ctx))
	// The connection is used again.
	_ = control.SetWriteDeadline(time.Time{})
}

// long says whether a request has no end of its own, as the API server counts them.
func long(r *http.Request, info *request.RequestInfo) bool {
	if r.Header.Get("Upgrade") != "" || info.Verb == "watch" || info.Verb == "proxy" {
		return true
	}
	switch info.Subresource {
	case "attach", "exec", "proxy", "log", "portforward":
		return true
	}
	return !info.IsResourceRequest && strings.HasPrefix(info.Path, "/debug/pprof")
}

// attended ends an answer that is not read. It may be long in coming: only what is written
// must be taken.
type attended struct {
	http.ResponseWriter
	control *http.ResponseController
	stuck   time.Duration
}

func (a *attended) Write(data []byte) (int, error) {
	defer a.within()()
	return a.ResponseWriter.Write(data)
}

// FlushError is what http.ResponseController flushes with.
func (a *attended) FlushError() error {
	defer a.within()()
	return a.control.Flush()
}

func (a *attended) within() (done func()) {
	_ = a.control.SetWriteDeadline(time.Now().Add(a.stuck))
	return func() { _ = a.control.SetWriteDeadline(time.Time{}) }
}

// Unwrap gives way to what else the connection can do.
func (a *attended) Unwrap() http.ResponseWriter { return a.ResponseWriter }

// limitedListener bounds the connections to an address that pods can reach. Kubelet comes
// over the loopback, which they cannot.
type limitedListener struct {
	net.Listener
	open places
}

func limitListener(listener net.Listener) net.Listener {
	if address, ok := listener.Addr().(*net.TCPAddr); ok && address.IP.IsLoopback() {
		return listener
	}
	return &limitedListener{listener, make(places, strangersConnections)}
}

// Accept closes a connection that is one too many: its caller is told at once.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if l.open.take() {
			return &countedConn{Conn: conn, leave: sync.OnceFunc(l.open.leave)}, nil
		}
		_ = conn.Close()
	}
}

// countedConn gives its place up when it is closed.
type countedConn struct {
	net.Conn
	leave func()
}

func (c *countedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}
