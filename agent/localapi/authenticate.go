package localapi

import (
	"net/http"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// caller is whose credentials a request goes upstream with.
type caller int

const (
	// node is the node itself, with its client certificate.
	node caller = iota
	// bearer is the holder of the request's own token.
	bearer
)

// authenticate finds out who calls. TLS has proven that the caller holds the key of the
// certificate it shows. If the certificate is not of the known node, reread tells whether
// the node has another one by now.
func authenticate(r *http.Request, info *request.RequestInfo, known, reread func() *Identity) (caller, *apierrors.StatusError) {
	if r.TLS != nil && len(r.TLS.PeerCertificates) > 0 {
		certificate := r.TLS.PeerCertificates[0]
		if known().Is(certificate) || reread().Is(certificate) {
			return node, nil
		}
		return 0, forbidden(info, certificate.Subject.CommonName)
	}
	scheme, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if strings.EqualFold(scheme, "bearer") && strings.TrimSpace(token) != "" || websocketToken(r) {
		return bearer, nil
	}
	return 0, unauthorized()
}

// websocketToken finds the token of browsers, which cannot set headers.
func websocketToken(r *http.Request) bool {
	for _, protocol := range strings.Split(r.Header.Get("Sec-WebSocket-Protocol"), ",") {
		if strings.HasPrefix(strings.TrimSpace(protocol), "base64url.bearer.authorization.k8s.io.") {
			return true
		}
	}
	return false
}

// impersonates says whether a caller wants to be taken for somebody else.
func impersonates(r *http.Request) bool {
	for name := range r.Header {
		if strings.HasPrefix(name, "Impersonate-") {
			return true
		}
	}
	return false
}
