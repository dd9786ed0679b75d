package reconcile_test

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/reconcile"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// standIn answers as one sender documents it: for each method and URL one body. Its clock stands at the begin of 2000, so the range
// of two days, with a minute around it, is that in the URLs.
type standIn struct {
	secret, url, token string
	with               map[string]string
	// header is what every request has to have; of several the first entry is the one that presents the token.
	header http.Header
	// answers are the bodies by method, URL and, after a space, the body of the request, if it has one.
	answers map[string]string
	// links are Link headers, by URL.
	links map[string]string
	// missing are the keys that are found, the oldest first. resent are the requests that send them again. types are the events'.
	missing, resent, types []string
	// bodies are those of the events that are stored.
	bodies []string
	// undelivered are entries without keys.
	undelivered []string
}

func (s *standIn) serve(t *testing.T, asked *[]string) roundTrip {
	return func(r *http.Request) (*http.Response, error) {
		body := ""
		if r.Body != nil {
			all, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			body = string(all)
		}
		plain, err := url.QueryUnescape(r.URL.String())
		if err != nil {
			return nil, err
		}
		request := strings.TrimSpace(r.Method + " " + plain + " " + body)
		*asked = append(*asked, request)
		answer, known := s.answers[request]
		if !known {
			t.Errorf("the sender does not document %s", request)
			return response(r, 404, ""), nil
		}
		if !strings.HasSuffix(r.URL.Path, "/oauth2/token") {
			for name, want := range s.header {
				if got := r.Header.Values(name); !slices.Equal(got, want) {
					t.Errorf("%s: %s is %q, not %q", request, name, got, want)
				}
			}
		}
		resp := response(r, 200, answer)
		if slices.Contains(s.resent, request) {
			resp.StatusCode = 202
		}
		if link := s.links[plain]; link != "" {
			resp.Header.Set("Link", link)
		}
		return resp, nil
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func response(r *http.Request, status int, body string) *http.Response {
	return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body)), Request: r}
}

// TestCatalogue reads, for each sender that has a list, answers of the form that it documents.
func TestCatalogue(t *testing.T) {
	for _, name := range provider.Names() {
		known, err := provider.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s, is := standIns[name]
		if known.Reconcile == nil && !is {
			continue
		}
		if known.Reconcile == nil || !is {
			t.Errorf("%s: a list is described (%v), and a stand-in for it is here (%v): both or neither", name, known.Reconcile != nil, is)
			continue
		}
		bubble(t, name, func(t *testing.T) { s.test(t, name, known) })
	}
}

func (s *standIn) test(t *testing.T, name string, known spec.Spec) {
	p, err := provider.Build(name, spec.Settings{Secrets: spec.Secrets(s.secret), URL: s.url})
	if err != nil {
		t.Fatal(err)
	}
	var asked []string
	opts := reconcile.Options{
		Source: "billing", Provider: p, With: s.with, Token: s.token, Ledger: &ledger{},
		Since: time.Now().Add(-48 * time.Hour), Until: time.Now(), Transport: s.serve(t, &asked),
	}
	r, err := reconcile.Run(t.Context(), opts)
	if err != nil {
		t.Fatal(err)
	}
	var missing, types, undelivered []string
	for _, m := range r.Events {
		missing, types = append(missing, m.Key), append(types, m.Type)
		if m.Time.Year() != 1999 {
			t.Errorf("%s has the time %v", m.Key, m.Time)
		}
	}
	for _, m := range r.Undelivered {
		undelivered = append(undelivered, m.Entry)
	}
	if diff := cmp.Diff([][]string{s.missing, s.types, s.undelivered}, [][]string{missing, types, undelivered}); diff != "" {
		t.Error(diff)
	}
	if slices.ContainsFunc(asked, func(request string) bool { return slices.Contains(s.resent, request) }) {
		t.Error("something was sent again that nobody asked for")
	}
	s.testRedeliver(t, known, opts, &asked)
	s.testIngest(t, known, opts)
}

