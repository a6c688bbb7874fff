package localapi

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"

	"rekindle.edge/agent/localapi"
	"rekindle.edge/agent/localapi/answer"
	"rekindle.edge/agent/localapi/overlay"
	"rekindle.edge/agent/snapshot"
)

// held is a local API that holds collections, and whose API server is out of reach: all it
// answers is its own.
type held struct {
	objects *snapshot.Objects
	config  *rest.Config
	handler *answer.Handler
	server  *localapi.Server
}

// resources that are held, and where they are listed.
var resources = map[schema.GroupVersionResource]string{
	{Version: "v1", Resource: "pods"}:                                      "/api/v1/pods",
	{Version: "v1", Resource: "nodes"}:                                     "/api/v1/nodes",
	{Version: "v1", Resource: "services"}:                                  "/api/v1/services",
	{Version: "v1", Resource: "configmaps"}:                                "/api/v1/configmaps",
	{Version: "v1", Resource: "secrets"}:                                   "/api/v1/secrets",
	{Version: "v1", Resource: "namespaces"}:                                "/api/v1/namespaces",
	{Group: "discovery.k8s.io", Version: "v1", Resource: "endpointslices"}: "/apis/discovery.k8s.io/v1/endpointslices",
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}:       "/apis/storage.k8s.io/v1/csidrivers",
}

// nowhere is the node's way to an API server that nobody listens at.
func nowhere() *rest.Config {
	closed, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	Expect(closed.Close()).To(Succeed())
	away := rest.CopyConfig(identity)
	away.Host = "https://" + closed.Addr().String()
	return away
}

// startHeld starts a local API of a node that knows the API server by the way.
func startHeld(way *rest.Config) *held {
	dir := GinkgoT().TempDir()
	store, err := snapshot.Open(filepath.Join(dir, "store"), logr.Discard())
	Expect(err).NotTo(HaveOccurred())
	DeferCleanup(store.Close)
	pki, err := localapi.LoadPKI([]string{filepath.Join(dir, "pki")}, localapi.Hosts("169.254.77.43"))
	Expect(err).NotTo(HaveOccurred())
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	Expect(err).NotTo(HaveOccurred())
	server := localapi.New(logr.Discard(), pki, &localapi.IdentitySource{
		Kubeconfigs: []string{writeKubeconfig(dir, way)}, CertDir: dir,
	})
	handler := &answer.Handler{
		Log: logr.Discard(), Node: server.Node, Objects: store.Objects(), Upstream: server, Access: nodeOnly{},
		Overlay: overlay.New(store.Objects(), server.Ask, GinkgoLogr, "boot-1"),
	}
	stop := answer.New(handler, clock.RealClock{})
	server.Answer(handler)
	serving, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- server.Run(serving, []net.Listener{listener}) }()
	handing := make(chan struct{})
	go func() {
		defer close(handing)
		handler.Overlay.Run(serving, func() bool {
			reach, _ := server.Reach()
			return reach == answer.Linked
		})
	}()
	DeferCleanup(func() {
		cancel()
		Eventually(done, timeout).Should(Receive(BeNil()))
		Eventually(handing, timeout).Should(BeClosed())
		stop()
	})
	config := local(identity)
	config.Host, config.CAData = "https://"+listener.Addr().String(), pki.CA
	return &held{objects: store.Objects(), config: config, handler: handler, server: server}
}

// copy takes everything over from the API server as a mirror does.
func (h *held) copy(ctx context.Context) {
	for resource, path := range resources {
		_, body := ask(ctx, upstream.Admin(), path, "application/json")
		var list struct {
			Kind, APIVersion string
			Metadata         struct{ ResourceVersion string }
			Items            []map[string]any
		}
		Expect(json.Unmarshal(body, &list)).To(Succeed())
		var objects []snapshot.Object
		for _, item := range list.Items {
			objects = append(objects, toObject(item, strings.TrimSuffix(list.Kind, "List"), list.APIVersion))
		}
		Expect(h.objects.Sync(snapshot.Scope{Resource: resource}, list.Metadata.ResourceVersion, objects)).To(Succeed())
	}
}

