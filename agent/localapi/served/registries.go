package served

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// registryTimeout is what an endpoint gets for an answer. Containerd would wait for
	// half a minute and more.
	registryTimeout = 700 * time.Millisecond
	// registryWait bounds how long kubelet's first list waits for all of them.
	registryWait = 500 * time.Millisecond
	// registryPause is between two attempts at a registry that did not answer: a node's
	// network may come up late.
	registryPause = 250 * time.Millisecond
	// registryWatch is how long kubelet may take to ask for its pods.
	registryWatch = 2 * time.Minute
)

// Registries finds out which registries answer while the API server is out of reach, as
// one in the node's own network may. What they serve, and to whom, is not asked.
type Registries struct {
	// Root of the node's files.
	Root string

	client http.Client

	mu    sync.Mutex
	known map[string]*registry
	// until is when the first question's wait is over; then nothing changes anymore.
	until time.Time
}

type registry struct {
	tried   chan struct{} // closed after the first attempt
	answers bool
	asked   *bool // what was said first, which is kept to
}

// Watch asks the registries of images until each has answered, or somebody has asked for
// what came of it; for two minutes at most, and not longer than ctx.
func (r *Registries) Watch(ctx context.Context, images []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.client = http.Client{
		Transport: &http.Transport{
			// Who it is, is for containerd to judge: nothing is sent to it here.
			TLSClientConfig:   &tls.Config{InsecureSkipVerify: true}, //nolint:gosec // see above
			DisableKeepAlives: true,
		},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	r.known = map[string]*registry{}
	for _, image := range images {
		name := registryOf(image)
		if r.known[name] != nil {
			continue
		}
		one := &registry{tried: make(chan struct{})}
		r.known[name] = one
		go r.watch(ctx, one, endpoints(r.Root, name))
	}
}

func (r *Registries) watch(ctx context.Context, one *registry, urls []string) {
	ctx, cancel := context.WithTimeout(ctx, registryWatch)
	defer cancel()
	first := sync.OnceFunc(func() { close(one.tried) })
	for ctx.Err() == nil {
		answers := r.ask(ctx, urls)
		r.mu.Lock()
		one.answers = answers
		settled := answers || one.asked != nil
		r.mu.Unlock()
		first()
		if settled {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(registryPause):
		}
	}
}

// ask says whether containerd would have an answer soon: one endpoint that is silent keeps
// it from those after it.
func (r *Registries) ask(ctx context.Context, urls []string) bool {
	for _, url := range urls {
		answered, silent := r.askOne(ctx, url)
		if answered || silent {
			return answered
		}
	}
	return false
}

func (r *Registries) askOne(ctx context.Context, url string) (answered, silent bool) {
	ctx, cancel := context.WithTimeout(ctx, registryTimeout)
	defer cancel()
	if !strings.HasSuffix(url, "/v2") {
		url = strings.TrimSuffix(url, "/") + "/v2/"
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false, false
	}
	response, err := r.client.Do(request)
	if err != nil {
		var timeout net.Error
		return false, errors.As(err, &timeout) && timeout.Timeout()
	}
	_ = response.Body.Close()
	return response.StatusCode < http.StatusInternalServerError, false
}

// Answers says whether an image's registry answers. What it has said it keeps to.
func (r *Registries) Answers(image string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.known[registryOf(image)]
	if one == nil {
		return false
	}
	if one.asked != nil {
		return *one.asked
	}
	if r.until.IsZero() {
		r.until = time.Now().Add(registryWait)
	}
	r.mu.Unlock()
	select {
	case <-one.tried:
	case <-time.After(time.Until(r.until)):
	}
	r.mu.Lock()
	if one.asked == nil {
		answers := one.answers
		one.asked = &answers
	}
	return *one.asked
}
