package gateway

import (
	"testing"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/connlimit"
)

// TestMemoryBound: what the process may take follows the bounds, also when they are changed while it runs.
func TestMemoryBound(t *testing.T) {
	cfg := configured(sqliteStore(t), "http://127.0.0.1:9")
	next := configured(cfg.Store, "http://127.0.0.1:9")
	next.Listen, next.Admin = cfg.Listen, cfg.Admin
	next.Sources[0].MaxBody = 100 << 20
	var told []int64
	g, err := Start(t.Context(), cfg, Options{
		Load:   func() (*config.Config, error) { return next, nil },
		Memory: func(bytes int64) { told = append(told, bytes) },
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closeNow(t, g) })
	if _, err := g.Reload(t.Context(), "test"); err != nil {
		t.Fatal(err)
	}
	w, err := wire(cfg, nil)
	if err != nil {
		t.Fatal(err)
	}
	limits, admin := connectionLimits(&w.plan, descriptors())
	want := int64(128<<20+128<<20+64<<20+128<<20) + connectionBytes(limits, admin)
	larger := int64(2*2*(100<<20+1) - 128<<20) // the room for bodies, of a single source
	if len(told) != 2 || told[0] != want || told[1] != want+larger {
		t.Errorf("told %d, want %d and then %d more", told, want, larger)
	}
}

func connectionBytes(limits, admin connlimit.Limits) int64 {
	return int64(limits.Max+admin.Max)*32<<10 + 512*32<<10
}
