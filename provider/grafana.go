package provider

import "github.com/hookonce/hookonce/provider/spec"

// Grafana returns the provider for the webhook contact points of Grafana Alerting, signed as Grafana does since version 12. The
// secrets are those of the contact point's HMAC signature. It panics if a secret is missing or empty.
//
// A contact point that names the timestamp header X-Grafana-Alerting-Timestamp signs the time of the request as well, which
// may be five minutes off in either direction. Notifications have no id, and one that is repeated looks like the one
// before: all pass through unkeyed.
func Grafana(secrets ...string) *spec.Provider {
	return must(spec.New(grafanaSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func grafanaSpec() spec.Spec {
	const header = "X-Grafana-Alerting-Signature"
	return spec.Spec{
		Name:      "grafana",
		Title:     "Grafana Alerting",
		Secret:    "the secret of the contact point's HMAC signature",
		OwnSecret: true,
		Verify: []spec.Verify{
			timed(headerMAC(header, "", spec.Hex, "ts", "const::", "body"), "header:X-Grafana-Alerting-Timestamp", spec.Seconds, 5*minute),
			bodyMAC(header, "", spec.Hex),
		},
		Event: spec.Extract{
			Type:     []spec.Value{"json:$.status"},
			Time:     []spec.Moment{at("json:$.alerts[0].startsAt", spec.RFC3339)},
			Resource: []spec.Value{"json:$.groupKey"},
			Tenant:   []spec.Value{"json:$.orgId"},
		},
		Headers: []string{"X-Grafana-*"},
		Example: spec.Template{ID: "c6eadffa33fcdf37", Type: "firing", Object: "{}:{alertname=HighLatency}", Body: grafanaExample},
		Sources: []spec.Source{
			stated("fields", "grafana/grafana: docs/sources/alerting/configure-notifications/manage-contact-points/integrations/webhook-notifier.md"),
			reported("signature, its default header, the optional time, the secret is the receiver's choice", "Grafana documentation of the webhook notifier, version 12, quoted by receivers in Go and Python"),
			notSourced("a key: notifications have no id"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"an alert that goes on is notified of again, with the same content: a hash of it as the key loses the reminders",
			"one request tells of all alerts of a group, firing and resolved; the fingerprint names an alert's labels, and is the same each time it fires",
			"the signature is off unless the contact point has a secret for it, and its header can be renamed: only the default is known here",
			"a contact point with a payload of its own that is not JSON needs the timestamp header: without it such a body is refused",
			"name the timestamp header X-Grafana-Alerting-Timestamp: without one, or with another, no time is signed, or nothing verifies",
		},
	}
}

const grafanaExample = `{
  "receiver": "hookonce",
  "status": "{{type}}",
  "orgId": 1,
  "alerts": [
    {
      "status": "{{type}}",
      "labels": {"alertname": "HighLatency", "team": "shop"},
      "annotations": {"summary": "Checkout answers slowly"},
      "startsAt": "{{time}}",
      "endsAt": "0001-01-01T00:00:00Z",
      "generatorURL": "https://grafana.example.com/alerting/1afz29v7z/edit",
      "fingerprint": "{{id}}",
      "values": {"B": 44.2, "C": 1}
    }
  ],
  "groupLabels": {"alertname": "HighLatency"},
  "commonLabels": {"alertname": "HighLatency", "team": "shop"},
  "commonAnnotations": {},
  "externalURL": "https://grafana.example.com/",
  "version": "1",
  "groupKey": "{{object}}",
  "truncatedAlerts": 0
}`
