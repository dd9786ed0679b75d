package provider

import "github.com/hookonce/hookonce/provider/spec"

// alias is a sender that uses Standard Webhooks or Svix under its own name. The table of them states
// what differs, which is mostly where the sender's own documentation puts the facts of an event.
type alias struct {
	name, title string
	base        func() spec.Spec
	kind        string // the type of the example
	differs     func(*spec.Spec)
	sources     []spec.Source
}

// aliases are the senders whose use of the scheme is sourced. They have no constructors of their own:
// see [Build]. What the scheme says of retries is no promise of theirs: that the id stays the same is stated or reported
// of each, or not sourced.
var aliases = []alias{
	{
		name: "anthropic", title: "Anthropic", base: viaStandard, kind: "session.created",
		differs: func(s *spec.Spec) {
			// The body is an event, whatever it is about; its data says which.
			s.Event.Type, s.Event.Resource = []spec.Value{"json:$.data.type"}, []spec.Value{"json:$.data.id"}
			s.Event.Time, s.Event.Tenant = []spec.Moment{at("json:$.created_at", spec.RFC3339)}, []spec.Value{"json:$.data.organization_id"}
			s.Headers = []string{"Webhook-*"}
			s.Traps = append(s.Traps, "type in the body is always event: what happened is in data.type")
			s.Example.Body, s.Example.Object = anthropicExample, "sesn_01EXAMPLE1001"
		},
		sources: []spec.Source{
			stated("signature, fields", "anthropics/anthropic-sdk-typescript: src/resources/beta/webhooks.ts"),
			notSourced(sameID),
		},
	},
	{
		name: "brex", title: "Brex", base: viaStandard, kind: "TRANSFER_PROCESSED",
		sources: []spec.Source{
			usesScheme(),
			stated("types, two signatures while a secret is rotated", "developer.brex.com/openapi/webhooks_api"),
			notSourced(sameID),
		},
	},
	{
		name: "browserbase", title: "Browserbase", base: viaStandard, kind: "session.completed",
		differs: func(s *spec.Spec) {
			s.Dedup.Retry = spec.Stable
			s.Answer.Deadline = 15 * second
			s.Limits.Retry = 28 * hour // at once, after 5 s, 5 and 30 minutes, 2, 5, 10 and 10 hours
			s.Headers = []string{"Webhook-*"}
			s.Traps = append(s.Traps, "events of one session arrive in any order: go by the state in data")
		},
		sources: []spec.Source{stated("use of the scheme, the same id on every attempt, deadline, retries, no order", "docs.browserbase.com/platform/webhooks/verifying-deliveries")},
	},
	{
		name: "clerk", title: "Clerk", base: viaSvix, kind: "user.created",
		differs: func(s *spec.Spec) {
			s.Event.Resource = []spec.Value{"json:$.data.id"}
			s.Limits.Retry, s.Answer.Deadline = svixRetry, svixDeadline
			s.Traps = append(s.Traps, "it is said to retry for three days; the schedule is that of Svix, about 28 hours")
		},
		sources: []spec.Source{
			stated("signature", "clerk/javascript: packages/backend/src/webhooks.ts"),
			reported("retries, deadline", "Clerk documentation, quoted: it sends through Svix"),
			reported(sameID, bySvix),
		},
	},
	{
		name: "dodo-payments", title: "Dodo Payments", base: viaStandard, kind: "payment.succeeded",
		differs: func(s *spec.Spec) {
			s.Event.Time = []spec.Moment{at("json:$.timestamp", spec.RFC3339)}
			s.Event.Resource = []spec.Value{"json:$.data.payment_id", "json:$.data.subscription_id", "json:$.data.refund_id", "json:$.data.dispute_id"}
			s.Event.Tenant = []spec.Value{"json:$.business_id"}
			s.Headers = []string{"Webhook-*"}
			s.Example.Body, s.Example.Object = dodoPaymentsExample, "pay_1001"
		},
		sources: []spec.Source{stated("signature, fields", "dodopayments/dodopayments-typescript: src/resources/webhooks"), notSourced(sameID)},
	},
	{name: "etsy", title: "Etsy", base: viaStandard, kind: "order.paid", sources: []spec.Source{usesScheme(), notSourced(sameID)}},
	{
		name: "finch", title: "Finch", base: viaStandard, kind: "employment.updated",
		differs: finchHeaders,
		sources: []spec.Source{
			stated("signature, headers, form of the secret", "Finch-API/finch-api-node: src/resources/webhooks.ts"),
			notSourced(sameID),
		},
	},
	{
		name: "gemini", title: "Gemini API", base: viaStandard, kind: "batch.succeeded",
		differs: func(s *spec.Spec) {
			s.Limits.Retry = day
			s.Dedup.Retry = spec.Stable
			s.Traps = append(s.Traps, "only webhooks with a static secret are signed this way; dynamic ones carry a token and are refused")
		},
		sources: []spec.Source{
			stated("signature, retries, webhook-id for idempotency", "blog.google, Event-driven webhooks in the Gemini API, 2026-05-04"),
		},
	},
	{
		name: "incident-io", title: "incident.io", base: viaStandard, kind: "public_incident.incident_created_v2",
		differs: func(s *spec.Spec) {
			s.Event.Type, s.Event.Time = []spec.Value{"json:$.event_type"}, nil
			s.Limits.Retry = day
			s.Example.Body = incidentExample
		},
		sources: []spec.Source{stated("headers, type, retries", "docs.incident.io/api-reference/webhooks"), notSourced(sameID)},
	},
	{
		name: "increase", title: "Increase", base: viaStandard, kind: "account.created",
		differs: func(s *spec.Spec) {
			// The body is the event as the API shows it.
			decoded := svixVerify("webhook")
			decoded.Key = spec.KeyWhsecOnly
			s.Verify = []spec.Verify{decoded, timedMAC("Increase-Webhook-Signature", spec.RFC3339, 5*minute)}
			s.Secret = "the event subscription's shared secret"
			s.Headers = []string{"Webhook-*", "Increase-*"}
			s.Event.Key = [][]spec.Value{{"id"}, {"json:$.id"}}
			s.Event.Type, s.Event.Resource = []spec.Value{"json:$.category", "json:$.type"}, []spec.Value{"json:$.associated_object_id"}
			s.Event.Time = []spec.Moment{at("json:$.created_at", spec.RFC3339)}
			s.Example.ID, s.Example.Body, s.Example.Object = "event_001dzz0r20rzr4zrhrr1364hy80", increaseExample, "account_in71c4amph0vgo2qllky"
			s.Traps = append(s.Traps, "in Increase-Webhook-Signature, which came first, the time is a text and the whole secret is the key, whsec_ included")
		},
		sources: []spec.Source{
			usesScheme(),
			stated("its older signature", "Increase/increase-python: tests/api_resources/test_webhooks.py; Increase/increase-java"),
			stated("fields, the body's id is the event's", "increase.com/documentation/webhooks"),
			notSourced(sameID),
		},
	},
	{
		name: "lithic", title: "Lithic", base: viaStandard, kind: "card.created",
		differs: func(s *spec.Spec) {
			// The body is the object, with the type of the event in it.
			s.Event.Type = []spec.Value{"json:$.event_type"}
			s.Event.Resource, s.Event.Time = []spec.Value{"json:$.card_token", "json:$.token"}, nil
			s.Headers = []string{"Webhook-*"}
			s.Traps = append(s.Traps, "the token in the body is that of the card or the transaction: as the key it loses every event but the first")
			s.Example.Body, s.Example.Object = lithicExample, "7ef7d65c-0000-4000-8000-00000000c001"
		},
		sources: []spec.Source{stated("signature, headers, fields", "lithic-com/lithic-node: src/resources/webhooks.ts"), notSourced(sameID)},
	},
	{
		name: "liveblocks", title: "Liveblocks", base: viaStandard, kind: "commentCreated",
		differs: func(s *spec.Spec) {
			s.Event.Time = []spec.Moment{at("json:$.data.createdAt", spec.RFC3339), at("json:$.data.updatedAt", spec.RFC3339)}
			s.Event.Resource, s.Event.Tenant = []spec.Value{"json:$.data.roomId"}, []spec.Value{"json:$.data.projectId"}
			s.Headers = []string{"Webhook-*"}
			s.Example.Body, s.Example.Object = liveblocksExample, "room-1001"
		},
		sources: []spec.Source{stated("signature, tolerance, fields", "liveblocks/liveblocks: packages/liveblocks-node/src/webhooks.ts"), notSourced(sameID)},
	},
	{
		name: "loops", title: "Loops", base: viaStandard, kind: "email.delivered",
		differs: func(s *spec.Spec) {
			s.Event.Type, s.Event.Time = []spec.Value{"json:$.eventName"}, []spec.Moment{at("json:$.eventTime", spec.Seconds)}
			s.Event.Resource = []spec.Value{"json:$.email.id"}
			s.Example.Body, s.Example.Object = loopsExample, "cm4exampleemail0001"
		},
		sources: []spec.Source{
			stated("signature, type", "loops.so/docs/webhooks"),
			reported("the other fields", "users of Loops' webhooks; nothing but labels depends on them"),
			notSourced(sameID),
		},
	},
	{
		name: "openai", title: "OpenAI", base: viaStandard, kind: "response.completed",
		differs: func(s *spec.Spec) {
			s.Event.Time = []spec.Moment{at("json:$.created_at", spec.Seconds)}
			s.Event.Resource = []spec.Value{"json:$.data.id"}
			s.Limits.Retry = 3 * day
			s.Dedup.Retry = spec.Stable
			s.Secret = "the endpoint's signing secret, whsec_ followed by base64; any other text is taken as it is"
			s.Verify = whsecOrText("webhook")
			s.Headers = []string{"Webhook-*"}
		},
		sources: []spec.Source{
			stated("signature, fields, a secret without whsec_ is not decoded", "openai/openai-go: webhooks; openai/openai-node: src/resources/webhooks"),
			stated("copies come, webhook-id tells them apart", "platform.openai.com/docs/guides/webhooks"),
			reported("retries", "OpenAI documentation, quoted by Hookdeck's guide to OpenAI webhooks"),
		},
	},
	{
		name: "polar", title: "Polar", base: viaStandard, kind: "order.paid",
		differs: func(s *spec.Spec) {
			s.Secret = "the endpoint's secret, the whole text as it is shown"
			s.Verify = whsecOrText("webhook")
			s.Headers = []string{"Webhook-*"}
			s.Dedup = spec.Dedup{Retry: spec.Stable, Manual: spec.Stable}
			s.Answer.Deadline = 10 * second
			s.Limits.Retry = 3 * hour // ten attempts, with at most 20 minutes between two
			s.Traps = append(s.Traps,
				"what a secret stands for depends on when it was made: since 2026-09-08 it is decoded as the standard has it, before that its text is the key, whsec_ included; nothing in it says which, so both are tried")
		},
		sources: []spec.Source{
			stated("two keys, and since when", "polarsource/polar: server/polar/webhook/tasks.py, pull requests 14102 and 14117; @polar-sh/sdk 1.0, of npm: webhooks"),
			stated("the id is that of the event on every attempt and when it is delivered again by hand, retries, deadline", "polarsource/polar: server/polar/webhook/tasks.py, server/polar/config.py"),
		},
	},
	{
		name: "render", title: "Render", base: viaStandard, kind: "deploy_ended",
		differs: func(s *spec.Spec) {
			s.Answer.Deadline = 15 * second
			s.Limits.Retry = 34 * hour // eight attempts, the last about 33 hours after the first
		},
		sources: []spec.Source{
			usesScheme(),
			stated("deadline", "render.com/docs/webhooks"),
			reported("retries", "apis.io: AsyncAPI description of Render, quoting render.com/docs/webhooks"),
			notSourced(sameID),
		},
	},
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
		sources: []spec.Source{
			stated("signature", "replicate/replicate-javascript: lib/util.js"),
			stated("the body is the prediction, retries", "replicate.com/docs/topics/webhooks/receive-webhook"),
			notSourced(sameID),
		},
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
			stated("signature", "resend/resend-node: src/webhooks"),
			reported("deadline", "inferred: it sends through Svix"),
			reported(sameID, bySvix),
		},
	},
	{name: "stytch", title: "Stytch", base: viaSvix, kind: "direct.user.create", sources: []spec.Source{usesScheme(), reported(sameID, bySvix)}},
	{
		name: "supabase", title: "Supabase", base: viaStandard, kind: "send_sms",
		differs: func(s *spec.Spec) {
			s.Secret = "the hook's secret as the dashboard shows it: v1,whsec_ followed by base64"
			for i := range s.Verify {
				s.Verify[i].Signature.Trim = "," // several signatures are joined with a comma and a space
			}
			s.Event.Key, s.Event.AttemptID = nil, []spec.Value{"header:Webhook-Id"}
			s.Event.Type, s.Event.Time, s.Event.Resource = nil, nil, []spec.Value{"json:$.user.id"}
			s.Dedup = spec.Dedup{OnRepeat: spec.Off, Retry: spec.Unstable, Manual: spec.NotSent}
			s.Answer = spec.Answer{ContentType: "application/json", Body: "{}", Deadline: 5 * second}
			s.Limits = spec.Limits{Retry: 5 * second}
			s.Headers = []string{"Webhook-*"}
			s.Traps = []string{
				"webhook-id is made anew for each attempt: as the key it lets every retry through; nothing else names the event, and all pass through unkeyed",
				"somebody waits for the answer to sign in or up, and its body decides what happens: put the application behind the gateway with mode: sync",
				"three attempts share five seconds; only what cannot be reached, and 429 and 503 with Retry-After, is tried again",
				"the answer must be JSON, or 204 without a body; 400 to 499 end the attempts",
				"while a secret is rotated the signatures are joined with a comma and a space, which libraries of Standard Webhooks do not take apart; a space alone is taken as well",
			}
			s.Example.Body = supabaseExample
		},
		sources: []spec.Source{
			stated("signatures, form of the secret, id of each attempt, retries, answer, deadline", "supabase/auth: internal/hooks/hookshttp/hookshttp.go"),
		},
	},
	{name: "vanta", title: "Vanta", base: viaSvix, kind: "vendor.created", sources: []spec.Source{usesScheme(), reported(sameID, bySvix)}},
}

