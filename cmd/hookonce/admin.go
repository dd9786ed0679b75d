package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/spf13/cobra"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/config"
	"github.com/hookonce/hookonce/internal/settings"
)

// adminFlags say where the gateway is that a command asks, and how its answer is shown.
type adminFlags struct {
	address string
	token   string
	json    bool
}

func (f *adminFlags) declare(c *cobra.Command) {
	fs := c.Flags()
	fs.SortFlags = false
	fs.StringVar(&f.address, "admin", "", "`URL` of the gateway's admin listener; "+config.AdminURLVariable+" or http://"+config.Default().Admin+" if not set")
	fs.StringVar(&f.token, "token", "", "`reference` of the token: env:NAME or file:PATH; env:"+config.AdminTokenVariable+" if that is set")
	fs.BoolVar(&f.json, "json", false, "write the answer as JSON")
}

// adminClient asks the API of a running gateway.
type adminClient struct {
	base  string
	token string
	http  *http.Client
	// command is what asks, for whom a field that the gateway refuses is a flag. Nil: it has none.
	command *cobra.Command
	// aged is told that an answer is old, once. Nil: nobody is.
	aged io.Writer
}

// old is the age from which somebody is told of it. A standby that follows is a second or two behind.
const old = 5 * time.Second

// requestTimeout is longer than the gateway works on any request.
const requestTimeout = 40 * time.Second

// client returns what asks the gateway that the flags and the environment name.
func (f *adminFlags) client(w *env, c *cobra.Command) (*adminClient, error) {
	address := cmp.Or(f.address, settings.Lookup(w.environ, config.AdminURLVariable), "http://"+config.Default().Admin)
	address, err := parseAdminURL(address)
	if err != nil {
		return nil, &usageError{c.CommandPath(), err}
	}
	token, err := f.secret(w)
	if err != nil {
		return nil, &usageError{c.CommandPath(), fmt.Errorf("--token: %w", err)}
	}
	client := newAdminClient(address, token)
	client.command, client.aged = c, w.err
	return client, nil
}

// parseAdminURL returns the URL of an admin listener, or says what is wrong.
func parseAdminURL(address string) (string, error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	u, err := url.Parse(address)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.User != nil {
		return "", errors.New("--admin: this is not the address of a gateway; write one like http://127.0.0.1:8081")
	}
	return u.String(), nil
}

// newAdminClient returns what asks the gateway whose admin listener has that URL.
func newAdminClient(url, token string) *adminClient {
	return &adminClient{
		base:  strings.TrimSuffix(url, "/") + api.Base,
		token: token,
		http: &http.Client{
			Timeout:   requestTimeout,
			Transport: &http.Transport{}, // no proxy from the environment: the token is for the gateway alone
			CheckRedirect: func(*http.Request, []*http.Request) error {
				return http.ErrUseLastResponse
			},
		},
	}
}

// secret reads the token. It never stands on the command line, where every process on the machine can
// read it.
func (f *adminFlags) secret(w *env) (string, error) {
	reference := f.token
	if reference == "" && settings.Lookup(w.environ, config.AdminTokenVariable) != "" {
		reference = "env:" + config.AdminTokenVariable
	}
	switch {
	case reference == "":
		return "", nil
	case !strings.HasPrefix(reference, "env:") && !strings.HasPrefix(reference, "file:"):
		return "", errors.New("write env:NAME or file:PATH, not the token itself")
	}
	s, err := settings.Resolver{Environ: w.environ, ReadFile: os.ReadFile}.Secret(reference)
	return s.Reveal(), err
}

