package deliver_test

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/deliver"
	"github.com/hookonce/hookonce/internal/header"
	"github.com/hookonce/hookonce/internal/journal"
)

// pen signs with a word about what it was asked, unless it cannot.
type pen struct{ err error }

func (p pen) Sign(r *hookonce.Request, vouched int16) error {
	if p.err != nil {
		return p.err
	}
	r.Header["X-Provider-Signature"] = []string{fmt.Sprintf("%s in place of %s, vouched for by %d, at %s", r.Method, r.Header.Get("X-Provider-Signature"), vouched, r.URL)}
	r.Body = append(bytes.Clone(r.Body), " anew"...)
	r.URL += "?token=fake"
	return nil
}

func (pen) Carries(name string) bool { return name == "X-Provider-Signature" }

// arrived is a request as the destination got it.
type arrived struct {
	*http.Request
	body string
	size int64
}

// deliverOne has an event of the source billing delivered, for which 7 vouched, and returns what arrived.
func deliverOne(t *testing.T, d deliver.Destination, log io.Writer) arrived {
	t.Helper()
	got := make(chan arrived, 1)
	r := newRig(t, d, func(o *options) {
		o.Logger = slog.New(slog.NewTextHandler(log, nil))
		o.transport = transport(func(r *http.Request) (*http.Response, error) {
			body, err := io.ReadAll(r.Body)
			again, _ := r.GetBody()
			if copied, _ := io.ReadAll(again); err != nil || !bytes.Equal(copied, body) {
				t.Errorf("sent again it is %q, and was %q", copied, body)
			}
			got <- arrived{r, string(body), r.ContentLength}
			return status(204), nil
		})
	})
	e := entry("evt_1")
	e.Vouched = 7
	r.accept(t, e)
	if o := r.attempts(t, 1)[0]; o.State != journal.Done {
		t.Errorf("it came to %+v", o)
	}
	return <-got
}

// What the signer makes is what arrives, also where the headers that are passed on are chosen, and the gateway's own
// signature is over that.
func TestProviderSignsAnew(t *testing.T) {
	const secret = "a fake secret of the destination"
	for name, d := range map[string]deliver.Destination{
		"all headers":   {},
		"no headers":    {PassHeader: []string{"X-Other"}},
		"signed by us":  {Secrets: []string{secret}},
		"with a user":   {URL: "http://user:fake-password@app.internal/hooks"},
		"other sources": {Signers: map[string]deliver.Signer{"orders": pen{}}},
	} {
		t.Run(name, func(t *testing.T) {
			if d.URL == "" {
				d.URL = "http://app.internal/hooks"
			}
			ours := d.Signers == nil
			if ours {
				d.Signers = map[string]deliver.Signer{"billing": pen{}}
			}
			r := deliverOne(t, d, io.Discard)
			if !ours {
				if r.Header.Get("X-Provider-Signature") != "t=1,v1=ab" || r.body != `{"id":"evt_1"}` || r.URL.String() != d.URL {
					t.Errorf("%s %v %q", r.URL, r.Header, r.body)
				}
				return
			}
			if s := r.Header.Get("X-Provider-Signature"); s != "POST in place of t=1,v1=ab, vouched for by 7, at http://app.internal/hooks" {
				t.Errorf("signed %q", s)
			}
			if r.body != `{"id":"evt_1"} anew` || r.size != int64(len(r.body)) || r.URL.String() != "http://app.internal/hooks?token=fake" {
				t.Errorf("%d bytes, %q, to %s", r.size, r.body, r.URL)
			}
			if len(d.Secrets) == 0 {
				return
			}
			id, at := r.Header.Get(header.WebhookID), r.Header.Get(header.WebhookTimestamp)
			if want := outgoingSignature(t, secret, id, at, r.body); r.Header.Get(header.WebhookSignature) != want {
				t.Errorf("the gateway's own signature is %q, want %q", r.Header.Get(header.WebhookSignature), want)
			}
		})
	}
}

// What cannot be signed is delivered as it came, and the log says so.
func TestProviderCannotSignAnew(t *testing.T) {
	var log bytes.Buffer
	d := deliver.Destination{URL: "http://app.internal/hooks", Signers: map[string]deliver.Signer{"billing": pen{errors.New("no identifier")}}}
	r := deliverOne(t, d, &log)
	if r.Header.Get("X-Provider-Signature") != "t=1,v1=ab" || r.body != `{"id":"evt_1"}` || r.URL.String() != d.URL {
		t.Errorf("%s %v %q", r.URL, r.Header, r.body)
	}
	if text := log.String(); !strings.Contains(text, "could not be made anew") || !strings.Contains(text, "no identifier") {
		t.Errorf("logged %s", text)
	}
}

// outgoingSignature is that of Standard Webhooks over a message.
func outgoingSignature(t *testing.T, secret, id, timestamp, body string) string {
	t.Helper()
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(id + "." + timestamp + "." + body))
	return "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
