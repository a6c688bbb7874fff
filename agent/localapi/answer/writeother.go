package answer

import (
	"encoding/json"
	"errors"
	"net/http"
	"sync"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	eventsv1 "k8s.io/api/events/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	"k8s.io/apiserver/pkg/endpoints/request"

	"rekindle.edge/agent/localapi/collection"
)

var errPrecondition = errors.New("the object was replaced by another of the same name")

// codecs read what kubelet sends, as JSON or protobuf.
var codecs = func() serializer.CodecFactory {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		corev1.AddToScheme, coordinationv1.AddToScheme, eventsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	} {
		utilruntime.Must(add(scheme))
	}
	return serializer.NewCodecFactory(scheme)
}()

// decodeBody reads an object of a request, with its type.
func decodeBody[T runtime.Object](body []byte, into T) error {
	read, kind, err := codecs.UniversalDeserializer().Decode(body, nil, into)
	if err != nil {
		return apierrors.NewBadRequest("reading the body: " + err.Error())
	}
	if read != runtime.Object(into) {
		return apierrors.NewBadRequest("reading the body: it is a " + kind.String())
	}
	into.GetObjectKind().SetGroupVersionKind(*kind)
	return nil
}

// registerNode tells kubelet that its Node exists, which makes it read it.
func (h *Handler) registerNode(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, _ []byte) bool {
	resource := resourceOf(info)
	if h.collections.Of(resource).Get(collection.Key{Name: h.Node()}) == nil {
		return false
	}
	fail(w, r, apierrors.NewAlreadyExists(resource.GroupResource(), h.Node()))
	return true
}

// createMirrorPod tells kubelet that a static pod is mirrored. If it is not, it stays so:
// a pod with a UID of the node's own making could never be reconciled.
func (h *Handler) createMirrorPod(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, body []byte) bool {
	var pod corev1.Pod
	if err := decodeBody(body, &pod); err != nil {
		fail(w, r, err)
		return true
	}
	resource := resourceOf(info)
	if h.collections.Of(resource).Get(collection.Key{Namespace: info.Namespace, Name: pod.Name}) == nil {
		return false
	}
	fail(w, r, apierrors.NewAlreadyExists(resource.GroupResource(), pod.Name))
	return true
}

// requestToken replays a token.
func (h *Handler) requestToken(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, body []byte) bool {
	if h.Replay == nil {
		return false
	}
	var token authenticationv1.TokenRequest
	if err := decodeBody(body, &token); err != nil {
		fail(w, r, err)
		return true
	}
	bound := token.Spec.BoundObjectRef
	if bound == nil || token.Spec.ExpirationSeconds == nil {
		return false
	}
	status, err := h.Replay(bound.UID, info.Namespace, info.Name, token.Spec.Audiences, *token.Spec.ExpirationSeconds, time.Now())
	if err != nil {
		fail(w, r, apierrors.NewServiceUnavailable("rekindle-agent: the API server is out of reach: "+err.Error()))
		return true
	}
	token.Status = status
	token.Namespace, token.Name = info.Namespace, info.Name
	return respondObject(w, r, http.StatusCreated, &token)
}

// takeEvent accepts an event and drops it: it is news, and would be old by the time it
// could be told.
func (h *Handler) takeEvent(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, body []byte) bool {
	if info.Verb != "create" {
		// A change of an event that kubelet knows; it takes any event for an answer.
		event := corev1.Event{ObjectMeta: metav1.ObjectMeta{Namespace: info.Namespace, Name: info.Name}}
		_ = json.Unmarshal(body, &event) // what a patch does not say stays unknown
		event.TypeMeta = metav1.TypeMeta{Kind: "Event", APIVersion: "v1"}
		return respondObject(w, r, http.StatusOK, &event)
	}
	if info.APIGroup == eventsv1.GroupName {
		var event eventsv1.Event
		if err := decodeBody(body, &event); err != nil {
			fail(w, r, err)
			return true
		}
		return respondObject(w, r, http.StatusCreated, &event)
	}
	var event corev1.Event
	if err := decodeBody(body, &event); err != nil {
		fail(w, r, err)
		return true
	}
	return respondObject(w, r, http.StatusCreated, &event)
}

func (h *Handler) reviewToken(w http.ResponseWriter, r *http.Request, _ *request.RequestInfo, body []byte) bool {
	var review authenticationv1.TokenReview
	err := decodeBody(body, &review)
	if err == nil {
		err = h.Access.ReviewToken(r.Context(), &review)
	}
	if err != nil {
		fail(w, r, err)
		return true
	}
	return respondObject(w, r, http.StatusCreated, &review)
}

func (h *Handler) reviewAccess(w http.ResponseWriter, r *http.Request, _ *request.RequestInfo, body []byte) bool {
	var review authorizationv1.SubjectAccessReview
	err := decodeBody(body, &review)
	if err == nil {
		err = h.Access.ReviewAccess(r.Context(), &review)
	}
	if err != nil {
		fail(w, r, err)
		return true
	}
	return respondObject(w, r, http.StatusCreated, &review)
}

// leases is the node's own lease as kubelet last wrote it. It is of no use to anybody
// while cut off but to kubelet, which would complain, and never reaches the disk.
type leases struct {
	mu   sync.Mutex
	last *coordinationv1.Lease
}

func (h *Handler) lease(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, body []byte) bool {
	h.leases.mu.Lock()
	defer h.leases.mu.Unlock()
	code := http.StatusOK
	if info.Verb != "get" {
		var lease coordinationv1.Lease
		if err := decodeBody(body, &lease); err != nil {
			fail(w, r, err)
			return true
		}
		if lease.Name != h.Node() {
			return false
		}
		if info.Verb == "create" {
			code = http.StatusCreated
		}
		// A version that the API server knows to be old: kubelet reads its own and goes on. An
		// update without any is invalid, and kubelet would repeat it as it is.
		if lease.ResourceVersion == "" {
			lease.ResourceVersion = "1"
		}
		h.leases.last = &lease
	}
	if h.leases.last == nil {
		fail(w, r, apierrors.NewNotFound(resourceOf(info).GroupResource(), info.Name))
		return true
	}
	return respondObject(w, r, code, h.leases.last)
}
