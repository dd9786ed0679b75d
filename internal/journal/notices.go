package journal

import (
	"cmp"
	"slices"
	"time"
)

// Notices are those that wait, or are being sent. There are at most a few for each alert and address, so stores read all and
// have what is to be done decided here.
type Notices []Notice

// Take returns what [Alerter.TakeNotices] takes of the notices to the wanted addresses, changed as it is written, and what goes
// because a later one tells how it stands. Those that are due longest are taken first, and what is not due yet goes with them as
// far as there is room.
func (all Notices) Take(now, lease time.Time, limit int) (taken, gone Notices) {
	first := -1
	for i := range all {
		if n := &all[i]; !n.Due.After(now) && !all.busy(n, now) && (first < 0 || n.order(&all[first]) < 0) {
			first = i
		}
	}
	if first < 0 || limit < 1 {
		return nil, nil
	}
	for _, n := range all {
		switch {
		case n.Address != all[first].Address || n.Rule != all[first].Rule || all.busy(&n, now):
		case slices.ContainsFunc(all, n.outdatedBy):
			gone = append(gone, n)
		default:
			taken = append(taken, n)
		}
	}
	slices.SortFunc(taken, func(a, b Notice) int { return a.order(&b) })
	taken = taken[:min(limit, len(taken))]
	slices.SortFunc(taken, func(a, b Notice) int { return a.Compare(b.AlertID) })
	for i := range taken {
		n := &taken[i]
		n.Due, n.Leased, n.Tries, n.Token = lease, true, n.Tries+1, n.Token+1
	}
	return taken, gone
}

// find returns the place of the notice that tells the address of the same, or -1.
func (all Notices) find(of *Notice) int {
	return slices.IndexFunc(all, func(n Notice) bool {
		return n.Address == of.Address && n.AlertID == of.AlertID && n.Transition == of.Transition
	})
}

// busy reports whether somebody sends a notice of this alert to this address, or may.
func (all Notices) busy(n *Notice, now time.Time) bool {
	return slices.ContainsFunc(all, func(o Notice) bool {
		return o.Address == n.Address && o.AlertID == n.AlertID && o.Leased && o.Due.After(now)
	})
}

// outdatedBy reports whether other tells the same address of the same alert, later.
func (n *Notice) outdatedBy(other Notice) bool {
	return other.Address == n.Address && other.AlertID == n.AlertID && other.Transition > n.Transition
}

// order is in which order notices are told.
func (n *Notice) order(other *Notice) int {
	return cmp.Or(n.Due.Compare(other.Due), cmp.Compare(n.Address, other.Address), n.Compare(other.AlertID))
}

// Settle returns what becomes of a notice, and what is on record of it: there is one that waits, unless it goes. Nothing becomes
// of it, and ok is false, unless the token of the outcome is current.
func (all Notices) Settle(o *NoticeOutcome) (left *Notice, record *AlertRecord, ok bool) {
	i := slices.IndexFunc(all, func(n Notice) bool {
		return n.Address == o.Address && n.AlertID == o.AlertID && n.Transition == o.Transition && n.Token == o.Token && n.Leased
	})
	if i < 0 {
		return nil, nil, false
	}
	n := all[i]
	r := &AlertRecord{AlertID: n.AlertID, At: o.At, Transition: n.Transition, Event: AlertTold, Text: n.Address}
	switch {
	case o.Err == "":
		return nil, r, true
	case o.Due.IsZero():
		r.Event, r.Text = AlertNotTold, n.Address+": "+o.Err
		return nil, r, true
	case slices.ContainsFunc(all, n.outdatedBy):
		return nil, nil, true
	}
	n.Due, n.Leased = o.Due, false
	if n.Tries&(n.Tries-1) != 0 || !o.Due.After(o.At) { // who tells was cut off
		return &n, nil, true
	}
	r.Event, r.Text = AlertDelayed, n.Address+": "+o.Err
	return &n, r, true
}
