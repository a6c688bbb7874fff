package answer

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"rekindle.edge/agent/localapi/rawobject/sow"
	"rekindle.edge/agent/snapshot"
)

const (
	allPods             = "/api/v1/pods?fieldSelector=spec.nodeName%3Dedge-1"
	certificateRequests = "/apis/certificates.k8s.io/v1/podcertificaterequests"
	oneConfig           = "/api/v1/namespaces/default/configmaps?fieldSelector=metadata.name%3D"
)

// get asks the rig. Header is "Name: value" lines.
func (r *rig) get(t *testing.T, path string, header ...string) (int, string, http.Header) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(body), response.Header
}

// brief is an answer in short: its code, and the names of a list or the reason of an error.
func brief(code int, body string) string {
	var answer struct {
		Kind, Reason string
		Metadata     struct{ Name, Continue string }
		Items        []struct{ Metadata struct{ Name string } }
	}
	if json.Unmarshal([]byte(body), &answer) != nil {
		return fmt.Sprint(code, " ", body)
	}
	switch {
	case answer.Kind == "Status":
		return fmt.Sprint(code, " ", answer.Reason)
	case strings.HasSuffix(answer.Kind, "List"):
		names := fmt.Sprint(code, " ", answer.Kind, ":")
		for _, item := range answer.Items {
			names += " " + item.Metadata.Name
		}
		if answer.Metadata.Continue != "" {
			names += " ..."
		}
		return names
	}
	return fmt.Sprint(code, " ", answer.Kind, " ", answer.Metadata.Name)
}

func (r *rig) fill() *rig {
	r.store.put(pods, podJSON("web-1", "100", `"app":"web"`))
	r.store.put(pods, podJSON("web-2", "101", `"app":"web"`))
	r.store.put(pods, podJSON("db-1", "102", `"app":"db"`))
	r.store.put(configMaps, configMapJSON("settings", "90"))
	return r
}

// held is what a mirror would hold.
var held = []snapshot.Scope{
	{Resource: pods}, {Resource: nodes},
	{Resource: configMaps, Namespace: "default", Name: "settings"}, {Resource: configMaps, Namespace: "default", Name: "optional"},
	{Resource: claims, Namespace: "default", Name: "data"}, {Resource: widgets},
	{Resource: schema.GroupVersionResource{Group: "certificates.k8s.io", Version: "v1", Resource: "podcertificaterequests"}},
}

