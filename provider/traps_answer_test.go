package provider

import (
	"testing"
	"time"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestOnlyTheDocumentedStatus: some senders send again what is answered with another success.
func TestOnlyTheDocumentedStatus(t *testing.T) {
	for _, name := range []string{"coinbase-commerce", "lemon-squeezy", "mailgun", "paddle", "postmark", "quickbooks", "xero"} {
		if ok := fake(t, name).Profile().Acknowledgement; ok.Status != 200 || len(ok.Body) > 0 {
			t.Errorf("%s: %+v", name, ok)
		}
	}
}

// TestRejectionsCostNoSubscription: a secret that was changed on one side only is answered with a status
// after which the sender comes again; and whatever is our own fault with one that all of them retry.
func TestRejectionsCostNoSubscription(t *testing.T) {
	mild := map[string]int{
		"gitlab":    503, // older versions disable the webhook for good after four of the 400s
		"pagerduty": 429, // any other of the 400s drops the event
		"sanity":    429,
		"discord":   401, // which is what its probes want
		"xero":      401,
	}
	every(t, func(t *testing.T, s spec.Spec, p *spec.Provider) {
		rejected, notReady := p.Profile().Rejected, p.Profile().NotReady
		if want, ok := mild[s.Name]; ok && rejected != want {
			t.Errorf("rejects with %d, want %d", rejected, want)
		}
		if rejected == 403 || rejected == 404 || rejected == 406 || rejected == 410 || notReady != 503 {
			t.Errorf("%d and %d end the retries, or the webhook, of some senders", rejected, notReady)
		}
	})
}

// TestAMemoryOfMinutesIsShort: a cache of five minutes lets through every retry that comes later.
// The configuration refuses to forget keys sooner than Keep says.
func TestAMemoryOfMinutesIsShort(t *testing.T) {
	longer := 0
	every(t, func(_ *testing.T, s spec.Spec, _ *spec.Provider) {
		if s.Limits.Keep() > 5*time.Minute {
			longer++
		}
	})
	if longer < 30 {
		t.Errorf("keys of %d senders only must be kept for longer: their windows are gone", longer)
	}
}
