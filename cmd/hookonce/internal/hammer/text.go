package hammer

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"
)

// Text writes the report for people, a line per round as it comes in. A nil one writes nothing.
type Text struct {
	out io.Writer
}

// NewText writes the heading and returns what writes the rest.
func NewText(out io.Writer, h *Hammer) *Text {
	at := ""
	if len(h.Signers) > 1 {
		at = fmt.Sprintf(" to random ones of %s", plural(len(h.Signers), "door"))
	}
	fmt.Fprintf(out, "hammering %s\n", strings.Join(h.urls(), "\n          "))
	fmt.Fprintf(out, "%s of %s, all at once%s, signed as by %s\n\n", plural(h.Rounds, "round"), plural(h.Copies, "copy"), at, h.Signers[0].Provider.Spec().Title)
	fmt.Fprintf(out, "  %-5s  %-24s  %-15s %8s  %s\n", "round", "answers", "result", "slowest", "effects")
	return &Text{out}
}

func (t *Text) round(n int, r *Round) {
	if t == nil {
		return
	}
	effects := "not counted"
	if r.Effects != nil {
		effects = fmt.Sprint(*r.Effects)
	}
	lines := r.lines()
	fmt.Fprintf(t.out, "  %-5d  %-24s  %-15s %8s  %s\n", n+1, lines[0], r.Result, brief(r.Slowest), effects)
	for _, more := range lines[1:] {
		fmt.Fprintf(t.out, "  %-5s  %s\n", "", more)
	}
}

// lines describes the answers: by status, then by Hookonce-Status, then what was not answered.
func (r *Round) lines() []string {
	var lines []string
	for _, status := range slices.Sorted(maps.Keys(r.Answers)) {
		lines = append(lines, fmt.Sprintf("%d × %d", r.Answers[status], status))
	}
	if len(r.Statuses) > 0 {
		var statuses []string
		for _, v := range slices.Sorted(maps.Keys(r.Statuses)) {
			statuses = append(statuses, fmt.Sprintf("%d %s", r.Statuses[v], v))
		}
		lines = append(lines, strings.Join(statuses, ", "))
	}
	for _, cause := range slices.Sorted(maps.Keys(r.Unanswered)) {
		lines = append(lines, fmt.Sprintf("%d × no answer: %s", r.Unanswered[cause], cause))
	}
	return lines
}

// Finish writes the summary.
func (t *Text) Finish(r *Report) {
	if q := r.Latency; len(r.Rounds) > 0 {
		fmt.Fprintf(t.out, "\n  latency  p50 %s   p90 %s   p99 %s   max %s\n", brief(q.P50), brief(q.P90), brief(q.P99), brief(q.Max))
	}
	if len(r.Doors) > 1 {
		t.doors(r)
	}
	fmt.Fprintf(t.out, "\n%s\n", r.conclusion())
}

// doors writes what each door answered, and all of them.
func (t *Text) doors(r *Report) {
	width := len("all doors")
	for i := range r.Doors {
		width = max(width, len(r.Doors[i].URL))
	}
	fmt.Fprintf(t.out, "\n  %-*s  %8s  %12s  %8s  %9s  %7s\n", width, "door", "copies", "acknowledged", "new", "duplicate", "doubled")
	all := r.Total
	all.URL = "all doors"
	for _, d := range append(slices.Clone(r.Doors), all) {
		fmt.Fprintf(t.out, "  %-*s  %8d  %12d  %8d  %9d  %7d\n", width, d.URL, d.Copies, d.Acknowledged, d.New, d.Duplicates, d.Doubled)
	}
}

// conclusion says in a few sentences what was found and what to do about it, a door that refuses in a line of its own.
func (r *Report) conclusion() string {
	var b strings.Builder
	if r.Stopped != "" {
		fmt.Fprintf(&b, "STOPPED in %s.\n", strings.TrimSuffix(r.Stopped, "."))
	}
	if len(r.Rounds) > 0 {
		b.WriteString(r.finding())
	}
	for _, d := range r.refusing() {
		fmt.Fprintf(&b, "\nREFUSED: %s acknowledged none of its %s; the last answer there: %s.", d.URL, plural(d.Copies, "copy"), d.LastRefusal)
	}
	var lines []string
	for line := range strings.Lines(b.String()) {
		lines = append(lines, wrap(line, 80))
	}
	return strings.Join(lines, "\n")
}

