package provider

import "github.com/hookonce/hookonce/provider/spec"

// Forgejo returns the provider for Forgejo's webhooks, of Codeberg and of installations of one's own, sent as JSON or as a
// form. The secrets are those of the webhook. It panics if a secret is missing or empty.
//
// The key is the X-Forgejo-Delivery header, which the signature does not cover. Forgejo sends nothing again by itself; what
// somebody has it send again has a new id and the same content, and is flagged as a logical duplicate. No time is signed.
func Forgejo(secrets ...string) *spec.Provider {
	return must(spec.New(forgejoSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func forgejoSpec() spec.Spec {
	s := giteaFamily("X-Forgejo-")
	s.Name, s.Title = "forgejo", "Forgejo"
	s.Headers = append(s.Headers, "X-Forgejo-*", "X-Gitea-*")
	s.Sources = []spec.Source{
		stated("signature, headers, form field", "forgejo/forgejo: services/webhook/shared/payloader.go"),
		stated("one attempt, deadline by default", "forgejo/forgejo: services/webhook/deliver.go, modules/setting/webhook.go"),
		stated("a new id when it is sent again by hand", "forgejo/forgejo: models/webhook/hooktask.go, ReplayHookTask"),
		stated("the secret is the receiver's choice", "forgejo/forgejo: services/webhook/shared/payloader.go signs with what was entered"),
	}
	s.Traps = append(s.Traps, "the headers of Gitea are sent along, with the same id and signature")
	return s
}