func TestReads(t *testing.T) {
	const token = "Authorization: Bearer x"
	cases := map[string]struct {
		reach  Reach
		answer string // upstream's
		path   string
		header string
		want   string
		missed string
	}{
		"a list is the node's own while linked": {reach: Linked, answer: "x", path: allPods, want: "200 PodList: db-1 web-1 web-2"},
		"and while nothing is known yet":        {path: allPods, want: "200 PodList: db-1 web-1 web-2"},
		"and while cut off":                     {reach: CutOff, path: allPods, want: "200 PodList: db-1 web-1 web-2"},
		"labels select":                         {reach: CutOff, path: allPods + "&labelSelector=app%3Dweb", want: "200 PodList: web-1 web-2"},
		"labels select by set":                  {reach: CutOff, path: allPods + "&labelSelector=app+notin+(web)", want: "200 PodList: db-1"},
		"fields select":                         {reach: CutOff, path: allPods + "%2Cmetadata.name%21%3Dweb-1", want: "200 PodList: db-1 web-2"},
		"a phase that none has":                 {reach: CutOff, path: allPods + "%2Cstatus.phase%3DFailed", want: "200 PodList:"},
		"a field that is false when absent":     {reach: CutOff, path: allPods + "%2Cspec.hostNetwork%3Dfalse", want: "200 PodList: db-1 web-1 web-2"},
		"a field nobody selects by":             {reach: CutOff, path: allPods + "%2Cspec.x%3D1", want: "400 BadRequest"},
		"a namespace without pods":              {reach: CutOff, path: strings.Replace(allPods, "v1/", "v1/namespaces/other/", 1), want: "200 PodList:"},
		"a broken selector":                     {reach: CutOff, path: allPods + "&labelSelector=%3D%3D", want: "400 BadRequest"},

		"pods of all nodes are not held":             {reach: Linked, path: "/api/v1/pods", want: "200 upstream"},
		"nor offline, for others than the node":      {reach: CutOff, path: "/api/v1/pods", header: token, want: "503 ServiceUnavailable", missed: "pods by Go-http-client"},
		"the node sees what there is":                {reach: CutOff, path: "/api/v1/pods", want: "200 PodList: db-1 web-1 web-2"},
		"a single pod is read upstream while linked": {reach: Linked, answer: "fresh", path: "/api/v1/namespaces/default/pods/web-1", want: "200 fresh"},
		"and here when no answer comes":              {reach: Linked, path: "/api/v1/namespaces/default/pods/web-1", want: "200 Pod web-1"},
		"and here while cut off":                     {reach: CutOff, path: "/api/v1/namespaces/default/pods/web-1", want: "200 Pod web-1"},
		"and here at version 0":                      {reach: Linked, answer: "x", path: "/api/v1/namespaces/default/pods/web-1?resourceVersion=0", want: "200 Pod web-1"},
		"a pod that is not there":                    {reach: CutOff, path: "/api/v1/namespaces/default/pods/gone", want: "404 NotFound"},
		"a pod that others ask for may be elsewhere": {reach: CutOff, path: "/api/v1/namespaces/default/pods/gone", header: token, want: "503 ServiceUnavailable", missed: "pods by Go-http-client"},
		"another node":                               {reach: CutOff, path: "/api/v1/nodes/edge-2", want: "503 ServiceUnavailable", missed: "nodes by Go-http-client"},

		"certificate requests of this node's pods": {reach: CutOff, path: certificateRequests + "?fieldSelector=spec.nodeName%3Dedge-1", want: "200 PodCertificateRequestList:"},
		"those of others are upstream's":           {reach: Linked, answer: "x", path: certificateRequests, want: "200 upstream"},

		"one configmap":                           {reach: CutOff, path: oneConfig + "settings", want: "200 ConfigMapList: settings"},
		"one that is known to be absent":          {reach: CutOff, path: oneConfig + "optional", want: "200 ConfigMapList:"},
		"a get of it":                             {reach: CutOff, path: "/api/v1/namespaces/default/configmaps/optional", want: "404 NotFound"},
		"one that was never looked for":           {reach: CutOff, path: oneConfig + "other", header: "User-Agent: kubelet/v1.37", want: "503 ServiceUnavailable", missed: "configmaps by kubelet"},
		"a get of that":                           {reach: CutOff, path: "/api/v1/namespaces/default/configmaps/other", want: "503 ServiceUnavailable", missed: "configmaps by Go-http-client"},
		"which upstream may know":                 {reach: Linked, path: oneConfig + "other", want: "200 upstream"},
		"a claim is read upstream at any version": {reach: Linked, answer: "fresh", path: "/api/v1/namespaces/default/persistentvolumeclaims/data?resourceVersion=0", want: "200 fresh"},

		"leases of others are never the node's": {reach: CutOff, path: "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/leader", want: "200 upstream"},
		"nor is its own for others":             {reach: CutOff, path: "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/edge-1", header: token, want: "200 upstream"},

		"a list of nothing has its kind":                      {reach: CutOff, path: "/apis/example.com/v1/widgets", want: "200 WidgetList:"},
		"rows of an unknown kind are upstream's while linked": {reach: Linked, answer: "rows", path: "/apis/example.com/v1/widgets", header: "Accept: application/json;as=Table;v=v1;g=meta.k8s.io", want: "200 rows"},
		"kubelet asks for protobuf first":                     {reach: CutOff, path: allPods, header: "Accept: application/vnd.kubernetes.protobuf,application/json", want: "200 PodList: db-1 web-1 web-2"},
		"protobuf only":                                       {reach: CutOff, path: allPods, header: "Accept: application/vnd.kubernetes.protobuf", want: "406 NotAcceptable"},
		"metadata only":                                       {reach: CutOff, path: allPods, header: "Accept: application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json", want: "200 PartialObjectMetadataList: db-1 web-1 web-2"},

		"pages":                         {reach: CutOff, path: allPods + "&limit=2", want: "200 PodList: db-1 web-1 ..."},
		"no pages at version 0":         {reach: CutOff, path: allPods + "&limit=2&resourceVersion=0", want: "200 PodList: db-1 web-1 web-2"},
		"a continue token of upstream":  {reach: CutOff, path: allPods + "&limit=2&continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJhIn0", want: "410 Expired"},
		"a version that is not old":     {reach: CutOff, path: allPods + "&resourceVersion=50&resourceVersionMatch=NotOlderThan", want: "200 PodList: db-1 web-1 web-2"},
		"exactly an old version":        {reach: CutOff, path: allPods + "&resourceVersion=50&resourceVersionMatch=Exact", want: "410 Expired"},
		"a version ahead":               {reach: CutOff, path: allPods + "&resourceVersion=99999", want: "504 Timeout"},
		"no number":                     {reach: CutOff, path: allPods + "&resourceVersion=x", want: "400 BadRequest"},
		"a match without a version":     {reach: CutOff, path: allPods + "&resourceVersionMatch=Exact", want: "422 Invalid"},
		"a watch from an old version":   {reach: CutOff, path: allPods + "&watch=1&resourceVersion=50", want: "410 Expired"},
		"a watch from a version ahead":  {reach: CutOff, path: allPods + "&watch=1&resourceVersion=99999", want: "504 Timeout"},
		"initial events without a rule": {reach: CutOff, path: allPods + "&watch=1&sendInitialEvents=true", want: "422 Invalid"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, tc.reach, held...).fill()
			r.link.answer = tc.answer
			var header []string
			if tc.header != "" {
				header = append(header, tc.header)
			}
			code, body, headers := r.get(t, tc.path, header...)
			if got := brief(code, body); got != tc.want {
				t.Errorf("got %s, want %s\n%s", got, tc.want, body)
			}
			if headers.Get("Retry-After") != "" {
				t.Error("the answer says Retry-After, which freezes kubelet's loops")
			}
			if got := strings.Join(r.missed, ","); got != tc.missed {
				t.Errorf("missed %q, want %q", got, tc.missed)
			}
		})
	}
}

