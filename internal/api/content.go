package api

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"unicode/utf8"

	"github.com/hookonce/hookonce/internal/journal"
)

// contentPiece is how many events one look reads the contents of.
const contentPiece = 200

// content is what a filter wants of headers and bodies: one field with one text. The text is other people's data,
// and stands in no log, error or record.
type content struct {
	name, text string
	open       func(source, name string) (Reader, error)
	readers    map[string]Reader // by source; nil: it has no such field
}

// content returns what the filter wants of contents, nil if it wants nothing. location names the field of the request.
func (a *api) content(f *Filter, location string) (*content, error) {
	if f.Field == "" {
		return nil, nil
	}
	name, text, whole := strings.Cut(f.Field, "=")
	if !whole || text == "" || !utf8.ValidString(f.Field) {
		return nil, invalid(location, "write a field as in a route, an equals sign, and the text that the field has, such as json:$.data.object.customer=cus_1", nil)
	}
	c := &content{name: name, text: text, open: a.opt.Field, readers: map[string]Reader{}}
	sources := []string{f.Source}
	if f.Source == "" {
		for _, s := range a.opt.Sources() {
			sources = append(sources, s.Name)
		}
	}
	var problem error
	for _, s := range sources {
		_, err := c.open(s, name)
		if err == nil {
			return c, nil
		}
		problem = err
	}
	return nil, invalid(location, problem.Error(), nil)
}

// choose returns which of the events match.
func (c *content) choose(ctx context.Context, records journal.Reader, events []journal.Named) (matching map[int64]bool, err error) {
	matching = map[int64]bool{}
	ids := make([]int64, 0, len(events))
	source := map[int64]string{}
	for _, e := range events {
		if c.reader(e.Source) != nil {
			ids, source[e.EventID] = append(ids, e.EventID), e.Source
		}
	}
	if len(ids) == 0 {
		return matching, nil
	}
	err = records.Contents(ctx, ids, func(id int64, header, body []byte) error {
		matching[id] = c.reader(source[id])(header, body) == c.text
		return ctx.Err()
	})
	return matching, err
}

// reader returns what reads the field from events of the source, nil if they have none.
func (c *content) reader(source string) Reader {
	r, known := c.readers[source]
	if !known {
		r, _ = c.open(source, c.name) // of a source that has no such field no event matches
		c.readers[source] = r
	}
	return r
}

// chosen says for the audit log by what events were chosen: the field, and of its text what recognises it.
func (c *content) chosen() string {
	sum := sha256.Sum256([]byte(c.text))
	return c.name + " has the text with SHA-256 " + hex.EncodeToString(sum[:8])
}