// finding is what the rounds proved that were made.
func (r *Report) finding() string {
	events := plural(len(r.Rounds), "event")
	switch {
	case r.Results[Doubled] > 0:
		return fmt.Sprintf("DOUBLED: %d of %s took effect more than once. Two copies passed the check before either left its mark; claim the key in one atomic statement, in the transaction of the effect.", r.Results[Doubled], events)
	case r.Results[Lost] > 0:
		return fmt.Sprintf("LOST: %d of %s were acknowledged and had no effect within the wait. The provider will not send them again.", r.Results[Lost], events)
	case r.Results[Unacknowledged] > 0:
		return fmt.Sprintf("NOT ACKNOWLEDGED: no copy of %d of %s was answered with a 2xx.%s", r.Results[Unacknowledged], events, r.hint())
	case r.Results[Unproven] > 0:
		return "UNPROVEN: " + r.doubt()
	case r.Results[Repeated] > 0:
		return fmt.Sprintf("REPEATED: %d of %s took effect more than once, as it should be: nothing tells a copy of such an event from another one, and a dropped one may be a change that is lost. Make the effect one that can be repeated.", r.Results[Repeated], events)
	case !r.Counted:
		return fmt.Sprintf("ONCE, by the endpoint's own account: one copy of each of %s accepted, every other one recognised. Prove the effect with --expect-sql and --dsn.", events)
	}
	if missing := r.missing(); missing != "" {
		return fmt.Sprintf("ONCE: %s, %d requests, one effect each; %s.", events, r.Total.Copies, missing)
	}
	return fmt.Sprintf("ONCE: %s, %d requests, one effect each.", events, r.Total.Copies)
}

// doubt says what is known of events of which not everything is.
func (r *Report) doubt() string {
	var known, hidden, taken, silent int // rounds
	for _, round := range r.Rounds {
		recognised := round.Statuses["duplicate"] + round.Statuses["conflict"] // all copies have one content, so that it came before
		switch missing := round.copies - round.acknowledged(); {
		case round.Result != Unproven:
		case recognised == round.copies:
			known++
		case round.took() == 0 && recognised > 0 && recognised == round.acknowledged() && missing > 0:
			hidden++
		case round.took() == 1:
			taken++
		default:
			silent++
		}
	}
	events := plural(len(r.Rounds), "event")
	if known == len(r.Rounds) {
		return fmt.Sprintf("%s, which the endpoint knew already: every copy was a duplicate, or had the key of an earlier event with other content. Send new ones: put {{id}} where the body or the header has the id, or use another --seed.", events)
	}
	says := fmt.Sprintf("%s, %s.", events, cmp.Or(r.missing(), "all copies acknowledged"))
	for _, part := range []struct {
		rounds int
		says   string
	}{
		{taken, "one copy was accepted, and the answers do not say of every other one that it was recognised"},
		{hidden, "every copy that was acknowledged was a duplicate, so the new one is among those that were not, unless the endpoint knew the event before"},
		{known, "the endpoint knew the event, or its key, before"},
		{silent, "the answers do not tell how often it took effect"},
	} {
		if part.rounds > 0 {
			says += fmt.Sprintf(" Of %s %s.", plural(part.rounds, "event"), part.says)
		}
	}
	return says + " Count the effect: --expect-sql with --dsn."
}

// missing says how many copies were not acknowledged; nothing if all were.
func (r *Report) missing() string {
	if r.Total.Acknowledged == r.Total.Copies {
		return ""
	}
	return fmt.Sprintf("%d of %s not acknowledged", r.Total.Copies-r.Total.Acknowledged, plural(r.Total.Copies, "copy"))
}

// hint guesses why an endpoint acknowledges nothing.
func (r *Report) hint() string {
	for _, round := range r.Rounds {
		switch {
		case round.Answers[401]+round.Answers[403] > 0, round.Answers[400] > 0:
			return " It rejects the request: are --provider and --secret those of the endpoint?"
		case round.Answers[404]+round.Answers[405] > 0:
			return " There is no endpoint for POST at that URL."
		case round.Answers[503] > 0:
			return " It asks for a retry, as it should when it cannot do the work now."
		}
	}
	return ""
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if stem, ok := strings.CutSuffix(noun, "y"); ok {
		return fmt.Sprintf("%d %sies", n, stem)
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// brief writes a duration with three digits at most.
func brief(d time.Duration) string {
	switch {
	case d >= 10*time.Second:
		return fmt.Sprintf("%.0f s", d.Seconds())
	case d >= time.Second:
		return fmt.Sprintf("%.1f s", d.Seconds())
	case d >= 10*time.Millisecond:
		return fmt.Sprintf("%.0f ms", d.Seconds()*1e3)
	case d >= time.Millisecond:
		return fmt.Sprintf("%.1f ms", d.Seconds()*1e3)
	}
	return fmt.Sprintf("%.0f µs", d.Seconds()*1e6)
}

// wrap breaks text into lines of at most width characters.
func wrap(text string, width int) string {
	var b strings.Builder
	column := 0
	for i, word := range strings.Fields(text) {
		n := len([]rune(word))
		switch {
		case i > 0 && column+1+n > width:
			b.WriteByte('\n')
			column = 0
		case i > 0:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
