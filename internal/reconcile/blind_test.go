package reconcile_test

import (
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// A provider without a secret finds in a list what the one with its secret finds, and lets no request in: not even one that is signed.
func TestListedWithoutSecret(t *testing.T) {
	for name, s := range standIns {
		known, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		blind, err := spec.NewListed(known)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		own, err := provider.Build(name, spec.Settings{Secrets: spec.Secrets(s.secret), URL: s.url})
		if err != nil {
			t.Fatal(err)
		}
		for _, body := range s.bodies {
			header := http.Header{"Content-Type": {"application/json"}, "X-Github-Delivery": {"guid"}, "Idempotency-Key": {"key"}, "X-Gitlab-Event": {"Push Hook"}, "X-Github-Event": {"push"}}
			got, err := blind.Listed(header, []byte(body), time.Now())
			want, err2 := own.Listed(header, []byte(body), time.Now())
			if err != nil || err2 != nil || len(got) == 0 || !reflect.DeepEqual(got, want) {
				t.Errorf("%s: it finds %+v, %v, and with a secret %+v, %v", name, got, err, want, err2)
			}
			signed := &hookonce.Request{Method: http.MethodPost, URL: s.url, Now: time.Now(), Header: header, Body: []byte(body)}
			if err := own.Sign(signed); err != nil {
				continue // what senders alone can sign
			}
			if v, err := blind.Open(signed); err == nil {
				t.Errorf("%s: it lets a request in: %+v", name, v)
			}
		}
		if err := blind.Sign(&hookonce.Request{Method: http.MethodPost, Now: time.Now(), Body: []byte("{}")}); err == nil {
			t.Errorf("%s: it signs", name)
		}
	}
	if _, err := spec.NewListed(spec.Spec{Name: "none"}); err == nil {
		t.Error("a sender without a list has one")
	}
}
