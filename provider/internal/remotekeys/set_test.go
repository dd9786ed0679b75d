package remotekeys

import (
	"crypto/ecdsa"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// keyServer serves a JSON Web Key Set with those ids.
type keyServer struct {
	ids    []string
	status int
	asked  atomic.Int64
}

func (s *keyServer) RoundTrip(req *http.Request) (*http.Response, error) {
	s.asked.Add(1)
	if req.URL.String() != "https://issuer.example/keys" {
		return nil, errors.New("another address is asked")
	}
	var keys []string
	for _, id := range s.ids { // the point is that of RFC 7515, A.3
		keys = append(keys, fmt.Sprintf(`{"kty":"EC","crv":"P-256","kid":%q,"x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}`, id))
	}
	body := io.NopCloser(strings.NewReader(`{"keys":[` + strings.Join(keys, ",") + `]}`))
	return &http.Response{StatusCode: s.status, Body: body, Request: req}, nil
}

func newKeyServer(ids ...string) (*keyServer, *Set) {
	s := &keyServer{ids: ids, status: http.StatusOK}
	return s, NewSet(NewClient(s), "https://issuer.example/keys")
}

// TestASetIsFetchedOnce: for all its keys, however many ask at once.
func TestASetIsFetchedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, set := newKeyServer("a", "b")
		var all sync.WaitGroup
		for i := range 32 {
			all.Go(func() {
				key, err := set.Key([]string{"a", "b"}[i%2], from(now))
				if _, is := key.(*ecdsa.PublicKey); !is || err != nil {
					t.Errorf("%v, %v", key, err)
				}
			})
		}
		all.Wait()
		if n := s.asked.Load(); n != 1 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestMadeUpKeysFetchOnceAMinute: whatever strangers make up, and however many of them at once.
func TestMadeUpKeysFetchOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, set := newKeyServer("a")
		ask := func(at time.Time) {
			var all sync.WaitGroup
			for i := range 500 {
				all.Go(func() {
					if key, err := set.Key(fmt.Sprint("made-up-", i), from(at)); err == nil {
						t.Errorf("there is %v", key)
					}
				})
			}
			all.Wait()
		}
		for minute, want := range []int64{1, 2, 3} {
			ask(now.Add(time.Duration(minute) * keepFailure))
			ask(now.Add(time.Duration(minute)*keepFailure + keepFailure - time.Second))
			if n := s.asked.Load(); n != want {
				t.Errorf("after %d minutes %d fetches, want %d", minute, n, want)
			}
			if _, err := set.Key("a", from(now.Add(time.Duration(minute)*keepFailure))); err != nil {
				t.Error("the genuine key is gone:", err)
			}
		}
		if n := s.asked.Load(); n != 3 {
			t.Errorf("%d fetches", n)
		}
	})
}

// TestANewKeyIsFound: as soon as a minute has passed since the last fetch, and without waiting for the hour.
func TestANewKeyIsFound(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, set := newKeyServer("a")
		if _, err := set.Key("a", from(now)); err != nil {
			t.Fatal(err)
		}
		s.ids = []string{"b"}
		if _, err := set.Key("b", from(now.Add(keepFailure-time.Second))); err == nil {
			t.Error("it was fetched too soon")
		}
		if _, err := set.Key("b", from(now.Add(keepFailure))); err != nil {
			t.Error(err)
		}
		if _, err := set.Key("a", from(now.Add(keepFailure))); err == nil {
			t.Error("a key that was withdrawn is used")
		}
	})
}

// TestASetOutlivesItsServer: for a day after the hour, and one question a minute at most meanwhile.
func TestASetOutlivesItsServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, set := newKeyServer("a")
		if _, err := set.Key("a", from(now)); err != nil {
			t.Fatal(err)
		}
		s.status = http.StatusInternalServerError
		late := now.Add(keepSet + keepStale - time.Second)
		for range 3 {
			if _, err := set.Key("a", from(late)); err != nil {
				t.Error(err)
			}
			if _, err := set.Key("made-up", from(late)); err == nil {
				t.Error("a key that nobody has")
			}
			synctest.Wait()
		}
		if n := s.asked.Load(); n != 2 {
			t.Errorf("%d fetches", n)
		}
		if _, err := set.Key("a", from(late.Add(time.Second))); err == nil {
			t.Error("a key is used for ever")
		}
	})
}
