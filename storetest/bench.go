package storetest

import (
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
)

// Bench measures a store: a handler in its transaction, a duplicate of it, and a claim with a lease
// that is completed. The database is whatever cfg opens, so the numbers are as durable as that.
func Bench[Tx any](b *testing.B, cfg TxConfig[Tx]) {
	b.Run("within", func(b *testing.B) { benchWithin(b, cfg) })
	b.Run("duplicate", func(b *testing.B) { benchDuplicate(b, cfg) })
	b.Run("lease", func(b *testing.B) { benchLease(b, cfg.Lease()) })
}

// BenchLease measures a store in lease mode: a claim that is completed, and a copy of finished work.
func BenchLease(b *testing.B, cfg Config) {
	b.Run("lease", func(b *testing.B) { benchLease(b, cfg) })
	b.Run("copy", func(b *testing.B) { benchCopy(b, cfg) })
}

func benchWithin[Tx any](b *testing.B, cfg TxConfig[Tx]) {
	s, next := cfg.Open(b).Store(Options{Clock: NewClock().Now}), new(atomic.Int64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := s.Within(b.Context(), request(strconv.FormatInt(next.Add(1), 10)), nothing[Tx])
			if err != nil || c.Verdict != hookonce.Acquired {
				b.Errorf("Within = %#v, %v", c, err)
			}
		}
	})
}

func benchDuplicate[Tx any](b *testing.B, cfg TxConfig[Tx]) {
	s := cfg.Open(b).Store(Options{Clock: NewClock().Now})
	finish(b, s, "evt_1")
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := s.Within(b.Context(), request("evt_1"), nothing[Tx])
			if err != nil || c.Verdict != hookonce.Duplicate {
				b.Errorf("Within = %#v, %v", c, err)
			}
		}
	})
}

func benchLease(b *testing.B, cfg Config) {
	s, next := cfg.Open(b)(Options{Clock: NewClock().Now}), new(atomic.Int64)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := s.Claim(b.Context(), request(strconv.FormatInt(next.Add(1), 10)))
			if err == nil {
				err = s.Complete(b.Context(), c)
			}
			if err != nil {
				b.Error(err)
			}
		}
	})
}

func benchCopy(b *testing.B, cfg Config) {
	s := cfg.Open(b)(Options{Clock: NewClock().Now})
	finish(b, s, "evt_1")
	b.ResetTimer()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			c, err := s.Claim(b.Context(), request("evt_1"))
			if err != nil || c.Verdict != hookonce.Duplicate {
				b.Errorf("Claim = %#v, %v", c, err)
			}
		}
	})
}
