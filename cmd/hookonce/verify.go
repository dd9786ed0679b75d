package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

const verifyHelp = `Verify takes a request as it was captured and says what a source would make of it: whether it is
authentic and if not why, each event's key and where it comes from, what a repeat would do, and how
the request would be answered. Nothing is stored. Nothing is sent either, with one exception: PayPal,
Amazon SNS, Plaid and eBay publish the keys that they sign with, and those are fetched from them.

The body must be the raw bytes of the request, unchanged to the last line break. Signed times are
judged by the clock, so a request from the past needs --now with the time of its arrival.

The exit status is 0 when the request is verified (or is a handshake that is answered), 1 when it is
rejected or cannot be decided now, because a key could not be fetched, and 2 when the command line,
the specification or a secret cannot be used.`

const verifyExample = `  hookonce verify --provider stripe --secret env:STRIPE_WEBHOOK_SECRET --body event.json \
      --now 1770091506 -H "Stripe-Signature: t=1770091506,v1=..."
  hookonce verify --spec acme.yaml --secret file:secret.txt --body event.json -H "X-Acme-Signature: ..."`

// verifyOptions are what the command line says.
type verifyOptions struct {
	provider, spec string
	secrets        []string
	token          string
	handshakes     bool
	now            string
	method, url    string
	signedURL      string
	headers        []string
	body           string
	json           bool
}

func newVerifyCommand(w *world) *cobra.Command {
	var o verifyOptions
	c := &cobra.Command{
		Use:     "verify --provider NAME --secret SECRET --body FILE [flags]",
		Short:   "Say what a source would make of a captured request, and why",
		Long:    verifyHelp,
		Example: verifyExample,
		Args:    noArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			v, err := o.verdict(w)
			if err != nil {
				return &usageError{c.CommandPath(), err}
			}
			return o.report(w, v)
		},
	}
	f := c.Flags()
	f.SortFlags = false
	f.StringVar(&o.provider, "provider", "", "`name` of the provider in the catalogue; see hookonce providers")
	f.StringVar(&o.spec, "spec", "", "`file` with a specification of your own, in place of --provider")
	f.StringArrayVar(&o.secrets, "secret", nil, "secret, as a `reference`: env:NAME, file:PATH, or the secret itself; may be repeated")
	f.StringVar(&o.now, "now", "", "time of arrival in `unix` seconds; the current time if not set")
	f.StringVar(&o.method, "method", http.MethodPost, "HTTP `method` of the request")
	f.StringVar(&o.url, "url", "", "`URL` that the provider called, with its query")
	declareSignedURL(f, &o.signedURL, "--url, without its query if the method is not POST")
	f.StringArrayVarP(&o.headers, "header", "H", nil, "`header` of the request, as 'Name: value'; may be repeated")
	f.StringVar(&o.body, "body", "", "`file` with the raw body, - for standard input")
	f.BoolVar(&o.handshakes, "handshakes", false, "answer handshakes, as a source with handshakes: true does")
	f.StringVar(&o.token, "token", "", "token that handshakes ask for, as a `reference` like --secret; implies --handshakes")
	f.BoolVar(&o.json, "json", false, "write the verdict as JSON")
	return c
}

// verdict looks at the request. Its errors are mistakes of whoever asks.
func (o *verifyOptions) verdict(w *world) (*verdict, error) {
	known, err := specification(o.provider, o.spec)
	if err != nil {
		return nil, err
	}
	settings, err := o.settings(w)
	if err != nil {
		return nil, err
	}
	req, err := o.request(w)
	if err != nil {
		return nil, err
	}
	p, err := build(known, o.spec, settings)
	if err != nil {
		return nil, err
	}
	return judge(p, settings, req), nil
}

// specification returns what --provider or --spec names.
func specification(provider, file string) (spec.Spec, error) {
	switch {
	case file != "" && provider != "" && provider != "custom":
		return spec.Spec{}, errors.New("--provider and --spec exclude each other; keep one")
	case file != "":
		return readSpec(file)
	case provider == "custom":
		return spec.Spec{}, errors.New("--provider custom: give its specification with --spec")
	case provider == "":
		return spec.Spec{}, errors.New("--provider is missing: name one of the catalogue (see hookonce providers), or give a specification with --spec")
	}
	return catalogued(provider)
}

// readSpec reads a specification in YAML.
func readSpec(file string) (spec.Spec, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return spec.Spec{}, fmt.Errorf("--spec: %w", err)
	}
	known, err := spec.Parse(text)
	if known.Name == "" { // as the name of a source does in a configuration, the file's name will do
		known.Name = strings.TrimSuffix(filepath.Base(file), filepath.Ext(file))
	}
	if err == nil {
		err = known.Validate()
	}
	return known, located(file, err)
}

