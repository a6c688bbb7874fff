// Command device is a device plugin for tests: it tells kubelet of devices that are nothing.
// It ends when kubelet makes its directory anew, as plugins must register again then.
package main

import (
	"context"
	"errors"
	"flag"
	"io/fs"
	"log"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	deviceplugin "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

func main() {
	resource := flag.String("resource", "rekindle.test/device", "`name` of the resource")
	flag.Parse()
	log.Fatal(run(*resource))
}

func run(resource string) error {
	socket := filepath.Join(deviceplugin.DevicePluginPath, "rekindle-test.sock")
	if err := os.Remove(socket); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	deviceplugin.RegisterDevicePluginServer(server, &plugin{})
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(listener) }()
	if err := register(resource, filepath.Base(socket)); err != nil {
		return err
	}
	for {
		select {
		case err := <-failed:
			return err
		case <-time.After(time.Second):
			if _, err := os.Stat(socket); err != nil {
				return err
			}
		}
	}
}

func register(resource, endpoint string) error {
	connection, err := grpc.NewClient("unix://"+deviceplugin.KubeletSocket, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer connection.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	_, err = deviceplugin.NewRegistrationClient(connection).Register(ctx, &deviceplugin.RegisterRequest{
		Version: deviceplugin.Version, Endpoint: endpoint, ResourceName: resource,
	})
	return err
}

type plugin struct {
	deviceplugin.UnimplementedDevicePluginServer
}

func (*plugin) GetDevicePluginOptions(context.Context, *deviceplugin.Empty) (*deviceplugin.DevicePluginOptions, error) {
	return &deviceplugin.DevicePluginOptions{}, nil
}

func (*plugin) ListAndWatch(_ *deviceplugin.Empty, stream deviceplugin.DevicePlugin_ListAndWatchServer) error {
	devices := []*deviceplugin.Device{{ID: "a", Health: deviceplugin.Healthy}, {ID: "b", Health: deviceplugin.Healthy}}
	if err := stream.Send(&deviceplugin.ListAndWatchResponse{Devices: devices}); err != nil {
		return err
	}
	<-stream.Context().Done()
	return nil
}

func (*plugin) Allocate(_ context.Context, request *deviceplugin.AllocateRequest) (*deviceplugin.AllocateResponse, error) {
	response := &deviceplugin.AllocateResponse{}
	for range request.ContainerRequests {
		response.ContainerResponses = append(response.ContainerResponses, &deviceplugin.ContainerAllocateResponse{})
	}
	return response, nil
}
