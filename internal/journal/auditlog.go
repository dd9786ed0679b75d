package journal

import (
	"time"
)

// Pause is an operator's decision that nothing is delivered to a destination.
type Pause struct {
	Destination string
	At          time.Time
	By, Reason  string
}

// Audit is a record of what an operator did.
type Audit struct {
	ID         int64
	At         time.Time
	By, Reason string
	Action     Action
	// Filter says to what: a destination, which deliveries were replayed ([Replay.Text]), the fingerprint of alerts, with
	// stars for any, what of which event was looked at, which effect or claim of the library was changed, which source
	// was compared with its sender's list, or which cell was lost.
	Filter string
	// Count is how many deliveries a replay made due, or how many events were recovered; else 0.
	Count int64
}

// Action is what an operator did.
type Action string

// The actions that leave an entry of the audit log.
const (
	ActionReplay Action = "replay"
	ActionPause  Action = "pause"
	ActionResume Action = "resume"

	ActionAcknowledge Action = "acknowledge" // an alert
	ActionSilence     Action = "silence"     // alerts
	ActionUnsilence   Action = "unsilence"
	ActionTest        Action = "test" // whether an address is told

	ActionLook Action = "look" // at the body or the headers of an event

	ActionRedrive  Action = "redrive"   // an effect of the library's outbox
	ActionGiveBack Action = "give_back" // a claim of the library

	ActionReconcile Action = "reconcile" // missing events of a source were stored from the sender's list, or asked for again
	ActionDismiss   Action = "dismiss"   // events that never arrived are not told of any more

	ActionForgetCell Action = "forget_cell" // a cell is lost, and is asked no more
)

// Record returns the audit log of a pause, or of its end.
func (p *Pause) Record(paused bool) Audit {
	a := Audit{At: p.At, By: p.By, Reason: p.Reason, Action: ActionResume, Filter: p.Destination}
	if paused {
		a.Action = ActionPause
	}
	return a
}

// Record returns the audit log with which a replay begins.
func (r *Replay) Record() Audit {
	return Audit{At: r.Start, By: r.By, Reason: r.Reason, Action: ActionReplay, Filter: r.Text()}
}

// Continues reports whether the record is that of this replay, which goes on.
func (a *Audit) Continues(r *Replay) bool {
	return a.Action == ActionReplay && a.By == r.By && a.Filter == r.Text()
}
