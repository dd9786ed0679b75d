package hammer

import (
	"bytes"
	"context"
	"database/sql"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/cmd/hookonce/internal/signer"
	"github.com/hookonce/hookonce/memstore"
	"github.com/hookonce/hookonce/provider"
)

const fakeSecret = "whsec_bm90IGEgcmVhbCBzZWNyZXQ="

// The effect may come after the answer; the second one may come after the first.
func TestHammerWaitsForTheEffect(t *testing.T) {
	for times, want := range map[int]Result{1: Once, 2: Doubled} {
		t.Run(string(want), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "shop with spaces.db")
			db, err := sql.Open("sqlite", "file:"+strings.ReplaceAll(path, " ", "%20")+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(wal)")
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec("CREATE TABLE payments (event TEXT NOT NULL)"); err != nil {
				t.Fatal(err)
			}
			var later sync.WaitGroup
			answered := make(chan struct{})
			endpoint := httptest.NewServer(hookonce.Webhook(memstore.New(), "standard", provider.Standard(fakeSecret), func(_ context.Context, _ *memstore.Tx, ev *hookonce.Event) error {
				later.Go(func() {
					<-answered
					for i := range times {
						if i > 0 { // long enough to be seen as one effect, far less than the time to settle
							<-time.After(2 * pollEvery)
						}
						if _, err := db.Exec("INSERT INTO payments VALUES (?)", ev.Key); err != nil {
							t.Error(err)
						}
					}
				})
				return nil
			}, hookonce.WithLogger(slog.New(slog.DiscardHandler))))
			defer endpoint.Close()
			url := endpoint.URL
			from := &signer.Signer{Provider: provider.Standard(fakeSecret), URL: url}
			event, err := from.Sign("evt_1", time.Now(), time.Now())
			if err != nil {
				t.Fatal(err)
			}
			key, err := from.Key(event)
			if err != nil {
				t.Fatal(err)
			}
			e, err := OpenEffect(t.Context(), "sqlite:"+path, "SELECT count(*) FROM payments WHERE event = '{{key}}'")
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			req, err := http.NewRequest(http.MethodPost, url, bytes.NewReader(event.Body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header = event.Header
			res, err := http.DefaultClient.Do(req)
			if err != nil || res.StatusCode != http.StatusOK {
				t.Fatal(res, err)
			}
			res.Body.Close()
			close(answered)
			n, err := e.await(t.Context(), key, 0, 10*time.Second, 40*pollEvery)
			later.Wait()
			r := &Round{Answers: map[int]int{200: 1}, Effects: &n}
			if err != nil || r.judge() != want {
				t.Errorf("%d effects, %v: judged %q", n, err, r.judge())
			}
		})
	}
}
