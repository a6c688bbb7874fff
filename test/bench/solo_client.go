package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"rekindle.edge/test/internal/lab"
)

// podList is what kubelet asks for first.
const podList = "/api/v1/pods?fieldSelector=spec.nodeName%3D" + soloNode + "&limit=500&resourceVersion=0"

// kubelet is a client with the node's identity: of the local API, or of the API server.
func (s *solo) kubelet(local bool) (*rest.Config, error) {
	pem := s.file("kubelet/pki/kubelet-client-current.pem")
	config := &rest.Config{
		Host: s.cluster.Admin().Host, UserAgent: "kubelet/bench",
		TLSClientConfig: rest.TLSClientConfig{CAData: s.cluster.Admin().CAData, CertFile: pem, KeyFile: pem},
		Dial:            lab.DialInside(s.netnsPath()), QPS: -1,
	}
	if local {
		config.Host = "https://" + localAddress
		ca, err := os.ReadFile(filepath.Join(s.file("state"), "pki", "ca.crt"))
		if err != nil {
			return nil, err
		}
		config.CAData = ca
	}
	return config, nil
}

// listed asks for the pods of the node until it is told, and gives how many there are and
// how often it was refused before.
func listed(ctx context.Context, client *http.Client, host string) (pods, refused int, err error) {
	for {
		pods, status, err := countItems(ctx, client, host+podList)
		if err != nil || status == http.StatusOK {
			return pods, refused, err
		}
		refused++
		select {
		case <-ctx.Done():
			return 0, refused, fmt.Errorf("the list of pods was refused with %d: %w", status, ctx.Err())
		case <-time.After(time.Millisecond):
		}
	}
}

// countItems gets a list.
func countItems(ctx context.Context, client *http.Client, url string) (count, status int, err error) {
	body, status, err := get(ctx, client, url)
	if err != nil || status != http.StatusOK {
		return 0, status, err
	}
	var list metav1.PartialObjectMetadataList
	err = json.Unmarshal(body, &list)
	return len(list.Items), status, err
}

// get reads an answer to its end.
func get(ctx context.Context, client *http.Client, url string) ([]byte, int, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, 0, err
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, 0, err
	}
	body, err := io.ReadAll(response.Body)
	return body, response.StatusCode, errors.Join(err, response.Body.Close())
}

// freeBind lets a socket have an address that its namespace does not have yet.
func freeBind(_, _ string, conn syscall.RawConn) error {
	var err error
	controlErr := conn.Control(func(fd uintptr) { err = unix.SetsockoptInt(int(fd), unix.SOL_IP, unix.IP_FREEBIND, 1) })
	return errors.Join(controlErr, err)
}
