package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// sampleTime is when sample events happened. It is always the same, so that the same id is the same
// event: another body under that id would be a conflict.
var sampleTime = time.Date(2026, time.January, 1, 12, 0, 0, 0, time.UTC)

// sending is one event to send.
type sending struct {
	provider, secret, id, kind string
	timeout                    time.Duration
}

func newSendCommand(w *world) *cobra.Command {
	var s sending
	c := &cobra.Command{
		Use:   "send URL [flags]",
		Short: "Sign a sample event the way a provider does, and send it",
		Long: `Send makes a realistic event of a provider in the catalogue, signs it and posts it to the URL. The
answer is printed; an answer outside 2xx is a failure. The same --id is the same event.`,
		Args: oneArg("URL"),
		RunE: func(c *cobra.Command, args []string) error {
			return s.run(c.Context(), w, args[0])
		},
	}
	c.Flags().StringVar(&s.provider, "provider", devProvider, "`name` of the provider to send as")
	c.Flags().StringVar(&s.secret, "secret", "", "secret to sign with, as a `reference`: env:NAME or file:PATH")
	c.Flags().StringVar(&s.id, "id", "", "`id` of the event; a new one if not set")
	c.Flags().StringVar(&s.kind, "type", "", "`type` of the event; the provider's usual one if not set")
	c.Flags().DurationVar(&s.timeout, "timeout", 10*time.Second, "longest `time` to wait for the answer")
	return c
}

func (s sending) run(ctx context.Context, w *world, url string) error {
	ctx, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	req, err := s.request(ctx, w, url)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return fmt.Errorf("the event could not be sent: %w", err)
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(io.LimitReader(answer.Body, 1<<16))
	if err != nil {
		return fmt.Errorf("the answer could not be read: %w", err)
	}
	fmt.Fprintf(w.out, "%s\n%s\n", answer.Status, bytes.TrimSpace(body))
	if answer.StatusCode/100 != 2 {
		return fmt.Errorf("%s did not take the event", url)
	}
	return nil
}

// request returns the signed request.
func (s sending) request(ctx context.Context, w *world, url string) (*http.Request, error) {
	secret, err := config.ResolveSecret(s.secret, config.Input{Environ: w.environ, ReadFile: os.ReadFile})
	if err != nil {
		return nil, fmt.Errorf("--secret: %w", err)
	}
	p, err := provider.Build(s.provider, spec.Settings{Secrets: spec.Secrets(secret.Reveal())})
	if err != nil {
		return nil, fmt.Errorf("--provider: %w", err)
	}
	now := time.Now()
	id := s.id
	if id == "" {
		id = fmt.Sprintf("msg_%x", now.UnixNano())
	}
	signed := &hookonce.Request{Method: http.MethodPost, URL: url, Now: now}
	signed.Header, signed.Body = p.Spec().Sample(id, s.kind, sampleTime)
	if err := p.Sign(signed); err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(string(signed.Body)))
	if err != nil {
		return nil, fmt.Errorf("the URL can not be used: %w", err)
	}
	req.Header = signed.Header
	return req, nil
}
