package answer

import (
	"compress/gzip"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compressFrom is the size in bytes from which answers are compressed, the API server's.
const compressFrom = 128 << 10

// respond writes a JSON answer.
func respond(w http.ResponseWriter, r *http.Request, code int, body []byte) {
	header := w.Header()
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	header.Set("Cache-Control", "no-cache, private")
	header.Add("Vary", "Accept-Encoding")
	if len(body) < compressFrom || !acceptsGzip(r) {
		header.Set("Content-Length", strconv.Itoa(len(body)))
		w.WriteHeader(code)
		_, _ = w.Write(body) // the caller has gone if this fails
		return
	}
	header.Set("Content-Encoding", "gzip")
	w.WriteHeader(code)
	// Across the loopback speed is all.
	compressed, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
	_, _ = compressed.Write(body)
	_ = compressed.Close()
}

func acceptsGzip(r *http.Request) bool {
	for _, part := range strings.Split(r.Header.Get("Accept-Encoding"), ",") {
		name, params, _ := strings.Cut(strings.TrimSpace(part), ";")
		if name == "gzip" && strings.ReplaceAll(params, " ", "") != "q=0" {
			return true
		}
	}
	return false
}

// fail answers with an error.
func fail(w http.ResponseWriter, r *http.Request, err error) {
	var status *apierrors.StatusError
	if !errors.As(err, &status) {
		status = apierrors.NewInternalError(err)
	}
	body, err := json.Marshal(withType(status.Status()))
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	respond(w, r, int(status.Status().Code), append(body, '\n'))
}

func withType(status metav1.Status) metav1.Status {
	status.TypeMeta = metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}
	return status
}
