package provider

import "github.com/hookonce/hookonce/provider/spec"

// Auth0 returns the provider for Auth0's log streams to a custom webhook, in JSON lines, arrays and
// objects. The secrets are the authorization tokens of the stream, each the whole text of the header,
// with "Bearer " if that is part of it. It panics if a secret is missing or empty.
//
// The key of a log event is its log_id. Nothing is signed: the token says who sends, and not what.
func Auth0(secrets ...string) *spec.Provider {
	return must(spec.New(auth0Spec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func auth0Spec() spec.Spec {
	return spec.Spec{
		Name:   "auth0",
		Title:  "Auth0 log streams",
		Secret: "the stream's authorization token, the whole text of the Authorization header",
		Verify: []spec.Verify{{Kind: spec.Token, Signature: spec.Signature{In: "header:Authorization"}}},
		Split:  &spec.Split{Items: []spec.Value{"json:$[*]"}, Lines: true},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"item:$.log_id"}},
			Type:     []spec.Value{"item:$.data.type"},
			Time:     []spec.Moment{at("item:$.data.date", spec.RFC3339)},
			Resource: []spec.Value{"item:$.data.user_id"},
			Tenant:   []spec.Value{"item:$.data.hostname"},
		},
		Headers: []string{"Auth0-*", "X-Auth0-*"},
		Example: spec.Template{ID: "90020260101120000000000000000000000001223372037", Type: "s", Object: "auth0|00000000000000000001001", Body: auth0Example},
		Sources: []spec.Source{
			stated("token, content formats, delivery at least once, no order", "auth0/docs-v2: Custom log streams using webhooks"),
			reported("key, fields", "elastic/integrations: packages/auth0/data_stream/logs/_dev/test/pipeline"),
			notSourced("retries"),
		},
		Traps: []string{
			"one request holds many log events, as lines, as an array or as an object",
			"the token is sent along and binds nothing: whoever sees one request can send others",
			"log events arrive in no order",
			"a stream whose endpoint keeps failing is disabled; how long Auth0 retries is not stated",
		},
	}
}

const auth0Example = `[
  {
    "log_id": "{{id}}",
    "data": {
      "date": "{{time}}",
      "type": "{{type}}",
      "description": "Successful login",
      "connection": "Username-Password-Authentication",
      "connection_id": "con_EXAMPLE0001",
      "client_id": "EXAMPLECLIENT0001",
      "client_name": "Example shop",
      "ip": "192.0.2.10",
      "hostname": "example.eu.auth0.com",
      "user_id": "{{object}}",
      "user_name": "customer@example.com",
      "log_id": "{{id}}"
    }
  }
]`
