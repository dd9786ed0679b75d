package dynamofake

import (
	"encoding/json"
	"time"
)

// tokenLife is how long the service knows a transaction that was made by its token.
const tokenLife = 10 * time.Minute

// token is a transaction that was made.
type token struct {
	request string
	made    time.Time
}

type transactWriteItems struct {
	ClientRequestToken string
	TransactItems      []transactItem
}

type transactItem struct {
	Put            *putItem    `json:",omitempty"`
	Update         *updateItem `json:",omitempty"`
	Delete         *deleteItem `json:",omitempty"`
	ConditionCheck *deleteItem `json:",omitempty"`
}

// reason says why an item kept a transaction from being made.
type reason struct {
	Code    string
	Message string `json:",omitempty"`
	Item    values `json:",omitempty"`
}

// prepare reads an item and checks it.
func (s *Server) prepare(in transactItem) (*write, returns, *failure) {
	switch {
	case in.Put != nil:
		w, err := s.preparePut(*in.Put)
		return w, in.Put.returns, err
	case in.Update != nil:
		w, err := s.prepareUpdate(*in.Update)
		return w, in.Update.returns, err
	case in.Delete != nil:
		w, err := s.prepareDelete(*in.Delete)
		return w, in.Delete.returns, err
	case in.ConditionCheck != nil:
		w, err := s.prepareDelete(*in.ConditionCheck)
		if err == nil {
			w.after = func(before values) (values, *failure) { return before, nil }
		}
		return w, in.ConditionCheck.returns, err
	}
	return nil, returns{}, invalid("TransactItems can only contain one of Check, Put, Update or Delete")
}

func (s *Server) transactWriteItems(in transactWriteItems) (any, *failure) {
	text, _ := json.Marshal(in) // with its maps in order
	if known, ok := s.tokens[in.ClientRequestToken]; ok && in.ClientRequestToken != "" && s.Clock().Sub(known.made) < tokenLife {
		if known.request != string(text) {
			return nil, fail("IdempotentParameterMismatchException", "the token was used for another transaction")
		}
		return map[string]any{}, nil
	}
	if n := len(in.TransactItems); n == 0 || n > maxItems {
		return nil, invalid("Member must have length less than or equal to %d, and not be empty", maxItems)
	}
	writes, shows, err := s.prepareAll(in.TransactItems)
	if err != nil {
		return nil, err
	}
	after, err := decide(writes, shows)
	if err != nil {
		return nil, err
	}
	for i, w := range writes {
		w.apply(after[i])
	}
	s.tokens[in.ClientRequestToken] = token{string(text), s.Clock()}
	return map[string]any{}, nil
}

// prepareAll refuses an item that is there twice, and what is too large together.
func (s *Server) prepareAll(items []transactItem) (writes []*write, shows []returns, err *failure) {
	type place struct {
		table *table
		key   string
	}
	seen, size := map[place]bool{}, 0
	for _, item := range items {
		w, r, err := s.prepare(item)
		if err != nil {
			return nil, nil, err
		}
		if at := (place{w.table, w.key}); seen[at] {
			return nil, nil, invalid("Transaction request cannot include multiple operations on one item")
		} else {
			seen[at] = true
		}
		size += w.size
		writes, shows = append(writes, w), append(shows, r)
	}
	if size > maxTransaction {
		return nil, nil, invalid("Collection size of the transaction exceeds %d bytes", maxTransaction)
	}
	return writes, shows, nil
}

// decide returns what all the items become, or why the transaction is cancelled.
func decide(writes []*write, shows []returns) (after []values, err *failure) {
	reasons, cancelled := make([]reason, len(writes)), false
	for i, w := range writes {
		before := w.before()
		reasons[i].Code = "None"
		if !w.holds(before) {
			f := shows[i].conditional(before)
			reasons[i] = reason{"ConditionalCheckFailed", f.Message, f.Item}
			cancelled = true
			continue
		}
		becomes, err := w.after(before)
		if err != nil {
			reasons[i], cancelled = reason{Code: "ValidationError", Message: err.Message}, true
		}
		after = append(after, becomes)
	}
	if !cancelled {
		return after, nil
	}
	f := fail("TransactionCanceledException", "Transaction cancelled, please refer cancellation reasons for specific reasons")
	f.Reasons = reasons
	return nil, f
}
