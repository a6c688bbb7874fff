package localapi

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// An API server that balances its load asks now and then to be called over a new
// connection. What it has not taken by then is sent again, with its body.
func TestRequestsSurviveAnAPIServerThatSendsItsCallersAway(t *testing.T) {
	upstream, ca := apiServer(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Connection", "close") // GOAWAY in HTTP/2
		echo(w, r)
	})
	k := newKubelet(t, upstream.URL, ca)
	l := startLocal(t, k.source())
	client := l.client(&k.certificate)
	var callers sync.WaitGroup
	for i := range 8 {
		callers.Go(func() {
			for j := range 25 {
				body := fmt.Sprint("body ", i, j)
				request, err := http.NewRequest(http.MethodPut, l.url+"/apis/coordination.k8s.io/v1/namespaces/a/leases/b", strings.NewReader(body))
				if err != nil {
					t.Error(err)
					return
				}
				response, answer := do(t, client, request)
				if response.StatusCode != http.StatusOK || !strings.HasSuffix(answer, body) {
					t.Errorf("%d %s", response.StatusCode, answer)
				}
			}
		})
	}
	callers.Wait()
}