func toObject(item map[string]any, kind, version string) snapshot.Object {
	if item["kind"] == nil {
		item["kind"], item["apiVersion"] = kind, version
	}
	metadata := item["metadata"].(map[string]any)
	delete(metadata, "managedFields")
	raw, err := json.Marshal(item)
	Expect(err).NotTo(HaveOccurred())
	var meta metav1.PartialObjectMetadata
	Expect(json.Unmarshal(raw, &meta)).To(Succeed())
	return snapshot.Object{Namespace: meta.Namespace, Name: meta.Name, UID: meta.UID, ResourceVersion: meta.ResourceVersion, Raw: raw}
}

func ask(ctx context.Context, config *rest.Config, path, accept string) (int, []byte) {
	response := open(ctx, config, path, accept)
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	Expect(err).NotTo(HaveOccurred())
	return response.StatusCode, body
}

func open(ctx context.Context, config *rest.Config, path, accept string) *http.Response {
	client, err := rest.HTTPClientFor(config)
	Expect(err).NotTo(HaveOccurred())
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+path, nil)
	Expect(err).NotTo(HaveOccurred())
	request.Header.Set("Accept", accept)
	response, err := client.Do(request)
	Expect(err).NotTo(HaveOccurred())
	return response
}

// normal leaves out what may differ: versions of collections, texts for people, tokens, and
// the type that items of a list have on the node and lack upstream.
func normal(body []byte) any {
	var answer map[string]any
	decoder := json.NewDecoder(bytes.NewReader(body))
	Expect(decoder.Decode(&answer)).To(Succeed(), string(body))
	if items, ok := answer["items"]; ok && items == nil {
		answer["items"] = []any{} // to every client the same
	}
	if metadata, ok := answer["metadata"].(map[string]any); ok {
		if _, isList := answer["items"]; isList || answer["kind"] == "Table" || answer["kind"] == "Status" {
			delete(metadata, "resourceVersion")
		}
		if metadata["continue"] != nil {
			metadata["continue"] = "more"
		}
	}
	if answer["kind"] == "Status" {
		return map[string]any{"code": answer["code"], "reason": answer["reason"]}
	}
	trim(answer)
	columns, _ := answer["columnDefinitions"].([]any)
	for _, column := range columns {
		delete(column.(map[string]any), "description")
	}
	return answer
}

var age = regexp.MustCompile(`^\d+[smh](\d+s)?$`)

func trim(value any) {
	switch v := value.(type) {
	case map[string]any:
		delete(v, "managedFields")
		if items, ok := v["items"].([]any); ok {
			for _, item := range items {
				if object := item.(map[string]any); object["kind"] != "PartialObjectMetadata" {
					delete(object, "kind")
					delete(object, "apiVersion")
				}
			}
		}
		for _, inner := range v {
			trim(inner)
		}
	case []any:
		for i, inner := range v {
			if text, ok := inner.(string); ok && age.MatchString(text) {
				v[i] = "an age"
			}
			trim(inner)
		}
	}
}

type nodeOnly struct{ answer.Access }

