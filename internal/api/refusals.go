package api

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/refusals"
)

// RefusalCounts counts what this process refused.
type RefusalCounts struct {
	Sources []RefusalCount `json:"sources" nullable:"false" doc:"By name; last, as -, all paths under which there is none."`
}

// RefusalCount is how much of one source was refused.
type RefusalCount struct {
	Source string `json:"source"`
	Total  int64  `json:"total" doc:"How many there were since this process began, or since the source is configured."`
}

func (a *api) refusalCounts(context.Context, *struct{}) (*answer[RefusalCounts], error) {
	totals := a.opt.Refusals.Totals()
	out := &answer[RefusalCounts]{}
	for _, s := range a.opt.Sources() {
		out.Body.Sources = append(out.Body.Sources, RefusalCount{s.Name, totals[s.Name]})
	}
	slices.SortFunc(out.Body.Sources, func(a, b RefusalCount) int { return strings.Compare(a.Source, b.Source) })
	out.Body.Sources = append(out.Body.Sources, RefusalCount{unknownPaths, totals[""]})
	return out, nil
}

// unknownPaths stands for all paths under which there is no source.
const unknownPaths = "-"

// Refusal is a request that this process did not acknowledge.
type Refusal struct {
	At      time.Time `json:"at"`
	Address string    `json:"address" doc:"Where it came from, as far as it can be told."`
	Method  string    `json:"method"`
	Path    string    `json:"path" doc:"How it begins: what may be secret in it is left out."`
	Status  int       `json:"status" doc:"Of the answer."`
	Reason  string    `json:"reason" doc:"One of a closed set, as in the metric hookonce_rejected_total."`
	Words   string    `json:"words" doc:"What was wrong."`
	Missing string    `json:"missing_header,omitempty" doc:"The header that was missing, if one was."`
	Headers []string  `json:"headers" nullable:"false" doc:"The names of those that came."`
	Body    *Body     `json:"body,omitempty" doc:"Missing: it was refused before its body was looked at."`
	Key     string    `json:"unverified_key,omitempty" doc:"The key that the event would have, or the first of them, as the request says it. A stranger can have made it up: it is for finding a request, and proves nothing."`
	Verify  string    `json:"verify,omitempty" doc:"The command that finds out more, with what is to be filled in in capitals. Missing: it has nothing to say about this."`
}

// Body is what is known of the body of a refused request.
type Body struct {
	Bytes  int64  `json:"bytes" doc:"As far as it was read."`
	SHA256 string `json:"sha256" doc:"Of these bytes."`
}

// RefusalList lists what this process refused.
type RefusalList struct {
	Refusals []Refusal `json:"refusals" nullable:"false" doc:"The last ones, newest first, 200 at most, and fewer where there are many sources. They are kept in the memory of this process alone."`
	Total    int64     `json:"total" doc:"How many there were since this process began, or since the source is configured."`
}

type refusalsInput struct {
	Name string `path:"name" maxLength:"64" doc:"Of a source; - stands for all paths under which there is none."`
}

func (a *api) refusals(_ context.Context, in *refusalsInput) (*answer[RefusalList], error) {
	var source Source
	if in.Name != unknownPaths {
		var err error
		if source, err = a.sourceAt(in.Name); err != nil {
			return nil, err
		}
	}
	last, total := a.opt.Refusals.Of(source.Name)
	out := &answer[RefusalList]{RefusalList{Refusals: make([]Refusal, 0, len(last)), Total: total}}
	for i := range last {
		out.Body.Refusals = append(out.Body.Refusals, newRefusal(&last[i], &source))
	}
	return out, nil
}

func newRefusal(r *refusals.Refusal, of *Source) Refusal {
	one := Refusal{
		At: r.At.UTC(), Address: r.Address, Method: r.Method, Path: r.Path, Status: r.Status, Reason: r.Reason, Words: r.Words,
		Missing: r.Header, Headers: append([]string{}, r.Headers...), Key: r.UnverifiedKey, Verify: r.Command(of.Provider, of.Provider == customProvider),
	}
	if r.Body.Read {
		one.Body = &Body{r.Body.Length, r.Body.SHA256}
	}
	return one
}

// customProvider is the provider of a source whose sender is described by a specification of one's own.
const customProvider = "custom"
