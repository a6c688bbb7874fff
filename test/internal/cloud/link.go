package cloud

import (
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// Link carries connections from a node to an API server, or refuses them.
type Link struct {
	// Address is where the node finds it.
	Address string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

// NewLink carries to target, host:port, and is down at the end of the spec.
func NewLink(target string) *Link {
	GinkgoHelper()
	l := &Link{Address: "127.0.0.1:0", open: map[net.Conn]bool{}}
	l.Up(target)
	DeferCleanup(l.Down)
	return l
}

// Up carries to target from now on. The link must be down.
func (l *Link) Up(target string) {
	GinkgoHelper()
	listener, err := net.Listen("tcp", l.Address)
	Expect(err).NotTo(HaveOccurred())
	l.mu.Lock()
	l.listener, l.Address = listener, listener.Addr().String()
	l.mu.Unlock()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", target)
			if err != nil {
				near.Close()
				continue
			}
			l.mu.Lock()
			l.open[near], l.open[far] = true, true
			l.mu.Unlock()
			go l.carry(near, far)
			go l.carry(far, near)
		}
	}()
}

func (l *Link) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
	l.mu.Lock()
	delete(l.open, to)
	delete(l.open, from)
	l.mu.Unlock()
}

// Down refuses, and breaks what is open.
func (l *Link) Down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for connection := range l.open {
		connection.Close()
	}
}
