package answer

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// bodyLimit is the API server's own limit for a request.
const bodyLimit = 3 << 20

// nodeLeases is the namespace of the nodes' own leases.
const nodeLeases = "kube-node-lease"

// writer answers a write that the node can take itself while the API server is out of
// reach. It says whether it has.
type writer func(h *Handler, w http.ResponseWriter, r *http.Request, info *request.RequestInfo, body []byte) bool

// offline is the closed list of what kubelet may write while cut off. All other writes, and
// those of everybody else, are refused then: what two could decide differently is not
// decided here.
var offline = map[string]writer{
	"patch pods/status":                                (*Handler).writeStatus,
	"patch nodes/status":                               (*Handler).writeStatus,
	"create nodes":                                     (*Handler).registerNode,
	"create pods":                                      (*Handler).createMirrorPod,
	"create serviceaccounts/token":                     (*Handler).requestToken,
	"get leases.coordination.k8s.io":                   (*Handler).lease,
	"create leases.coordination.k8s.io":                (*Handler).lease,
	"update leases.coordination.k8s.io":                (*Handler).lease,
	"create events":                                    (*Handler).takeEvent,
	"patch events":                                     (*Handler).takeEvent,
	"update events":                                    (*Handler).takeEvent,
	"create events.events.k8s.io":                      (*Handler).takeEvent,
	"patch events.events.k8s.io":                       (*Handler).takeEvent,
	"create tokenreviews.authentication.k8s.io":        (*Handler).reviewToken,
	"create subjectaccessreviews.authorization.k8s.io": (*Handler).reviewAccess,
}

func (h *Handler) writerOf(info *request.RequestInfo) writer {
	name := resourceOf(info).GroupResource().String()
	if info.Subresource != "" {
		name += "/" + info.Subresource
	}
	switch info.Resource {
	case "leases":
		if info.Namespace != nodeLeases || info.Name != "" && info.Name != h.Node() {
			return nil
		}
	case "nodes":
		if info.Verb == "patch" && info.Name != h.Node() {
			return nil
		}
	}
	return offline[info.Verb+" "+name]
}

// write answers a request of the closed list.
func (h *Handler) write(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, take writer) bool {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, bodyLimit))
	var large *http.MaxBytesError
	if errors.As(err, &large) {
		fail(w, r, tooLarge())
		return true
	}
	if err != nil {
		fail(w, r, apierrors.NewBadRequest("reading the body: "+err.Error()))
		return true
	}
	h.noteEvent(info, body)
	rewind := func() { r.Body = io.NopCloser(bytes.NewReader(body)) }
	rewind()
	if !h.first(info) && h.try(h.overhear(w, info), r, info) {
		return true
	}
	rewind()
	if !take(h, w, r, info, body) {
		return false
	}
	h.count(info, sourceLocal)
	return true
}

// first says which writes the node answers itself also while linked: reviews, since what
// was allowed is to be remembered, and a status that has to be rebased, since kubelet's
// change is one of what it was served and not of what is upstream.
func (h *Handler) first(info *request.RequestInfo) bool {
	switch {
	case info.Resource == "tokenreviews" || info.Resource == "subjectaccessreviews":
		return true
	case info.Subresource == "status":
		return h.rebased(info)
	}
	return false
}

func respondObject(w http.ResponseWriter, r *http.Request, code int, object any) bool {
	body, err := json.Marshal(object)
	if err != nil {
		fail(w, r, err)
		return true
	}
	respond(w, r, code, append(body, '\n'))
	return true
}