// viaSvix and viaStandard are the scheme with the headers that the sender uses tried first. What Svix itself does holds
// for those that send through it, and for no other.
func viaSvix() spec.Spec { return svixFamily("svix", "webhook") }

func viaStandard() spec.Spec {
	s := svixFamily("webhook", "svix")
	s.Dedup = spec.Dedup{}
	return s
}

// sameID is the fact that decides whether retries are recognised.
const sameID = "same id on every attempt and when sent again by hand"

// bySvix is why it holds for those that send through Svix.
const bySvix = "inferred: it sends through Svix, whose worker takes the id from the message (svix/svix-webhooks: server/svix-server/src/worker.rs)"

// whsecOrText is the scheme of senders some of whose secrets are decoded, and others are the key as they are.
func whsecOrText(header string) []spec.Verify {
	decoded, text := svixVerify(header), svixVerify(header)
	decoded.Key, text.Key = spec.KeyWhsecOnly, spec.KeyUTF8
	return []spec.Verify{decoded, text}
}

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
	s.Sources = append([]spec.Source{stated("the scheme, in which a retry is signed anew", "standard-webhooks/standard-webhooks: spec/standard-webhooks.md")}, a.sources...)
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

const anthropicExample = `{
  "id": "wevt_01EXAMPLE",
  "type": "event",
  "created_at": "{{time}}",
  "data": {"type": "{{type}}", "id": "{{object}}", "organization_id": "0f1e2d3c-0000-4000-8000-00000000e001", "workspace_id": "wrkspc_01EXAMPLE"}
}`