var _ = Describe("Reads", Ordered, ContinueOnFailure, func() {
	var node *held
	BeforeAll(func(ctx context.Context) {
		fill(ctx)
		node = startHeld(nowhere())
		node.copy(ctx)
	})

	const (
		kubelets = "application/vnd.kubernetes.protobuf,application/json"
		table    = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json"
		metadata = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json"
		single   = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json"
		mine     = "fieldSelector=spec.nodeName%3D" + nodeName
	)
	DescribeTable("are answered as the API server answers them", func(ctx context.Context, path, accept string) {
		wantCode, want := ask(ctx, upstream.Admin(), path, strings.Replace(accept, kubelets, "application/json", 1))
		code, got := ask(ctx, node.config, path, accept)
		Expect(code).To(Equal(wantCode), "%s\nupstream: %s", got, want)
		Expect(normal(got)).To(Equal(normal(want)))
	},
		Entry("kubelet's pods", "/api/v1/pods?"+mine+"&resourceVersion=0", kubelets),
		Entry("kubelet's node", "/api/v1/nodes?fieldSelector=metadata.name%3D"+nodeName, kubelets),
		Entry("kubelet's services", "/api/v1/services?limit=500&resourceVersion=0", kubelets),
		Entry("a configmap by its name", "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dsettings", kubelets),
		Entry("a configmap that is not there", "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3Dnone", kubelets),
		Entry("an empty collection", "/apis/storage.k8s.io/v1/csidrivers", kubelets),
		Entry("an empty collection as rows", "/apis/storage.k8s.io/v1/csidrivers?fieldSelector=metadata.name%3Dnone", metadata),
		Entry("a pod", "/api/v1/namespaces/default/pods/web", "application/json"),
		Entry("a pod's metadata", "/api/v1/namespaces/default/pods/web", single),
		Entry("a pod as a row", "/api/v1/namespaces/default/pods/web", table),
		Entry("a pod that is not there", "/api/v1/namespaces/default/pods/none", "application/json"),
		Entry("pods by label", "/api/v1/pods?"+mine+"&labelSelector=app%3Dweb", "application/json"),
		Entry("pods by a set of labels", "/api/v1/pods?"+mine+"&labelSelector=app+in+(web,job),tier", "application/json"),
		Entry("pods by phase", "/api/v1/pods?"+mine+"%2Cstatus.phase%3DSucceeded", "application/json"),
		Entry("pods not in a phase", "/api/v1/pods?"+mine+"%2Cstatus.phase%21%3DSucceeded", "application/json"),
		Entry("pods by restart policy", "/api/v1/pods?"+mine+"%2Cspec.restartPolicy%3DNever", "application/json"),
		Entry("pods on the host's network", "/api/v1/pods?"+mine+"%2Cspec.hostNetwork%3Dtrue", "application/json"),
		Entry("pods by a field nobody selects by", "/api/v1/pods?"+mine+"%2Cspec.priority%3D1", "application/json"),
		Entry("pods by a selector that is broken", "/api/v1/pods?"+mine+"&labelSelector=%3D%3D", "application/json"),
		Entry("pods of a namespace", "/api/v1/namespaces/default/pods?"+mine, metadata),
		Entry("pods as rows", "/api/v1/pods?"+mine, table),
		Entry("pods as rows with objects", "/api/v1/pods?"+mine+"&includeObject=Object", table),
		Entry("pods as rows alone", "/api/v1/pods?"+mine+"&includeObject=None", table),
		Entry("the node as rows", "/api/v1/nodes?fieldSelector=metadata.name%3D"+nodeName, table),
		Entry("services as rows", "/api/v1/services", table),
		Entry("configmaps as rows", "/api/v1/namespaces/default/configmaps", table),
		Entry("secrets as rows", "/api/v1/namespaces/default/secrets", table),
		Entry("secrets by type", "/api/v1/secrets?fieldSelector=type%3DOpaque", metadata),
		Entry("endpointslices as rows", "/apis/discovery.k8s.io/v1/endpointslices", table),
		Entry("namespaces by phase", "/api/v1/namespaces?fieldSelector=status.phase%3DActive", "application/json"),
		Entry("a first page", "/api/v1/services?limit=1", "application/json"),
		Entry("a match without a version", "/api/v1/services?resourceVersionMatch=Exact", "application/json"),
		Entry("an unknown match", "/api/v1/services?resourceVersion=1&resourceVersionMatch=Newest", "application/json"),
		Entry("a version ahead", "/api/v1/services?resourceVersion=99999999", "application/json"),
		Entry("a watch whose match says nothing", "/api/v1/services?watch=1&sendInitialEvents=true", "application/json"),
		Entry("a form nobody knows", "/api/v1/services", "application/xml"),
	)

	DescribeTable("are watched as the API server lets them be watched", func(ctx context.Context, path, accept string) {
		want := watched(ctx, upstream.Admin(), path, accept)
		Expect(want).NotTo(BeEmpty(), "nothing to compare with")
		got := watched(ctx, node.config, path, accept)
		Expect(got).To(Equal(want))
	},
		Entry("with initial events", "/api/v1/pods?"+mine+"&watch=1&timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "application/json"),
		Entry("with none to send", "/api/v1/pods?"+mine+"&labelSelector=app%3Dnone&watch=1&timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "application/json"),
		Entry("of an empty collection", "/apis/storage.k8s.io/v1/csidrivers?watch=1&timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", "application/json"),
		Entry("of metadata", "/api/v1/services?watch=1&timeoutSeconds=10&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan", single),
		Entry("of rows", "/api/v1/services?watch=1&timeoutSeconds=1&resourceVersion=0", table),
		Entry("from the start", "/api/v1/services?watch=1&timeoutSeconds=1", "application/json"),
	)
})

// watched is what a watch sends before it ends, or until its initial events do.
func watched(ctx context.Context, config *rest.Config, path, accept string) []any {
	response := open(ctx, config, path, accept)
	defer func() { _ = response.Body.Close() }()
	Expect(response.StatusCode).To(Equal(http.StatusOK))
	var events []any
	lines := bufio.NewScanner(response.Body)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var event struct {
			Type   string
			Object json.RawMessage
		}
		Expect(json.Unmarshal(lines.Bytes(), &event)).To(Succeed())
		object := normal(event.Object).(map[string]any)
		if event.Type == "BOOKMARK" {
			metadata := object["metadata"].(map[string]any)
			if metadata["annotations"] == nil {
				continue // sent before the end
			}
			object = map[string]any{"kind": object["kind"], "apiVersion": object["apiVersion"], "annotations": metadata["annotations"]}
		}
		events = append(events, []any{event.Type, object})
		if event.Type == "BOOKMARK" {
			break
		}
	}
	return events
}

func (nodeOnly) Check(_ context.Context, caller answer.Caller, _ *request.RequestInfo) error {
	Expect(caller.Node).To(BeTrue())
	return nil
}

// fill makes objects in many states.
func fill(ctx context.Context) {
	core := admin.CoreV1()
	opts := metav1.CreateOptions{}
	node, err := core.Nodes().Get(ctx, nodeName, metav1.GetOptions{})
	Expect(err).NotTo(HaveOccurred())
	node.Labels = map[string]string{"node-role.kubernetes.io/edge": "", "kubernetes.io/role": "store"}
	node.Spec.Unschedulable = true
	node, err = core.Nodes().Update(ctx, node, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue}}
	node.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: "10.0.0.1"}}
	node.Status.NodeInfo = corev1.NodeSystemInfo{KubeletVersion: "v1.37.2", OSImage: "Debian", KernelVersion: "6.18", Architecture: "amd64"}
	_, err = core.Nodes().UpdateStatus(ctx, node, metav1.UpdateOptions{})
	Expect(err).NotTo(HaveOccurred())

	_, err = core.ServiceAccounts("default").Create(ctx, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "default"}}, opts)
	Expect(err).NotTo(HaveOccurred())
	for _, object := range podsInStates() {
		status := object.Status
		created, err := core.Pods("default").Create(ctx, object, opts)
		Expect(err).NotTo(HaveOccurred())
		created.Status = status
		_, err = core.Pods("default").UpdateStatus(ctx, created, metav1.UpdateOptions{})
		Expect(err).NotTo(HaveOccurred())
	}
	ports := []corev1.ServicePort{{Name: "http", Port: 80, TargetPort: intstr.FromInt32(8080)}, {Name: "dns", Port: 53, Protocol: corev1.ProtocolUDP}}
	for name, spec := range map[string]corev1.ServiceSpec{
		"plain":    {Ports: ports, Selector: map[string]string{"b": "2", "a": "1"}},
		"outside":  {Ports: ports, ExternalIPs: []string{"192.0.2.1"}},
		"node":     {Ports: ports[:1], Type: corev1.ServiceTypeNodePort},
		"balanced": {Ports: ports[:1], Type: corev1.ServiceTypeLoadBalancer},
		"name":     {Type: corev1.ServiceTypeExternalName, ExternalName: "example.com"},
		"headless": {ClusterIP: corev1.ClusterIPNone},
	} {
		_, err := core.Services("default").Create(ctx, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: spec}, opts)
		Expect(err).NotTo(HaveOccurred())
	}
	_, err = core.ConfigMaps("default").Create(ctx, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Name: "settings"}, Data: map[string]string{"a": "b"}, BinaryData: map[string][]byte{"c": {0}},
	}, opts)
	Expect(err).NotTo(HaveOccurred())
	_, err = core.Secrets("default").Create(ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "key"}, StringData: map[string]string{"k": "v"}}, opts)
	Expect(err).NotTo(HaveOccurred())
	for name, endpoints := range map[string]int{"none": 0, "some": 2, "many": 5} {
		slice := &discoveryv1.EndpointSlice{ObjectMeta: metav1.ObjectMeta{Name: name}, AddressType: discoveryv1.AddressTypeIPv4}
		for i := range endpoints {
			slice.Endpoints = append(slice.Endpoints, discoveryv1.Endpoint{Addresses: []string{"10.1.0." + string(rune('1'+i))}})
			slice.Ports = append(slice.Ports, discoveryv1.EndpointPort{Name: ptr.To("p" + string(rune('1'+i))), Port: ptr.To(int32(80 + i))})
		}
		_, err := admin.DiscoveryV1().EndpointSlices("default").Create(ctx, slice, opts)
		Expect(err).NotTo(HaveOccurred())
	}
}

