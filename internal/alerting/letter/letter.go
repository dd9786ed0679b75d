// Package letter writes what people read of alerts: somebody who was woken up learns from the title what is wrong and where, and
// from the text since when, how much, an example, and what to do next.
//
// It is all plain text: it goes to mail programs, chats and telephones. What strangers had a part in is tame there; programs get
// it as it is.
package letter

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/alerting"
	"github.com/hookonce/hookonce/internal/notify"
)

const (
	maxTold  = 10  // subjects that are told of at length; the others by name
	maxNamed = 20  // of those
	maxLine  = 500 // bytes of a text that strangers had a part in
)

// Write returns what is sent of a message. dashboard is the URL of the dashboard; empty: it has no links.
func Write(m alerting.Message, dashboard string) *notify.Message {
	told := slices.Clone(m.Notifications)
	slices.SortStableFunc(told, func(a, b alerting.Notification) int {
		return cmp.Or(over(a.State)-over(b.State), weight(a.Severity)-weight(b.Severity), rank(a.State)-rank(b.State))
	})
	first := &told[0]
	state := slices.MinFunc(told, func(a, b alerting.Notification) int { return rank(a.State) - rank(b.State) }).State
	out := &notify.Message{
		Key: m.Key, Thread: first.Fingerprint + first.Fired.UTC().Format(time.RFC3339), State: notify.State(state), Severity: string(first.Severity),
		At: latest(told), Title: title(told), Link: link(dashboard, ""),
	}
	for i := range told {
		n := &told[i]
		a := notify.Alert{
			Key: n.Key, Fingerprint: n.Fingerprint, Installation: n.Installation, Rule: n.Rule, Subject: n.Subject, Severity: string(n.Severity), State: notify.State(n.State), Headline: line(n.Headline),
			Since: since(n), Count: n.Count, Action: line(n.Action.Label), Command: command(n.Action.Command, line), Link: link(dashboard, name(n)),
		}
		if s := n.Sample; s != nil {
			a.Event, a.Type, a.Error = eventText(s.Event), line(s.Type), line(s.Error)
		}
		out.Alerts = append(out.Alerts, a)
	}
	out.Text = text(out.Title, told, dashboard)
	return out
}

// Test returns a message that only shows that it arrives. Installation is the name of the one that sends it; empty: it has none.
func Test(channel, installation, gateway, dashboard string, at time.Time) *notify.Message {
	text := fmt.Sprintf("TEST of hookonce: nothing is wrong\n\nSomebody tries whether alerts arrive over %s. There is nothing to do.\nGateway: %s\n", channel, tame(gateway))
	fingerprint := alerting.Fingerprint(installation, "test/"+channel)
	key := fingerprint + "@" + at.UTC().Format(time.RFC3339Nano)
	return &notify.Message{
		Key: key, Thread: fingerprint, State: notify.Test, Severity: string(alert.Info), At: at,
		Title: "TEST of hookonce: nothing is wrong", Text: text, Link: link(dashboard, ""),
		Alerts: []notify.Alert{{Key: key, Fingerprint: fingerprint, Installation: installation, Rule: "test", Subject: channel, Severity: string(alert.Info), State: notify.Test,
			Headline: "Somebody tries whether alerts arrive. There is nothing to do.", Since: at}},
	}
}

// rank puts what begins before what goes on, and that before what is over. It is what a message is called, also where something
// worse goes on.
func rank(s alerting.State) int {
	return map[alerting.State]int{alerting.Firing: 0, alerting.Repeat: 1, alerting.Resolved: 2}[s]
}

// over puts what is over last, however severe it was.
func over(s alerting.State) int {
	if s == alerting.Resolved {
		return 1
	}
	return 0
}

func weight(s alert.Severity) int {
	return map[alert.Severity]int{alert.Page: 0, alert.Ticket: 1, alert.Info: 2}[s]
}

func latest(told []alerting.Notification) time.Time {
	return slices.MaxFunc(told, func(a, b alerting.Notification) int { return a.At.Compare(b.At) }).At
}

// name is what the command line calls an alert: its rule and, after a slash, its subject.
func name(n *alerting.Notification) string { return strings.TrimSuffix(n.Rule+"/"+n.Subject, "/") }

// since is when it began, as far as that is known.
func since(n *alerting.Notification) time.Time {
	if n.Since.IsZero() {
		return n.Fired.UTC()
	}
	return n.Since.UTC()
}

func link(dashboard, alert string) string {
	if dashboard == "" {
		return ""
	}
	address := strings.TrimSuffix(dashboard, "/") + "/alerts"
	if alert != "" {
		address += "?alert=" + url.QueryEscape(alert)
	}
	return address
}

func eventText(id int64) string {
	if id == 0 {
		return ""
	}
	return strconv.FormatInt(id, 10)
}

// moment is a time in a headline, which a title has no room for.
var moment = regexp.MustCompile(` since \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ`)

// title says in one line what happened, and where.
func title(told []alerting.Notification) string {
	first := &told[0]
	word := map[alerting.State]string{alerting.Firing: strings.ToUpper(string(first.Severity)), alerting.Repeat: "STILL", alerting.Resolved: "RESOLVED"}[first.State]
	var same []alerting.Notification
	for _, n := range told {
		if n.State == first.State {
			same = append(same, n)
		}
	}
	var what string
	switch {
	case len(same) > 1:
		what = strconv.Itoa(len(same)) + " x " + words(first.Rule) + ": " + names(same, 5)
	case first.State == alerting.Resolved:
		what = words(first.Rule)
		if first.Subject != "" {
			what += ": " + first.Subject
		}
	default:
		what = strings.TrimSuffix(moment.ReplaceAllString(tame(first.Headline), ""), ".")
	}
	return clause(word+" "+tame(what), notify.MaxTitle)
}

