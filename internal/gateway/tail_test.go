package gateway

import (
	"bufio"
	"net/http"
	"strings"
	"testing"
)

// A tail tells what another gateway accepts, and ends with its own gateway, which it does not hold up.
func TestTailOfTwoGateways(t *testing.T) {
	t.Parallel()
	sink := newSink(t)
	cfg := configured(postgresStore(t), sink.URL)
	accepting, asked := start(t, cfg), start(t, cfg)
	c := client(t)
	res, err := c.Get("http://" + asked.AdminAddr().String() + "/api/v1/tail?since=2026-01-01T00:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	lines := bufio.NewScanner(res.Body)
	insist(t, c, accepting, cfg.Sources[0], event("evt_1"))
	for lines.Scan() && !strings.Contains(lines.Text(), `"key":"evt_1"`) {
	}
	if res.StatusCode != http.StatusOK || lines.Err() != nil || !strings.Contains(lines.Text(), `"source":"orders"`) {
		t.Fatalf("%d %q %v", res.StatusCode, lines.Text(), lines.Err())
	}
	closeNow(t, asked)
	for lines.Scan() {
	}
}
