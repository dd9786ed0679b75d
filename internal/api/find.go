package api

import (
	"context"

	"github.com/hookonce/hookonce/internal/journal"
)

// KeyPath names an event by its key. Both parts are percent-encoded in the path.
type KeyPath struct {
	Source string `path:"source" maxLength:"64"`
	Key    string `path:"key" maxLength:"2048"`
}

// find returns the identifier of the event.
func (p *KeyPath) find(ctx context.Context, records journal.Reader) (int64, error) {
	if !plain(p.Source) || !plain(p.Key) {
		return 0, journal.ErrNoEvent // stores hold no such texts
	}
	return journal.AsWritten(p.Key, func(key string) (int64, error) { return records.Find(ctx, p.Source, key) })
}

// IDPath names an event by its identifier.
type IDPath struct {
	ID int64 `path:"id" minimum:"1"`
}

func (p *IDPath) find(context.Context, journal.Reader) (int64, error) { return p.ID, nil }

// finder is either of them.
type finder interface {
	find(context.Context, journal.Reader) (int64, error)
}

type keyInput struct {
	Key string `path:"key" maxLength:"2048"`
}

// byKeyAlone lists the events that have a key, newest first. It is of no matter which sources are
// configured: the events of one that was renamed stay on record under its old name.
func (a *api) byKeyAlone(ctx context.Context, in *keyInput) (*answer[EventList], error) {
	out := &answer[EventList]{EventList{Events: []Event{}}}
	err := a.ask(ctx, readTime, func(ctx context.Context) error {
		if !plain(in.Key) {
			return journal.ErrNoEvent // stores hold no such texts
		}
		found, err := journal.AsWritten(in.Key, func(key string) ([]journal.Summary, error) { return a.opt.Records.FindAnywhere(ctx, key) })
		for i := range found {
			out.Body.Events = append(out.Body.Events, newEvent(&found[i]))
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (a *api) byKey(ctx context.Context, in *KeyPath) (*answer[Detail], error) {
	return a.detail(ctx, in)
}

func (a *api) byID(ctx context.Context, in *IDPath) (*answer[Detail], error) {
	return a.detail(ctx, in)
}

func (a *api) detail(ctx context.Context, where finder) (*answer[Detail], error) {
	var out *answer[Detail]
	err := a.ask(ctx, readTime, func(ctx context.Context) error {
		id, err := where.find(ctx, a.opt.Records)
		if err != nil {
			return err
		}
		h, err := a.opt.Records.History(ctx, id)
		if err != nil {
			return err
		}
		out = &answer[Detail]{newDetail(h)}
		if h.Vouched != 0 && a.opt.SecretOf != nil {
			out.Body.Secret = a.opt.SecretOf(h.Source, h.Vouched)
		}
		if form := a.opt.Payloads(); form != FormOff && VisitorOf(ctx).Payloads {
			out.Body.Payload = form
		}
		return a.tellWaits(ctx, &out.Body)
	})
	return out, err
}

// tellWaits says of deliveries whose time has come what they wait for.
func (a *api) tellWaits(ctx context.Context, d *Detail) error {
	due := d.due(a.opt.Now())
	if len(due) == 0 {
		return nil
	}
	list, err := a.fleet().Stands(ctx)
	for _, d := range due {
		d.held(list.Find(d.Destination))
	}
	return err
}
