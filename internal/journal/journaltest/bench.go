package journaltest

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Bench measures a store with bodies of 2 KB and random keys: accepting in batches, by one and two
// writers, and taking and finishing what was accepted. It reports rows per second.
func Bench(b *testing.B, open func(b testing.TB) journal.Store) {
	for _, writers := range []int{1, 2} {
		for _, batch := range []int{1, 64, 128, 256} {
			b.Run(fmt.Sprintf("accept/writers=%d/batch=%d", writers, batch), func(b *testing.B) {
				benchAccept(b, open(b), writers, batch)
			})
		}
	}
	b.Run("finish/batch=128", func(b *testing.B) { benchFinish(b, open(b), 128) })
	b.Run("take/batch=128", func(b *testing.B) { benchTake(b, open(b), 128) })
	b.Run("copies/batch=128", func(b *testing.B) { benchCopies(b, open(b), 128) })
}

// benchTo is where the benchmarks deliver to.
var benchTo = []string{"app"}

// benchBatch makes entries with random keys.
func benchBatch(ids *journal.IDs, n int) []*journal.Record {
	body := make([]byte, 2048)
	rand.Read(body)
	digest := sha256.Sum256(body)
	now := time.Now()
	batch := make([]*journal.Record, n)
	for i := range batch {
		var key [12]byte
		rand.Read(key[:])
		batch[i] = &journal.Record{ID: ids.Next(now), Hold: benchTo, Event: &journal.Event{
			Source: "billing", Key: "evt_" + hex.EncodeToString(key[:]), Type: "invoice.paid",
			Digest: digest[:16], Header: []byte("Content-Type: application/json\r\nUser-Agent: Provider/1.0\r\n"), Body: body,
			Destinations: benchTo, ReceivedAt: now,
		}}
	}
	return batch
}

func mustAccept(b *testing.B, s journal.Store, batch []*journal.Record) {
	now := time.Now()
	results, err := s.Accept(b.Context(), batch, now, now.Add(time.Minute))
	if err != nil {
		b.Error(err)
	}
	for _, r := range results {
		if r.Err != nil {
			b.Error(r.Err)
		}
	}
}

func benchAccept(b *testing.B, s journal.Store, writers, batch int) {
	ids := journal.NewIDs(1, 0)
	batches := make(chan []*journal.Record)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for e := range batches {
				mustAccept(b, s, e)
			}
		})
	}
	for b.Loop() {
		batches <- benchBatch(ids, batch)
	}
	close(batches)
	wg.Wait()
	perSecond(b, batch)
}

func perSecond(b *testing.B, batch int) {
	b.ReportMetric(float64(b.N*batch)/b.Elapsed().Seconds(), "rows/s")
}

func benchFinish(b *testing.B, s journal.Store, batch int) {
	ids := journal.NewIDs(1, 0)
	for b.Loop() {
		b.StopTimer()
		entries := benchBatch(ids, batch)
		mustAccept(b, s, entries)
		var outcomes []journal.Outcome
		for _, e := range entries {
			outcomes = append(outcomes, journal.Outcome{Held: journal.Held{EventID: e.ID, Destination: "app", Token: 1},
				State: journal.Done, Status: 204, Started: e.ReceivedAt, Duration: time.Millisecond})
		}
		b.StartTimer()
		applied, err := s.Finish(b.Context(), outcomes)
		if err != nil {
			b.Fatal(err)
		}
		if !applied[0] {
			b.Fatal("the outcome was not applied")
		}
	}
	perSecond(b, batch)
}

func benchTake(b *testing.B, s journal.Store, batch int) {
	ids := journal.NewIDs(1, 0)
	for b.Loop() {
		b.StopTimer()
		entries := benchBatch(ids, batch)
		for _, e := range entries {
			e.Hold = nil
		}
		mustAccept(b, s, entries)
		b.StartTimer()
		work, err := s.Take(b.Context(), time.Now(), time.Now().Add(time.Hour), journal.Wanted{
			Deliveries: batch, Destinations: []journal.Want{{Destination: "app", Deliveries: batch}},
		})
		if err != nil || len(work) != batch {
			b.Fatal(len(work), err)
		}
	}
	perSecond(b, batch)
}

func benchCopies(b *testing.B, s journal.Store, batch int) {
	entries := benchBatch(journal.NewIDs(1, 0), batch)
	mustAccept(b, s, entries)
	for b.Loop() {
		mustAccept(b, s, entries)
	}
	perSecond(b, batch)
}
