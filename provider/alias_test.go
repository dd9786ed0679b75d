package provider

import (
	"slices"
	"testing"

	"github.com/hookonce/hookonce/provider/spec"
)

// TestAliasesAreTheScheme sends every alias what the scheme it stands for would sign.
func TestAliasesAreTheScheme(t *testing.T) {
	for _, a := range aliases {
		if a.name == "polar" || a.name == "finch" { // other key, other headers: see below
			continue
		}
		for _, base := range []*spec.Provider{fake(t, "standard"), fake(t, "svix")} {
			req := signed(t, base, `{"any":"body"}`)
			if ev := one(t, fake(t, a.name), req); ev.Key != "msg_1" || !ev.KeySigned || ev.Provider != a.name {
				t.Errorf("%s from %s: %+v", a.name, base.Name(), ev)
			}
			req.Body[1] ^= 1
			reason(t, fake(t, a.name), req)
		}
	}
}

// TestAliasesUseTheirHeaders: what is sent for demonstrations has the headers that the sender uses.
func TestAliasesUseTheirHeaders(t *testing.T) {
	for name, header := range map[string]string{
		"clerk": "Svix-Signature", "resend": "Svix-Signature", "openai": "Webhook-Signature",
		"polar": "Webhook-Signature", "finch": "Finch-Signature",
	} {
		req := sent(t, fake(t, name), "msg_7", "")
		if req.Header.Get(header) == "" || one(t, fake(t, name), req).Key != "msg_7" {
			t.Errorf("%s: %v", name, req.Header)
		}
	}
}

// TestPolarUsesTheSecretAsItIs: the same text decoded, as the standard has it, makes another key.
func TestPolarUsesTheSecretAsItIs(t *testing.T) {
	const secret = "ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz"
	polar, err := Build("polar", spec.Settings{Secrets: spec.Secrets(secret)})
	if err != nil {
		t.Fatal(err)
	}
	reason(t, polar, signed(t, Standard(secret), `{}`))
	if _, err := Build("polar", spec.Settings{Secrets: spec.Secrets("polar_whs_fake")}); err != nil {
		t.Error("a secret that is no base64:", err)
	}
}

// TestAliasesHaveTheirOwnCopies: one alias must not change another, nor its base.
func TestAliasesHaveTheirOwnCopies(t *testing.T) {
	for _, a := range aliases {
		s := a.spec()
		s.Verify[0].Sign[0], s.Event.Key[0][0], s.Traps[0] = "body", "json:$.type", ""
	}
	for _, name := range []string{"standard", "svix", "clerk", "openai"} {
		s, _ := Lookup(name)
		if s.Verify[0].Sign[0] != "id" || s.Event.Key[0][0] != "id" || slices.Contains(s.Traps, "") {
			t.Errorf("%s was changed", name)
		}
	}
}

// TestAliasesPromiseNoSchedule: the standard's example of a schedule is nobody's promise.
func TestAliasesPromiseNoSchedule(t *testing.T) {
	for _, a := range aliases {
		s := a.spec()
		admitted := slices.ContainsFunc(s.Sources, func(src spec.Source) bool {
			return src.Confidence == spec.NotSourced && src.Fact == "how long it retries"
		})
		if admitted != (s.Limits.Window() == 0) {
			t.Errorf("%s: window %v, admitted as unknown: %v", a.name, s.Limits.Window(), admitted)
		}
	}
}
