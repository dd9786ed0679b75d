package deliver

import (
	"net/http"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/retry"
)

// judge makes o what the answer's status says, and says what it shows.
func (d *Deliverer) judge(o *journal.Outcome, dest *destination, w *journal.Work, answer *http.Response) retry.Verdict {
	o.Status = answer.StatusCode
	return d.conclude(o, dest, w, retry.Judge(answer, dest.permanent, o.Started.Add(o.Duration)))
}

// unanswered makes o the outcome of an attempt that got no answer, or not all of one that is wanted whole.
func (d *Deliverer) unanswered(o *journal.Outcome, dest *destination, w *journal.Work, err error) retry.Verdict {
	if d.attempts.Err() != nil { // cancelled by us: nobody is to blame
		o.State, o.Due = journal.Pending, o.Started.Add(o.Duration)
		return retry.Verdict{Result: retry.Uncounted}
	}
	return d.conclude(o, dest, w, retry.JudgeError(err, dest.timeout))
}

// conclude makes o what the verdict says. A failure is due again as the schedule says, but not before the
// destination asked for, or dead when no attempt is left or the next would come after the time to give up. One
// that itself began after that time, redriven or after a long wait, has its whole schedule.
func (d *Deliverer) conclude(o *journal.Outcome, dest *destination, w *journal.Work, v retry.Verdict) retry.Verdict {
	o.Error = v.Reason
	ended := o.Started.Add(o.Duration)
	switch v.Result {
	case retry.Done:
		o.State = journal.Done
		return v
	case retry.Dead:
		o.State = journal.Dead
		return v
	case retry.Uncounted:
		o.State, o.Error, o.Due = journal.Pending, "", ended.Add(v.After)
		d.opt.Logger.Error("deliver: an attempt failed on our side; it does not count and is made again",
			"event", w.EventID, "destination", w.Destination, "error", v.Reason, "due", o.Due)
		return v
	}
	delay, again := dest.schedule.Delay(w.Tries, d.random())
	due := ended.Add(max(delay, v.After))
	if end := w.ReceivedAt.Add(dest.giveUp); dest.giveUp > 0 && !o.Started.After(end) && due.After(end) {
		again = false
	}
	if !again {
		o.State = journal.Dead
		return v
	}
	o.State, o.Due = journal.Failed, due
	return v
}
