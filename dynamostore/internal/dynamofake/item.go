package dynamofake

import (
	"maps"
	"slices"
	"strings"
)

// returns are the parameters that say what is shown of an item.
type returns struct {
	ReturnValues                        string
	ReturnValuesOnConditionCheckFailure string
}

// conditional returns the error of a condition that failed.
func (r returns) conditional(old values) *failure {
	f := fail("ConditionalCheckFailedException", "The conditional request failed")
	if r.ReturnValuesOnConditionCheckFailure == "ALL_OLD" {
		f.Item = old
	}
	return f
}

// write is one write, read and checked, and yet to be made. The item is nil where there is none.
type write struct {
	table *table
	key   string
	holds test
	// after is what the item becomes; nil: it is deleted.
	after func(before values) (values, *failure)
	size  int // as far as it is known
}

func (w *write) before() values { return w.table.items[w.key] }

// apply makes the write.
func (w *write) apply(after values) {
	if after == nil {
		delete(w.table.items, w.key)
		return
	}
	w.table.items[w.key] = after
}

type putItem struct {
	TableName string
	Item      values
	expressions
	returns
}

func (s *Server) preparePut(in putItem) (*write, *failure) {
	for _, v := range in.Item {
		if err := v.valid(); err != nil {
			return nil, err
		}
	}
	p := in.parser()
	holds := p.condition(in.ConditionExpression)
	if err := p.unused(); err != nil {
		return nil, err
	}
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	key, err := t.keyOf(in.Item, false)
	if err != nil {
		return nil, err
	}
	if in.Item.size() > maxItem {
		return nil, errTooLarge
	}
	after := func(values) (values, *failure) { return in.Item, nil }
	return &write{table: t, key: key, holds: holds, after: after, size: in.Item.size()}, nil
}

var errTooLarge = invalid("Item size has exceeded the maximum allowed size")

func (s *Server) putItem(in putItem) (any, *failure) {
	w, err := s.preparePut(in)
	if err != nil {
		return nil, err
	}
	return single(w, in.returns)
}

type updateItem struct {
	TableName string
	Key       values
	expressions
	returns
}

func (s *Server) prepareUpdate(in updateItem) (*write, *failure) {
	p := in.parser()
	holds := p.condition(in.ConditionExpression)
	changes, touched := p.update(in.UpdateExpression)
	if err := p.unused(); err != nil {
		return nil, err
	}
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	key, err := t.keyOf(in.Key, true)
	if err != nil {
		return nil, err
	}
	if slices.Contains(touched, t.key) {
		return nil, invalid("One or more parameter values were invalid: Cannot update attribute %s. This attribute is part of the key", t.key)
	}
	after := func(before values) (values, *failure) { return changed(t, in.Key, before, changes) }
	return &write{table: t, key: key, holds: holds, after: after, size: in.Key.size() + in.ExpressionAttributeValues.size()}, nil
}

// changed returns what an item becomes, or the one that is made where there was none.
func changed(t *table, key, before values, changes []change) (values, *failure) {
	after := before.clone()
	if after == nil {
		after = values{t.key: key[t.key]}
	}
	for _, change := range changes {
		if err := change(before, after); err != nil {
			return nil, err
		}
	}
	if after.size() > maxItem {
		return nil, invalid("Item size to update has exceeded the maximum allowed size")
	}
	return after, nil
}

func (s *Server) updateItem(in updateItem) (any, *failure) {
	w, err := s.prepareUpdate(in)
	if err != nil {
		return nil, err
	}
	return single(w, in.returns)
}

type deleteItem struct {
	TableName string
	Key       values
	expressions
	returns
}

func (s *Server) prepareDelete(in deleteItem) (*write, *failure) {
	w, err := s.prepareUpdate(updateItem{TableName: in.TableName, Key: in.Key, expressions: in.expressions})
	if err == nil {
		w.after = func(values) (values, *failure) { return nil, nil }
	}
	return w, err
}

func (s *Server) deleteItem(in deleteItem) (any, *failure) {
	w, err := s.prepareDelete(in)
	if err != nil {
		return nil, err
	}
	return single(w, in.returns)
}

// single makes a write by itself.
func single(w *write, r returns) (any, *failure) {
	before := w.before()
	if !w.holds(before) {
		return nil, r.conditional(before)
	}
	after, err := w.after(before)
	if err != nil {
		return nil, err
	}
	w.apply(after)
	out := map[string]any{}
	switch {
	case r.ReturnValues == "ALL_OLD" && before != nil:
		out["Attributes"] = before
	case r.ReturnValues == "ALL_NEW" && after != nil:
		out["Attributes"] = after
	}
	return out, nil
}

type getItem struct {
	TableName      string
	Key            values
	ConsistentRead bool
}

func (s *Server) getItem(in getItem) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	key, err := t.keyOf(in.Key, true)
	if err != nil {
		return nil, err
	}
	if i := t.items[key]; i != nil {
		return map[string]any{"Item": i}, nil
	}
	return map[string]any{}, nil
}

type scan struct {
	TableName            string
	ConsistentRead       bool
	ProjectionExpression string
	Limit                int
	ExclusiveStartKey    values
}

// page is how many items a scan returns at once, unless it asks for fewer: few, so that tests see pages.
const page = 10

// scan goes by the order of the keys.
func (s *Server) scan(in scan) (any, *failure) {
	t, err := s.find(in.TableName)
	if err != nil {
		return nil, err
	}
	limit := page
	if in.Limit > 0 {
		limit = min(limit, in.Limit)
	}
	from := in.ExclusiveStartKey[t.key].text()
	items, last := []values{}, ""
	for _, key := range slices.Sorted(maps.Keys(t.items)) {
		if key <= from && from != "" {
			continue
		}
		if len(items) == limit {
			out := map[string]any{"Items": items, "Count": len(items), "ScannedCount": len(items)}
			out["LastEvaluatedKey"] = values{t.key: t.items[last][t.key]}
			return out, nil
		}
		items, last = append(items, project(t.items[key], in.ProjectionExpression)), key
	}
	return map[string]any{"Items": items, "Count": len(items), "ScannedCount": len(items)}, nil
}

// project returns the attributes that are asked for.
func project(i values, wanted string) values {
	if wanted == "" {
		return i
	}
	out := values{}
	for name := range strings.SplitSeq(wanted, ",") {
		if v := i[strings.TrimSpace(name)]; v != nil {
			out[strings.TrimSpace(name)] = v
		}
	}
	return out
}
