package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/observe"
)

func newReportCommand(w *env) *cobra.Command {
	var since, source string
	var limit int
	var asJSON bool
	c := &cobra.Command{
		Use:   "report [flags]",
		Short: "Say what the applications behind mode: observe do twice or lose today",
		Long: `Report reads what a gateway recorded of its sources with mode: observe, and says in a page for each what
its application did twice, what it never answered 2xx, which forgeries it took for events, and which
events prove it. It reads the store itself, whether a gateway runs or not, and changes nothing.`,
		Example: `  hookonce report --since 24h
  hookonce report --since 7d --source billing --limit 20
  hookonce report --since 2026-11-21 --json`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			now := time.Now()
			from, err := moment("since", since, now)
			switch {
			case err == nil && (from.IsZero() || from.After(now)):
				err = errors.New("--since: say since when, such as 24h, 7d or 2026-11-21")
			case err == nil && (limit < 0 || limit > maxListed):
				err = fmt.Errorf("--limit: write a number from 0 to %d", maxListed)
			}
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			cfg, err := loadStoreConfig(w, c.Flags())
			if err != nil {
				return err
			}
			reports, err := reportOn(c.Context(), cfg, source, from, limit)
			switch {
			case err != nil:
				return err
			case asJSON:
				return printJSON(w, reports)
			}
			if len(reports) == 0 && source != "" {
				printUnknown(w, cfg, source, from)
				return nil
			}
			return printReports(w, cfg, reports, from)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&since, "since", "24h", "what was received at this `time` or later: 24h, 7d (ago), 2026-11-21, or 2026-11-21T12:00:00Z")
	f.StringVar(&source, "source", "", "only the source with this `name`")
	f.IntVar(&limit, "limit", 5, "list at most this `number` of events of each kind; all are counted")
	f.BoolVar(&asJSON, "json", false, "write the report as JSON")
	configFlag(f)
	config.StoreFlags(f)
	return c
}

// reportOn returns a report for each source that is observed, or that anything is on record of.
func reportOn(ctx context.Context, cfg *config.Config, only string, since time.Time, limit int) ([]*observe.Report, error) {
	reports := []*observe.Report{}
	if err := gateway.Absent(cfg.Store); err != nil {
		return reports, err
	}
	store, err := gateway.OpenObservations(cfg)
	if err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	defer store.Close()
	if err := store.Check(ctx); err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	names, err := store.Sources(ctx)
	if err != nil {
		return nil, gateway.Explain(cfg.Store, err)
	}
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == config.Observe && !slices.Contains(names, s.Name) {
			names = append(names, s.Name)
		}
	}
	for _, name := range names {
		if only != "" && name != only {
			continue
		}
		r, err := observe.NewReport(ctx, store, name, since, limit)
		if err != nil {
			return nil, gateway.Explain(cfg.Store, err)
		}
		reports = append(reports, r)
	}
	return reports, nil
}

// printReports writes a page for each source.
func printReports(w *env, cfg *config.Config, all []*observe.Report, since time.Time) error {
	if len(all) == 0 {
		fmt.Fprintf(w.out, "Nothing was observed since %s, and no source here has mode: observe. Write it into a source, start the gateway,\nand have the provider send to /in/ and the name of the source.\n", clock(since))
		return nil
	}
	for i, r := range all {
		if i > 0 {
			fmt.Fprintln(w.out)
		}
		if err := printReport(w, cfg, r); err != nil {
			return err
		}
	}
	return nil
}

// printUnknown says of which source nothing is known, and which ones are observed.
func printUnknown(w *env, cfg *config.Config, source string, since time.Time) {
	var observed []string
	for i := range cfg.Sources {
		if s := &cfg.Sources[i]; s.Mode == config.Observe {
			observed = append(observed, s.Name)
		}
	}
	others := "no other has"
	if len(observed) > 0 {
		others = "those that have are " + strings.Join(observed, ", ")
	}
	fmt.Fprintf(w.out, "Nothing was observed of a source %q since %s, and none here with this name has mode: observe; %s.\n", source, clock(since), others)
}

