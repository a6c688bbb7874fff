package agent

import (
	"io"
	"net"
	"sync"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

// link carries connections from the node to the API server, or refuses them.
type link struct {
	address, target string

	mu       sync.Mutex
	listener net.Listener
	open     map[net.Conn]bool
}

func newLink(target string) *link {
	GinkgoHelper()
	l := &link{target: target, address: "127.0.0.1:0", open: map[net.Conn]bool{}}
	l.up()
	return l
}

// up carries from now on. The address stays the same.
func (l *link) up() {
	GinkgoHelper()
	listener, err := net.Listen("tcp", l.address)
	Expect(err).NotTo(HaveOccurred())
	l.mu.Lock()
	l.listener, l.address = listener, listener.Addr().String()
	l.mu.Unlock()
	go func() {
		for {
			near, err := listener.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", l.target)
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

func (l *link) carry(to, from net.Conn) {
	_, _ = io.Copy(to, from)
	to.Close()
	from.Close()
	l.mu.Lock()
	delete(l.open, to)
	delete(l.open, from)
	l.mu.Unlock()
}

// down refuses, and breaks what is open.
func (l *link) down() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.listener.Close()
	for connection := range l.open {
		connection.Close()
	}
}
