package answer

import (
	"bytes"
	"net/http"

	"k8s.io/apiserver/pkg/endpoints/request"
)

// What the node may get and not watch is held as it was last read, which may be minutes ago.
// Kubelet reads it when it matters: a claim that was bound a moment ago. So what kubelet is
// answered by the API server is kept as well.

// largestRead bounds what of an answer is held to be kept.
const largestRead = 1 << 20

// overhearRead gives what a request is passed on with, and a function that is to be called
// when it was answered; or them as they are.
func (h *Handler) overhearRead(w http.ResponseWriter, r *http.Request, info *request.RequestInfo, caller Caller) (http.ResponseWriter, *http.Request, func()) {
	nothing := func() {}
	if h.ReadUpstream == nil || !caller.Node || info.Verb != "get" || info.Subresource != "" || !getOnly[resourceOf(info).GroupResource()] {
		return w, r, nothing
	}
	if form, ok := negotiate(r.Header.Get("Accept")); !ok || form != formObject || r.Method != http.MethodGet {
		return w, r, nothing
	}
	// Objects are kept as JSON, in which fields survive that the agent does not know.
	r = r.Clone(r.Context())
	r.Header.Set("Accept", "application/json")
	r.Header.Del("Accept-Encoding")
	read := &readAnswer{ResponseWriter: w, code: http.StatusOK}
	scope := scopeOf(info)
	return read, r, func() {
		switch {
		case read.code == http.StatusOK && read.body.Len() > 0 && read.body.Len() <= largestRead:
			// Kubelet does not wait for it.
			go h.ReadUpstream(scope, bytes.Clone(read.body.Bytes()))
		case read.code == http.StatusNotFound:
			go h.ReadUpstream(scope, nil)
		}
	}
}

// readAnswer keeps a copy of an answer while it is written.
type readAnswer struct {
	http.ResponseWriter
	code int
	body bytes.Buffer
}

func (a *readAnswer) WriteHeader(code int) {
	a.code = code
	a.ResponseWriter.WriteHeader(code)
}

func (a *readAnswer) Write(data []byte) (int, error) {
	// One byte too many says that it is too large.
	a.body.Write(data[:min(len(data), largestRead+1-a.body.Len())])
	return a.ResponseWriter.Write(data)
}

// Unwrap lets the answer be flushed.
func (a *readAnswer) Unwrap() http.ResponseWriter { return a.ResponseWriter }
