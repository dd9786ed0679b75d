package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/alert"
	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/header"
)

// errPages is why the exit status is 1 although all was told.
var errPages = errors.New("something pages, or nobody knows")

func newStatusCommand(w *env) *cobra.Command {
	var admin adminFlags
	var ready bool
	c := &cobra.Command{
		Use:   "status [flags]",
		Short: "Say in words what is wrong with a running gateway, and what to do",
		Long: `Status asks a running gateway how all stands, and says what is wrong: in a sentence first, with the next step
below it. It costs the gateway next to nothing, and is answered while its store is away.

The exit status is 0 if nothing pages, 1 if something does or if the store did not answer all that a page
goes by, and 2 if the gateway cannot be asked.

With --ready it asks one thing, as a health check of a container does: would a sender be answered with 2xx now? It
needs no token, waits for 5s at most, and exits with 0 if so, and with 1 if not or if nobody answers. Over
HTTPS it takes any certificate of 127.0.0.1 and localhost, because it tells nothing that is secret.`,
		Args: noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if ready && admin.json {
				return &usageError{c.CommandPath(), errors.New("--ready: its answer is the exit status; leave --json out")}
			}
			client, err := admin.client(w, c)
			if err != nil {
				return err
			}
			if ready {
				return client.ready(c.Context(), w)
			}
			var o api.Overview
			if err := client.get(c.Context(), "/overview", nil, &o); err != nil {
				return &unaskedError{err}
			}
			if admin.json {
				err = printJSON(w, o)
			} else {
				err = printStatus(w, &o)
			}
			if err == nil && !o.Verdict.Healthy {
				err = &loggedError{errPages}
			}
			return err
		},
	}
	admin.declare(c)
	c.Flags().BoolVar(&ready, "ready", false, "ask whether senders are answered, and nothing else")
	return c
}

// readyTimeout is how long a health check waits. The gateway looks at its store for 2 s at most.
const readyTimeout = 5 * time.Second

// ready says whether the gateway answers senders, and returns an error if it does not.
func (a *adminClient) ready(ctx context.Context, w *env) error {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	client := *a.http
	if a.here() { // the certificate of admin_tls has the name that others ask for
		own := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer own.CloseIdleConnections()
		client.Transport = own
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(a.base, api.Base)+"/readyz", nil)
	if err != nil {
		return err
	}
	res, err := client.Do(req)
	if err != nil {
		return a.silence(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	switch {
	case err != nil:
		return fmt.Errorf("the gateway's answer broke off: %w", err)
	case res.StatusCode != http.StatusOK:
		return a.refusal(res.StatusCode, text)
	}
	_, err = fmt.Fprintln(w.out, "ready")
	return err
}

// here reports whether the gateway is asked at an address that only this machine has.
func (a *adminClient) here() bool {
	u, err := url.Parse(a.base)
	return err == nil && header.LoopbackHost(u.Host)
}

// unaskedError is why a gateway could not be asked, or nothing be sent. Its exit status is that of wrong usage.
type unaskedError struct{ error }

func (e *unaskedError) Unwrap() error { return e.error }

func printStatus(w *env, o *api.Overview) error {
	v := &o.Verdict
	fmt.Fprintf(w.out, "%s\n\n", clean(v.Headline))
	for _, a := range []struct {
		question string
		answer   alert.Answer
	}{{"Are senders refused?", v.Refused}, {"Is anything lost?", v.Lost}, {"Is anything doubled?", v.Doubled}} {
		fmt.Fprintf(w.out, "%-21s %s\n", a.question, clean(a.answer.Text))
	}
	for _, a := range v.Alerts {
		follows := ""
		if a.Cause != "" {
			follows = " (follows from " + a.Cause + ")"
		}
		fmt.Fprintf(w.out, "\n%s: %s%s\n  %s: %s\n", a.Severity, clean(a.Headline), clean(follows), clean(a.Action.Label),
			clean(cmp.Or(a.Action.Command, a.Action.Place)))
	}
	for _, p := range o.Old() {
		read := "as of " + p.Read.Format("2006-01-02 15:04:05Z")
		if p.Read.IsZero() {
			read = "could not be read yet"
		}
		fmt.Fprintf(w.out, "\n%s: %s%s", clean(p.Name), read, clean(strings.TrimSuffix(" ("+p.Error+")", " ()")))
	}
	if len(o.Old()) > 0 {
		fmt.Fprintln(w.out)
	}
	n := &o.Numbers
	_, err := fmt.Fprintf(w.out, "\nIn the last 24 hours %d events were new, %d came again, and %d of %d first attempts failed.\nThe journal has about %d events; yesterday %d were stored and %d deleted.\n",
		n.Events-n.Reseen, n.Reseen, n.First.FirstFailed, n.First.First, n.Rows, n.StoredYesterday, n.PurgedYesterday)
	return err
}