// located says where in the file of a specification its faults are.
func located(file string, err error) error {
	text, unread := os.ReadFile(file)
	var faults spec.Faults
	if unread != nil || !errors.As(spec.Locate(text, err), &faults) {
		return err
	}
	lines := make([]string, len(faults))
	for i, fault := range faults {
		lines[i] = file + ":" + fault.Error()
	}
	return errors.New("--spec:\n" + strings.Join(lines, "\n"))
}

// build returns the provider, and says what kind of secret is needed where the one given does not fit, or
// where in the file of a specification the fault is.
func build(known spec.Spec, file string, settings spec.Settings) (*spec.Provider, error) {
	p, err := spec.New(known, settings)
	if errors.Is(err, spec.ErrSecret) {
		return nil, fmt.Errorf("--secret: %w; it needs %s", err, known.WithDefaults().Secret)
	}
	return p, located(file, err)
}

// catalogued returns the specification of that name.
func catalogued(name string) (spec.Spec, error) {
	known, err := provider.Lookup(name)
	if err != nil {
		err = fmt.Errorf("--provider: %w", err)
	}
	return known, err
}

func (o *verifyOptions) settings(w *world) (spec.Settings, error) {
	s := spec.Settings{URL: o.registered(), Handshakes: o.handshakes || o.token != ""}
	if len(o.secrets) == 0 {
		return s, errors.New("--secret is missing: give env:NAME, file:PATH or the secret itself")
	}
	in := config.Input{Environ: w.environ, ReadFile: os.ReadFile}
	for _, reference := range o.secrets {
		secret, err := config.ResolveSecret(reference, in)
		if err != nil {
			return s, fmt.Errorf("--secret: %w", err)
		}
		s.Secrets = append(s.Secrets, spec.Secret{Text: secret.Reveal()})
	}
	if o.token != "" {
		token, err := config.ResolveSecret(o.token, in)
		if err != nil {
			return s, fmt.Errorf("--token: %w", err)
		}
		s.Token = token.Reveal()
	}
	return s, nil
}

// registered returns the URL that is registered with the provider. It is the one that was called, but a
// challenge adds to the query of that.
func (o *verifyOptions) registered() string {
	if o.signedURL == "" && !strings.EqualFold(o.method, http.MethodPost) {
		return withoutQuery(o.url)
	}
	return cmp.Or(o.signedURL, o.url)
}

// request returns the captured request.
func (o *verifyOptions) request(w *world) (*hookonce.Request, error) {
	now := time.Now()
	if o.now != "" {
		seconds, err := strconv.ParseInt(o.now, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("--now is %q; write the time of arrival in unix seconds, such as 1770091506", o.now)
		}
		now = time.Unix(seconds, 0)
	}
	header, err := parseHeaders(o.headers)
	if err != nil {
		return nil, err
	}
	req := &hookonce.Request{Method: strings.ToUpper(o.method), URL: o.url, Header: header, Now: now}
	switch {
	case o.body == "-":
		req.Body, err = io.ReadAll(w.in)
	case o.body != "":
		req.Body, err = os.ReadFile(o.body)
	case req.Method == http.MethodPost:
		err = errors.New("is missing: name the file with the raw body, or - for standard input")
	}
	if err != nil {
		return nil, fmt.Errorf("--body: %w", err)
	}
	return req, nil
}

// parseHeaders reads headers written as 'Name: value'.
func parseHeaders(lines []string) (http.Header, error) {
	header := http.Header{}
	for _, line := range lines {
		name, value, ok := strings.Cut(line, ":")
		if name = strings.TrimSpace(name); !ok || name == "" || strings.ContainsAny(line, "\r\n") {
			return nil, fmt.Errorf("-H %q is not a header; write 'Name: value'", line)
		}
		header.Add(name, strings.TrimSpace(value))
	}
	return header, nil
}

// report writes the verdict. A rejection is a failure of the command.
func (o *verifyOptions) report(w *world, v *verdict) error {
	if o.json {
		enc := json.NewEncoder(w.out)
		enc.SetIndent("", "  ")
		enc.SetEscapeHTML(false)
		if err := enc.Encode(v); err != nil {
			return err
		}
	} else {
		v.print(w.out)
	}
	if v.Verified || v.Handshake != nil {
		return nil
	}
	return errors.New("the request is not verified: " + cmp.Or(v.Code, "it cannot be decided now"))
}
