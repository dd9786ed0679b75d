package main

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/settings"
)

func newAlertsCommand(w *env) *cobra.Command {
	c := newAlertsListCommand(w, "alerts", "Show what fires, say who is on it, and try whether people are told")
	c.Long = `Alerts asks a running gateway, on its admin listener, which alerts fire and who looks after them, and has nobody
told of them for a while. An alert is called by its rule and, after a slash, its subject: destination_failing/ledger.
Without a command it lists them.`
	c.Use, c.Args = "alerts", cobra.ArbitraryArgs
	list := c.RunE
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) > 0 {
			return helpOrUnknown(c, args)
		}
		return list(c, args)
	}
	c.AddCommand(
		newAlertsListCommand(w, "list", "List the alerts that fire, silences, and who is told"),
		newAlertsRulesCommand(w),
		newAlertsHistoryCommand(w),
		newAckCommand(w),
		newSilenceCommand(w),
		newUnsilenceCommand(w),
		newAlertsTestCommand(w),
	)
	return c
}

func newAlertsListCommand(w *env, use, short string) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   use + " [flags]",
		Short: short,
		Args:  noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			list := api.AlertList{Evaluated: true} // a gateway of an older version does not say
			if err := client.get(c.Context(), "/alerts", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printAlerts(w, &list)
		},
	}
	admin.declare(c)
	return c
}

func printAlerts(w *env, list *api.AlertList) error {
	switch {
	case !list.Evaluated:
		fmt.Fprintln(w.out, "Nothing is evaluated: alerts.enabled is false; what follows is how it stood.")
	case len(list.Alerts) == 0:
		fmt.Fprintln(w.out, "Nothing fires.")
	}
	for i := range list.Alerts {
		a := &list.Alerts[i]
		fmt.Fprintf(w.out, "%s  %s  %s since %s\n", clean(a.Name), a.Severity, a.State, clock(a.Since))
		line(w.out, "what", clean(a.Headline))
		if a.Acknowledged != nil {
			line(w.out, "on it", fmt.Sprintf("%s since %s: %s", clean(a.Acknowledged.By), clock(a.Acknowledged.At), clean(a.Acknowledged.Reason)))
		}
		if a.Silenced != nil {
			line(w.out, "silent", fmt.Sprintf("until %s by %s: %s", clock(a.Silenced.Until), clean(a.Silenced.By), clean(a.Silenced.Reason)))
		}
		line(w.out, "cause", clean(a.Cause))
		line(w.out, "next", clean(a.Action.Label))
		line(w.out, "type", clean(a.Action.Command))
		line(w.out, "where", clean(a.Action.Place))
		fmt.Fprintln(w.out)
	}
	if len(list.Silences) > 0 {
		t := newTable(w, "", "SILENCE | OF | UNTIL | BY | WHY")
		for _, s := range list.Silences {
			t.row("", s.ID, s.Alert, clock(s.Until), s.By, s.Reason)
		}
		if err := t.Flush(); err != nil {
			return err
		}
		fmt.Fprintln(w.out)
	}
	if len(list.Channels) == 0 {
		fmt.Fprintln(w.out, "Nobody is told: name a channel under alerts.notify in the configuration.")
		return nil
	}
	t := newTable(w, "", "CHANNEL | KIND | TOLD OF | WAITING | LAST ERROR")
	for _, c := range list.Channels {
		t.row("", c.Name, c.Kind, joined(c.Severities), c.Waiting, failure(c.Failed))
	}
	return t.Flush()
}

// failure says why a channel could not be told last.
func failure(f *api.Failed) string {
	switch {
	case f == nil:
		return ""
	case f.GaveUp:
		return clock(f.At) + ", given up: " + f.Error
	}
	return clock(f.At) + ": " + f.Error
}

func joined(words []string) (text string) {
	for i, word := range words {
		if i > 0 {
			text += ", "
		}
		text += word
	}
	return text
}

