package provider

import "github.com/hookonce/hookonce/provider/spec"

// SonarQube returns the provider for the webhooks of SonarQube Server and SonarQube Cloud. The secrets are those of the
// webhook. It panics if a secret is missing or empty.
//
// The key is the id of the analysis task, which the signature covers. What no analysis caused, such as a quality gate that
// changes because somebody closed an issue, has none and passes through unkeyed. No time is signed by itself.
func SonarQube(secrets ...string) *spec.Provider {
	return must(spec.New(sonarQubeSpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func sonarQubeSpec() spec.Spec {
	return spec.Spec{
		Name:      "sonarqube",
		Title:     "SonarQube",
		Secret:    "the webhook's secret",
		OwnSecret: true,
		Verify:    []spec.Verify{bodyMAC("X-Sonar-Webhook-HMAC-SHA256", "", spec.Hex)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.taskId"}},
			Type:     []spec.Value{"json:$.status"},
			Resource: []spec.Value{"json:$.project.key"},
			Tenant:   []spec.Value{"json:$.serverUrl"},
		},
		Dedup:   spec.Dedup{Retry: spec.NotSent},
		Answer:  spec.Answer{Deadline: 10 * second},
		Headers: []string{"X-SonarQube-*", "X-Sonar-*"},
		Example: spec.Template{ID: "AVh21JS2JepAEhwQ-b3u", Type: "SUCCESS", Object: "shop", Body: sonarQubeExample},
		Sources: []spec.Source{
			stated("one attempt, header with the project, fields", "SonarSource/sonarqube: server/sonar-server-common/src/main/java/org/sonar/server/webhook"),
			reported("signature, the secret is the receiver's choice, deadline", "SonarQube documentation of webhooks, quoted by receivers"),
			reported("key", "inferred: one task is one analysis, which a webhook is told of once"),
		},
		Traps: []string{
			"nothing is sent again: what is answered with an error is lost, and stays in the list of deliveries",
			"the status is that of the analysis; whether the quality gate was passed is in qualityGate.status",
			"requests that no analysis caused have no taskId: an empty id as the key loses all but the first",
			"the time of the analysis is written with an offset without a colon, which is not RFC 3339",
			"two webhooks to one endpoint, of the project and of the whole server, send the same task: use one source for each",
		},
	}
}

const sonarQubeExample = `{
  "serverUrl": "https://sonar.example.com",
  "taskId": "{{id}}",
  "status": "{{type}}",
  "analysedAt": "{{time}}",
  "revision": "709d658dc5b6d6afcd46049c2f332ee3f515a67d",
  "project": {"key": "{{object}}", "name": "Shop", "url": "https://sonar.example.com/dashboard?id={{object}}"},
  "branch": {"name": "main", "type": "BRANCH", "isMain": true, "url": "https://sonar.example.com/dashboard?id={{object}}"},
  "qualityGate": {
    "name": "Sonar way",
    "status": "OK",
    "conditions": [{"metric": "new_coverage", "operator": "LESS_THAN", "value": "93.1", "status": "OK", "errorThreshold": "80"}]
  },
  "properties": {}
}`
