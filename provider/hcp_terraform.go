package provider

import "github.com/hookonce/hookonce/provider/spec"

// HCPTerraform returns the provider for the generic notifications of HCP Terraform (Terraform Cloud) and Terraform
// Enterprise. The secrets are the tokens of the notification configuration. It panics if a token is missing or empty.
//
// The key of a run's notification is made of the configuration, the run, the trigger, the run's status and when it was
// updated; that of a health assessment is its id with the trigger. The verification that is sent when a configuration is
// made has neither and passes through unkeyed. The signature covers the key. No time is signed by itself.
func HCPTerraform(tokens ...string) *spec.Provider {
	return must(spec.New(hcpTerraformSpec(), spec.Settings{Secrets: spec.Secrets(tokens...)}))
}

func hcpTerraformSpec() spec.Spec {
	v := bodyMAC("X-TFE-Notification-Signature", "", spec.Hex)
	v.Hash = spec.SHA512
	return spec.Spec{
		Name:      "hcp-terraform",
		Title:     "HCP Terraform",
		Secret:    "the token of the notification configuration",
		OwnSecret: true,
		Verify:    []spec.Verify{v},
		Split:     &spec.Split{Items: []spec.Value{"json:$.notifications[*]"}},
		Event: spec.Extract{
			Key: [][]spec.Value{
				{"json:$.notification_configuration_id", "json:$.run_id", "item:$.trigger", "item:$.run_status", "item:$.run_updated_at"},
				{"item:$.notification_configuration_id", "item:$.details.new_assessment_result.id", "item:$.trigger"},
			},
			Type:     []spec.Value{"item:$.trigger"},
			Time:     []spec.Moment{at("item:$.run_updated_at", spec.RFC3339), at("item:$.details.new_assessment_result.created_at", spec.RFC3339)},
			Resource: []spec.Value{"json:$.run_id", "json:$.details.workspace_id"},
			Tenant:   []spec.Value{"json:$.organization_name", "json:$.details.organization_name"},
		},
		Order:   &spec.Order{By: "item:$.run_updated_at", Unit: spec.RFC3339, Advisory: true},
		Headers: []string{"X-TFE-*"},
		Example: spec.Template{ID: "nc-AeUQ2zfKZzW9TiGZ", Type: "run:completed", Object: "run-FwnENkvDnrpyFC7M", Body: hcpTerraformExample},
		Sources: []spec.Source{
			stated("fields, one event in a request today and several in the future, triggers", "hashicorp/terraform-docs-common: website/docs/cloud-docs/api-docs/notification-configurations.mdx"),
			reported("signature, the token is the receiver's choice", "HashiCorp documentation of notifications, quoted by receivers in Go and Python"),
			reported("key", "inferred: a run that is in one status since one moment is one event of a configuration"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"run_id as the key loses every state of the run but the first",
			"the hash is SHA-512, and not SHA-256 as with most senders",
			"a configuration without a token is not signed, and is refused",
			"a request may hold several events of a run one day: each is an event of its own",
			"Slack and Microsoft Teams notifications have other bodies: only the generic ones are known here",
		},
	}
}

const hcpTerraformExample = `{
  "payload_version": 1,
  "notification_configuration_id": "{{id}}",
  "run_url": "https://app.terraform.io/app/example/shop/runs/{{object}}",
  "run_id": "{{object}}",
  "run_message": "Add five new queue workers",
  "run_created_at": "{{time}}",
  "run_created_by": "example-user",
  "workspace_id": "ws-XdeUVMWShTesDMME",
  "workspace_name": "shop",
  "organization_name": "example",
  "notifications": [
    {
      "message": "Run Completed",
      "trigger": "{{type}}",
      "run_status": "applied",
      "run_updated_at": "{{time}}",
      "run_updated_by": "example-user"
    }
  ]
}`