func newAlertsRulesCommand(w *env) *cobra.Command {
	var admin adminFlags
	c := &cobra.Command{
		Use:   "rules [flags]",
		Short: "List the rules that alerts go by, and how each stands",
		Long: `Rules lists every rule as it is configured, those first that hold or are nearest to it: at 100 % of what it takes. What
it looks at is that of the source or destination which is nearest, or worst.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.AlertRules
			if err := client.get(c.Context(), "/alerts/rules", nil, &list); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, list)
			}
			return printRules(w, &list)
		},
	}
	admin.declare(c)
	return c
}

func printRules(w *env, list *api.AlertRules) error {
	if !list.Evaluated {
		fmt.Fprintln(w.out, "Nothing is evaluated: alerts.enabled is false.")
	}
	alert.Nearest(list.Rules)
	t := newTable(w, "", "RULE | STATE | SHARE | NOW | OF | FROM | FOR | AT MOST")
	for i := range list.Rules {
		is := &list.Rules[i]
		t.row("", is.Rule, is.State(), is.Reached(), is.Now, is.Subject, is.Limit, is.Lasts(), is.Severity)
	}
	return t.Flush()
}

func newAlertsHistoryCommand(w *env) *cobra.Command {
	var admin adminFlags
	var limit int
	var cursor string
	c := &cobra.Command{
		Use:   "history [ALERT] [flags]",
		Short: "List what happened to alerts, newest first",
		Long: `History lists when alerts fired and ended, who was told, and what people did. ALERT is a rule, or a rule, a slash
and a subject; without it the history is that of all.`,
		Args: atMostOneArg("ALERT"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			query := url.Values{"limit": {fmt.Sprint(limit)}}
			if len(args) > 0 {
				query.Set("alert", args[0])
			}
			if cursor != "" {
				query.Set("cursor", cursor)
			}
			var part api.AlertHistory
			if err := client.get(c.Context(), "/alerts/history", query, &part); err != nil {
				return err
			}
			if admin.json {
				return printJSON(w, part)
			}
			if len(part.History) == 0 {
				of := "any alert"
				if len(args) > 0 {
					of = args[0]
				}
				fmt.Fprintf(w.out, "Nothing is on record of %s.\n", clean(of))
				return nil
			}
			t := newTable(w, "", "WHEN | ALERT | WHAT | SEVERITY | BY | TEXT")
			for _, r := range part.History {
				t.row("", clock(r.At), r.Alert, r.Event, r.Severity, r.By, r.Text)
			}
			if err := t.Flush(); err != nil {
				return err
			}
			if part.Cursor != "" {
				fmt.Fprintf(w.err, "There is more: --cursor %s\n", part.Cursor)
			}
			return nil
		},
	}
	admin.declare(c)
	c.Flags().IntVar(&limit, "limit", 50, "most `lines` to list, at most 200")
	c.Flags().StringVar(&cursor, "cursor", "", "`text` with which the last part ended, to go on")
	return c
}

// reasonFlag declares --reason.
func reasonFlag(fs *pflag.FlagSet, to *string) {
	fs.StringVar(to, "reason", "", "why, for the record, as a `text`")
}

// needReason refuses a change for which nobody says why.
func needReason(c *cobra.Command, reason string) error {
	if reason == "" {
		return &usageError{c.CommandPath(), errors.New("say why with --reason; it is kept on record")}
	}
	return nil
}

func newAckCommand(w *env) *cobra.Command {
	var admin adminFlags
	var reason string
	c := &cobra.Command{
		Use:   "ack ALERT --reason TEXT [flags]",
		Short: "Say that you are on an alert, so that it is not told again",
		Long: `Ack says that somebody is on an alert that fires. Nobody is told of it again until it is over or becomes more
severe; that it is over is told.`,
		Args: oneArg("ALERT"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if err := needReason(c, reason); err != nil {
				return err
			}
			var done api.AlertDone
			if err := client.call(c.Context(), http.MethodPost, "/alerts/acknowledge", map[string]string{"alert": args[0], "reason": reason}, &done); err != nil {
				return err
			}
			return admin.done(w, done, "%s is acknowledged.\n", clean(done.Alert))
		},
	}
	admin.declare(c)
	reasonFlag(c.Flags(), &reason)
	return c
}

// done writes what a change came to.
func (f *adminFlags) done(w *env, answer any, format string, args ...any) error {
	if f.json {
		return printJSON(w, answer)
	}
	_, err := fmt.Fprintf(w.out, format, args...)
	return err
}

func newSilenceCommand(w *env) *cobra.Command {
	var admin adminFlags
	var reason, until, span string
	c := &cobra.Command{
		Use:   "silence ALERT (--for TIME | --until TIME) --reason TEXT [flags]",
		Short: "Have nobody told of an alert for a while",
		Long: `Silence keeps alerts from being told until a time, whether they fire already or not. They are evaluated, shown and on
record as before. ALERT is a rule and, after a slash, a subject; a star stands for any: '*/ledger' is all that concerns
ledger, 'died/*' one rule, and '*/*' everything.`,
		Args: oneArg("ALERT"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if err := needReason(c, reason); err != nil {
				return err
			}
			end, err := silenceEnd(until, span, time.Now())
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			var s api.AlertSilence
			body := map[string]any{"alert": args[0], "until": end, "reason": reason}
			if err := client.call(c.Context(), http.MethodPost, "/alerts/silences", body, &s); err != nil {
				return err
			}
			return admin.done(w, s, "Nobody is told of %s until %s: silence %s.\n", clean(s.Alert), clock(s.Until), clean(s.ID))
		},
	}
	admin.declare(c)
	c.Flags().StringVar(&span, "for", "", "length of `time`, such as 2h or 3d")
	c.Flags().StringVar(&until, "until", "", "`time` at which it ends, such as 2026-11-23T08:00:00Z")
	reasonFlag(c.Flags(), &reason)
	return c
}

// silenceEnd reads when a silence ends from one of two flags.
func silenceEnd(until, span string, now time.Time) (end time.Time, err error) {
	switch {
	case (until == "") == (span == ""):
		return end, errors.New("say for how long with --for, such as --for 2h, or with --until, such as --until 2026-11-23T08:00:00Z")
	case span != "":
		var d time.Duration
		if err := settings.Duration(&d, time.Minute, 90*settings.Day).Set(span); err != nil {
			return end, fmt.Errorf("--for: %w", err)
		}
		return now.Add(d).UTC(), nil
	}
	if end, err = time.Parse(time.RFC3339, until); err != nil {
		return end, fmt.Errorf("--until: %q is no time; write one such as 2026-11-23T08:00:00Z", until)
	}
	return end, nil
}

func newUnsilenceCommand(w *env) *cobra.Command {
	var admin adminFlags
	var reason string
	c := &cobra.Command{
		Use:   "unsilence ID --reason TEXT [flags]",
		Short: "End a silence before its time",
		Args:  oneArg("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if err := needReason(c, reason); err != nil {
				return err
			}
			var done api.AlertDone
			if err := client.call(c.Context(), http.MethodPost, "/alerts/silences/"+segment(args[0])+"/end", map[string]string{"reason": reason}, &done); err != nil {
				return err
			}
			return admin.done(w, done, "Silence %s has ended.\n", clean(done.Alert))
		},
	}
	admin.declare(c)
	reasonFlag(c.Flags(), &reason)
	return c
}

func newAlertsTestCommand(w *env) *cobra.Command {
	var admin adminFlags
	var reason string
	c := &cobra.Command{
		Use:   "test [CHANNEL] [flags]",
		Short: "Send a test message, and show what the receiver said",
		Long: `Test has the gateway send a message to each receiver of a channel of alerts.notify, or of all channels, that says that
nothing is wrong. It exits 1 if one of them could not be told. With --json it writes one list, with an element for each channel.`,
		Args: atMostOneArg("CHANNEL"),
		RunE: func(c *cobra.Command, args []string) error {
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			var list api.AlertList
			if err := client.get(c.Context(), "/alerts", nil, &list); err != nil {
				return err
			}
			var names []string
			for _, channel := range list.Channels {
				if len(args) == 0 || channel.Name == args[0] || strings.HasPrefix(channel.Name, args[0]+".") { // a further receiver
					names = append(names, channel.Name)
				}
			}
			if len(names) == 0 {
				names = args // what is wrong with it, the gateway says
			}
			return testChannels(w, c, client, &admin, names, reason)
		},
	}
	admin.declare(c)
	c.Flags().StringVar(&reason, "reason", "test", "why, for the log, as a `text`")
	return c
}

// testChannels sends a test message over each channel.
func testChannels(w *env, c *cobra.Command, client *adminClient, admin *adminFlags, names []string, reason string) error {
	if len(names) == 0 {
		return errors.New("there is no channel; name one under alerts.notify in the configuration, and reload")
	}
	failed, all := 0, []api.ChannelTest{}
	for _, name := range names {
		var t api.ChannelTest
		if err := client.call(c.Context(), http.MethodPost, "/alerts/channels/"+segment(name)+"/test", map[string]string{"reason": reason}, &t); err != nil {
			return err
		}
		all = append(all, t)
		said := "took it"
		if !t.Arrived {
			failed++
			said = "could not be told"
		}
		if t.Answer != "" {
			said += ": " + clean(t.Answer)
		}
		if !admin.json {
			fmt.Fprintf(w.out, "%s %s\n", clean(t.Channel), said)
		}
	}
	if admin.json {
		if err := printJSON(w, all); err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d channels could not be told", failed, len(names))
	}
	return nil
}
