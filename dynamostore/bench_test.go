package dynamostore_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/hookonce/hookonce"
)

// BenchmarkClaim shows that nothing on the way to the stand-in takes long. It says nothing about the service.
func BenchmarkClaim(b *testing.B) {
	db := fake(b).open(b)
	s := db.store(&network{})
	var n atomic.Int64
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			c, err := s.Claim(b.Context(), request(fmt.Sprint("evt_", n.Add(1))))
			if err != nil || c.Verdict != hookonce.Acquired {
				b.Fatalf("%v: %v", c.Verdict, err)
			}
		}
	})
}
