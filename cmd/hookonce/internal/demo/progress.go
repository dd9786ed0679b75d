package demo

import (
	"fmt"
	"io"
	"strconv"
	"time"
)

// progress shows the demo. On a terminal the row of the chapter that is playing counts along; elsewhere
// every row is written once, when it is final.
type progress struct {
	out   io.Writer
	live  bool
	color bool
}

const ruler = "  ────────────────────────────────────────────────────────────────────────────"

func (p *progress) open(d *demo) {
	if d.naive {
		fmt.Fprintf(p.out, `
  A webhook provider on a bad day, and a shop that looks before it acts

    provider ──▶ shop
                 %s

  provider  sends copies, loses acknowledgements, retries, repeats, disorders
  shop      fails, stalls, drops connections; looks up every id, remembers it,
            and then books the order: the handler that everybody writes first

`, d)
	} else {
		fmt.Fprintf(p.out, `
  A webhook provider on a bad day, and a shop that must book every order once

    provider ──▶ hookonce gateway ──▶ shop
                 %-16s     %s, ledger through the library

  provider  sends copies, loses acknowledgements, retries, repeats, disorders
  gateway   verifies, makes durable, acknowledges, delivers until it is done
  shop      fails, stalls, drops connections; its ledger has no unique index

`, d, d)
	}
	fmt.Fprintf(p.out, "  %-33s%7s%7s%6s%8s%9s%6s\n%s\n", "", "events", "sent", "calls", "effects", "doubled", "lost", ruler)
}

// begin shows that a chapter plays. The returned function ends that.
func (p *progress) begin(c *chapter, sh *shop) func() {
	if !p.live {
		return func() {}
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(80 * time.Millisecond)
		defer ticker.Stop()
		for {
			visits := int64(0)
			for _, s := range c.events {
				visits += s.visits.Load()
			}
			fmt.Fprintf(p.out, "\r  %-33s%7d%7d%6d%8s", c.title, len(c.events), c.sent.Load(), visits, "...")
			select {
			case <-ticker.C:
			case <-done:
				fmt.Fprint(p.out, "\r\x1b[K")
				return
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// row writes what became of a chapter.
func (p *progress) row(title string, t tally) {
	fmt.Fprintf(p.out, "  %-33s%7d%7d%6d%8d%s%s\n", title, t.events, t.sent, t.visits, t.effects,
		p.alarm(fmt.Sprintf("%9d", t.doubled), t.doubled > 0), p.alarm(fmt.Sprintf("%6d", t.lost), t.lost > 0))
	if t.late > 0 {
		fmt.Fprintf(p.out, "    %d of them are still to be delivered: late, not lost\n", t.late)
	}
}

func (p *progress) alarm(text string, on bool) string {
	if !on || !p.color {
		return text
	}
	return "\x1b[1;31m" + text + "\x1b[0m"
}

func (p *progress) bold(text string) string {
	if !p.color {
		return text
	}
	return "\x1b[1m" + text + "\x1b[0m"
}

// finish writes the totals and what they mean.
func (p *progress) finish(d *demo, t tally, took time.Duration) {
	fmt.Fprintln(p.out, ruler)
	p.row("together, counted again at the end", t)
	fmt.Fprintf(p.out, `
  deliveries sent  %8s   by the provider
  duplicates       %8s   of them repeat an event that was sent before
  effects          %8s   entries in the ledger, for %s orders
  doubled          %8s
  lost             %8s

  sold    %s EUR by the provider's account
  booked  %s EUR in the shop's ledger

`, grouped(t.sent), grouped(t.duplicates()), grouped(t.effects), grouped(t.events),
		p.alarm(fmt.Sprintf("%8s", grouped(t.doubled)), t.doubled > 0), p.alarm(fmt.Sprintf("%8s", grouped(t.lost)), t.lost > 0),
		euros(t.sold), euros(t.booked))
	fmt.Fprintf(p.out, "  %s\n  %.1f s, seed %d.%s\n\n", p.bold(d.conclusion(t)), took.Seconds(), d.seed, d.next())
}

func (d *demo) conclusion(t tally) string {
	switch {
	case t.doubled+t.lost == 0 && t.late > 0:
		return fmt.Sprintf("Nothing doubled, nothing lost; %d of %d orders are still to come.", t.late, t.events)
	case t.doubled+t.lost > 0:
		return fmt.Sprintf("%d of %d orders booked more than once, %d never.", t.doubled, t.events, t.lost)
	case d.naive:
		return "Lucky: nothing doubled, nothing lost this time."
	}
	return "Exactly once in effect: nothing doubled, nothing lost."
}

// next says what to look at after this.
func (d *demo) next() string {
	if d.naive {
		return " Now the same storm through hookonce: hookonce demo"
	}
	return " The same storm without hookonce: hookonce demo --naive"
}

// grouped writes a number with spaces between thousands.
func grouped(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + " " + s[i:]
	}
	return s
}

func euros(cents int64) string {
	return fmt.Sprintf("%9s.%02d", grouped(int(cents/100)), cents%100)
}
