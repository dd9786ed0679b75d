package dashboard

import (
	"net/http"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// storeView is what is in the store, and what came and went in the week.
type storeView struct {
	Stats   api.Stats `json:"stats"`
	Numbers []Chart   `json:"numbers,omitempty"`
}

func (d *dashboard) store(r *http.Request) (*page, error) {
	var v storeView
	if err := d.get(r.Context(), "/stats", nil, &v.Stats); err != nil {
		return nil, err
	}
	if w, ok := d.week(r.Context(), "", "", "stored", "stored_bytes", "purged:*"); ok {
		stored := w.Count("Stored, header and body", "bytes", "stored_bytes")
		stored.Bytes = true
		stored.Value = size(int64(w.Last(24, "stored_bytes")))
		stored.Summary = "In the last 24 hours; " + size(int64(w.Last(frame.WeekHours, "stored_bytes"))) + " in 7 days, drawn in pieces of 6 hours."
		v.Numbers = []Chart{
			w.Count("Events stored", "events", "stored"), stored, w.Count("Bodies purged", "bodies", "purged:bodies"),
			w.Count("Events purged, with their keys", "events", "purged:ids"), w.Count("Attempts purged", "attempts", "purged:attempts"),
		}
	}
	return &page{Title: "Store", Place: "/store", Again: 10, Data: v, Commands: []command{
		{"What was counted", "hookonce history --step hour --what 'stored,stored_bytes,purged:*'"}, {"Look at the server", "hookonce doctor"},
	}}, nil
}
