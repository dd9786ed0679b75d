package api

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// patientWriter notes the deadlines of a connection.
type patientWriter struct {
	*httptest.ResponseRecorder
	read, write time.Time
}

func (w *patientWriter) SetReadDeadline(at time.Time) error  { w.read = at; return nil }
func (w *patientWriter) SetWriteDeadline(at time.Time) error { w.write = at; return nil }

// comparing returns what answers a request to compare, by a comparison that does this.
func comparing(compare func(ctx context.Context) (json.RawMessage, error)) func() *patientWriter {
	h := New(Options{
		Sources: func() []Source { return []Source{{Name: "billing"}} },
		Compare: func(ctx context.Context, _, _ string, _ Comparison) (json.RawMessage, error) { return compare(ctx) },
	})
	return func() *patientWriter {
		w := &patientWriter{ResponseRecorder: httptest.NewRecorder(), read: time.Now()}
		r := httptest.NewRequest(http.MethodPost, Base+"/sources/billing/reconcile", strings.NewReader(`{"since": "1999-12-31T12:00:00Z"}`))
		r.Header.Set("Content-Type", "application/json")
		h.ServeHTTP(w, r)
		return w
	}
}

// A comparison may take longer than the listener gives other requests, half an hour at most; so many run at once.
func TestCompareTakesLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asks := comparing(func(ctx context.Context) (json.RawMessage, error) {
			<-ctx.Done()
			return json.RawMessage(`{"missing":3}`), context.Cause(ctx)
		})
		began := time.Now()
		done := make(chan *patientWriter, maxCompared)
		for range maxCompared {
			go func() { done <- asks() }()
		}
		synctest.Wait()
		if w := asks(); w.Code != http.StatusServiceUnavailable || w.Header().Get("Retry-After") == "" {
			t.Errorf("one too many is answered %d %s", w.Code, w.Body)
		}
		for range maxCompared {
			w := <-done
			if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"missing":3`) || !strings.Contains(w.Body.String(), "longer than 30m") {
				t.Errorf("it is answered %d %s", w.Code, w.Body)
			}
			if took := time.Since(began); took != compareTime {
				t.Errorf("it took %s", took)
			}
			if !w.read.IsZero() || w.write.Before(time.Now()) {
				t.Errorf("the connection is cut off while reading at %v, while writing at %v", w.read, w.write)
			}
		}
	})
}

// Why nothing was asked is told as whose fault it is.
func TestCompareRefuses(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err    error
		status int
		says   string
	}{
		"wrong question": {&Refused{Detail: "no API is known", Invalid: true}, http.StatusUnprocessableEntity, "no API is known"},
		"busy":           {&Refused{Detail: "it is being compared"}, http.StatusConflict, "it is being compared"},
		"the store":      {errors.New("disk of the bank"), http.StatusServiceUnavailable, "the log says more"},
	} {
		w := comparing(func(context.Context) (json.RawMessage, error) { return nil, c.err })()
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) || strings.Contains(w.Body.String(), "bank") {
			t.Errorf("%s: answered %d %s", name, w.Code, w.Body)
		}
	}
}
