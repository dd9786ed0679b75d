package gateway

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/testskip"
)

// A delivery that leads back to its own gateway, here by a proxy, is not acknowledged as a copy of its event: it would count as
// done, and nobody would have it. Through the other gateway on the store it is known as well.
func TestDestinationLeadsBack(t *testing.T) {
	testskip.Long(t)
	onEveryStore(t, func(t *testing.T, store config.Store) {
		var to string // where the proxy leads
		seen := newBoard()
		answers := map[string]int{}
		transport := &http.Transport{}
		proxy := httptest.NewServer(&httputil.ReverseProxy{
			Transport: transport,
			Rewrite: func(r *httputil.ProxyRequest) {
				r.Out.URL.Scheme, r.Out.URL.Host = "http", to
			},
			ModifyResponse: func(res *http.Response) error {
				body, err := io.ReadAll(res.Body)
				res.Body = io.NopCloser(strings.NewReader(string(body)))
				what := res.Header.Get("Hookonce-Status")
				if strings.Contains(string(body), `"loop"`) && res.StatusCode == http.StatusServiceUnavailable {
					what = "loop"
				}
				seen.mu.Lock()
				answers[what]++
				seen.changed()
				seen.mu.Unlock()
				return err
			},
		})
		t.Cleanup(func() { proxy.Close(); transport.CloseIdleConnections() })
		cfg := configured(store, proxy.URL+"/in/orders")
		own := start(t, cfg)
		to = own.Addr().String()
		if store.Driver == config.Postgres {
			to = start(t, cfg).Addr().String()
		}
		r, err := post(t, client(t), own, cfg.Sources[0], event("a"))
		if err != nil || r.status != http.StatusOK {
			t.Fatalf("%+v, %v", r, err)
		}
		seen.await(t, "two deliveries that lead back", func() bool {
			if len(answers) > 1 {
				t.Errorf("deliveries that came back were answered %v", answers)
			}
			return answers["loop"] >= 2 || t.Failed()
		})
	})
}
