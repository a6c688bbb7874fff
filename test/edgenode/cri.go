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

func (b *Boot) cri() (*grpc.ClientConn, error) {
	socket := fmt.Sprintf("unix:///proc/%d/root/run/containerd/containerd.sock", b.pid1)
	return grpc.NewClient(socket, grpc.WithTransportCredentials(insecure.NewCredentials()))
}
