package localapi

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	stdlog "log"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"
)

const (
	// replayable is the largest body that is kept to be sent again: the API server takes
	// no larger one.
	replayable = 3 << 20
	// headerTimeout bounds the reading of a request's header.
	headerTimeout = 30 * time.Second
	// stopTimeout is what running requests get when the agent stops.
	stopTimeout = 500 * time.Millisecond
	// checkTimeout is how soon the local API must answer itself.
	checkTimeout = 3 * time.Second
)

// Server is the local API.
type Server struct {
	// Kubelet finds kubelet's connections; unset: it is known by its certificate alone.
	Kubelet Kubelet

	log       logr.Logger
	pki       PKI
	link      *Link
	upstream  *upstream
	proxy     *httputil.ReverseProxy
	requests  *request.RequestInfoFactory
	local     atomic.Pointer[Local]
	strangers bounds
	// expecting ends when requests wait for local no more; expected ends it. Unset: they do not.
	expecting context.Context
	expected  context.CancelFunc
}

// New makes a local API that serves with the PKI and passes requests on as the identity
// says. It does nothing until Run.
func New(log logr.Logger, pki PKI, identity *IdentitySource) *Server {
	s := &Server{
		log:       log,
		pki:       pki,
		strangers: newBounds(),
		requests: &request.RequestInfoFactory{
			APIPrefixes:          sets.NewString("api", "apis"),
			GrouplessAPIPrefixes: sets.NewString("api"),
		},
	}
	s.link = newLink(clock.RealClock{}, s.linkChanged)
	s.upstream = newUpstream(identity, s.link)
	s.proxy = &httputil.ReverseProxy{
		Rewrite:       s.rewrite,
		Transport:     s,
		FlushInterval: -1, // each event of a watch at once
		// A server that has no better answer than 5xx is no better than none.
		ModifyResponse: refuseWorthless,
		ErrorHandler:   s.failed,
		ErrorLog:       connectionLog(s.log),
	}
	return s
}

func (s *Server) linkChanged(state State, reason error) {
	if state == Connected {
		s.log.Info("API server answers the local API")
		return
	}
	s.log.Info("API server does not answer the local API", "reason", reason.Error())
	s.upstream.renew()
}

// Run serves on the listeners until ctx ends, and closes them.
func (s *Server) Run(ctx context.Context, listeners []net.Listener) error {
	server := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: headerTimeout,
		IdleTimeout:       idleConnection,
		MaxHeaderBytes:    headerBytes,
		ConnContext:       withConnection,
		ErrorLog:          connectionLog(s.log),
		TLSConfig: &tls.Config{
			MinVersion:   tls.VersionTLS12,
			Certificates: []tls.Certificate{s.pki.Serving},
			// Which certificate is accepted is decided per request, by its key alone.
			ClientAuth: tls.RequestClientCert,
		},
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go s.upstream.watchLink(ctx)
	for _, listener := range listeners {
		go func() {
			if err := server.ServeTLS(limitListener(listener), "", ""); !errors.Is(err, http.ErrServerClosed) {
				cancel(err)
			}
		}()
	}
	<-ctx.Done()
	stop, done := context.WithTimeout(context.WithoutCancel(ctx), stopTimeout)
	defer done()
	if server.Shutdown(stop) != nil {
		// Watches do not end by themselves.
		_ = server.Close()
	}
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		return err
	}
	return nil
}

// Check calls the local API at an address as a stranger would, over a new connection: it is
// well when it refuses.
func (s *Server) Check(ctx context.Context, address string) error {
	ctx, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.pki.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+address+"/livez", nil)
	if err != nil {
		return err
	}
	response, err := transport.RoundTrip(request)
	if err != nil {
		return err
	}
	if response.StatusCode != http.StatusUnauthorized {
		err = fmt.Errorf("a request without credentials was answered with %s", response.Status)
	}
	return errors.Join(err, response.Body.Close())
}

type callerKey struct{}

// ServeHTTP passes a request on, or says why it cannot.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	info, err := s.infoOf(r)
	if err != nil {
		writeStatus(w, apierrors.NewBadRequest(err.Error()))
		return
	}
	state, reason := s.link.State()
	c, refused := authenticate(r, info, s.upstream.identity, s.upstream.reread)
	if refused != nil && s.isKubelet(r) {
		c, refused = node, nil
	}
	// To kubelet a refused certificate request is the word of a healthy server: with an
	// expired certificate it would exit.
	healthy := state == Connected || info.Resource != "certificatesigningrequests"
	ctx := request.WithRequestInfo(context.WithValue(r.Context(), callerKey{}, c), info)
	r = r.WithContext(ctx)
	run := func(w http.ResponseWriter, r *http.Request) {
		switch {
		// Whom a caller may speak for is the API server's to say.
		case !impersonates(r) && s.answered(w, r, info, c):
		case state == CutOff:
			writeStatus(w, unavailable(reason))
		default:
			s.pass(w, r)
		}
	}
	switch {
	case refused != nil && healthy:
		writeStatus(w, refused)
	case refused != nil:
		writeStatus(w, unavailable(refused))
	case c == node:
		run(w, r)
	default:
		s.bounded(w, r, info, run)
	}
}

// pass sends a request on. A body of known size is read first, so that a request that the
// API server did not take before it closed the connection can be sent again.
func (s *Server) pass(w http.ResponseWriter, r *http.Request) {
	kept := int64(replayable)
	if r.Context().Value(callerKey{}) != node {
		kept = strangersReplay
	}
	if 0 < r.ContentLength && r.ContentLength <= kept {
		body := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, body); err != nil {
			writeStatus(w, apierrors.NewBadRequest("rekindle-agent: reading the body: "+err.Error()))
			return
		}
		r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
		r.Body, _ = r.GetBody()
	}
	s.proxy.ServeHTTP(w, r)
}

func (s *Server) rewrite(r *httputil.ProxyRequest) {
	identity := s.upstream.identity()
	if identity == nil {
		return // RoundTrip says so
	}
	r.SetURL(identity.Server)
	r.Out.URL.RawQuery = r.In.URL.RawQuery
	if r.In.Context().Value(callerKey{}) == node {
		r.Out.Header.Del("Authorization")
	}
}

// RoundTrip sends what the proxy has rewritten.
func (s *Server) RoundTrip(r *http.Request) (*http.Response, error) {
	c, _ := r.Context().Value(callerKey{}).(caller)
	if a := attemptOf(r); a != nil {
		return a.send(r, c, s.upstream)
	}
	return s.upstream.send(r, c)
}

func (s *Server) failed(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(r.Context().Err(), context.DeadlineExceeded) {
		writeStatus(w, apierrors.NewTimeoutError("rekindle-agent: the API server gave no answer in "+s.strangers.shortTime.String(), 0))
		return
	}
	if r.Context().Err() != nil {
		return // the caller has gone
	}
	if a := attemptOf(r); a != nil {
		a.err = err
		return
	}
	s.log.V(4).Info("Request failed", "method", r.Method, "path", r.URL.Path, "reason", err.Error())
	writeStatus(w, unavailable(err))
}

// connectionLog takes what net/http has to say about single connections.
func connectionLog(log logr.Logger) *stdlog.Logger {
	return slog.NewLogLogger(logr.ToSlogHandler(log.V(4)), slog.LevelInfo)
}
