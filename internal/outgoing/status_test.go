package outgoing

import (
	"net/http"
	"testing"
)

func TestRemark(t *testing.T) {
	for _, c := range []struct {
		status   int
		location string
		want     string
	}{
		{200, "", ""}, {201, "/made", ""}, {400, "", ""}, {503, "", ""},
		{300, "", "several addresses to choose from, of which none is chosen; answer 2xx"},
		{301, "/", "redirects are not followed"}, {302, "/", "redirects are not followed"}, {303, "/", "redirects are not followed"},
		{307, "/", "redirects are not followed"}, {308, "/", "redirects are not followed"},
		{302, "", "a redirect that does not say where to"},
		{304, "", "not modified, which answers a condition; the request made none, so answer 2xx"},
		{304, "/", "not modified, which answers a condition; the request made none, so answer 2xx"},
		{305, "/", "no success, and no redirect either; answer 2xx"}, {306, "", "no success, and no redirect either; answer 2xx"}, {399, "/", "no success, and no redirect either; answer 2xx"},
	} {
		answer := &http.Response{StatusCode: c.status, Header: http.Header{}}
		if c.location != "" {
			answer.Header.Set("Location", c.location)
		}
		if got := Remark(answer); got != c.want {
			t.Errorf("%d to %q: %q, want %q", c.status, c.location, got, c.want)
		}
	}
}