func TestVersionAheadSaysSo(t *testing.T) {
	r := newRig(t, CutOff, held...).fill()
	_, body, _ := r.get(t, allPods+"&resourceVersion=99999")
	if !strings.Contains(body, `"reason":"ResourceVersionTooLarge"`) {
		t.Errorf("client-go would not know what to do with %s", body)
	}
}

func TestAPodListThatMayLackPodsIsHeldBack(t *testing.T) {
	r := newRig(t, CutOff, held...).fill()
	r.store.held = "an older generation"
	for _, path := range []string{allPods, "/api/v1/pods", allPods + "&watch=1", "/api/v1/namespaces/default/pods/web-1"} {
		code, body, _ := r.get(t, path)
		if code != http.StatusServiceUnavailable || !strings.Contains(body, "an older generation") {
			t.Errorf("%s: %d %s", path, code, body)
		}
	}
	r.link.reach = Linked
	if _, body, _ := r.get(t, allPods); body != "upstream" {
		t.Errorf("while linked: %s", body)
	}
}

func TestAListThatIsContinued(t *testing.T) {
	r := newRig(t, CutOff, held...).fill()
	next := func(token string) (string, string, *int64) {
		_, body, _ := r.get(t, "/api/v1/pods?limit=2&continue="+url.QueryEscape(token))
		var list struct {
			Metadata struct {
				Continue           string
				RemainingItemCount *int64
			}
		}
		_ = json.Unmarshal([]byte(body), &list)
		return brief(0, body), list.Metadata.Continue, list.Metadata.RemainingItemCount
	}
	first, token, left := next("")
	if first != "0 PodList: db-1 web-1 ..." || left == nil || *left != 1 {
		t.Fatalf("first page %s, %v left", first, left)
	}
	if second, _, _ := next(token); second != "0 PodList: web-2" {
		t.Errorf("second page %s", second)
	}
	r.store.put(pods, podJSON("web-2", "200", ""))
	if second, _, _ := next(token); second != "0 Expired" {
		t.Errorf("a page of a list that has changed: %s", second)
	}
}

