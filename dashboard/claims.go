package dashboard

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/dashboard/frame"
)

const (
	pageSize = 50 // rows of a page
	maxLooks = 20 // questions for a page that has any
)

// claim is one as it is shown.
type claim struct {
	Source    string     `json:"source"`
	Key       string     `json:"key"`
	State     string     `json:"state"` // held, stuck, failed, dead, done
	Attempt   int64      `json:"attempt"`
	Type      string     `json:"type,omitempty"`
	Lease     *time.Time `json:"lease_until,omitempty"`
	FirstSeen time.Time  `json:"first_seen"`
	Changed   time.Time  `json:"changed"`
	Error     string     `json:"error,omitempty"`
	Pinned    int64      `json:"pinned,omitempty"`
}

// The states of claims as people see them: processing is one of two.
const (
	held  = "held"  // somebody works on it, or holds it without a deadline
	stuck = "stuck" // its lease ran out, and nobody took it over
)

func (d *dashboard) shown(c hookonce.Claim) claim {
	s := claim{Source: c.Source, Key: c.Key, State: string(c.State), Attempt: c.Token, Type: c.Type, FirstSeen: c.FirstSeen, Changed: c.UpdatedAt, Error: c.LastError, Pinned: c.Pinned}
	if c.State == hookonce.StateProcessing {
		s.State = held
		if !c.Lease.IsZero() {
			s.Lease = &c.Lease
			if c.Lease.Before(d.now()) {
				s.State = stuck
			}
		}
	}
	return s
}

// Address is that of its page.
func (c claim) Address() string { return frame.Query("/claim", "source", c.Source, "key", c.Key) }

// Free reports whether it may be given back: nobody has it, as far as can be known, or it is held without a deadline.
func (c claim) Free() bool { return c.State == stuck || c.State == held && c.Lease == nil }

// claimsView is a part of the list.
type claimsView struct {
	State   string  `json:"state,omitempty"`
	Source  string  `json:"source,omitempty"`
	Key     string  `json:"key,omitempty"`
	Older   string  `json:"older,omitempty"`
	Newer   string  `json:"newer,omitempty"`
	Claims  []claim `json:"claims"`
	NextURL string  `json:"next,omitempty"`

	Wrong   string   `json:"wrong,omitempty"`
	Sources []string `json:"-"`
	Further bool     `json:"-"`
}

// States are what may be chosen.
func (claimsView) States() []string {
	return []string{held, stuck, string(hookonce.StateFailed), string(hookonce.StateDead), string(hookonce.StateDone)}
}

// Looked is how many claims were looked at for a page that has none.
func (claimsView) Looked() int { return maxLooks * pageSize }

// Filtered reports whether anything was chosen.
func (v claimsView) Filtered() bool { return v.State+v.Source+v.Key+v.Older+v.Newer != "" }

func (d *dashboard) claims(r *http.Request) (*frame.Page, error) {
	f := r.URL.Query()
	v := claimsView{State: f.Get("state"), Source: f.Get("source"), Key: f.Get("key"), Older: f.Get("older"), Newer: f.Get("newer"), Claims: []claim{}}
	sources, err := d.store.Sources(r.Context())
	if err != nil {
		return nil, err
	}
	v.Sources = sources
	q, wrong := d.claimQuery(&v)
	if micros, err := strconv.ParseInt(f.Get("after"), 10, 64); err == nil {
		v.Further = true
		q.After = &hookonce.Claim{UpdatedAt: time.UnixMicro(micros), Ref: hookonce.Ref{Source: f.Get("after_source"), Key: f.Get("after_key")}}
	}
	if v.Wrong = wrong; wrong == "" {
		last, err := d.list(r.Context(), q, &v)
		if err != nil {
			return nil, err
		}
		if last != nil {
			v.NextURL = frame.Query("/claims", "state", v.State, "source", v.Source, "key", v.Key, "older", v.Older, "newer", v.Newer,
				"after", strconv.FormatInt(last.UpdatedAt.UnixMicro(), 10), "after_source", last.Source, "after_key", last.Key)
		}
	}
	return &frame.Page{Title: "Claims", Place: "/claims", Again: 10, Data: v, Commands: []frame.Command{
		{"The same as JSON", "curl -H 'Accept: application/json' " + frame.Quoted(curlAddress(r))},
	}}, nil
}

// list puts a page of claims into v, and returns after which one it ends if there may be more. Of those that are processing a
// store does not leave out what is stuck, so that what is held may stand far below it: a page is looked for that has some.
func (d *dashboard) list(ctx context.Context, q hookonce.ClaimQuery, v *claimsView) (last *hookonce.Claim, err error) {
	for range maxLooks {
		found, err := d.store.ListClaims(ctx, q)
		if err != nil {
			return nil, err
		}
		for _, c := range found[:min(pageSize, len(found))] {
			if s := d.shown(c); v.State != held || s.State == held {
				v.Claims = append(v.Claims, s)
			}
		}
		if len(found) <= pageSize {
			return nil, nil
		}
		last = &found[pageSize-1]
		q.After = last
		if len(v.Claims) > 0 {
			break
		}
	}
	return last, nil
}

// curlAddress is the address of a page for programs, as far as it is known here.
func curlAddress(r *http.Request) string {
	scheme := "http://"
	if r.TLS != nil {
		scheme = "https://"
	}
	path, _, _ := strings.Cut(cmp.Or(r.RequestURI, r.URL.RequestURI()), "#")
	return scheme + r.Host + path
}

