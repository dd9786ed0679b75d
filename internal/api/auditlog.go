package api

import (
	"context"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
)

// Audit is a record of what an operator did.
type Audit struct {
	ID     string    `json:"id"`
	At     time.Time `json:"at"`
	By     string    `json:"by" doc:"Name of the token, or local."`
	Reason string    `json:"reason"`
	Action string    `json:"action" enum:"replay,pause,resume,look,acknowledge,silence,unsilence,test,redrive,give_back,reconcile,dismiss,forget_cell"`
	What   string    `json:"what" doc:"The destination, the filter of the replay as JSON, the event, the alert, the channel, the effect or claim of the library, or the source, with what never arrived there."`
	Count  int64     `json:"count" doc:"How many deliveries a replay made due, or how many events were recovered or dismissed."`
}

// AuditList is a part of the audit log.
type AuditList struct {
	Audit  []Audit `json:"audit" nullable:"false"`
	Cursor string  `json:"cursor,omitempty" doc:"Pass it to get the next page. Missing: this is the last."`
}

type auditInput struct {
	Limit  int    `query:"limit" minimum:"1" maximum:"200" default:"50"`
	Cursor string `query:"cursor" maxLength:"64" doc:"That of the page before."`
}

func (a *api) audit(ctx context.Context, in *auditInput) (*answer[AuditList], error) {
	from, err := decode(in.Cursor, "audit", "query.cursor")
	if err != nil {
		return nil, err
	}
	var audits []journal.Audit
	err = a.ask(ctx, readTime, func(ctx context.Context) (err error) {
		audits, err = a.opt.Records.Audits(ctx, from.at, in.Limit+1)
		return err
	})
	if err != nil {
		return nil, err
	}
	out := &answer[AuditList]{AuditList{Audit: []Audit{}}}
	if len(audits) > in.Limit {
		audits = audits[:in.Limit]
		out.Body.Cursor = cursor{at: audits[in.Limit-1].ID}.encode("audit")
	}
	for _, r := range audits {
		out.Body.Audit = append(out.Body.Audit, Audit{journal.IDText(r.ID), r.At.UTC(), r.By, r.Reason, string(r.Action), r.Filter, r.Count})
	}
	return out, nil
}
