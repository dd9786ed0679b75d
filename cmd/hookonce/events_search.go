package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/journal"
)

// eventSearch lists events, page after page.
type eventSearch struct {
	w      *world
	client *adminClient
	filter api.Filter
	limit  int
}

// run searches from the cursor on and prints what it finds. What was found before something went wrong is
// printed too, with how to go on.
func (s *eventSearch) run(ctx context.Context, cursor string, asJSON bool) error {
	list, failed := s.collect(ctx, cursor)
	if failed != nil && ctx.Err() != nil {
		failed = errors.New("it was interrupted")
	}
	if failed != nil && list.Cursor == cursor {
		return failed // nothing was looked at
	}
	show := s.print
	if asJSON {
		show = func(l *api.EventList) error { return printJSON(s.w, l) }
	}
	if err := show(list); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("the search stopped early, at what was accepted at %s: %w; go on with --cursor %s", clockOf(list.LookedTo), failed, list.Cursor)
	}
	return nil
}

const (
	patientTries = 3           // in a row, of a gateway that is busy
	patientWait  = time.Second // between them, which is its Retry-After
)

// collect gathers pages until there are enough events, or all were looked at. It says how far it has come each time
// that the gateway stops, and is patient with one that is busy when it has begun. With an error it returns what it has.
func (s *eventSearch) collect(ctx context.Context, cursor string) (*api.EventList, error) {
	all := &api.EventList{Events: []api.Event{}, Cursor: cursor}
	for tries := 0; ; {
		page, err := s.page(ctx, all.Cursor, s.limit-len(all.Events))
		var refused *refusedError
		switch {
		case errors.As(err, &refused) && refused.status == http.StatusServiceUnavailable && all.Cursor != cursor && tries < patientTries:
			tries++
			select {
			case <-time.After(patientWait):
			case <-ctx.Done():
			}
			continue
		case err != nil:
			all.Incomplete = true
			return all, err
		}
		tries = 0
		all.Events = append(all.Events, page.Events...)
		all.Cursor, all.LookedTo = page.Cursor, page.LookedTo
		if all.Cursor == "" || len(all.Events) >= s.limit {
			return all, nil
		}
		if page.Incomplete {
			fmt.Fprintf(s.w.err, "Looked back to %s, and found %d so far; going on.\n", clockOf(page.LookedTo), len(all.Events))
		}
	}
}

func (s *eventSearch) page(ctx context.Context, cursor string, limit int) (page api.EventList, err error) {
	q := query(s.filter)
	q.Set("limit", strconv.Itoa(min(pageSize, limit)))
	if cursor != "" {
		q.Set("cursor", cursor)
	}
	return page, s.client.get(ctx, "/events", q, &page)
}

// print writes the list for people.
func (s *eventSearch) print(list *api.EventList) error {
	t := newTable(s.w, "", "ID | RECEIVED | STATE | SOURCE | KEY | TYPE | OPEN")
	for _, e := range list.Events {
		var open []string
		for _, d := range e.Deliveries {
			open = append(open, d.Destination+": "+d.State)
		}
		if len(open) == 0 && e.Unrouted {
			open = []string{journal.Unrouted}
		}
		t.row("", e.ID, clock(e.ReceivedAt), e.State, e.Source, e.Key, e.Type, strings.Join(open, ", "))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	switch {
	case list.Incomplete:
	case list.Cursor != "":
		fmt.Fprintf(s.w.err, "There are more, accepted before %s: raise --limit, or go on with --cursor %s\n", clockOf(list.LookedTo), list.Cursor)
	case len(list.Events) == 0:
		fmt.Fprintln(s.w.err, "No event matches"+s.hint()+".")
	}
	return nil
}

// hint names what of the filter the gateway does not know. Its errors are no news: the list is there.
func (s *eventSearch) hint() string {
	if s.filter.Source == "" {
		return ""
	}
	var known api.SourceList
	if err := s.client.get(context.Background(), "/sources", nil, &known); err != nil {
		return ""
	}
	var names []string
	for _, k := range known.Sources {
		names = append(names, k.Name)
	}
	if slices.Contains(names, s.filter.Source) {
		return ""
	}
	return fmt.Sprintf("; this gateway has no source %q, but %s", s.filter.Source, strings.Join(names, ", "))
}