func podsInStates() []*corev1.Pod {
	earlier := metav1.NewTime(time.Now().Add(-3 * time.Hour).Truncate(time.Second))
	pod := func(name string, labels map[string]string, status corev1.PodStatus, change func(*corev1.PodSpec)) *corev1.Pod {
		p := &corev1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels},
			Spec:       corev1.PodSpec{NodeName: nodeName, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
			Status:     status,
		}
		if change != nil {
			change(&p.Spec)
		}
		return p
	}
	ended := func(code int32, reason string) corev1.ContainerState {
		return corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: code, Reason: reason, FinishedAt: earlier}}
	}
	running := corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: earlier}}
	container := func(state corev1.ContainerState, ready bool, restarts int32) corev1.ContainerStatus {
		status := corev1.ContainerStatus{Name: "c", Image: "i", State: state, Ready: ready, RestartCount: restarts}
		if restarts > 0 {
			status.LastTerminationState = ended(1, "Error")
		}
		return status
	}
	ready := []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}, {Type: corev1.PodInitialized, Status: corev1.ConditionTrue}}
	always := corev1.ContainerRestartPolicyAlways
	return []*corev1.Pod{
		pod("web", map[string]string{"app": "web", "tier": "front"}, corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: ready, PodIP: "10.2.0.2", PodIPs: []corev1.PodIP{{IP: "10.2.0.2"}},
			ContainerStatuses: []corev1.ContainerStatus{container(running, true, 3)},
		}, nil),
		pod("job", map[string]string{"app": "job"}, corev1.PodStatus{
			Phase: corev1.PodSucceeded, ContainerStatuses: []corev1.ContainerStatus{container(ended(0, "Completed"), false, 0)},
		}, func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever }),
		pod("failed", nil, corev1.PodStatus{
			Phase: corev1.PodFailed, ContainerStatuses: []corev1.ContainerStatus{container(ended(2, ""), false, 0)},
		}, func(spec *corev1.PodSpec) { spec.RestartPolicy = corev1.RestartPolicyNever }),
		pod("evicted", nil, corev1.PodStatus{Phase: corev1.PodFailed, Reason: "Evicted"}, nil),
		pod("crashing", nil, corev1.PodStatus{
			Phase: corev1.PodRunning, ContainerStatuses: []corev1.ContainerStatus{
				container(corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "CrashLoopBackOff"}}, false, 7),
			},
		}, func(spec *corev1.PodSpec) { spec.HostNetwork = true }),
		pod("initialising", nil, corev1.PodStatus{
			Phase: corev1.PodPending, InitContainerStatuses: []corev1.ContainerStatus{container(running, false, 1)},
		}, func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{Name: "c1", Image: "i"}, {Name: "c2", Image: "i"}}
		}),
		pod("sidecar", nil, corev1.PodStatus{
			Phase: corev1.PodRunning, Conditions: ready,
			InitContainerStatuses: []corev1.ContainerStatus{{Name: "s", Image: "i", State: running, Ready: true, Started: ptr.To(true), RestartCount: 2}},
			ContainerStatuses:     []corev1.ContainerStatus{container(running, true, 0)},
		}, func(spec *corev1.PodSpec) {
			spec.InitContainers = []corev1.Container{{Name: "s", Image: "i", RestartPolicy: &always}}
			spec.ReadinessGates = []corev1.PodReadinessGate{{ConditionType: "example.com/x"}, {ConditionType: corev1.PodReady}}
		}),
		pod("pending", nil, corev1.PodStatus{Phase: corev1.PodPending}, nil),
	}
}

func (nodeOnly) Identify(context.Context, answer.Caller) error { return nil }
