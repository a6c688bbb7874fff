// Command csi is a CSI driver for tests: volumes are directories of the node's disk. What
// makes it like one of a storage system is that they must be attached (CSIDriver
// attachRequired: true), and that it notes what was published where and in which boot. It has
// no controller part: the test attaches.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"github.com/container-storage-interface/spec/lib/go/csi"
	"golang.org/x/sys/unix"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	registration "k8s.io/kubelet/pkg/apis/pluginregistration/v1"
)

func main() {
	d := &driver{}
	flag.StringVar(&d.name, "driver", "csi.test", "`name` of the driver")
	flag.StringVar(&d.node, "node", "", "`name` of the node")
	flag.StringVar(&d.data, "data", "/var/lib/csi-test", "`directory` of the volumes, and of the journal of what was published")
	kubelet := flag.String("kubelet", "/var/lib/kubelet", "kubelet's root `directory`")
	flag.Parse()
	log.Fatal(d.run(*kubelet))
}

type driver struct {
	name, node, data string
	endpoint         string

	mu sync.Mutex
	csi.UnimplementedIdentityServer
	csi.UnimplementedNodeServer
	registration.UnimplementedRegistrationServer
}

func (d *driver) run(kubelet string) error {
	d.endpoint = filepath.Join(kubelet, "plugins", d.name, "csi.sock")
	failed := make(chan error)
	for socket, register := range map[string]func(*grpc.Server){
		d.endpoint: func(s *grpc.Server) {
			csi.RegisterIdentityServer(s, d)
			csi.RegisterNodeServer(s, d)
		},
		filepath.Join(kubelet, "plugins_registry", d.name+"-reg.sock"): func(s *grpc.Server) {
			registration.RegisterRegistrationServer(s, d)
		},
	} {
		if err := os.MkdirAll(filepath.Dir(socket), 0o750); err != nil {
			return err
		}
		if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		listener, err := net.Listen("unix", socket)
		if err != nil {
			return err
		}
		server := grpc.NewServer()
		register(server)
		go func() { failed <- server.Serve(listener) }()
	}
	return <-failed
}

// note adds a line to the journal: the boot, what was done, and to which volume.
func (d *driver) note(what, volume string) error {
	boot, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	journal, err := os.OpenFile(filepath.Join(d.data, "journal"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(journal, strings.TrimSpace(string(boot)), what, volume)
	return errors.Join(err, journal.Sync(), journal.Close())
}

// GetInfo implements registration.RegistrationServer.
func (d *driver) GetInfo(context.Context, *registration.InfoRequest) (*registration.PluginInfo, error) {
	return &registration.PluginInfo{Type: registration.CSIPlugin, Name: d.name, Endpoint: d.endpoint, SupportedVersions: []string{"1.0.0"}}, nil
}

// NotifyRegistrationStatus implements registration.RegistrationServer.
func (d *driver) NotifyRegistrationStatus(_ context.Context, s *registration.RegistrationStatus) (*registration.RegistrationStatusResponse, error) {
	log.Printf("registered: %v %s", s.PluginRegistered, s.Error)
	return &registration.RegistrationStatusResponse{}, nil
}

// GetPluginInfo implements csi.IdentityServer.
func (d *driver) GetPluginInfo(context.Context, *csi.GetPluginInfoRequest) (*csi.GetPluginInfoResponse, error) {
	return &csi.GetPluginInfoResponse{Name: d.name, VendorVersion: "1"}, nil
}

// Probe implements csi.IdentityServer.
func (d *driver) Probe(context.Context, *csi.ProbeRequest) (*csi.ProbeResponse, error) {
	return &csi.ProbeResponse{}, nil
}

// NodeGetInfo implements csi.NodeServer.
func (d *driver) NodeGetInfo(context.Context, *csi.NodeGetInfoRequest) (*csi.NodeGetInfoResponse, error) {
	return &csi.NodeGetInfoResponse{NodeId: d.node}, nil
}

// NodeGetCapabilities implements csi.NodeServer.
func (d *driver) NodeGetCapabilities(context.Context, *csi.NodeGetCapabilitiesRequest) (*csi.NodeGetCapabilitiesResponse, error) {
	return &csi.NodeGetCapabilitiesResponse{}, nil
}

// NodePublishVolume implements csi.NodeServer.
func (d *driver) NodePublishVolume(_ context.Context, r *csi.NodePublishVolumeRequest) (*csi.NodePublishVolumeResponse, error) {
	source := filepath.Join(d.data, "volumes", filepath.Base(r.VolumeId))
	if err := errors.Join(os.MkdirAll(source, 0o755), os.MkdirAll(r.TargetPath, 0o755)); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := d.note("publish", r.VolumeId); err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	if err := unix.Mount(source, r.TargetPath, "", unix.MS_BIND, ""); err != nil {
		return nil, status.Errorf(codes.Internal, "mounting %s at %s: %v", source, r.TargetPath, err)
	}
	return &csi.NodePublishVolumeResponse{}, nil
}

// NodeUnpublishVolume implements csi.NodeServer.
func (d *driver) NodeUnpublishVolume(_ context.Context, r *csi.NodeUnpublishVolumeRequest) (*csi.NodeUnpublishVolumeResponse, error) {
	err := unix.Unmount(r.TargetPath, 0)
	if errors.Is(err, unix.EINVAL) || errors.Is(err, unix.ENOENT) {
		err = nil // not mounted
	}
	if err == nil {
		err = errors.Join(d.note("unpublish", r.VolumeId), os.RemoveAll(r.TargetPath))
	}
	if err != nil {
		return nil, status.Error(codes.Internal, err.Error())
	}
	return &csi.NodeUnpublishVolumeResponse{}, nil
}