func (s *standIn) testRedeliver(t *testing.T, known spec.Spec, opts reconcile.Options, asked *[]string) {
	if (known.Reconcile.Redeliver == nil) != (len(s.resent) == 0) {
		t.Error("the stand-in is told to send events again, or not, as the sender does")
	}
	if known.Reconcile.Redeliver == nil {
		return
	}
	*asked = nil
	opts.Redeliver = true
	r, err := reconcile.Run(t.Context(), opts)
	if err != nil || r.Failed > 0 {
		t.Errorf("%v, %v", err, r.Failures)
	}
	var resent []string
	for _, request := range *asked {
		if slices.Contains(s.resent, request) {
			resent = append(resent, request)
		}
	}
	if diff := cmp.Diff(s.resent, resent); diff != "" {
		t.Error(diff)
	}
}

func (s *standIn) testIngest(t *testing.T, known spec.Spec, opts reconcile.Options) {
	if known.Reconcile.List.Event == nil {
		return
	}
	var bodies []string
	opts.Ingest = func(_ context.Context, event hookonce.Event) (bool, error) {
		bodies = append(bodies, string(event.Body))
		if event.Header.Get("Content-Type") != "application/json" || event.Header.Get("X-Gitlab-Token") != "" {
			t.Errorf("%s has the headers %v", event.Key, event.Header)
		}
		return true, nil
	}
	if _, err := reconcile.Run(t.Context(), opts); err != nil {
		t.Error(err)
	}
	if diff := cmp.Diff(s.bodies, bodies); diff != "" {
		t.Error(diff)
	}
}

// TestStandInsHaveTheClock holds the stand-ins to the clock of a bubble.
func TestStandInsHaveTheClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		if !time.Now().Equal(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)) {
			t.Error(time.Now())
		}
	})
}

const (
	since     = "1999-12-29T23:59:00Z" // the range of the stand-ins
	until     = "2000-01-01T00:01:00Z"
	sinceUnix = "946511940"
	untilUnix = "946684860"
)

