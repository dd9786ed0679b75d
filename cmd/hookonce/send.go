package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
)

// sampleTime is when sample events happened. It is always the same, so that the same id is the same
// event: another body under that id would be a conflict.
var sampleTime = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// sending is one event to send.
type sending struct {
	signing
	to, id  string
	copies  int
	timeout time.Duration
	hint    string // why the endpoint may have refused it
}

const sendHelp = `Send makes a realistic event of a provider in the catalogue, signs it and posts it to the URL. The
answer is printed. The same --id is the same event, and so are all --copies, which are sent one
after the other (hookonce hammer sends them at one instant). Redirects are not followed: senders of
webhooks do not do that either.

A specification of your own (--spec) needs an example to send: its block example, or --body.
Providers that sign with a private key cannot be imitated, but for HTTP message signatures: make a key of
your own, give it here and its public key to the endpoint.

The exit status is 0 when every copy was answered with 2xx, 1 when one was not, and 2 when the
command line, the specification or the secret cannot be used.`

const sendExample = `  hookonce send --provider stripe --secret env:STRIPE_WEBHOOK_SECRET --to http://127.0.0.1:8080/in/billing --copies 2
  hookonce send --provider http-signature --secret file:sender-key.pem --to http://127.0.0.1:8080/in/partner
  hookonce send --spec acme.yaml --secret file:secret.txt --body event.json --to http://127.0.0.1:8080/in/acme`

func newSendCommand(w *env) *cobra.Command {
	var s sending
	c := &cobra.Command{
		Use:     "send --provider NAME --secret SECRET --to URL [flags]",
		Short:   "Sign a sample event the way a provider does, and send it",
		Long:    sendHelp,
		Example: sendExample,
		RunE: func(c *cobra.Command, args []string) error {
			if err := s.check(args); err != nil {
				return &usageError{c.CommandPath(), err}
			}
			event, err := s.event(w)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return s.run(c.Context(), w, event)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	s.signing.declare(f)
	f.StringVar(&s.to, "to", "", "`URL` to post to; it may stand without the flag as well")
	f.StringVar(&s.id, "id", "", "`id` of the event; a new one of the provider's kind if not set")
	f.IntVar(&s.copies, "copies", 1, "`number` of times to send it")
	f.DurationVar(&s.timeout, "timeout", 10*time.Second, "longest `time` to wait for an answer")
	return c
}

// check takes the URL from the arguments, where it may stand without a flag.
func (s *sending) check(args []string) error {
	switch {
	case s.to == "" && len(args) == 0:
		return errors.New("the URL is missing; give it with --to")
	case s.to != "" && len(args) > 0:
		return fmt.Errorf("--to is set, but %q was given as well; keep one", args[0])
	case len(args) > 1:
		return fmt.Errorf("the command takes one URL, but %q was given as well; remove it", args[1])
	case s.copies < 1 || s.copies > 1000:
		return fmt.Errorf("--copies is %d; it must be from 1 to 1000", s.copies)
	case s.timeout <= 0:
		return fmt.Errorf("--timeout is %v; it must be more than 0", s.timeout)
	}
	s.to += strings.Join(args, "")
	return nil
}

// event returns the signed request. Its errors are mistakes of whoever asks.
func (s *sending) event(w *env) (*hookonce.Request, error) {
	from, err := s.signer(w, s.to)
	if err != nil {
		return nil, err
	}
	if known := from.Provider.Spec(); known.SignsURL() && s.signedURL == "" {
		s.hint = "; " + known.Title + " signs its URL: if the endpoint knows itself under another one, give that as --signed-url"
	}
	now := time.Now()
	id := s.id
	if id == "" {
		id = from.Provider.Spec().Example.NewID()
	}
	return from.Sign(id, sampleTime, now)
}

// run sends every copy, and fails if one of them is not taken.
func (s *sending) run(ctx context.Context, w *env, event *hookonce.Request) error {
	var failed error
	for range s.copies {
		if err := s.post(ctx, w, event); err != nil {
			failed = err
		}
	}
	return failed
}

// post sends the request and prints the answer. Errors do not show the query, where a token may be.
func (s *sending) post(ctx context.Context, w *env, event *hookonce.Request) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.timeout, fmt.Errorf("the server did not answer within %v", s.timeout))
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, event.Method, event.URL, bytes.NewReader(event.Body))
	if err != nil {
		return fmt.Errorf("the URL cannot be used: %w", err)
	}
	req.Header = event.Header.Clone()
	client := http.Client{CheckRedirect: keepRedirect}
	answer, err := client.Do(req)
	if err != nil {
		return fmt.Errorf("the event could not be sent to %s: %w", withoutQuery(s.to), cause(ctx, err))
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("the answer could not be read: %w", cause(ctx, err))
	}
	fmt.Fprintf(w.out, "%s\n%s\n", answer.Status, bytes.TrimSpace(body))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s did not take the event%s", withoutQuery(s.to), s.hint)
	}
	return nil
}

// keepRedirect takes a redirect for the answer: senders of webhooks do not follow them.
func keepRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
