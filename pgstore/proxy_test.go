package pgstore_test

import (
	"net/url"
	"testing"

	"github.com/hookonce/hookonce/internal/conformance/testdb"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
)

// newProxy starts a proxy and returns it with the connection string that leads through it.
func newProxy(t testing.TB, dsn string) (*cutproxy.Proxy, string) {
	t.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	p := cutproxy.New(t, u.Host, testdb.Messages)
	u.Host = p.Addr()
	return p, u.String()
}
