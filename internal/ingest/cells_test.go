package ingest_test

import (
	"context"
	"net/http"
	"testing"

	"github.com/hookonce/hookonce/internal/cells"
	"github.com/hookonce/hookonce/internal/ingest"
)

// An owner that takes for a handshake what is an event elsewhere does not acknowledge it: nothing is stored.
func TestHandshakesAreNotHandedOn(t *testing.T) {
	g := newGate(t, func(o *ingest.Options) { o.Cells = new(cells.Cells) })
	body := `{"challenge":"x"}`
	o := g.Handed(context.Background(), &cells.Hop{From: "a", To: "b", Map: "1 x", Part: "1 0123"}, &cells.Request{
		Source: "billing", Method: "POST", Host: "h", Target: "/in/billing", Address: "1.2.3.4", Header: http.Header{signatureHeader: {sign(body)}}, Body: []byte(body),
	})
	if o.Answer != nil {
		t.Errorf("one event is meant, nothing is stored, and it is answered %d, counts %q", o.Answer.Status, o.Answer.Counts)
	}
}
