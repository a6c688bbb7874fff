package edgenode

import (
	"fmt"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
)

// CRI connects to the node's containerd from outside of the node.
func (n *Node) CRI() (*grpc.ClientConn, error) {
	if n.boot == nil {
		return nil, ErrOff
	}
	return n.boot.cri()
}

// Dial connects to a gRPC socket of the node, named by its path there, from outside of the node.
func (n *Node) Dial(socket string) (*grpc.ClientConn, error) {
	if n.boot == nil {
		return nil, ErrOff
	}
	return n.boot.dial(socket)
}

func (b *Boot) cri() (*grpc.ClientConn, error) {
	return b.dial("/run/containerd/containerd.sock")
}

func (b *Boot) dial(socket string) (*grpc.ClientConn, error) {
	return grpc.NewClient(fmt.Sprintf("unix:///proc/%d/root%s", b.pid1, socket), grpc.WithTransportCredentials(insecure.NewCredentials()))
}
