package provider

import "github.com/hookonce/hookonce/provider/spec"

// alias is a sender that uses Standard Webhooks or Svix under its own name. The table of them states
// what differs, which is mostly where the sender's own documentation puts the facts of an event.
type alias struct {
	name, title string
	base        func() spec.Spec
	kind        string // the type of the example
	differs     func(*spec.Spec)
	sources     []spec.Source // default: [usesScheme]
}

// aliases are the senders whose use of the scheme is sourced. They have no constructors of their own:
// see [Build].
var aliases = []alias{
	{
		name: "brex", title: "Brex", base: viaStandard, kind: "TRANSFER_PROCESSED",
		sources: []spec.Source{
			usesScheme(),
			stated("types, two signatures while a secret is rotated", "developer.brex.com/openapi/webhooks_api"),
		},
	},
	{
		name: "clerk", title: "Clerk", base: viaSvix, kind: "user.created",
		differs: func(s *spec.Spec) {
			s.Event.Resource = []spec.Value{"json:$.data.id"}
			s.Limits.Retry, s.Answer.Deadline = svixRetry, svixDeadline
			s.Traps = append(s.Traps, "it is said to retry for three days; the schedule is that of Svix, about 28 hours")
		},
		sources: []spec.Source{usesScheme(), reported("retries, deadline", "Clerk documentation, quoted: it sends through Svix")},
	},
	{name: "etsy", title: "Etsy", base: viaStandard, kind: "order.paid"},
	{
		name: "finch", title: "Finch", base: viaStandard, kind: "employment.updated",
		differs: finchHeaders,
	},
	{
		name: "gemini", title: "Gemini API", base: viaStandard, kind: "batch.succeeded",
		differs: func(s *spec.Spec) {
			s.Traps = append(s.Traps, "only webhooks with a static secret are signed this way; dynamic ones carry a token and are refused")
		},
	},
	{
		name: "incident-io", title: "incident.io", base: viaStandard, kind: "public_incident.incident_created_v2",
		differs: func(s *spec.Spec) {
			s.Event.Type, s.Event.Time = []spec.Value{"json:$.event_type"}, nil
			s.Limits.Retry = day
			s.Example.Body = incidentExample
		},
		sources: []spec.Source{stated("headers, type, retries", "docs.incident.io/api-reference/webhooks")},
	},
	{name: "increase", title: "Increase", base: viaStandard, kind: "account.created"},
	{name: "loops", title: "Loops", base: viaStandard, kind: "email.delivered"},
	{
		name: "openai", title: "OpenAI", base: viaStandard, kind: "response.completed",
		differs: func(s *spec.Spec) {
			s.Event.Time = []spec.Moment{at("json:$.created_at", spec.Seconds)}
			s.Event.Resource = []spec.Value{"json:$.data.id"}
			s.Limits.Retry = 3 * day
		},
		sources: []spec.Source{
			stated("signature, fields", "openai/openai-go: webhooks"),
			reported("retries", "OpenAI documentation, quoted by Hookdeck's guide to OpenAI webhooks"),
		},
	},
	{
		name: "polar", title: "Polar", base: viaStandard, kind: "order.paid",
		differs: func(s *spec.Spec) {
			s.Secret = "the endpoint's secret, the whole text as it is shown"
			s.Verify = []spec.Verify{svixVerify("webhook")}
			s.Verify[0].Key = spec.KeyUTF8 // its own library encodes the text before handing it on to be decoded
			s.Answer.Deadline = 10 * second
			s.Traps = append(s.Traps, "the secret is not decoded: a library of Standard Webhooks wants it encoded in base64 first")
		},
		sources: []spec.Source{
			stated("retries without their times, the secret must be encoded first", "polar.sh/docs/integrate/webhooks/delivery"),
			reported("key of the HMAC", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts"),
			reported("deadline", "Polar documentation: 20 s on older pages, 10 s on newer ones"),
		},
	},
	{name: "render", title: "Render", base: viaStandard, kind: "deploy_ended"},
	{
		name: "replicate", title: "Replicate", base: viaStandard, kind: "succeeded",
		differs: func(s *spec.Spec) {
			// The body is the prediction as it is now, with its state in place of a type.
			s.Event.Type, s.Event.Resource = []spec.Value{"json:$.status"}, []spec.Value{"json:$.id"}
			s.Event.Time = nil
			s.Limits.Retry = minute // after the end of the prediction; other states are not sent again
			s.Traps = append(s.Traps, "the id in the body is that of the prediction: as the key it loses everything after its start")
			s.Example.Body, s.Example.Object = replicateExample, "ufawqhfynnddngldkgtslldrkq"
		},
		sources: []spec.Source{usesScheme(), stated("the body is the prediction, retries", "replicate.com/docs/topics/webhooks/receive-webhook")},
	},
	{
		name: "resend", title: "Resend", base: viaSvix, kind: "email.delivered",
		differs: func(s *spec.Spec) {
			s.Event.Time = []spec.Moment{at("json:$.created_at", spec.RFC3339)}
			s.Event.Resource = []spec.Value{"json:$.data.email_id"}
			s.Limits.Retry, s.Answer.Deadline = svixRetry, svixDeadline
			s.Traps = append(s.Traps, "email_id is shared by all events of an email: as the key it loses delivered after sent, and opened after delivered")
			s.Example.Body, s.Example.Object = resendExample, "56761188-0000-4000-8000-00000000e001"
		},
		sources: []spec.Source{
			stated("headers, retries, sending again by hand", "resend.com/docs/dashboard/webhooks"),
			reported("deadline", "inferred: it sends through Svix"),
		},
	},
	{name: "stytch", title: "Stytch", base: viaSvix, kind: "direct.user.create"},
	{
		name: "supabase", title: "Supabase", base: viaStandard, kind: "send_sms",
		differs: func(s *spec.Spec) {
			s.Secret = "the hook's secret without the v1, in front: whsec_ followed by base64"
			s.Event.Type, s.Event.Time = nil, nil
			s.Traps = append(s.Traps, "the dashboard shows the secret with v1, in front: leave that away")
			s.Example.Body = supabaseExample
		},
		sources: []spec.Source{usesScheme(), reported("form of the secret", "Supabase documentation of auth hooks, quoted")},
	},
	{name: "vanta", title: "Vanta", base: viaSvix, kind: "vendor.created"},
}

// viaSvix and viaStandard are the scheme with the headers that the sender uses tried first.
func viaSvix() spec.Spec     { return svixFamily("svix", "webhook") }
func viaStandard() spec.Spec { return svixFamily("webhook", "svix") }

// usesScheme is where it is stated that the sender uses the scheme.
func usesScheme() spec.Source {
	return reported("use of the scheme", "webhook-co/webhook: packages/webhooks-spec/src/adapters/config.ts, quoting the sender")
}

// spec returns the specification of the alias. The window of retries is its own or unknown: how long
// Svix retries is settled by each sender, and the standard gives an example only.
func (a alias) spec() spec.Spec {
	s := a.base()
	s.Name, s.Title, s.Example.Type = a.name, a.title, a.kind
	s.Headers = []string{"Svix-*", "Webhook-*"}
	if a.sources == nil {
		a.sources = []spec.Source{usesScheme()}
	}
	s.Sources = append(s.Sources, a.sources...)
	if a.differs != nil {
		a.differs(&s)
	}
	if s.Limits.Retry == 0 {
		s.Sources = append(s.Sources, notSourced("how long it retries"))
	}
	return s
}

// withAliases adds the aliases to the catalogue.
func withAliases(all map[string]func() spec.Spec) map[string]func() spec.Spec {
	for _, a := range aliases {
		all[a.name] = a.spec
	}
	return all
}

// finchHeaders gives the scheme Finch's names of the headers.
func finchHeaders(s *spec.Spec) {
	v := svixVerify("finch")
	v.ID = "header:Finch-Event-Id"
	s.Verify = []spec.Verify{v}
	s.Secret = "the webhook's secret, in base64"
	s.Example.ID = "f5e5f430-f57b-4e6e-9fac-d9128cd7232f"
	s.Headers = []string{"Finch-*"}
	s.Example.Header = map[string]string{"Finch-Event-Id": "{{id}}"}
	s.Traps = append(s.Traps, "the headers begin with Finch: a library of Standard Webhooks does not find them")
}

const incidentExample = `{
  "event_type": "{{type}}",
  "{{type}}": {
    "id": "01EXAMPLE0001",
    "reference": "INC-17",
    "name": "Answers to retried requests are missing",
    "created_at": "{{time}}",
    "updated_at": "{{time}}",
    "incident_status": {"category": "live", "name": "Investigating"},
    "mode": "standard",
    "visibility": "public"
  }
}`

const replicateExample = `{
  "id": "{{object}}",
  "version": "5c7d5dc6dd8bf75c1acaa8565735e7986bc5b66206b55cca93cb72c9bf15ccaa",
  "created_at": "{{time}}",
  "started_at": "{{time}}",
  "completed_at": "{{time}}",
  "status": "{{type}}",
  "input": {"text": "Hook"},
  "output": ["https://files.example.com/hook.png"],
  "error": null,
  "logs": "",
  "metrics": {"predict_time": 1.7},
  "webhook": "https://shop.example.com/webhooks/replicate",
  "webhook_events_filter": ["start", "completed"]
}`

const resendExample = `{
  "type": "{{type}}",
  "created_at": "{{time}}",
  "data": {
    "email_id": "{{object}}",
    "created_at": "{{time}}",
    "from": "Shop <shop@example.com>",
    "to": ["customer@example.com"],
    "subject": "Order 1001",
    "tags": {"order": "1001"}
  }
}`

const supabaseExample = `{
  "user": {
    "id": "6481a5c1-0000-4000-8000-00000000a001",
    "aud": "authenticated",
    "role": "",
    "email": "",
    "phone": "15550100001",
    "app_metadata": {"provider": "phone", "providers": ["phone"]},
    "user_metadata": {},
    "created_at": "{{time}}",
    "is_anonymous": false
  },
  "sms": {"otp": "000000"}
}`
