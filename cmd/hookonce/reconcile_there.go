package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/hookonce/hookonce/internal/api"
	"github.com/hookonce/hookonce/internal/gateway"
	"github.com/hookonce/hookonce/internal/reconcile"
)

// reconcileThere has the gateway compare to which the file of the store belongs. It is told when and what to do, and asks the sender
// itself: no event comes from here.
func reconcileThere(ctx context.Context, w *env, gateways []*adminClient, ask *gateway.Comparison, asJSON bool) error {
	const belongs = "the file of the store belongs to a gateway that runs"
	switch {
	case len(gateways) == 0:
		return fmt.Errorf("%s, which has to compare; %w", belongs, errNoAdmin)
	case len(gateways) > 1:
		return errors.New(belongs + ", which has to compare; name that one alone with --admin")
	}
	g := gateways[0].patient()
	fmt.Fprintf(w.err, "%s, so the one at %s asks the sender\n", belongs, strings.TrimSuffix(g.base, api.Base))
	question := api.Comparison{Since: ask.Since, Action: api.CompareReport, Really: ask.Really}
	switch {
	case ask.Redeliver:
		question.Action = api.CompareRedeliver
	case ask.Ingest:
		question.Action = api.CompareIngest
	}
	if !ask.Until.IsZero() {
		question.Until = &ask.Until
	}
	return tellReconciled(ctx, w, ask.Since, asJSON, func(func(reconcile.Progress)) (*reconcile.Report, error) {
		var found struct {
			Report *reconcile.Report
			Error  string
		}
		err := g.call(ctx, http.MethodPost, "/sources/"+segment(ask.Source)+"/reconcile", question, &found)
		switch {
		case ctx.Err() != nil:
			return nil, errors.New("it was broken off, and the gateway ends it; the audit log says what it did until then")
		case err != nil:
			return nil, err
		case found.Report == nil:
			return nil, errors.New("this is not the answer of a gateway of this version")
		case found.Error != "":
			return found.Report, errors.New(found.Error)
		}
		return found.Report, nil
	})
}