func printReport(w *env, cfg *config.Config, r *observe.Report) error {
	p := page{w: w, r: r}
	p.untimely, p.strange = r.Untimely()
	if r.Requests == 0 {
		p.line("%s: nothing was observed since %s. Do its requests go to /in/%s of the gateway?", r.Source, clock(r.Since), r.Source)
		p.change(cfg)
		return nil
	}
	p.head()
	p.twice()
	p.lost()
	p.slow()
	p.conflicts()
	p.forged()
	p.late()
	p.rest()
	p.change(cfg)
	return p.err
}

// page writes one report.
type page struct {
	w                 *env
	r                 *observe.Report
	untimely, strange observe.Tally
	err               error
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p.w.out, format+"\n", args...) }

// head says how much there is.
func (p *page) head() {
	r := p.r
	p.line("%s, since %s: %d requests, %d events, %d copies of them.", r.Source, clock(r.Since), r.Requests, r.Events, r.Copies.All)
	if !r.From.IsZero() && r.From.Sub(r.Since) > time.Minute {
		p.line("The first of them came %s.", clock(r.From))
	}
	if c := r.Copies; c.All > 0 {
		p.line("Of the copies %d came after your application had answered 2xx, %d while it was at work on the event, %d after it had failed.", c.AfterSuccess, c.AtOnce, c.Retries)
	}
	if r.Events == 0 && r.Unkeyed == 0 && len(r.Forged) > 0 && len(p.untimely) == 0 {
		p.line("Not one request had a valid signature: compare the secret of this source with the one at the provider, before you believe what follows.")
	}
}

func (p *page) twice() {
	none := "No event was answered 2xx twice: nothing was done twice, as far as answers tell."
	if n := p.unknown(); n > 0 {
		none = fmt.Sprintf("No event on record was answered 2xx twice; what %d requests were is not known.", n)
	}
	p.list("TWICE", p.r.Doubled, none,
		"%d events were answered 2xx more than once: your application did them again, unless it recognises copies by itself.")
}

func (p *page) lost() {
	none := "Every event with a key got a 2xx at last: nothing was lost."
	some := "%d events never got a 2xx: they are lost, unless their sender tries again."
	if n := p.unknown(); n > 0 {
		some = fmt.Sprintf("%%d events never got a 2xx that is on record: they are lost, unless their sender tries again, or one of %d requests was for them of which it is not known what they were.", n)
		none = fmt.Sprintf("Every event with a key that is on record got a 2xx at last; what %d requests were is not known.", n)
	}
	p.list("LOST", p.r.Unanswered, none, some)
}

// unknown is how many requests may have been for any event.
func (p *page) unknown() int64 { return p.r.Unrecorded + sum(p.r.Unread) + sum(p.untimely) }

func (p *page) slow() {
	p.list("SLOW", p.r.Slow, "",
		"%d events were answered 2xx after their sender had given up: it counts them as failed, and sends them again.")
}

func (p *page) conflicts() {
	p.list("CONFLICTS", p.r.Conflicts, "",
		"%d events came with different content under one key: the gateway would deliver the first, and flag the others.")
}

func (p *page) late() {
	p.list("LATE", p.r.Late, "",
		"%d events had a valid signature whose time was out of tolerance: the gateway would refuse them. See the setting tolerance.")
	if n := sum(p.untimely); n > 0 {
		p.line("\n%-10s %d requests had a valid signature whose time was out of tolerance (%s): the gateway would refuse them, and which events they were for is not known. Compare the clock of this machine, and see what holds requests up on their way to it.",
			"LATE", n, reasons(p.untimely))
	}
}

// list writes a sentence, and the events that prove it below.
func (p *page) list(title string, l observe.List, none, some string) {
	if l.Count == 0 {
		if none != "" {
			p.line("\n%-10s %s", title, none)
		}
		return
	}
	p.line("\n%-10s "+some, title, l.Count)
	if len(l.Events) > 0 {
		t := newTable(p.w, "  ", "EVENT | TYPE | REQUESTS | FIRST | LAST | ANSWERS")
		for _, c := range l.Events {
			t.row("  ", c.Key, c.Type, c.Times, clock(c.Seen[0].At), clock(c.Seen[len(c.Seen)-1].At), answers(c.Seen, c.Times))
		}
		p.flush(t)
	}
	p.more(l.Count, len(l.Events))
}

