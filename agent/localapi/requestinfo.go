package localapi

import (
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	metascheme "k8s.io/apimachinery/pkg/apis/meta/internalversion/scheme"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apiserver/pkg/endpoints/request"
)

// infoOf is what a request is about. Options that cannot be read are left out: the factory
// would write them to the log, as many and as long as a caller likes, and whoever answers
// refuses them anyway.
func (s *Server) infoOf(r *http.Request) (*request.RequestInfo, error) {
	if r.URL.RawQuery != "" {
		query := r.URL.Query()
		var options internalversion.ListOptions
		if metascheme.ParameterCodec.DecodeParameters(query, metav1.SchemeGroupVersion, &options) != nil {
			bare := *r
			bare.URL = &url.URL{Path: r.URL.Path}
			if watch, ok := query["watch"]; ok {
				bare.URL.RawQuery = url.Values{"watch": watch[:1]}.Encode()
			}
			r = &bare
		}
	}
	return s.requests.NewRequestInfo(r)
}
