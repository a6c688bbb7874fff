package upstream

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	corev1client "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/host"
	"rekindle.edge/api/v1alpha1"
)

// checkEvery is how often the kubeconfig is looked at for changes. Certificates that it
// names by file are read again by the client itself.
const checkEvery = 5 * time.Second

// userAgent shows in the API server's audit log.
const userAgent = "rekindle-agent"

// Session is a set of clients for one reading of the kubeconfig.
type Session struct {
	Node string
	// Config is what the clients are made of.
	Config *rest.Config
	// Core is for the core group, Rekindle for the project's own.
	Core, Rekindle rest.Interface
}

// Upstream keeps sessions with the API server.
type Upstream struct {
	// Kubeconfigs are the files to try; the first that exists is taken.
	Kubeconfigs []string
	// NodeName wins over the certificate's when it is set.
	NodeName string
	Link     *Link
}

// Run calls serve with a session until ctx ends, and again with a new one when the
// kubeconfig has changed. A missing or broken file is told once and tried again.
func (u Upstream) Run(ctx context.Context, serve func(context.Context, Session)) {
	log := logr.FromContextOrDiscard(ctx)
	told := ""
	for ctx.Err() == nil {
		session, path, stamp, err := u.open(log)
		if err != nil {
			if err.Error() != told {
				log.Error(err, "No access to the API server, trying again")
				told = err.Error()
			}
			host.Sleep(ctx, checkEvery)
			continue
		}
		told = ""
		log.Info("Using the node's identity", "node", session.Node, "kubeconfig", path)
		u.serve(ctx, session, path, stamp, serve)
	}
}

// serve runs one session until the file changes.
func (u Upstream) serve(ctx context.Context, session Session, path, stamp string, serve func(context.Context, Session)) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	done := make(chan struct{})
	go func() {
		defer close(done)
		serve(ctx, session)
	}()
	for {
		select {
		case <-done:
			return
		case <-time.After(checkEvery):
		}
		// A file that is gone for a moment is being replaced.
		if now, err := stampOf(path); err == nil && now != stamp {
			logr.FromContextOrDiscard(ctx).Info("Kubeconfig has changed, connecting again", "kubeconfig", path)
			cancel()
			<-done
			return
		}
	}
}

func (u Upstream) open(log logr.Logger) (Session, string, string, error) {
	path, err := find(u.Kubeconfigs)
	if err != nil {
		return Session{}, "", "", err
	}
	stamp, err := stampOf(path)
	if err != nil {
		return Session{}, "", "", fmt.Errorf("kubeconfig: %w", err)
	}
	config, node, err := load(path, u.NodeName)
	if err != nil {
		return Session{}, "", "", err
	}
	config.UserAgent = userAgent
	config.Wrap(u.Link.transport(log))

	core := rest.CopyConfig(config)
	core.ContentType = runtime.ContentTypeProtobuf
	core.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	coreClient, err := corev1client.NewForConfig(core)
	if err != nil {
		return Session{}, "", "", fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	rekindleClient, err := rekindleClient(config)
	if err != nil {
		return Session{}, "", "", fmt.Errorf("kubeconfig %s: %w", path, err)
	}
	return Session{Node: node, Config: config, Core: coreClient.RESTClient(), Rekindle: rekindleClient}, path, stamp, nil
}

func rekindleClient(config *rest.Config) (rest.Interface, error) {
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		return nil, err
	}
	// Errors come as a Status of the core group.
	metav1.AddToGroupVersion(scheme, schema.GroupVersion{Version: "v1"})
	config = rest.CopyConfig(config)
	config.GroupVersion = &v1alpha1.GroupVersion
	config.APIPath = "/apis"
	config.NegotiatedSerializer = serializer.NewCodecFactory(scheme).WithoutConversion()
	return rest.RESTClientFor(config)
}

// stampOf changes whenever the file is written or replaced.
func stampOf(path string) (string, error) {
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	return fmt.Sprint(info.ModTime().UnixNano(), info.Size()), nil
}
