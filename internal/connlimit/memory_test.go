package connlimit_test

import (
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"
	"testing"

	"github.com/hookonce/hookonce/internal/connlimit"
)

// distinct returns n lines of a header that are as short as distinct ones can be: a parser spends most on those.
func distinct(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%c%c:\n", 'a'+i/26%26, 'a'+i%26)
	}
	return b.String()
}

// What a connection without a complete header costs has a bound, whatever is sent over it.
func TestMemoryOfUnfinishedHeaders(t *testing.T) {
	const (
		connections = 300
		mostEach    = 32 << 10
		mostLarge   = 64 << 10
	)
	for _, c := range []struct {
		name, text string
		most       uint64
		stay       int
	}{
		{"silent", "", mostEach, connections},
		{"half a line", "GET / HT", mostEach, connections},
		{"the most lines", "GET / HTTP/1.1\n" + distinct(198), mostEach, connections},
		{"too many lines", "GET / HTTP/1.1\n" + distinct(675), mostEach, 0},
		{"too many lines after an answer", get + "GET / HTTP/1.1\n" + distinct(675), mostEach, 0},
		{"just not large", "GET / HTTP/1.1\nx:" + strings.Repeat("x", 4_000), mostEach, connections},
		{"one large line", "GET / HTTP/1.1\nx:" + strings.Repeat("x", 36_000), mostLarge, connections},
		{"large lines", "GET / HTTP/1.1\n" + strings.Repeat("x:"+strings.Repeat("x", 175)+"\n", 190), mostLarge, connections},
		{"a large continued line", "GET / HTTP/1.1\nx:" + strings.Repeat("x\n "+strings.Repeat("x", 175), 190), mostLarge, connections},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t, connlimit.Options{Limits: connlimit.Limits{Max: 2 * connections, PerAddress: 2 * connections}, HeaderLines: 200}, nil)
			before := alive()
			var sent sync.WaitGroup
			for range connections {
				in := r.dial("127.0.0.1")
				sent.Go(func() { io.WriteString(in, c.text) })
			}
			sent.Wait()
			r.await("the connections are there, or gone again", func() bool {
				return r.Open() == c.stay && r.of(r.refused, connlimit.ByHeaderLines) == connections-c.stay
			})
			each := uint64(0)
			for range 10 { // the last of it may have been sent and not yet read
				if now := alive(); now > before {
					each = max(each, (now-before)/connections)
				}
			}
			if each > c.most {
				t.Errorf("%d bytes each, more than %d", each, c.most)
			}
			t.Logf("%d bytes each", each)
		})
	}
}

// alive returns how much memory is in use.
func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}