func (p *page) flush(t table) {
	if err := t.Flush(); err != nil && p.err == nil {
		p.err = err
	}
}

func (p *page) more(all int64, shown int) {
	if rest := all - int64(shown); rest > 0 {
		p.line("  ... and %d more; see --limit and --json", rest)
	}
}

// maxAnswers is how many answers are written in one line.
const maxAnswers = 6

// answers writes what the application answered to the requests for one event.
func answers(seen []observe.Sighting, times int64) string {
	var texts []string
	for _, s := range seen[:min(len(seen), maxAnswers)] {
		texts = append(texts, answerOf(s))
	}
	if int64(len(texts)) < times {
		texts = append(texts, "…")
	}
	return strings.Join(texts, ", ")
}

func answerOf(s observe.Sighting) string {
	text := s.Failure
	if s.Status != 0 {
		text = strings.TrimSpace(fmt.Sprint(s.Status) + " " + s.Failure)
	}
	if s.Unheard {
		text += " too late"
	}
	return text
}

func (p *page) forged() {
	r := p.r
	var all int64
	for _, n := range r.Forged {
		all += n
	}
	switch {
	case all == 0:
		return
	case r.Accepted == 0:
		p.line("\n%-10s %d requests had no valid signature (%s); your application answered none of them 2xx.", "FORGED", all, reasons(r.Forged))
	default:
		p.line("\n%-10s %d requests had no valid signature (%s), and your application answered %d of them 2xx: whoever knows its address can make it believe anything.",
			"FORGED", all, reasons(r.Forged), r.Accepted)
	}
	if len(r.Proof) > 0 {
		t := newTable(p.w, "  ", "AT | REASON | ANSWER")
		for _, s := range r.Proof {
			t.row("  ", clock(s.At), s.Reason, answerOf(s))
		}
		p.flush(t)
	}
	p.more(all, len(r.Proof))
}

func reasons(t observe.Tally) string {
	var texts []string
	for _, reason := range slices.Sorted(maps.Keys(t)) {
		texts = append(texts, fmt.Sprintf("%s %d", reason, t[reason]))
	}
	return strings.Join(texts, ", ")
}

// rest counts what is no fault of anybody's, and what is not known.
func (p *page) rest() {
	r := p.r
	p.line("")
	for _, also := range []struct {
		n    int64
		text string
	}{
		{r.Unkeyed, "events had no key: copies of them cannot be recognised, by the gateway either."},
		{r.Notices, "requests only said that something changed, or carried no event: copies of them mean something."},
		{r.Handshakes, "requests were challenges of the provider's, which the gateway answers with handshakes: true."},
		{sum(p.strange), "requests were none that a provider sends (" + reasons(p.strange) + ")."},
		{sum(r.Unread), "requests were forwarded and could not be looked at (" + reasons(r.Unread) + ")."},
		{r.Unrecorded, "requests were forwarded and are not on record: the store was away, or too much came at once."},
	} {
		if also.n > 0 {
			p.line("%d %s", also.n, also.text)
		}
	}
}

func sum(t observe.Tally) (n int64) {
	for _, m := range t {
		n += m
	}
	return n
}

// change says which word to change.
func (p *page) change(cfg *config.Config) {
	for i := range cfg.Sources {
		s := &cfg.Sources[i]
		switch {
		case s.Name != p.r.Source:
		case s.Mode == config.Observe:
			p.line("To have the gateway deliver each event once, try again what fails and refuse what is forged: in %s\nwrite mode: async in place of mode: observe, and run 'hookonce reload' or start the gateway again. No observation counts as a delivery then.", s.Where("mode"))
			return
		default:
			p.line("This source is not observed any more.")
			return
		}
	}
	p.line("To have the gateway deliver each event once, try again what fails and refuse what is forged: in the configuration of this\nsource write mode: async in place of mode: observe, and run 'hookonce reload' or start the gateway again. No observation counts as a delivery then.")
}
