package dashboard

import (
	"net/http"

	"github.com/hookonce/hookonce/internal/api"
)

// payload shows a part of an event. It is no page that can be asked for again: each look is another one.
func (d *dashboard) payload(r *http.Request) (*page, error) {
	if err := r.ParseForm(); err != nil {
		return nil, refusal(http.StatusBadRequest, "this form cannot be read")
	}
	id, look := r.PathValue("id"), api.Look{Part: r.PostForm.Get("part"), Reason: r.PostForm.Get("reason")}
	var p api.Payload
	if err := d.post(r.Context(), "/events/"+segment(id)+"/payload", look, &p); err != nil {
		return nil, err
	}
	return &page{Title: "Payload", Place: "/events", Data: p, Commands: []command{{"Look at it", "hookonce events show " + quoted(id) + " --" + p.Part + " --reason REASON"}}}, nil
}
