package provider

import "github.com/hookonce/hookonce/provider/spec"

// Gitea returns the provider for Gitea's webhooks, sent as JSON or as a form. The secrets are those of the webhook. It panics
// if a secret is missing or empty.
//
// The key is the X-Gitea-Delivery header, which the signature does not cover. Gitea sends nothing again by itself; what
// somebody has it send again has a new id and the same content, and is flagged as a logical duplicate. No time is signed.
func Gitea(secrets ...string) *spec.Provider {
	return must(spec.New(giteaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func giteaSpec() spec.Spec {
	s := giteaFamily("X-Gitea-")
	s.Name, s.Title = "gitea", "Gitea"
	s.Headers = append(s.Headers, "X-Gitea-*")
	s.Sources = []spec.Source{
		stated("signature, headers, form field, one attempt, deadline by default", "go-gitea/gitea: services/webhook/deliver.go, modules/setting/webhook.go, version 1.27"),
		stated("a new id when it is sent again by hand", "go-gitea/gitea: models/webhook/hooktask.go, ReplayHookTask"),
		stated("the secret is the receiver's choice", "go-gitea/gitea: services/webhook/deliver.go signs with what was entered"),
	}
	return s
}

// giteaFamily is what Gitea and those that stem from it have in common, with the beginning of the headers' names.
func giteaFamily(prefix string) spec.Spec {
	inForm := headerMAC(prefix+"Signature", "", spec.Hex, "form:payload")
	inForm.Covers = spec.CoversFields
	return spec.Spec{
		Secret:    "the webhook's secret",
		OwnSecret: true,
		// What is signed is the JSON, whether or not it is sent as the field of a form.
		Verify: []spec.Verify{bodyMAC(prefix+"Signature", "", spec.Hex), inForm},
		Form:   "payload",
		Event: spec.Extract{
			Key:      [][]spec.Value{{spec.Value("header:" + prefix + "Delivery")}},
			Type:     []spec.Value{spec.Value("header:" + prefix + "Event")},
			Action:   []spec.Value{"json:$.action"},
			Resource: []spec.Value{"json:$.repository.id"},
		},
		Dedup: spec.Dedup{
			Retry: spec.NotSent, Manual: spec.Unstable,
			Logical: []spec.Logical{{Key: []spec.Value{"hash:json:$"}, Window: day}},
		},
		Answer:  spec.Answer{Deadline: 5 * second},
		Limits:  spec.Limits{MaxBody: 25 << 20}, // a push names each path that it changes; nothing states a bound
		Headers: []string{prefix + "Event-Type", "X-Gogs-*", "X-GitHub-*", "X-Hub-Signature", "X-Hub-Signature-256"},
		Example: spec.Template{
			ID:     "f6266f16-1bf3-46a5-9ea4-602e06ead473",
			Type:   "issues.opened",
			Object: "140",
			Header: map[string]string{
				prefix + "Delivery":   "{{id}}",
				prefix + "Event":      "{{event}}",
				prefix + "Event-Type": "{{event}}",
			},
			Body: giteaExample,
		},
		Traps: []string{
			"nothing is sent again by itself: what is answered with an error is lost until somebody looks at the list of deliveries",
			"what is sent again by hand has another id: the same content under two ids is flagged as a logical duplicate, and is not dropped",
			"a webhook sent as a form signs the JSON in the field payload, and not the body: a library that hashes the body refuses it",
			"the headers of GitHub and Gogs are sent along: X-Hub-Signature-256 is made with the same secret",
			"the id is not signed: whoever replays a captured request can change it",
		},
	}
}

const giteaExample = `{
  "action": "{{action}}",
  "number": 17,
  "issue": {
    "id": 1001,
    "number": 17,
    "title": "The answer to a retried request is missing",
    "state": "open",
    "user": {"id": 1, "login": "example", "email": "person@example.com"},
    "labels": [],
    "created_at": "{{time}}",
    "updated_at": "{{time}}"
  },
  "repository": {
    "id": {{object}},
    "name": "shop",
    "full_name": "example/shop",
    "private": true,
    "html_url": "https://git.example.com/example/shop",
    "default_branch": "main"
  },
  "sender": {"id": 1, "login": "example", "email": "person@example.com"}
}`