var standIns = map[string]*standIn{
	"stripe": {
		secret: "whsec_fake", token: "rk_test_fake", with: map[string]string{"account": "acct_1"},
		header: http.Header{"Authorization": {"Bearer rk_test_fake"}, "Stripe-Account": {"acct_1"}},
		answers: map[string]string{
			"GET https://api.stripe.com/v1/events?limit=100&created[gte]=" + sinceUnix + "&created[lte]=" + untilUnix:                           `{"object": "list", "url": "/v1/events", "has_more": true, "data": [` + stripeEvent("evt_3", "946641602") + `, ` + stripeEvent("evt_2", "946641601") + `]}`,
			"GET https://api.stripe.com/v1/events?limit=100&created[gte]=" + sinceUnix + "&created[lte]=" + untilUnix + "&starting_after=evt_2": `{"object": "list", "url": "/v1/events", "has_more": false, "data": [` + stripeEvent("evt_1", "946641600") + `]}`,
		},
		missing: []string{"evt_1", "evt_2", "evt_3"},
		types:   []string{"charge.succeeded", "charge.succeeded", "charge.succeeded"},
		bodies:  []string{stripeEvent("evt_1", "946641600"), stripeEvent("evt_2", "946641601"), stripeEvent("evt_3", "946641602")},
	},
	"github": {
		secret: "fake-secret", token: "github_pat_fake", with: map[string]string{"owner": "octo", "repo": "hello.world", "hook": "42"},
		header: http.Header{"Authorization": {"Bearer github_pat_fake"}, "Accept": {"application/vnd.github+json"}, "X-Github-Api-Version": {"2022-11-28"}},
		answers: map[string]string{
			githubHook + "?per_page=100": `[
				{"id": 3, "guid": "g-2", "delivered_at": "1999-12-31T12:00:02Z", "redelivery": true, "status": "OK", "status_code": 200, "event": "issues", "action": "opened"},
				{"id": 2, "guid": "g-2", "delivered_at": "1999-12-31T12:00:01Z", "redelivery": false, "status": "timed out", "status_code": 0, "event": "issues", "action": "opened"}]`,
			githubHook + "?per_page=100&cursor=v1_1": `[
				{"id": 1, "guid": "g-1", "delivered_at": "1999-12-31T12:00:00Z", "redelivery": false, "status": "Invalid HTTP Response: 503", "status_code": 503, "event": "ping", "action": null}]`,
			githubHook + "/1": `{"id": 1, "guid": "g-1", "request": {"headers": {"X-GitHub-Delivery": "g-1", "X-GitHub-Event": "ping", "Content-Type": "application/json"}, "payload": {"zen": "Keep it simple."}}, "response": {"headers": {}, "payload": ""}}`,
			githubHook + "/3": `{"id": 3, "guid": "g-2", "request": {"headers": {"X-GitHub-Delivery": "g-2", "X-GitHub-Event": "issues", "Content-Type": "application/json"}, "payload": {"action": "opened"}}}`,
			"POST https://api.github.com/repos/octo/hello.world/hooks/42/deliveries/1/attempts": `{}`,
			"POST https://api.github.com/repos/octo/hello.world/hooks/42/deliveries/3/attempts": `{}`,
		},
		links: map[string]string{
			strings.TrimPrefix(githubHook, "GET ") + "?per_page=100": `<https://api.github.com/repos/octo/hello.world/hooks/42/deliveries?per_page=100&cursor=v1_1>; rel="next"`,
		},
		missing: []string{"g-1", "g-2"},
		types:   []string{"ping", "issues.opened"},
		resent: []string{
			"POST https://api.github.com/repos/octo/hello.world/hooks/42/deliveries/1/attempts",
			"POST https://api.github.com/repos/octo/hello.world/hooks/42/deliveries/3/attempts",
		},
		bodies: []string{`{"zen": "Keep it simple."}`, `{"action": "opened"}`},
	},
	"gitlab": {
		secret: "fake-token", token: "glpat-fake", with: map[string]string{"place": "group", "group": "acme/shop", "hook": "7", "server": "https://git.acme.example"},
		header: http.Header{"Private-Token": {"glpat-fake"}},
		answers: map[string]string{
			"GET https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events?per_page=20": `[` +
				gitlabEvent("12", "key-2", "1999-12-31T12:00:01.000Z", "200", `{"object_kind":"push","ref":"refs/heads/main"}`) + `,` +
				gitlabEvent("11", "key-1", "1999-12-31T12:00:00.000Z", "internal error", `{"object_kind":"push","ref":"refs/heads/main"}`) + `,` +
				gitlabEvent("10", "key-0", "1999-12-31T11:59:59.000Z", "503", `{"oversize":true}`) + `]`,
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/10/resend": `{"response_status": 200}`,
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/11/resend": `{"response_status": 200}`,
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/12/resend": `{"response_status": 200}`,
		},
		missing: []string{"key-0", "key-1", "key-2"},
		types:   []string{"Push Hook", "push", "push"},
		resent: []string{
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/10/resend",
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/11/resend",
			"POST https://git.acme.example/api/v4/groups/acme/shop/hooks/7/events/12/resend",
		},
		bodies: []string{`{"object_kind":"push","ref":"refs/heads/main"}`, `{"object_kind":"push","ref":"refs/heads/main"}`},
	},
	"paypal": {
		secret: "1JE4291016473214C", token: "fake-id:fake-secret", with: map[string]string{"server": "sandbox", "webhook": "1JE4291016473214C"},
		header: http.Header{"Authorization": {"Bearer fake-access"}},
		answers: map[string]string{
			"POST https://api-m.sandbox.paypal.com/v1/oauth2/token grant_type=client_credentials": `{"scope": "https://uri.paypal.com/services/applications/webhooks", "access_token": "fake-access", "token_type": "Bearer", "expires_in": 32400}`,
			paypalList: `{"events": [` + paypalEvent("WH-2") + `], "count": 2, "links": [
				{"href": "https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events?page_size=100", "rel": "self", "method": "GET"},
				{"href": "https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events?page_size=100&next_page_token=x", "rel": "next", "method": "GET"}]}`,
			"GET https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events?page_size=100&next_page_token=x":                     `{"events": [` + paypalEvent("WH-1") + `], "count": 1, "links": []}`,
			`POST https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events/WH-2/resend {"webhook_ids": ["1JE4291016473214C"]}`: `{"id": "WH-2"}`,
			`POST https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events/WH-1/resend {"webhook_ids": ["1JE4291016473214C"]}`: `{"id": "WH-1"}`,
		},
		missing: []string{"WH-2", "WH-1"},
		types:   []string{"PAYMENT.CAPTURE.COMPLETED", "PAYMENT.CAPTURE.COMPLETED"},
		resent: []string{
			`POST https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events/WH-2/resend {"webhook_ids": ["1JE4291016473214C"]}`,
			`POST https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events/WH-1/resend {"webhook_ids": ["1JE4291016473214C"]}`,
		},
		bodies: []string{paypalEvent("WH-2"), paypalEvent("WH-1")},
	},
	"square": {
		secret: "fake-key", url: "https://acme.example/in/square", token: "fake-square-token",
		header: http.Header{"Authorization": {"Bearer fake-square-token"}, "Content-Type": {"application/json"}},
		answers: map[string]string{
			`POST https://connect.squareup.com/v2/events {"limit": 100, "query": {"filter": {"created_at": {"start_at": "` + since + `", "end_at": "` + until + `"}}, "sort": {"field": "DEFAULT", "order": "ASC"}}}`:  `{"events": [` + squareEvent("e-1") + `], "metadata": [{"event_id": "e-1", "api_version": "2025-01-23"}], "cursor": "c1"}`,
			`POST https://connect.squareup.com/v2/events {"cursor":"c1","limit":100,"query":{"filter":{"created_at":{"start_at":"` + since + `","end_at":"` + until + `"}},"sort":{"field":"DEFAULT","order":"ASC"}}}`: `{"events": [` + squareEvent("e-2") + `]}`,
		},
		missing: []string{"e-1", "e-2"},
		types:   []string{"payment.updated", "payment.updated"},
		bodies:  []string{squareEvent("e-1"), squareEvent("e-2")},
	},
	"paddle": {
		secret: "pdl_ntfset_fake", token: "pdl_sdbx_fake", with: map[string]string{"server": "sandbox", "destination": "ntfset_01"},
		header: http.Header{"Authorization": {"Bearer pdl_sdbx_fake"}, "Paddle-Version": {"1"}},
		answers: map[string]string{
			"GET https://sandbox-api.paddle.com/notifications?per_page=200&order_by=id[ASC]&notification_setting_id=ntfset_01&from=" + since + "&to=" + until: `{"data": [` +
				paddleNotification("ntf_1", "evt_1", "failed", "event", "00") + `, ` + paddleNotification("ntf_2", "evt_2", "delivered", "event", "01") +
				`], "meta": {"request_id": "r", "pagination": {"per_page": 200, "next": "https://sandbox-api.paddle.com/notifications?after=ntf_2", "has_more": true, "estimated_total": 3}}}`,
			"GET https://sandbox-api.paddle.com/notifications?after=ntf_2": `{"data": [` + paddleNotification("ntf_3", "evt_1", "failed", "replay", "02") +
				`], "meta": {"request_id": "r", "pagination": {"per_page": 200, "next": "https://sandbox-api.paddle.com/notifications?after=ntf_3", "has_more": false, "estimated_total": 3}}}`,
			"POST https://sandbox-api.paddle.com/notifications/ntf_1/replay": `{"data": {"notification_id": "ntf_4"}}`,
			"POST https://sandbox-api.paddle.com/notifications/ntf_2/replay": `{"data": {"notification_id": "ntf_5"}}`,
		},
		missing: []string{"evt_1", "evt_2"},
		types:   []string{"transaction.completed", "transaction.completed"},
		resent: []string{
			"POST https://sandbox-api.paddle.com/notifications/ntf_1/replay", // the replay itself cannot be replayed
			"POST https://sandbox-api.paddle.com/notifications/ntf_2/replay",
		},
		bodies: []string{paddleEvent("ntf_1", "evt_1"), paddleEvent("ntf_2", "evt_2")},
	},
	"chargebee": {
		secret: "user:fake-password", token: "test_fake", with: map[string]string{"site": "acme-test"},
		header: http.Header{"Authorization": {"Basic dGVzdF9mYWtlOg=="}},
		answers: map[string]string{
			chargebeeList: `{"list": [{"event": ` + chargebeeEvent("ev_1") + `}], "next_offset": "[\"946641600\",\"1\"]"}`,
			chargebeeList + `&offset=["946641600","1"]`: `{"list": [{"event": ` + chargebeeEvent("ev_2") + `}]}`,
		},
		missing: []string{"ev_1", "ev_2"},
		types:   []string{"payment_succeeded", "payment_succeeded"},
		bodies:  []string{chargebeeEvent("ev_1"), chargebeeEvent("ev_2")},
	},
	"gocardless": {
		secret: "fake-secret", token: "sandbox_fake", with: map[string]string{"server": "sandbox"},
		header: http.Header{"Authorization": {"Bearer sandbox_fake"}, "Gocardless-Version": {"2015-07-06"}},
		answers: map[string]string{
			gocardlessList:                `{"webhooks": [` + gocardlessWebhook("WB2", "EV2", "EV3", "12:00:01") + `], "meta": {"cursors": {"before": null, "after": "WB2"}, "limit": 100}}`,
			gocardlessList + "&after=WB2": `{"webhooks": [` + gocardlessWebhook("WB1", "EV0", "EV1", "12:00:00") + `], "meta": {"cursors": {"before": "WB1", "after": null}, "limit": 100}}`,
			"POST https://api-sandbox.gocardless.com/webhooks/WB1/actions/retry": `{"webhooks": {"id": "WB1"}}`,
			"POST https://api-sandbox.gocardless.com/webhooks/WB2/actions/retry": `{"webhooks": {"id": "WB2"}}`,
		},
		missing: []string{"EV0", "EV1", "EV2", "EV3"},
		types:   []string{"payments.confirmed", "payments.confirmed", "payments.confirmed", "payments.confirmed"},
		resent: []string{
			"POST https://api-sandbox.gocardless.com/webhooks/WB1/actions/retry",
			"POST https://api-sandbox.gocardless.com/webhooks/WB2/actions/retry",
		},
		bodies: []string{gocardlessBody("EV0", "WB1"), gocardlessBody("EV1", "WB1"), gocardlessBody("EV2", "WB2"), gocardlessBody("EV3", "WB2")},
	},
	"docusign": {
		secret: "fake-key", token: "fake.access.token", with: map[string]string{"base": "demo", "account": "acc-1"},
		header: http.Header{"Authorization": {"Bearer fake.access.token"}},
		answers: map[string]string{
			"GET https://demo.docusign.net/restapi/v2.1/accounts/acc-1/connect/failures?from_date=" + since + "&to_date=" + until: `{"totalRecords": "2", "type": "failures", "failures": [
				{"accountId": "acc-1", "connectId": "9", "created": "1999-12-31T12:00:01.0000000Z", "envelopeId": "env-2", "error": "503", "failureId": "f-2", "lastTry": "1999-12-31T12:05:01.0000000Z", "retryCount": "3", "status": "failed"},
				{"accountId": "acc-1", "connectId": "9", "created": "1999-12-31T12:00:00.0000000Z", "envelopeId": "env-1", "error": "503", "failureId": "f-1", "retryCount": "3", "status": "failed"},
				{"accountId": "acc-1", "connectId": "9", "created": "1999-12-31T12:00:02.0000000Z", "envelopeId": "env-2", "error": "503", "failureId": "f-3", "retryCount": "3", "status": "failed"}]}`,
			"PUT https://demo.docusign.net/restapi/v2.1/accounts/acc-1/connect/envelopes/env-1/retry_queue": `{"retryQueue": [{"envelopeId": "env-1", "status": "queued"}]}`,
			"PUT https://demo.docusign.net/restapi/v2.1/accounts/acc-1/connect/envelopes/env-2/retry_queue": `{"retryQueue": [{"envelopeId": "env-2", "status": "queued"}]}`,
		},
		undelivered: []string{"f-1", "f-2", "f-3"},
		resent: []string{
			"PUT https://demo.docusign.net/restapi/v2.1/accounts/acc-1/connect/envelopes/env-1/retry_queue",
			"PUT https://demo.docusign.net/restapi/v2.1/accounts/acc-1/connect/envelopes/env-2/retry_queue",
		},
	},
	"zendesk": {
		secret: "fake-secret", token: "me@example.com/token:fake", with: map[string]string{"subdomain": "acme", "webhook": "01WH"},
		header: http.Header{"Authorization": {"Basic bWVAZXhhbXBsZS5jb20vdG9rZW46ZmFrZQ=="}},
		answers: map[string]string{
			zendeskList: `{"invocations": [{"id": "01INV1", "latest_completed_at": "1999-12-31T12:00:00Z", "status": "server error"}, {"id": "01INV2", "latest_completed_at": "1999-12-31T12:00:01Z", "status": "success"}],
				"meta": {"has_more": true, "after_cursor": "x="}, "links": {"next": "https://acme.zendesk.com/api/v2/webhooks/01WH/invocations?page[after]=x"}}`,
			zendeskList + "&page[after]=x=": `{"invocations": [{"id": "01INV3", "latest_completed_at": "1999-12-31T12:00:02Z", "status": "circuit broken"}], "meta": {"has_more": false, "after_cursor": "y="}}`,
		},
		undelivered: []string{"01INV1", "01INV3"},
	},
	"workos": {
		secret: "fake-secret", token: "sk_fake", with: map[string]string{"events": "user.created,dsync.user.updated"},
		header: http.Header{"Authorization": {"Bearer sk_fake"}},
		answers: map[string]string{
			workosList: `{"object": "list", "data": [` + workosEvent("event_1") + `], "list_metadata": {"before": null, "after": "event_1"}}`,
			strings.Replace(workosList, "&range_start="+since, "", 1) + "&after=event_1": `{"object": "list", "data": [` + workosEvent("event_2") + `], "list_metadata": {"before": "event_1", "after": null}}`,
		},
		missing: []string{"event_1", "event_2"},
		types:   []string{"user.created", "user.created"},
		bodies:  []string{workosEvent("event_1"), workosEvent("event_2")},
	},
}

