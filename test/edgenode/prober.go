package edgenode

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"rekindle.edge/test/internal/lab"
)

const (
	// probePeriod is how often each pod is asked, and so the prober's resolution.
	probePeriod = 50 * time.Millisecond
	// probeTimeout is short, so that one pod that hangs is asked again soon.
	probeTimeout = 500 * time.Millisecond
)

// A Prober asks every pod of a boot over HTTP, from within the node's network
// namespace but outside of everything that runs on it, and keeps when each first
// answered 200. A pod is found by the sandbox that containerd's log tells of.
type Prober struct {
	boot   *Boot
	netns  string
	nodeIP string
	cancel context.CancelFunc
	done   sync.WaitGroup

	mu      sync.Mutex
	serving map[string]time.Time
}

// Probe starts to probe the pods of the present boot; end it with Stop.
func (n *Node) Probe(ctx context.Context) (*Prober, error) {
	if n.boot == nil {
		return nil, ErrOff
	}
	ctx, cancel := context.WithCancel(ctx)
	p := &Prober{boot: n.boot, netns: "/run/netns/" + n.netns(), nodeIP: n.IP().String(), cancel: cancel, serving: map[string]time.Time{}}
	p.done.Go(func() { p.follow(ctx) })
	return p, nil
}

// Serving is when each pod ("namespace/name") first answered 200.
func (p *Prober) Serving() map[string]time.Time {
	p.mu.Lock()
	defer p.mu.Unlock()
	return maps.Clone(p.serving)
}

// Stop ends the probing.
func (p *Prober) Stop() {
	p.cancel()
	p.done.Wait()
}

// follow starts one goroutine for each sandbox that containerd finishes.
func (p *Prober) follow(ctx context.Context) {
	log := tail{path: filepath.Join(p.boot.Logs, containerdLog)}
	for every(ctx, probePeriod) {
		var news Witness
		// Reading on where the last look ended keeps the prober off the node's processors.
		if err := log.read(news.readContainerd); err != nil {
			continue // the log may be there at the next look
		}
		for _, sandbox := range news.Sandboxes {
			p.done.Go(func() { p.ask(ctx, sandbox) })
		}
	}
}

func (p *Prober) ask(ctx context.Context, sandbox Sandbox) {
	ip := p.address(ctx, sandbox.ID)
	if ip == "" {
		return // removed again
	}
	client := &http.Client{Timeout: probeTimeout, Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       lab.DialInside(p.netns),
	}}
	url := fmt.Sprintf("http://%s:%d%s", ip, WebPort, ReadyPath)
	for every(ctx, probePeriod) {
		response, err := client.Get(url)
		if err != nil {
			continue
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			continue
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		if _, ok := p.serving[sandbox.Pod]; !ok {
			p.serving[sandbox.Pod] = time.Now()
		}
		return
	}
}

// address asks containerd for a sandbox's address: the node's own if it is on its network.
func (p *Prober) address(ctx context.Context, id string) string {
	conn, err := p.boot.cri()
	if err != nil {
		return ""
	}
	defer conn.Close()
	client := runtimeapi.NewRuntimeServiceClient(conn)
	for every(ctx, probePeriod) {
		status, err := client.PodSandboxStatus(ctx, &runtimeapi.PodSandboxStatusRequest{PodSandboxId: id})
		if err == nil && status.GetStatus().GetLinux().GetNamespaces().GetOptions().GetNetwork() == runtimeapi.NamespaceMode_NODE {
			return p.nodeIP
		}
		if err == nil {
			return status.GetStatus().GetNetwork().GetIp()
		}
	}
	return ""
}

// every waits one period; false means that ctx is over.
func every(ctx context.Context, period time.Duration) bool {
	select {
	case <-ctx.Done():
		return false
	case <-time.After(period):
		return true
	}
}
