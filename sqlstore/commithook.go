package sqlstore

import (
	"reflect"
	"slices"
	"sync"
	"sync/atomic"
)

// veto refuses the commits of a connection to SQLite while it is on.
//
// An interrupted statement that writes ends the whole transaction (https://www.sqlite.org/c3ref/interrupt.html),
// and so do others (https://www.sqlite.org/lang_transaction.html, section 2.4). Whatever the handler does after
// that is a transaction of its own for each statement, and would stay although the claim is gone. A commit hook
// that refuses turns these commits into rollbacks (https://www.sqlite.org/c3ref/commit_hook.html).
type veto struct{ on, refused atomic.Bool }

// begin turns it on.
func (v *veto) begin() {
	v.refused.Store(false)
	v.on.Store(true)
}

// commits answers SQLite, which asks at each commit.
func (v *veto) commits() bool {
	if v.on.Load() {
		v.refused.Store(true)
		return false
	}
	return true
}

// vetoes are those of the connections of this process. A hook is registered once for each, and stays:
// github.com/mattn/go-sqlite3 keeps every one that was ever registered until the connection is closed.
var vetoes = struct {
	sync.Mutex
	of map[any]*veto
}{of: map[any]*veto{}}

// maxVetoes bounds how many are remembered, because nobody tells when a connection is closed. Those that are
// forgotten are registered again.
const maxVetoes = 256

// vetoOf returns the veto of a driver's connection, or nil if there is no way to register one.
func vetoOf(conn any) *veto {
	conn, register := commitHook(conn)
	if register == nil {
		return nil
	}
	vetoes.Lock()
	defer vetoes.Unlock()
	v := vetoes.of[conn]
	if v == nil {
		if len(vetoes.of) >= maxVetoes {
			clear(vetoes.of)
		}
		v = new(veto)
		vetoes.of[conn] = v
		register(v)
	}
	return v
}

// commitHook returns what registers a commit hook on the connection, and the connection that it belongs to,
// which may be wrapped in others that have a method Raw. Drivers agree on no interface: modernc and mattn have
// RegisterCommitHook(func() int), which refuses with what is not zero, and ncruces has CommitHook(func() bool),
// which refuses with false. Importing them for their types would force all on everybody.
func commitHook(conn any) (own any, register func(*veto)) {
	const deepest = 8
	for range deepest {
		c := reflect.ValueOf(conn)
		if !c.IsValid() || !c.Comparable() {
			return nil, nil
		}
		for _, m := range []reflect.Value{c.MethodByName("RegisterCommitHook"), c.MethodByName("CommitHook")} {
			if m.IsValid() && takesHook(m.Type()) {
				return conn, func(v *veto) { m.Call([]reflect.Value{hook(m.Type().In(0), v)}) }
			}
		}
		raw := c.MethodByName("Raw")
		if !raw.IsValid() || raw.Type().NumIn() != 0 || raw.Type().NumOut() != 1 {
			return nil, nil
		}
		conn = raw.Call(nil)[0].Interface()
	}
	return nil, nil
}

// takesHook reports whether a method of that type takes a function without parameters, and with one result of
// a kind that hook knows.
func takesHook(method reflect.Type) bool {
	if method.NumIn() != 1 || method.In(0).Kind() != reflect.Func {
		return false
	}
	f := method.In(0)
	return f.NumIn() == 0 && f.NumOut() == 1 && slices.Contains([]reflect.Kind{reflect.Bool, reflect.Int, reflect.Int32}, f.Out(0).Kind())
}

// hook returns v as a function of type f.
func hook(f reflect.Type, v *veto) reflect.Value {
	refusal := reflect.New(f.Out(0)).Elem()
	consent := reflect.New(f.Out(0)).Elem()
	if refusal.CanInt() {
		refusal.SetInt(1)
	} else {
		consent.SetBool(true)
	}
	return reflect.MakeFunc(f, func([]reflect.Value) []reflect.Value {
		if v.commits() {
			return []reflect.Value{consent}
		}
		return []reflect.Value{refusal}
	})
}