// claimQuery returns what a filter asks for, or what is wrong with it.
func (d *dashboard) claimQuery(v *claimsView) (q hookonce.ClaimQuery, wrong string) {
	q = hookonce.ClaimQuery{Source: v.Source, Key: v.Key, Limit: pageSize + 1}
	switch v.State {
	case "":
	case held:
		q.States = []hookonce.State{hookonce.StateProcessing}
	case stuck:
		q.States, q.Lapsed = []hookonce.State{hookonce.StateProcessing}, true
	case string(hookonce.StateDone):
		if q.States = []hookonce.State{hookonce.StateDone}; v.Source == "" && v.Key == "" {
			return q, "Claims that are done are many: choose a source, or write a key."
		}
	case string(hookonce.StateFailed), string(hookonce.StateDead):
		q.States = []hookonce.State{hookonce.State(v.State)}
	default:
		return q, "There is no such state."
	}
	for _, age := range []struct {
		text string
		to   *time.Time
	}{{v.Older, &q.Until}, {v.Newer, &q.From}} {
		if age.text == "" {
			continue
		}
		length, err := ageOf(age.text)
		if err != nil {
			return q, "Write an age as 30m, 2h or 7d."
		}
		*age.to = d.now().Add(-length)
	}
	return q, ""
}

// ageOf reads a length of time, which may be in days.
func ageOf(text string) (time.Duration, error) {
	if days, is := strings.CutSuffix(text, "d"); is {
		n, err := strconv.ParseUint(days, 10, 16)
		return time.Duration(n) * 24 * time.Hour, err
	}
	age, err := time.ParseDuration(text)
	if err == nil && age < 0 {
		err = errors.New("an age is not negative")
	}
	return age, err
}

// find leads to the claims of a key.
func (d *dashboard) find(r *http.Request) (*frame.Page, error) {
	return &frame.Page{To: frame.Query("/claims", "key", strings.TrimSpace(r.URL.Query().Get("q")))}, nil
}

// claimView is one, with what it asked for.
type claimView struct {
	claim
	Effects []effect `json:"effects"`
	// More is set if it asked for more than are shown.
	More bool `json:"more_effects,omitempty"`
}

func (d *dashboard) claim(r *http.Request) (*frame.Page, error) {
	ref := hookonce.Ref{Source: r.URL.Query().Get("source"), Key: r.URL.Query().Get("key")}
	c, err := d.lookup(r, ref)
	if err != nil {
		return nil, err
	}
	v := claimView{claim: d.shown(c), Effects: []effect{}}
	effects, err := d.store.ListEffects(r.Context(), hookonce.EffectQuery{Ref: ref, Limit: pageSize + 1})
	if err != nil {
		return nil, err
	}
	for _, e := range effects[:min(pageSize, len(effects))] {
		v.Effects = append(v.Effects, d.shownEffect(e))
	}
	v.More = len(effects) > pageSize
	return &frame.Page{Title: ref.Key, Place: "/claims", Again: 10, Data: v, Commands: []frame.Command{
		{"In SQL, on Postgres", "SELECT * FROM hookonce.claims WHERE source = " + literal(ref.Source) + " AND key = " + literal(ref.Key)}, // lookup() makes a new key of one that is a hash,
	}}, nil
}

// literal writes a text as SQL has it.
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

func (d *dashboard) lookup(r *http.Request, ref hookonce.Ref) (hookonce.Claim, error) {
	c, err := d.store.Lookup(r.Context(), ref)
	if errors.Is(err, hookonce.ErrNotFound) || errors.Is(err, hookonce.ErrInvalidRef) || err == nil && ref.Key == "" {
		return c, refuse(http.StatusNotFound, "there is no such claim, or not any more")
	}
	return c, err
}

// giveBack ends an attempt that will not come to an outcome, so that the next copy of the event tries again.
func (d *dashboard) giveBack(r *http.Request, reason string) (*change, error) {
	ref := hookonce.Ref{Source: r.PostFormValue("source"), Key: r.PostFormValue("key")}
	c, err := d.lookup(r, ref)
	if err != nil {
		return nil, err
	}
	attempt := strconv.FormatInt(c.Token, 10)
	if !d.shown(c).Free() || attempt != r.PostFormValue("attempt") {
		return nil, refuse(http.StatusConflict, "the claim has changed since: nobody needs to give it back")
	}
	by := d.visitor(r).Name
	return &change{Change{By: by, Reason: reason, Action: GiveBack, What: "claim of " + of(ref) + ", attempt " + attempt}, func(ctx context.Context) error {
		// What may have happened outside may have happened all the same: a pin stays.
		err := d.store.Fail(ctx, c, hookonce.Failure{Err: errors.New("given back by " + by + ": " + reason), Pin: c.Pinned != 0})
		if errors.Is(err, hookonce.ErrStale) || errors.Is(err, hookonce.ErrNotFound) {
			return refuse(http.StatusConflict, "the claim has changed at the same moment: nobody needs to give it back")
		}
		return err
	}, "/claim?" + url.Values{"source": {ref.Source}, "key": {ref.Key}}.Encode()}, nil
}

// of names the event of a claim, for people.
func of(ref hookonce.Ref) string { return ref.Key + " from " + ref.Source }