const dodoPaymentsExample = `{
  "business_id": "bus_1001",
  "type": "{{type}}",
  "timestamp": "{{time}}",
  "data": {
    "payload_type": "Payment",
    "payment_id": "{{object}}",
    "status": "succeeded",
    "total_amount": 3995,
    "currency": "EUR",
    "created_at": "{{time}}",
    "customer": {"customer_id": "cus_1001", "email": "customer@example.com", "name": "Customer"}
  }
}`

const lithicExample = `{
  "event_type": "{{type}}",
  "card_token": "{{object}}",
  "replacement_for": null
}`

const liveblocksExample = `{
  "type": "{{type}}",
  "data": {
    "projectId": "my-project-id",
    "roomId": "{{object}}",
    "threadId": "th_example1001",
    "commentId": "cm_example1001",
    "createdAt": "{{time}}",
    "createdBy": "person@example.com"
  }
}`

const increaseExample = `{
  "id": "{{id}}",
  "created_at": "{{time}}",
  "category": "{{type}}",
  "associated_object_type": "account",
  "associated_object_id": "{{object}}",
  "type": "event"
}`

const loopsExample = `{
  "eventName": "{{type}}",
  "eventTime": {{unix}},
  "webhookSchemaVersion": "1.0.0",
  "contactIdentity": {"id": "cm4examplecontact01", "email": "customer@example.com", "userId": null},
  "sourceType": "transactional",
  "email": {"id": "{{object}}", "emailMessageId": "cm4examplemessage01", "subject": "Order 1001"}
}`

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