const (
	githubHook     = "GET https://api.github.com/repos/octo/hello.world/hooks/42/deliveries"
	paypalList     = "GET https://api-m.sandbox.paypal.com/v1/notifications/webhooks-events?page_size=100&start_time=" + since + "&end_time=" + until
	chargebeeList  = "GET https://acme-test.chargebee.com/api/v2/events?limit=100&sort_by[asc]=occurred_at&occurred_at[after]=" + sinceUnix + "&occurred_at[before]=" + untilUnix
	gocardlessList = "GET https://api-sandbox.gocardless.com/webhooks?limit=100&created_at[gte]=" + since + "&created_at[lte]=" + until
	zendeskList    = "GET https://acme.zendesk.com/api/v2/webhooks/01WH/invocations?page[size]=100&filter[from_ts]=" + since + "&filter[to_ts]=" + until
	workosList     = "GET https://api.workos.com/events?limit=100&order=asc&events[]=user.created&events[]=dsync.user.updated&range_start=" + since + "&range_end=" + until
)

func stripeEvent(id, created string) string {
	return `{"id": "` + id + `", "object": "event", "created": ` + created + `, "data": {"object": {"id": "ch_1", "object": "charge"}}, "pending_webhooks": 1, "type": "charge.succeeded"}`
}

func gitlabEvent(id, key, at, status, body string) string {
	return `{"id": ` + id + `, "url": "https://acme.example/", "trigger": "push_hooks", "request_headers": {"Content-Type": "application/json", "Idempotency-Key": "` + key +
		`", "X-Gitlab-Event": "Push Hook", "X-Gitlab-Token": "[REDACTED]"}, "request_data": ` + body + `, "response_status": "` + status + `", "created_at": "` + at + `"}`
}

