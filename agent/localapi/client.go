package localapi

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// answerLimit bounds what is read of an answer to the agent itself.
const answerLimit = 8 << 20

// unlimitedKey is in the context of a request that kubelet's limit does not cover.
type unlimitedKey struct{}

// Post sends a JSON object to the API server as the node, and decodes the answer into it. Its
// caller limits how often.
func (s *Server) Post(ctx context.Context, path string, object any) error {
	body, err := json.Marshal(object)
	if err != nil {
		return err
	}
	// Not of what kubelet may ask: whoever calls the node could use it up.
	answer, err := s.Ask(context.WithValue(ctx, unlimitedKey{}, true), http.MethodPost, path, "application/json", body)
	if err != nil {
		return err
	}
	return json.Unmarshal(answer, object)
}

// Ask sends a request to the API server as the node and returns the JSON that it answers.
// A refusal is a *apierrors.StatusError; any other error says that there was no answer.
func (s *Server) Ask(ctx context.Context, method, path, contentType string, body []byte) ([]byte, error) {
	return s.ask(ctx, method, path, contentType, "application/json", body)
}

// Read reads a path as the node, in the form that accept names.
func (s *Server) Read(ctx context.Context, path, accept string) ([]byte, error) {
	return s.ask(ctx, http.MethodGet, path, "", accept, nil)
}

func (s *Server) ask(ctx context.Context, method, path, contentType, accept string, body []byte) ([]byte, error) {
	identity := s.upstream.identity()
	if identity == nil {
		return nil, errors.New("the node's identity is not known")
	}
	address, err := identity.Server.Parse(path)
	if err != nil {
		return nil, err
	}
	request, err := http.NewRequestWithContext(ctx, method, address.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Accept", accept)
	request.Header.Set("User-Agent", "rekindle-agent")
	if contentType != "" {
		request.Header.Set("Content-Type", contentType)
	}
	response, err := s.upstream.send(request, node)
	if err != nil {
		return nil, err
	}
	defer func() { _ = response.Body.Close() }()
	answer, err := io.ReadAll(io.LimitReader(response.Body, answerLimit))
	if err != nil {
		return nil, err
	}
	if response.StatusCode < http.StatusMultipleChoices {
		return answer, nil
	}
	var status metav1.Status
	if json.Unmarshal(answer, &status) != nil || status.Kind != "Status" || response.StatusCode >= http.StatusInternalServerError {
		return nil, fmt.Errorf("%s %s: %s", method, path, response.Status)
	}
	return nil, &apierrors.StatusError{ErrStatus: status}
}
