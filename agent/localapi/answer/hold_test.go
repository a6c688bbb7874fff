package answer

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/endpoints/request"
	"k8s.io/utils/clock"

	"rekindle.edge/agent/localapi/collection"
)

func TestHold(t *testing.T) {
	attachments := schema.GroupVersionResource{Group: "storage.k8s.io", Version: "v1", Resource: "volumeattachments"}
	info := func(name string) *request.RequestInfo {
		return &request.RequestInfo{
			IsResourceRequest: true, Verb: "get", APIGroup: attachments.Group, APIVersion: attachments.Version, Resource: attachments.Resource, Name: name,
		}
	}
	cases := map[string]struct {
		reach     Reach
		name      string
		userAgent string
		caller    Caller
		// released and left are when the hold ends and when kubelet gives up; 0: never.
		released, left time.Duration
		want           time.Duration
	}{
		"kubelet waits until it is released":                   {reach: CutOff, released: 20 * time.Second, want: 20 * time.Second},
		"and not longer than it wants to":                      {reach: CutOff, left: 5 * time.Second, want: 5 * time.Second},
		"while the API server answers it decides in a while":   {reach: Linked, want: linkedHold},
		"and at once when the mirror has heard it":             {reach: Linked, released: 300 * time.Millisecond, want: 300 * time.Millisecond},
		"what is not stored is not held":                       {reach: CutOff, name: "other"},
		"people are told at once":                              {reach: CutOff, userAgent: "kubectl/v1.37.2"},
		"but a kubelet by another name is told by its process": {reach: CutOff, userAgent: "k3s/v1.37.2", caller: Caller{Process: func() bool { return true }}, left: time.Second, want: time.Second},
		"and nobody else is":                                   {reach: CutOff, userAgent: "k3s/v1.37.2", caller: Caller{Process: func() bool { return false }}},
		"pods too":                                             {reach: CutOff, caller: Caller{Token: "x"}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				start := time.Now()
				objects := newStore()
				h := &Handler{
					Log: logr.Discard(), Objects: objects, Upstream: &link{reach: tc.reach},
					Held: func(_ schema.GroupVersionResource, item *collection.Item) string {
						if item.Name != "csi-1" || tc.released > 0 && time.Since(start) >= tc.released {
							return ""
						}
						return "held"
					},
				}
				defer New(h, clock.RealClock{})()
				objects.put(attachments, `{"metadata":{"name":"csi-1","uid":"x","resourceVersion":"1"}}`)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tc.left > 0 {
					ctx, cancel = context.WithTimeout(ctx, tc.left)
					defer cancel()
				}
				r, err := http.NewRequestWithContext(ctx, http.MethodGet, "/", nil)
				if err != nil {
					t.Fatal(err)
				}
				caller, asked := tc.caller, tc.name
				caller.Node = caller.Token == ""
				if asked == "" {
					asked = "csi-1"
				}
				r.Header.Set("User-Agent", "kubelet/v1.37.2")
				if tc.userAgent != "" {
					r.Header.Set("User-Agent", tc.userAgent)
				}
				h.hold(r, info(asked), caller)
				if got := time.Since(start); got != tc.want {
					t.Errorf("waited %s, want %s", got, tc.want)
				}
			})
		})
	}
}