// clause cuts a title to so many bytes, if possible where a clause of it ends.
func clause(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = short(s, limit)
	if i := strings.LastIndexAny(s, ";:,"); i > limit/2 && s[i+1] == ' ' {
		return s[:i] + dots
	}
	return s
}

// dots end what was cut off.
const dots = "..."

// words is a rule as people say it.
func words(rule string) string { return strings.ReplaceAll(rule, "_", " ") }

// names lists subjects, at most so many.
func names(told []alerting.Notification, most int) string {
	var all []string
	for i := range told[:min(len(told), most)] {
		all = append(all, cmp.Or(tame(told[i].Subject), "the gateway"))
	}
	text := strings.Join(all, ", ")
	if more := len(told) - most; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// text says all, beginning with the title.
func text(title string, told []alerting.Notification, dashboard string) string {
	var b strings.Builder
	b.WriteString(title + "\n")
	for i := range told[:min(len(told), maxTold)] {
		b.WriteString("\n")
		one(&b, &told[i], dashboard)
	}
	if len(told) > maxTold {
		rest := told[maxTold:]
		fmt.Fprintf(&b, "\nThe same of %d more: %s.\nAll of them: hookonce alerts\n", len(rest), names(rest, maxNamed))
	}
	if g := tame(told[0].Gateway); g != "" {
		if name := tame(told[0].Installation); name != "" {
			g += " of " + name
		}
		fmt.Fprintf(&b, "\nTold by the gateway on %s, %s.\n", g, clock(latest(told)))
	}
	return b.String()
}

// one tells of one alert.
func one(b *strings.Builder, n *alerting.Notification, dashboard string) {
	put := func(label, text string) {
		if text != "" {
			b.WriteString(label + ": " + text + "\n")
		}
	}
	if n.State == alerting.Resolved {
		fmt.Fprintf(b, "It is over: %s fired at %s, for %s.\n", tame(name(n)), clock(n.Fired), span(n.At.Sub(n.Fired)))
		put("It was", tame(n.Headline))
		put("Look", link(dashboard, name(n)))
		return
	}
	b.WriteString(tame(n.Headline) + "\n")
	if n.State == alerting.Repeat {
		fmt.Fprintf(b, "It has been firing for %s, and nobody has acknowledged it.\n", span(n.At.Sub(n.Fired)))
	}
	began := since(n)
	put("Since", fmt.Sprintf("%s, for %s", clock(began), span(n.At.Sub(began))))
	if n.Count > 0 {
		put("Count", strconv.FormatInt(n.Count, 10))
	}
	if s := n.Sample; s != nil {
		put("Example", example(s))
		put("Error", tame(s.Error))
	}
	put("Next", tame(n.Action.Label))
	put("Type", command(n.Action.Command, tame))
	put("Where", line(n.Action.Place)) // from the configuration
	put("Look", link(dashboard, name(n)))
	put("On it", command("hookonce alerts ack "+name(n)+" --reason TEXT", tame))
	if !alerting.Local(n.Rule) { // while one of those fires there is no store that would keep it
		put("Not now", command("hookonce alerts silence "+name(n)+" --for 2h --reason TEXT", tame))
	}
}

// command returns one as it is typed. One that cannot be written so that it is harmless, or is too long, is not changed: whoever
// pastes it would ask something else. It stands where no chat reads it.
func command(typed string, harmless func(string) string) string {
	if harmless(typed) != typed {
		return "hookonce status (it shows the command, and the name of the alert)"
	}
	return typed
}

// example names an event, and how to look at it.
func example(s *alert.Sample) string {
	if s.Event == 0 {
		return ""
	}
	text := "hookonce events show " + eventText(s.Event)
	var about []string
	if s.Type != "" {
		about = append(about, tame(s.Type))
	}
	if s.Source != "" {
		about = append(about, "from "+tame(s.Source))
	}
	if len(about) > 0 {
		text += " (" + strings.Join(about, " ") + ")"
	}
	return text
}

func clock(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05Z") }

// span returns a length of time in its two largest units at most.
func span(d time.Duration) string {
	d = max(d, 0)
	switch day := 24 * time.Hour; {
	case d < time.Minute:
		return fmt.Sprintf("%d s", d/time.Second)
	case d < time.Hour:
		return fmt.Sprintf("%d min", d/time.Minute)
	case d < day:
		return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
	default:
		return fmt.Sprintf("%d d %d h", d/day, d%day/time.Hour)
	}
}

// line makes one line of a text that others had a part in.
func line(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, s)
	return short(strings.TrimSpace(s), maxLine)
}

// harmless are the marks of which no chat makes a mention, a link with another text, a picture or code.
const harmless = ` _.:/+=-,;()'"%?`

// tame makes one line of such a text for people, in which no markup of a chat takes effect: strangers choose the types of events
// and what their servers answer, and might write <!channel>, @everyone or [log in](https://...).
func tame(s string) string {
	return short(strings.Map(func(r rune) rune {
		if r < unicode.MaxASCII && !strings.ContainsRune(harmless, r) && (unicode.IsPunct(r) || unicode.IsSymbol(r)) {
			return '·'
		}
		return r
	}, line(s)), maxLine)
}

// short cuts a text to so many bytes, between words if there is one near.
func short(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	s = strings.ToValidUTF8(s[:limit-len(dots)], "")
	if i := strings.LastIndexByte(s, ' '); i > limit/2 {
		s = s[:i]
	}
	return strings.TrimRight(s, " ,;:") + dots
}
