package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

// What strangers can cause, who have no secret and no genuine request.

// TestBraintreeSignsOnceForAStranger: everybody knows the public key, which is in the answer to a
// challenge, and can repeat it. The payload is signed once, however often.
func TestBraintreeSignsOnceForAStranger(t *testing.T) {
	p := Braintree("pub:priv")
	claiming := func(entries int) *hookonce.Request {
		form := url.Values{"bt_payload": {"QQ=="}, "bt_signature": {strings.TrimSuffix(strings.Repeat("pub|0&", entries), "&")}}
		return &hookonce.Request{Method: "POST", Header: http.Header{"Content-Type": {"application/x-www-form-urlencoded"}}, Body: []byte(form.Encode()), Now: now}
	}
	few, many := claiming(2), claiming(maxBraintreeSignatures)
	one := testing.AllocsPerRun(10, func() { reason(t, p, few) })
	if n := testing.AllocsPerRun(10, func() { reason(t, p, many) }); n > one+10 {
		t.Errorf("%v allocations for 2 entries, %v for %d", one, n, maxBraintreeSignatures)
	}
	if why := reason(t, p, claiming(maxBraintreeSignatures+1)); why.Reason != hookonce.ReasonSignatureMalformed {
		t.Error(why)
	}
}

// TestMadeUpNamesDoNotKeepKeysFromBeingRenewed: for hours strangers name keys that do not exist, more than
// are fetched.
func TestMadeUpNamesDoNotKeepKeysFromBeingRenewed(t *testing.T) {
	fetches := 0
	c := newKeyCache(func(_ context.Context, name string, at time.Time) (int, time.Time, error) {
		if name != "genuine" {
			return 0, at, errors.New("no such key")
		}
		fetches++
		return 7, at.Add(time.Hour + 30*time.Second), nil // when the fetches of the minute are used up
	})
	if _, err := c.get("genuine", now); err != nil {
		t.Fatal(err)
	}
	for second := range 3 * 3600 {
		at := now.Add(time.Duration(second) * time.Second)
		for i := range 3 {
			c.get(fmt.Sprint(second, "-", i), at)
		}
		if key, err := c.get("genuine", at); key != 7 || err != nil {
			t.Fatalf("after %d s: %v", second, err)
		}
	}
	if fetches != 3 {
		t.Errorf("%d fetches in 3 hours", fetches)
	}
}

// TestMadeUpNamesTakeNoSlotOfKnownOnes: nor while they are being fetched.
func TestMadeUpNamesTakeNoSlotOfKnownOnes(t *testing.T) {
	begun, release := make(chan struct{}, fetchAtOnce), make(chan struct{})
	c := newKeyCache(func(_ context.Context, name string, at time.Time) (int, time.Time, error) {
		if name == "genuine" {
			return 7, at.Add(time.Hour), nil
		}
		begun <- struct{}{}
		<-release
		return 0, at, errors.New("no such key")
	})
	if _, err := c.get("genuine", now); err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	for i := range fetchAtOnce {
		all.Go(func() { c.get(fmt.Sprint(i), now) })
	}
	for range fetchAtOnce {
		<-begun
	}
	if _, err := c.get("genuine", now.Add(time.Hour)); err != nil {
		t.Error(err)
	}
	close(release)
	all.Wait()
}

// TestOneCertificateHasOneAddress: it is fetched once, however its address is spelt.
func TestOneCertificateHasOneAddress(t *testing.T) {
	p, n, request := snsWorld(t)
	for address, ok := range map[string]bool{
		snsCert: true,
		"https://SNS.EU-central-1.amazonAWS.com/SimpleNotificationService-1.pem": true,
		"HTTPS://sns.eu-central-1.amazonaws.com/SimpleNotificationService-1.pem": true,
		snsCert + "?": false,
		snsCert + "#": false,
		"https://sns.eu-central-1.amazonaws.com:443/SimpleNotificationService-1.pem": false,
		"https://sns.eu-central-1.amazonaws.com/%53impleNotificationService-1.pem":   false,
		"https://sns.eu-central-1.amazonaws.com//SimpleNotificationService-1.pem":    false,
		"https://sns.eu-central-1.amazonaws.com/./SimpleNotificationService-1.pem":   false,
	} {
		if _, err := p.Open(request("2", map[string]any{"Type": "Notification", "SigningCertURL": address})); (err == nil) != ok {
			t.Errorf("%s: %v", address, err)
		}
	}
	if asked := n.asked.Load(); asked != 1 {
		t.Errorf("%d fetches of one certificate", asked)
	}
	paths := newCertificates(nil, `([a-z0-9-]+\.)+paypal\.com/[A-Za-z0-9/._-]+`, nil)
	for path, ok := range map[string]bool{"/v1/certs/C-1": true, "/v1//certs/C-1": false, "/v1/./certs/C-1": false, "/v1/x/../certs/C-1": false, "/v1/certs/C-1/": false} {
		if place, got := paths.place("https://api.paypal.com" + path); got != ok {
			t.Errorf("%s: %s, %v", path, place, got)
		}
	}
}
