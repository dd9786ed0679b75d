package dashboard

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/problem"
)

// Refusal is why the API does not do or tell what a page asks for.
type Refusal struct {
	huma.ErrorModel
	// Again says that the API may be asked again: nothing was done, or what was done is left alone then.
	Again bool `json:"-"`
}

func refusal(status int, detail string) *Refusal {
	return &Refusal{ErrorModel: huma.ErrorModel{Status: status, Title: http.StatusText(status), Detail: detail}}
}

func (r *Refusal) Error() string {
	text := r.Detail
	for _, e := range r.Errors {
		text += "; "
		if _, field, ok := strings.Cut(e.Location, "."); ok {
			text += strings.TrimPrefix(field, "filter.") + ": "
		}
		text += e.Message
	}
	return text
}

// Problem is the refusal as it is shown.
func (r *Refusal) Problem() *problem.Details {
	return &problem.Details{Status: r.Status, Detail: r.Error()}
}

// get asks the API, on account of the visitor whose context this is, and reads the answer into out.
func (d *dashboard) get(ctx context.Context, path string, query url.Values, out any) error {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	return d.ask(ctx, http.MethodGet, path, nil, out)
}

// post has the API do something.
func (d *dashboard) post(ctx context.Context, path string, in, out any) error {
	return d.ask(ctx, http.MethodPost, path, in, out)
}

func (d *dashboard) ask(ctx context.Context, method, path string, in, out any) error {
	body := new(bytes.Buffer)
	if in != nil {
		if err := json.NewEncoder(body).Encode(in); err != nil {
			return err
		}
	}
	r, err := http.NewRequestWithContext(ctx, method, api.Base+path, body)
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	a := answer{header: http.Header{}, status: http.StatusOK}
	d.opt.API.ServeHTTP(&a, r)
	noteAsOf(ctx, api.AsOf(a.header))
	if a.status != http.StatusOK {
		why := refusal(a.status, http.StatusText(a.status))
		why.Again = a.header.Get("Retry-After") != ""
		_ = json.Unmarshal(a.body.Bytes(), &why.ErrorModel) // what is no problem has a status all the same
		return why
	}
	if err := json.Unmarshal(a.body.Bytes(), out); err != nil {
		return fmt.Errorf("the answer to %s %s: %w", method, path, err)
	}
	return nil
}

// asOf is the moment up to which what a page shows is complete; zero: it was read where it is written. A page asks one
// question after the other.
type asOf struct{ moment time.Time }

type asOfKey struct{}

// noteAsOf notes the moment that an answer of the API names.
func noteAsOf(ctx context.Context, moment time.Time) {
	a, _ := ctx.Value(asOfKey{}).(*asOf)
	if a == nil || moment.IsZero() {
		return
	}
	if a.moment.IsZero() || moment.Before(a.moment) {
		a.moment = moment
	}
}

// answer keeps what the API answers.
type answer struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (a *answer) Header() http.Header         { return a.header }
func (a *answer) WriteHeader(status int)      { a.status = status }
func (a *answer) Write(b []byte) (int, error) { return a.body.Write(b) }
