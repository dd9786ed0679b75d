package api

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"
)

// Refused says why something was not done.
type Refused struct {
	Detail string
	// Faults are those of the configuration, each with its place, where it is at fault.
	Faults []string
	// Invalid is set if what was asked for, or the configuration, is at fault, and not what runs.
	Invalid bool
}

func (r *Refused) Error() string { return r.Detail }

// ReloadResult says what a reload changed.
type ReloadResult struct {
	Changed []string `json:"changed" nullable:"false" doc:"In words, without secrets: source billing: secrets changed (1 → 2). Empty: nothing is different."`
}

func (a *api) reload(ctx context.Context, _ *struct{}) (*answer[ReloadResult], error) {
	ctx, cancel := context.WithTimeout(ctx, writeTime)
	defer cancel()
	changed, err := a.opt.Reload(ctx, actor(ctx))
	var refused *Refused
	switch {
	case errors.As(err, &refused) && refused.Invalid:
		var faults []error
		for _, f := range refused.Faults {
			faults = append(faults, &huma.ErrorDetail{Message: f})
		}
		return nil, huma.Error422UnprocessableEntity(refused.Detail, faults...)
	case errors.As(err, &refused):
		return nil, huma.Error409Conflict(refused.Detail)
	case err != nil:
		return nil, a.problem(ctx, err)
	}
	return &answer[ReloadResult]{ReloadResult{append([]string{}, changed...)}}, nil
}