// silence says why there is no answer. What was asked is left out: it may have other people's data in it.
func (a *adminClient) silence(err error) error {
	var asked *url.Error
	if errors.As(err, &asked) {
		err = asked.Err
	}
	return fmt.Errorf("the gateway at %s does not answer: %w; start it, or name another with --admin", strings.TrimSuffix(a.base, api.Base), err)
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 64 << 20

// call sends a request and reads the answer into out. body is sent as JSON unless it is nil.
func (a *adminClient) call(ctx context.Context, method, path string, body, out any) error {
	var sent io.Reader
	if body != nil {
		text, err := json.Marshal(body)
		if err != nil {
			return err
		}
		sent = bytes.NewReader(text)
	}
	req, err := a.request(ctx, method, path, sent)
	if err != nil {
		return err
	}
	res, err := a.http.Do(req)
	if err != nil {
		return a.silence(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("the gateway's answer broke off: %w", err)
	}
	if res.StatusCode != http.StatusOK {
		return a.refusal(res.StatusCode, text)
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("this is not the answer of a gateway of this version: %w", err)
	}
	a.tellAge(res.Header)
	return nil
}

// tellAge says of an answer that was read at a standby how old it is, by the clock of the gateway that names the moment.
func (a *adminClient) tellAge(h http.Header) {
	moment := api.AsOf(h)
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	if age := now.Sub(moment); a.aged != nil && !moment.IsZero() && age >= old {
		fmt.Fprintf(a.aged, "as of %s (%v ago), read at a standby: what came since is missing\n", clock(moment), age.Round(time.Second))
		a.aged = nil
	}
}

func (a *adminClient) request(ctx context.Context, method, path string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	if a.token != "" {
		req.Header.Set("Authorization", "Bearer "+a.token)
	}
	return req, nil
}

// patient returns what waits for an answer as long as the context lasts.
func (a *adminClient) patient() *adminClient {
	same, client := *a, *a.http
	client.Timeout = 0
	same.http = &client
	return &same
}

// stream opens an answer that does not end by itself. It begins behind the message with the id after, if that is set.
func (a *adminClient) stream(ctx context.Context, path, after string) (io.ReadCloser, error) {
	req, err := a.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	if after != "" {
		req.Header.Set("Last-Event-ID", after)
	}
	res, err := a.patient().http.Do(req)
	if err != nil {
		return nil, a.silence(err)
	}
	if res.StatusCode != http.StatusOK {
		defer res.Body.Close()
		text, _ := io.ReadAll(io.LimitReader(res.Body, maxAnswer)) // what is cut short is refused all the same
		return nil, a.refusal(res.StatusCode, text)
	}
	return res.Body, nil
}

// refusal makes one line of what the gateway says is wrong. If that is a flag of the command, it is wrong usage, in the words of
// whoever wrote it.
func (a *adminClient) refusal(status int, text []byte) error {
	var p huma.ErrorModel
	if json.Unmarshal(text, &p) != nil || p.Detail == "" {
		return fmt.Errorf("the answer is %d %s, and not from a gateway; name its admin listener with --admin", status, http.StatusText(status))
	}
	detail := clean(p.Detail)
	var flags []string
	for _, e := range p.Errors {
		if flag := a.flagOf(e.Location); flag != "" {
			flags = append(flags, "--"+flag+": "+clean(e.Message))
		}
		if e.Location == "" {
			detail += "\n" + clean(e.Message)
			continue
		}
		detail += "; " + clean(e.Location) + ": " + clean(e.Message)
	}
	if len(flags) > 0 {
		return &usageError{a.command.CommandPath(), &refusedError{status, strings.Join(flags, "; ")}}
	}
	if status == http.StatusUnauthorized {
		detail += " (--token)"
	}
	return &refusedError{status, detail}
}

// flagOf returns the flag of the command that a field of a request was written with, such as query.state or body.filter.state, or
// an empty text if there is none.
func (a *adminClient) flagOf(location string) string {
	if a.command == nil || location == "" {
		return ""
	}
	name := location[strings.LastIndex(location, ".")+1:]
	if name == "from" { // which events call since
		name = "since"
	}
	if a.command.Flags().Lookup(name) == nil {
		return ""
	}
	return name
}

// refusedError is what a gateway says is wrong with a request, in one line.
type refusedError struct {
	status int
	detail string
}

func (e *refusedError) Error() string { return e.detail }

// get is call without a body.
func (a *adminClient) get(ctx context.Context, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return a.call(ctx, http.MethodGet, path, nil, out)
}

// segment returns s as one part of a path. Dots alone would be taken for folders.
func segment(s string) string {
	if s == "." || s == ".." {
		return strings.ReplaceAll(s, ".", "%2E")
	}
	return url.PathEscape(s)
}
