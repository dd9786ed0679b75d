package hookonce_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
)

func TestEffectValidate(t *testing.T) {
	ref := hookonce.Ref{Source: "billing", Key: "evt_1"}
	long := strings.Repeat("n", hookonce.MaxKeyLen)
	for name, c := range map[string]struct {
		effect hookonce.Effect
		valid  bool
	}{
		"least":               {hookonce.Effect{Ref: ref, Name: "mail"}, true},
		"without a key":       {hookonce.Effect{Ref: hookonce.Ref{Source: "billing"}, Name: "mail"}, true},
		"most":                {hookonce.Effect{Ref: ref, Name: long, Step: long, Payload: make([]byte, hookonce.MaxPayload)}, true},
		"due long ago":        {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(1, 1, 1, 0, 0, 1, 0, time.UTC)}, true},
		"due in ages":         {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(9999, 12, 31, 23, 0, 0, 0, time.UTC)}, true},
		"no source":           {hookonce.Effect{Ref: hookonce.Ref{Key: "evt_1"}, Name: "mail"}, false},
		"bad key":             {hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "a\nb"}, Name: "mail"}, false},
		"no name":             {hookonce.Effect{Ref: ref}, false},
		"long name":           {hookonce.Effect{Ref: ref, Name: long + "n"}, false},
		"NUL in the name":     {hookonce.Effect{Ref: ref, Name: "a\x00b"}, false},
		"long step":           {hookonce.Effect{Ref: ref, Name: "mail", Step: long + "n"}, false},
		"step not UTF-8":      {hookonce.Effect{Ref: ref, Name: "mail", Step: "\xff"}, false},
		"large payload":       {hookonce.Effect{Ref: ref, Name: "mail", Payload: make([]byte, hookonce.MaxPayload+1)}, false},
		"due before year 1":   {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(0, 12, 31, 0, 0, 0, 0, time.UTC)}, false},
		"due after year 9999": {hookonce.Effect{Ref: ref, Name: "mail", Due: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC)}, false},
	} {
		if err := c.effect.Validate(); (err == nil) != c.valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestGuardNames(t *testing.T) {
	long := strings.Repeat("n", hookonce.MaxKeyLen)
	for name, valid := range map[string]bool{"order/1": true, long: true, "": false, long + "n": false, "a\x00b": false, "\xff": false} {
		if err := hookonce.ValidateResource(name, hookonce.Version(1)); (err == nil) != valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("resource %.20q: %v", name, err)
		}
		if err := hookonce.ValidateTransition(name, "", "paid"); (err == nil) != valid {
			t.Errorf("entity %.20q: %v", name, err)
		}
	}
	for move, valid := range map[[2]string]bool{
		{"", "paid"}: true, {"paid", "open"}: true, {long, "open"}: true, {"open", long}: true,
		{"paid", "paid"}: false, {"paid", ""}: false, {"", ""}: false, {long + "n", "open"}: false, {"open", long + "n"}: false,
		{"a\nb", "open"}: false, {"open", "a\nb"}: false,
	} {
		if err := hookonce.ValidateTransition("order/1", move[0], move[1]); (err == nil) != valid || err != nil && !errors.Is(err, hookonce.ErrInvalidRef) {
			t.Errorf("from %.20q to %.20q: %v", move[0], move[1], err)
		}
	}
}