func TestUnknownFieldsSurvive(t *testing.T) {
	sown := sow.Sow(t, podJSON("web-1", "100", `"app":"web"`), "labels")
	const one = "/api/v1/namespaces/default/pods/web-1"
	cases := map[string]struct {
		path   string
		header []string
		// but is what the form leaves out.
		but []string
	}{
		"an object":                {path: one},
		"a list":                   {path: allPods},
		"a page of a list":         {path: allPods + "&limit=1"},
		"metadata":                 {path: one, header: []string{"Accept: application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"}, but: []string{"", ".spec", ".status"}},
		"a row's object":           {path: one + "?includeObject=Object", header: []string{"Accept: application/json;as=Table;g=meta.k8s.io;v=v1"}},
		"a watch's events":         {path: allPods + "&watch=1&timeoutSeconds=1"},
		"a watch's own first list": {path: allPods + "&watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, CutOff, held...)
			r.store.put(pods, string(sown))
			code, body, _ := r.get(t, tc.path, tc.header...)
			if lost := sow.Lost(t, sown, []byte(body), tc.but...); code != http.StatusOK || len(lost) > 0 {
				t.Errorf("%d, lost %q in %s", code, lost, body)
			}
		})
	}
}

func TestDoubtEndsWhenSomethingIsHeard(t *testing.T) {
	r := newRig(t, Linked, held...).fill()
	r.link.silence = time.Hour
	for range 3 {
		if code, _, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1"); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	if len(r.link.asked) != 1 {
		t.Errorf("asked %d times while nothing was heard: each costs kubelet a second", len(r.link.asked))
	}
	r.link.silence, r.link.answer = 0, "fresh"
	if _, body, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1"); body != "fresh" {
		t.Errorf("got %s although the link is back", body)
	}
}

func TestAnAPIServerThatIsNotHeardAtBootIsNotWaitedFor(t *testing.T) {
	r := newRig(t, Undecided, held...).fill()
	r.FreshnessWait = func() time.Duration { return 0 }
	r.get(t, "/api/v1/namespaces/default/pods/web-1")
	r.get(t, "/api/v1/pods")
	if len(r.link.asked)+r.link.passed != 0 {
		t.Errorf("asked for %v, %d passed on", r.link.asked, r.link.passed)
	}
	if _, body, _ := r.get(t, oneConfig+"other"); body != "upstream" {
		t.Errorf("nobody but the API server has it, got %s", body)
	}
	r.link.reach, r.link.answer = Linked, "fresh"
	if _, body, _ := r.get(t, "/api/v1/namespaces/default/pods/web-1"); body != "fresh" {
		t.Errorf("got %s although it was heard", body)
	}
}

func TestTheFirstListWaitsForTheMirror(t *testing.T) {
	r := newRig(t, Linked, held...).fill()
	r.FreshnessWait = func() time.Duration { return 10 * time.Second }
	time.AfterFunc(50*time.Millisecond, func() {
		r.store.put(pods, podJSON("new", "300", ""))
		r.store.mu.Lock()
		r.store.inStep[pods] = time.Now()
		r.store.mu.Unlock()
	})
	code, body, _ := r.get(t, allPods)
	if got := brief(code, body); got != "200 PodList: db-1 new web-1 web-2" {
		t.Error(got)
	}
	r.link.reach = CutOff
	start := time.Now()
	r.store.inStep[pods] = time.Time{}
	r.get(t, allPods)
	if waited := time.Since(start); waited > 5*time.Second {
		t.Errorf("waited %s although there is no link", waited)
	}
}

// follow opens a watch and gives its events in short.
func (r *rig) follow(t *testing.T, path string, header ...string) func() string {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, r.server.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range header {
		name, value, _ := strings.Cut(line, ": ")
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { response.Body.Close() })
	lines := bufio.NewReader(response.Body)
	return func() string {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return err.Error()
		}
		var event struct {
			Type   string
			Object struct {
				Kind, Reason string
				Metadata     struct {
					Name        string
					Annotations map[string]string
				}
				ColumnDefinitions []any
				Rows              []struct{ Cells []any }
			}
		}
		if err := json.Unmarshal(line, &event); err != nil {
			t.Fatalf("%v in %s", err, line)
		}
		o := event.Object
		short := strings.TrimSpace(event.Type + " " + o.Metadata.Name + o.Reason)
		if o.Metadata.Annotations["k8s.io/initial-events-end"] == "true" {
			short += " end of initial events"
		}
		if o.Kind == "Table" {
			short += fmt.Sprintf("%d columns, %v", len(o.ColumnDefinitions), o.Rows[0].Cells[0])
		}
		return short
	}
}