func paypalEvent(id string) string {
	return `{"id": "` + id + `", "create_time": "1999-12-31T12:00:00.123Z", "resource_type": "capture", "event_type": "PAYMENT.CAPTURE.COMPLETED", "resource": {"id": "5O1"}}`
}

func squareEvent(id string) string {
	return `{"merchant_id": "M1", "type": "payment.updated", "event_id": "` + id + `", "created_at": "1999-12-31T12:00:00Z", "data": {"type": "payment", "id": "P1"}}`
}

func paddleEvent(notification, event string) string {
	return `{"event_id": "` + event + `", "event_type": "transaction.completed", "occurred_at": "1999-12-31T12:00:00.000000Z", "notification_id": "` + notification + `", "data": {"id": "txn_1"}}`
}

func paddleNotification(id, event, status, origin, second string) string {
	return `{"id": "` + id + `", "type": "transaction.completed", "status": "` + status + `", "payload": ` + paddleEvent(id, event) +
		`, "occurred_at": "1999-12-31T12:00:` + second + `.000000Z", "origin": "` + origin + `", "times_attempted": 3, "notification_setting_id": "ntfset_01"}`
}

func chargebeeEvent(id string) string {
	return `{"id": "` + id + `", "occurred_at": 946641600, "source": "scheduled_job", "object": "event", "event_type": "payment_succeeded", "webhook_status": "failed", "content": {"transaction": {"id": "txn_1"}}}`
}

func gocardlessBody(event, webhook string) string {
	return `{"events":[{"id":"` + event + `","created_at":"1999-12-31T12:00:00.000Z","resource_type":"payments","action":"confirmed","links":{"payment":"PM1"}}],"meta":{"webhook_id":"` + webhook + `"}}`
}

func gocardlessWebhook(id, one, other, at string) string {
	second := strings.TrimSuffix(strings.TrimPrefix(gocardlessBody(other, id), `{"events":[`), `],"meta":{"webhook_id":"`+id+`"}}`)
	body := strings.Replace(gocardlessBody(one, id), `],"meta"`, `,`+second+`],"meta"`, 1)
	return `{"id": "` + id + `", "created_at": "1999-12-31T` + at + `.000Z", "is_test": false, "url": "https://acme.example/", "request_headers": {"Content-Type": "application/json"}, "request_body": "` +
		strings.ReplaceAll(body, `"`, `\"`) + `", "response_code": 503, "successful": false}`
}

func workosEvent(id string) string {
	return `{"object": "event", "id": "` + id + `", "event": "user.created", "data": {"id": "user_1"}, "created_at": "1999-12-31T12:00:00.000Z", "context": {}}`
}
