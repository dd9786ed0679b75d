package provider

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestKeyCacheFetchesOneNameOnceAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var fetches atomic.Int64
		release := make(chan struct{})
		c := newKeyCache(func(context.Context, string, time.Time) (int, time.Time, error) {
			fetches.Add(1)
			<-release
			return 7, now.Add(time.Hour), nil
		})
		for range 32 {
			go func() {
				if key, err := c.get("a", now); key != 7 || err != nil {
					t.Errorf("got %v, %v", key, err)
				}
			}()
		}
		synctest.Wait() // all of them wait for the one fetch
		if n := fetches.Load(); n != 1 {
			t.Errorf("%d fetches of one name", n)
		}
		close(release)
		synctest.Wait()
	})
}

func TestKeyCacheForgetsInTime(t *testing.T) {
	fetches, broken := 0, errors.New("broken")
	var fail error
	c := newKeyCache(func(context.Context, string, time.Time) (int, time.Time, error) {
		fetches++
		return fetches, now.Add(time.Hour), fail
	})
	steps := []struct {
		at      time.Duration
		fail    error
		fetches int
	}{
		{0, broken, 1},
		{keepFailure - 1, nil, 1}, // a failure is remembered for a while
		{keepFailure, nil, 2},
		{time.Hour - 1, broken, 2}, // a key is remembered while it lasts
		{time.Hour, broken, 3},
	}
	for _, s := range steps {
		fail = s.fail
		_, err := c.get("a", now.Add(s.at))
		if fetches != s.fetches {
			t.Errorf("after %v: %d fetches, want %d (%v)", s.at, fetches, s.fetches, err)
		}
	}
}

// Strangers can make up any number of names.
func TestKeyCacheBoundsFetches(t *testing.T) {
	fetches := 0
	c := newKeyCache(func(context.Context, string, time.Time) (int, time.Time, error) {
		fetches++
		return 0, now, errors.New("no such key")
	})
	for i := range 10 * fetchPerMin {
		if _, err := c.get(fmt.Sprint(i), now); err == nil {
			t.Fatal("a key out of nowhere")
		}
	}
	if fetches != fetchPerMin {
		t.Errorf("%d fetches in a minute, want %d", fetches, fetchPerMin)
	}
	if _, err := c.get("another", now.Add(time.Minute)); errors.Is(err, errFetchBusy) {
		t.Error("the next minute has no fetches either")
	}
	if n := c.failed.Len(); n > keepNames {
		t.Errorf("%d names are remembered", n)
	}
}

func TestKeyCacheBoundsFetchesAtOnce(t *testing.T) {
	begun, release := make(chan struct{}, fetchAtOnce), make(chan struct{})
	c := newKeyCache(func(context.Context, string, time.Time) (int, time.Time, error) {
		begun <- struct{}{}
		<-release
		return 0, now, nil
	})
	var all sync.WaitGroup
	for i := range fetchAtOnce {
		all.Go(func() { c.get(fmt.Sprint(i), now) })
	}
	for range fetchAtOnce {
		<-begun
	}
	if _, err := c.get("one more", now); !errors.Is(err, errFetchBusy) {
		t.Errorf("got %v, want %v", err, errFetchBusy)
	}
	close(release)
	all.Wait()
}

func TestFetchBodyRefuses(t *testing.T) {
	cases := map[string]struct {
		status int
		body   string
	}{
		"a redirect":       {http.StatusFound, ""},
		"an error":         {http.StatusNotFound, "no"},
		"too long a body":  {http.StatusOK, strings.Repeat("x", fetchSize+1)},
		"an empty success": {http.StatusNoContent, ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			n := &net{serve: func(req *http.Request) (int, string) {
				if req.URL.Host != "api.paypal.com" {
					return http.StatusOK, "led astray"
				}
				return c.status, c.body
			}}
			req, err := http.NewRequest(http.MethodGet, "https://api.paypal.com/cert", nil)
			if err != nil {
				t.Fatal(err)
			}
			if body, err := fetchBody(n.client(), req); err == nil {
				t.Errorf("accepted: %d bytes", len(body))
			}
			if asked := n.asked.Load(); asked != 1 {
				t.Errorf("%d requests", asked)
			}
		})
	}
}
