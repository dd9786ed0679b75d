package config

import (
	"errors"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/settings"
	"github.com/hookonce/hookonce/provider/spec"
)

// Reconcile says how a source is held against the list that its sender has of what it made.
type Reconcile struct {
	// Token is what the sender's API asks for. None: the source is not compared.
	Token settings.Secret
	// With are what else the API needs to know, as NAME=VALUE: see [spec.Reconcile].
	With []string
	// Types are patterns for the types that the webhook is subscribed to. None: all.
	Types []string
	// Every is how often the gateway compares by itself. Zero: only when it is asked to.
	Every time.Duration
	// Lag is how old an event is before it can be missing.
	Lag time.Duration
	// Action is what the gateway does about an event that is missing: [Report], [Redeliver] or [Ingest].
	Action string
}

// What is done about events that never arrived.
const (
	Report    = "report"    // they are counted and told
	Redeliver = "redeliver" // the sender is asked to send them again
	Ingest    = "ingest"    // they are stored as the list has them
)

// On reports whether the source can be compared with its sender's list.
func (r *Reconcile) On() bool { return r.Token.Reference() != "" }

// Settings are With by their names.
func (r *Reconcile) Settings() map[string]string {
	with := map[string]string{}
	for _, pair := range r.With {
		name, value, _ := strings.Cut(pair, "=")
		with[name] = value
	}
	return with
}

const reconcileToken = "reconcile.token"

// reconcileTable declares them. The shortest period is that of tests and of impatient people; APIs have their own bounds, which
// are kept whatever is written here.
var reconcileTable = settings.Table[Reconcile]{
	{Key: reconcileToken, Help: "token of its sender's API, as a `reference`: env:NAME or file:PATH; with it the source can be held against the list of what the sender made",
		Bind: func(r *Reconcile) settings.Value { return settings.OutsideReference(&r.Token) }},
	{Key: "reconcile.with", Help: "what else that API needs to know, `NAME=VALUE`; 'hookonce providers show' says what; repeatable",
		Bind: func(r *Reconcile) settings.Value {
			return settings.Words(&r.With, "hook=123", checkAssignment)
		}},
	{Key: "reconcile.types", Help: "`pattern` for the types of events that the webhook is subscribed to; all if not set; repeatable",
		Bind: func(r *Reconcile) settings.Value { return settings.Names(&r.Types, "invoice.*", checkPattern) }},
	{Key: "reconcile.every", Help: "`time` after which the gateway compares again; only 'hookonce reconcile' does if not set",
		Bind: func(r *Reconcile) settings.Value { return settings.Duration(&r.Every, time.Second, 7*settings.Day) }},
	{Key: "reconcile.lag", Default: "10m", Help: "`time` after which an event that did not arrive is missing: until then it may be under way",
		Bind: func(r *Reconcile) settings.Value { return settings.Duration(&r.Lag, 0, 7*settings.Day) }},
	{Key: "reconcile.action", Default: Report, Help: "`what` the gateway does about an event that is missing: report, redeliver, the sender is asked to send it again, or ingest, it is stored as the list has it",
		Bind: func(r *Reconcile) settings.Value { return settings.Choice(&r.Action, Report, Redeliver, Ingest) }},
}

func checkAssignment(text string) error {
	if name, value, ok := strings.Cut(text, "="); !ok || name == "" || value == "" {
		return errors.New("is not a name and a value; write NAME=VALUE, such as hook=123")
	}
	return nil
}

// checkReconcile holds what a source says of its sender's list against what is known of it.
func checkReconcile(r *settings.Report, cfg *Config, s *Source, known spec.Spec) {
	at, written := s.within("reconcile.")
	switch list := known.Reconcile; {
	case !written:
		return
	case !s.has(reconcileToken):
		r.Fault(at, `reconcile: nothing is asked for without a token; write token: "env:NAME" as well, or remove this`)
		return
	case list == nil:
		r.Fault(at, "reconcile: no list of what %s made is known; remove this", known.Title)
		return
	case s.Mode == Observe:
		r.Fault(at, "reconcile: with mode: observe nothing is recorded that a list could be held against; remove this")
		return
	default:
		checkAction(r, s, known)
		with := map[string]bool{}
		for i, pair := range s.Reconcile.With {
			name, _, _ := strings.Cut(pair, "=")
			if with[name] {
				r.Fault(s.origin.Element("reconcile.with", i), "reconcile.with: %s is there twice; keep one of them", name)
			}
			with[name] = true
		}
		if err := list.CheckSettings(s.Reconcile.Settings()); err != nil {
			r.Fault(s.where("reconcile.with"), "reconcile.with: %s", withoutProvider(err))
		}
		if list.Window > 0 && list.Window <= s.Reconcile.Lag+s.Reconcile.Every {
			r.Fault(s.where("reconcile.lag"), "reconcile.lag: the list of %s goes back %s, so that events are gone from it before they are old enough to be missing and looked at; write less for lag or every",
				known.Title, settings.ShowDuration(list.Window))
		}
		if list.Everything && len(s.Reconcile.Types) == 0 {
			r.Warn(at, "reconcile: the list of %s has events of all types, also those that the webhook is not subscribed to, and they would be told as missing; write types: as well", known.Title)
		}
		if ids := cfg.RetentionOf(s).IDs; s.Reconcile.Every > 0 && ids > 0 && ids < s.Reconcile.Every+s.Reconcile.Lag {
			r.Fault(s.where("reconcile.every"), "reconcile.every: ids are forgotten after %s, before they are compared; write less", settings.ShowDuration(ids))
		}
	}
}

// checkAction refuses to have done what the sender's API, or the kind of source, has no way for.
func checkAction(r *settings.Report, s *Source, known spec.Spec) {
	at, list := s.where("reconcile.action"), known.Reconcile
	switch action := s.Reconcile.Action; {
	case action == Redeliver && list.Redeliver == nil:
		r.Fault(at, "reconcile.action: %s has no API that sends an event again; write ingest or report", known.Title)
	case action == Ingest && (list.List.Event == nil || list.List.Event.Body == "" && list.Detail == nil):
		r.Fault(at, "reconcile.action: the list of %s does not have the events themselves; write redeliver or report", known.Title)
	case action != Report && s.Reconcile.Every > 0 && s.OnStoreDown == Open: // what one gateway did so is on no record that others could ask
		r.Fault(at, "reconcile.action: what a gateway delivers past the store (on_store_down: open) another one takes for lost, as long as it is not recorded, and %s would have it delivered again; write action: report, or on_store_down: closed", action)
	case action != Report && s.Reconcile.Every == 0 && s.has("reconcile.action"):
		r.Warn(at, "reconcile.action: it is for what the gateway does by itself; write every: as well, or remove it")
	}
}
