package mirror

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"rekindle.edge/agent/snapshot"
)

const (
	// answerTimeout bounds one request that is no watch, and the wait for a watch to begin.
	answerTimeout = 20 * time.Second
	// largestError is how much of a refusal is read.
	largestError = 64 << 10
	// As much as a kubelet may ask for by default.
	requestsPerSecond, requestBurst = 50, 100
)

// target is what one list and watch is about.
type target struct {
	scope snapshot.Scope
	// fields and labels narrow what the server sends.
	fields, labels string
	// bounded says that a list of more than most bytes is a tooLargeError.
	bounded bool
	most    int
}

// client speaks to the API server in JSON and decodes no more than it must.
type client struct {
	http  *http.Client
	base  *url.URL
	limit *rate.Limiter
}

func newClient(config *rest.Config) (*client, error) {
	httpClient, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, err
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, err
	}
	return &client{http: httpClient, base: base, limit: rate.NewLimiter(requestsPerSecond, requestBurst)}, nil
}

// pathOf is the path of a collection.
func pathOf(resource schema.GroupVersionResource, namespace string) string {
	path := "/apis/" + resource.Group + "/" + resource.Version
	if resource.Group == "" {
		path = "/api/" + resource.Version
	}
	if namespace != "" {
		path += "/namespaces/" + namespace
	}
	return path + "/" + resource.Resource
}

func (t target) query() url.Values {
	query := url.Values{}
	if t.fields != "" {
		query.Set("fieldSelector", t.fields)
	}
	if t.labels != "" {
		query.Set("labelSelector", t.labels)
	}
	return query
}

// do sends a request. An answer of 400 and above is an error.
func (c *client) do(ctx context.Context, method, path string, query url.Values, body io.Reader) (*http.Response, error) {
	target := c.base.JoinPath(path)
	target.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, method, target.String(), body)
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", "application/json, */*;q=0.1")
	if body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	response, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusBadRequest {
		return response, nil
	}
	defer func() { _ = response.Body.Close() }()
	return nil, refusal(response)
}

// read sends a request that is no watch and hands the answer to f.
func (c *client) read(ctx context.Context, method, path string, query url.Values, body io.Reader, f func(io.Reader) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	if err := c.limit.Wait(ctx); err != nil {
		return err
	}
	response, err := c.do(ctx, method, path, query, body)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return f(response.Body)
}

// readJSON decodes what is at a path.
func (c *client) readJSON(ctx context.Context, path string, query url.Values, into any) error {
	return c.read(ctx, http.MethodGet, path, query, nil, func(body io.Reader) error {
		if err := json.NewDecoder(body).Decode(into); err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
		return nil
	})
}

// refusal makes an error of an answer. Only a Status that the API server wrote carries a
// reason; a proxy's 404 says nothing about an object.
func refusal(response *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(response.Body, largestError))
	var status metav1.Status
	if err == nil && json.Unmarshal(data, &status) == nil && status.Kind == "Status" {
		return &apierrors.StatusError{ErrStatus: status}
	}
	text := strings.TrimSpace(string(data[:min(len(data), 200)]))
	return &apierrors.StatusError{ErrStatus: metav1.Status{
		Status: metav1.StatusFailure, Code: int32(response.StatusCode),
		Message: fmt.Sprintf("%s %s answers %s: %s", response.Request.Method, response.Request.URL.Path, response.Status, text),
	}}
}

// answered says whether the server itself refused: trying another connection is no use.
func answered(err error) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status)
}

// get reads one object. Found is false when the server says that there is no such object.
func (c *client) get(ctx context.Context, scope snapshot.Scope) (found bool, o snapshot.Object, err error) {
	path := pathOf(scope.Resource, scope.Namespace) + "/" + scope.Name
	err = c.read(ctx, http.MethodGet, path, nil, nil, func(body io.Reader) error {
		data, err := io.ReadAll(body)
		if err != nil {
			return fmt.Errorf("reading %s %s: %w", scope.Resource.Resource, scope.Name, err)
		}
		o, err = object(data, "", "")
		return err
	})
	if absent(err, scope.Name) {
		return false, snapshot.Object{}, nil
	}
	return err == nil, o, err
}

// absent says whether the server knows the resource and has no object of that name.
func absent(err error, name string) bool {
	var status *apierrors.StatusError
	return errors.As(err, &status) && status.ErrStatus.Reason == metav1.StatusReasonNotFound &&
		status.ErrStatus.Details != nil && status.ErrStatus.Details.Name == name
}

// change is one event of a watch.
type change struct {
	Type   string          `json:"type"`
	Object json.RawMessage `json:"object"`
}

// watch follows a collection from a version on until the server or a failure ends it, which
// is nil and an error. Began is called when the server has accepted.
func (c *client) watch(ctx context.Context, t target, version string, length time.Duration, began func(), each func(change) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	query := t.query()
	query.Set("watch", "1")
	query.Set("allowWatchBookmarks", "true")
	query.Set("resourceVersion", version)
	query.Set("timeoutSeconds", strconv.Itoa(int(length.Seconds())))
	if err := c.limit.Wait(ctx); err != nil {
		return err
	}
	late := time.AfterFunc(answerTimeout, cancel)
	response, err := c.do(ctx, http.MethodGet, pathOf(t.scope.Resource, t.scope.Namespace), query, nil)
	if !late.Stop() && err == nil {
		_ = response.Body.Close()
		return context.DeadlineExceeded
	}
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	began()
	decoder := json.NewDecoder(response.Body)
	for {
		var event change
		err := decoder.Decode(&event)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case event.Type == "ERROR":
			var status metav1.Status
			if err := json.Unmarshal(event.Object, &status); err != nil {
				return fmt.Errorf("watching %s: an error that cannot be read: %w", t.scope.Resource.Resource, err)
			}
			return &apierrors.StatusError{ErrStatus: status}
		}
		if err := each(event); err != nil {
			return err
		}
	}
}
