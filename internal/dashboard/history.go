package dashboard

import (
	"context"
	"net/url"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

// week asks what was counted of a source or a destination, or of all, in the week before. It reports false if that cannot be told.
func (d *dashboard) week(ctx context.Context, source, destination string, words ...string) (w frame.Week, ok bool) {
	w = frame.NewWeek(d.opt.Now())
	query := url.Values{"step": {"hour"}, "from": {w.From.Format(time.RFC3339)}, "until": {w.Until().Format(time.RFC3339)}, "what": {strings.Join(words, ",")}}
	for name, text := range map[string]string{"source": source, "destination": destination} {
		if text != "" {
			query.Set(name, text)
		}
	}
	if source == "" && destination == "" {
		query.Set("total", "true")
	}
	var history api.History
	if err := d.get(ctx, "/history", query, &history); err != nil {
		return w, false
	}
	for _, s := range history.Series {
		for _, p := range s.Points {
			w.Add(s.What, p.At, p.N)
		}
	}
	return w, true
}
