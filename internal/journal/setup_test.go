package journal_test

import (
	"context"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// open starts a journal and closes it when the test ends.
func open(t testing.TB, store journal.Store, opt journal.Options) *journal.Journal {
	t.Helper()
	j, err := journal.New(store, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := j.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return j
}

// entry returns an entry for the key, with one destination.
func entry(key string) *journal.Entry {
	return &journal.Entry{
		Source: "billing", Key: key, Type: "invoice.paid", Digest: []byte("0123456789abcdef"),
		Header: []byte("Content-Type: application/json\r\n"), Body: []byte(`{"id":"` + key + `"}`),
		Destinations: []string{"app"}, ReceivedAt: time.Now(),
	}
}
