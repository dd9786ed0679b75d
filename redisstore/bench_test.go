package redisstore_test

import (
	"testing"

	"github.com/hookonce/hookonce/internal/testserver/redistest"
	"github.com/hookonce/hookonce/storetest"
)

// BenchmarkStore measures a server under each policy of writing to its disk.
func BenchmarkStore(b *testing.B) {
	for name, policy := range map[string]string{"memory": "", "everysec": "everysec", "always": "always"} {
		b.Run(name, func(b *testing.B) {
			b.SetParallelism(8)
			storetest.BenchLease(b, suite(redistest.Start(b, redistest.Options{AOF: policy}).Addr()))
		})
	}
}