func TestWatch(t *testing.T) {
	r := newRig(t, CutOff, held...).fill()
	const begin = "&watch=1&allowWatchBookmarks=true&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"
	_, body, _ := r.get(t, allPods)
	var list struct {
		Metadata struct{ ResourceVersion string }
	}
	if err := json.Unmarshal([]byte(body), &list); err != nil {
		t.Fatal(err)
	}
	cases := map[string]struct {
		path   string
		header string
		want   []string // before and after the changes below
	}{
		"of everything": {path: allPods + begin, want: []string{
			"ADDED db-1", "ADDED web-1", "ADDED web-2", "BOOKMARK end of initial events",
			"MODIFIED web-1", "MODIFIED db-1", "DELETED web-2", "ADDED web-3",
		}},
		"of what labels select": {path: allPods + begin + "&labelSelector=app%3Dweb", want: []string{
			"ADDED web-1", "ADDED web-2", "BOOKMARK end of initial events", "DELETED web-1", "ADDED db-1", "DELETED web-2", "ADDED web-3",
		}},
		"of an empty selection":  {path: allPods + begin + "&labelSelector=app%3Dnone", want: []string{"BOOKMARK end of initial events"}},
		"of an empty collection": {path: "/apis/example.com/v1/widgets?x=" + begin, want: []string{"BOOKMARK end of initial events"}},
		"of an absent object":    {path: oneConfig + "optional" + begin, want: []string{"BOOKMARK end of initial events"}},
		"of metadata": {
			path: allPods + begin + "&labelSelector=app%3Dnone", header: "Accept: application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1",
			want: []string{"BOOKMARK end of initial events"},
		},
		"from a version": {path: allPods + "&watch=1&resourceVersion=" + list.Metadata.ResourceVersion, want: []string{"MODIFIED web-1", "MODIFIED db-1", "DELETED web-2", "ADDED web-3"}},
		"without a version": {path: allPods + "&watch=1", want: []string{
			"ADDED db-1", "ADDED web-1", "ADDED web-2", "MODIFIED web-1", "MODIFIED db-1", "DELETED web-2", "ADDED web-3",
		}},
		"as rows": {path: allPods + "&watch=1&resourceVersion=" + list.Metadata.ResourceVersion, header: "Accept: application/json;as=Table;v=v1;g=meta.k8s.io", want: []string{
			"MODIFIED9 columns, web-1", "MODIFIED0 columns, db-1",
		}},
		"for a time": {path: allPods + "&watch=1&timeoutSeconds=1&labelSelector=app%3Dnone", want: []string{"EOF"}},
	}
	streams := map[string]func() string{}
	for name, tc := range cases {
		var header []string
		if tc.header != "" {
			header = append(header, tc.header)
		}
		streams[name] = r.follow(t, tc.path, header...)
	}
	r.store.put(pods, podJSON("web-1", "110", `"app":"other"`))
	r.store.put(pods, podJSON("db-1", "111", `"app":"web"`))
	r.store.remove(pods, "web-2")
	r.store.put(pods, podJSON("web-3", "113", `"app":"web"`))
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			for i, want := range tc.want {
				if got := streams[name](); got != want {
					t.Fatalf("event %d is %q, want %q", i, got, want)
				}
			}
		})
	}
	t.Run("until the line breaks", func(t *testing.T) {
		next := r.follow(t, allPods+"&watch=1&labelSelector=app%3Dnone&resourceVersion="+list.Metadata.ResourceVersion)
		r.store.told(snapshot.Event{Type: snapshot.Reset, Resource: pods})
		if got := next(); got != "ERROR Expired" {
			t.Errorf("got %q, which does not make a client list again", got)
		}
	})
}

func TestLongListsAreCompressed(t *testing.T) {
	r := newRig(t, CutOff, held...)
	for i := range 1000 {
		r.store.put(pods, podJSON(fmt.Sprintf("web-%d", i), fmt.Sprint(100+i), ""))
	}
	_, plain, _ := r.get(t, allPods, "Accept-Encoding: identity")
	_, packed, header := r.get(t, allPods, "Accept-Encoding: gzip")
	if header.Get("Content-Encoding") != "gzip" || len(packed) > len(plain)/4 {
		t.Errorf("%d bytes, %q, of %d", len(packed), header.Get("Content-Encoding"), len(plain))
	}
	_, unpacked, _ := r.get(t, allPods) // the client unpacks what it did not ask for itself
	if diff := cmp.Diff(plain, unpacked); diff != "" {
		t.Error("unpacked, it differs")
	}
}
