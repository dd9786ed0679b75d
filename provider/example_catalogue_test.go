package provider_test

import (
	"fmt"

	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

// Each with a secret in the form that the sender hands out. What is printed of a sample are the event's type,
// its key, where that is, and whether the signature covers it. In the name of some senders nobody can
// sign but they: then it is where their keys are.

func ExampleAdyen() {
	p := provider.Adyen("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	show(p, sample(p, "evt_1", ""))
	// Output: AUTHORISATION 29:13:AUTHORISATION5:evt_14:true32:956bafd1a77d96e26fb1b5d95fd26bfd item:$.NotificationRequestItem.eventCode + item:$.NotificationRequestItem.pspReference + item:$.NotificationRequestItem.success + content false
}

func ExampleAdyenPlatform() {
	p := provider.AdyenPlatform("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	show(p, sample(p, "evt_1", ""))
	// Output: balancePlatform.transfer.updated 32:balancePlatform.transfer.updated5:evt_11:332:29deb6f453b88c89920668a402be8798 json:$.type + json:$.data.id + json:$.data.sequenceNumber + hash:json:$.data true
}

func ExampleAirtable() {
	p := provider.Airtable("ZmFrZS1zZWNyZXQ=")
	show(p, sample(p, "evt_1", ""))
	// Output: 17:app000000000000015:evt_1 json:$.base.id + json:$.webhook.id true
}

func ExampleAirwallex() {
	p := provider.Airwallex("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payment_intent.succeeded evt_1 json:$.id true
}

func ExampleAmazonSNS() {
	p := provider.AmazonSNS("arn:aws:sns:eu-central-1:123456789012:example")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: aws-sns [[json:$.MessageId]]
}

func ExampleAppStore() {
	p := provider.AppStore("production:com.example.shop")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: app-store [[json:$.notificationUUID]]
}

func ExampleAsana() {
	p := provider.Asana("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: task.changed 5:evt_17:changed20:2026-02-03T04:05:06Z32:256c2b915323a78bb7502ab4e21b2eb7 item:$.resource.gid + item:$.action + item:$.created_at + hash:item:$ true
}

func ExampleAuth0() {
	p := provider.Auth0("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: s evt_1 item:$.log_id false
}

func ExampleAzureDevOps() {
	p := provider.AzureDevOps("fake-user:fake-password")
	show(p, sample(p, "evt_1", ""))
	// Output: git.pullrequest.updated 36:aaaa0a0a-0000-4000-8000-00000000f0015:evt_1 json:$.subscriptionId + json:$.id false
}

func ExampleAzureEventGrid() {
	p := provider.AzureEventGrid("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: Microsoft.Storage.BlobCreated 126:/subscriptions/00000000-0000-4000-8000-000000001001/resourceGroups/example/providers/Microsoft.Storage/storageAccounts/example5:evt_1 item:$.topic + item:$.id false
}

func ExampleAzureEventGridEntra() {
	p := provider.AzureEventGridEntra("00000000-0000-4000-8000-000000001001:api://example")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: azure-event-grid-entra [[item:$.source item:$.id] [item:$.topic item:$.id]]
}

func ExampleBigCommerce() {
	p := provider.BigCommerce("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: store/order/updated evt_1 header:webhook-id true
}

func ExampleBird() {
	p := provider.Bird("https://shop.example/hooks", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: sms.outbound.delivered 12:sms.outbound5:evt_132:410f71de68632d0b67f73b885e26b41f json:$.event + json:$.payload.id + hash:json:$.payload true
}

func ExampleBitbucket() {
	p := provider.Bitbucket("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: repo:push evt_1 header:X-Request-UUID false
}

func ExampleBox() {
	p := provider.Box("fake-primary", "fake-secondary")
	show(p, sample(p, "evt_1", ""))
	// Output: FILE.UPLOADED evt_1 json:$.id true
}

func ExampleBraintree() {
	p := provider.Braintree("fake-public:fake-private")
	show(p, sample(p, "evt_1", ""))
	// Output: subscription_charged_successfully 33:subscription_charged_successfully20:2026-02-03T04:05:06Z32:97f6ab8f4a5479585f967e2e9ccfdfcc json:$.kind + json:$.timestamp + hash:form:bt_payload true
}

func ExampleBrevo() {
	p := provider.Brevo("fake-user:fake-password")
	show(p, sample(p, "evt_1", ""))
	// Output: delivered 9:delivered5:evt_120:customer@example.com13:177009150600032:e71bf54cbe149d3696b0ce9f5a252c5b json:$.event + json:$.message-id + json:$.email + json:$.ts_epoch + hash:json:$ false
}

func ExampleBuildkite() {
	p := provider.Buildkite("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: build.finished   false
}

func ExampleCalCom() {
	p := provider.CalCom("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: BOOKING_CREATED 15:BOOKING_CREATED20:2026-02-03T04:05:06Z32:5d709065d2a7ba2a396031be15ac66b8 json:$.triggerEvent + json:$.createdAt + hash:json:$.payload true
}

func ExampleCalendly() {
	p := provider.Calendly("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: invitee.created 15:invitee.created20:2026-02-03T04:05:06Z32:62ed5c49cf47beaa14708f0dd4f5e24c json:$.event + json:$.created_at + hash:json:$.payload true
}

func ExampleCashfree() {
	p := provider.Cashfree("fake-secret")
	show(p, sample(p, "101", ""))
	// Output: PAYMENT_SUCCESS_WEBHOOK 23:PAYMENT_SUCCESS_WEBHOOK3:1017:SUCCESS json:$.type + json:$.data.payment.cf_payment_id + json:$.data.payment.payment_status true
}

func ExampleChargebee() {
	p := provider.Chargebee("fake-user:fake-password")
	show(p, sample(p, "evt_1", ""))
	// Output: payment_succeeded evt_1 json:$.id false
}

func ExampleCheckout() {
	p := provider.Checkout("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payment_captured evt_1 json:$.id true
}

func ExampleCircle() {
	p := provider.Circle("wallets:TEST_API_KEY:fake:fake")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: circle [[json:$.notificationId]]
}

func ExampleCircleCI() {
	p := provider.CircleCI("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: workflow-completed evt_1 json:$.id true
}

func ExampleClickUp() {
	p := provider.ClickUp("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: taskStatusUpdated 36:7fa3ec74-0000-4000-8000-00000000f00117:taskStatusUpdated5:evt_1 json:$.webhook_id + json:$.event + json:$.history_items[0].id true
}

func ExampleCloudflare() {
	p := provider.Cloudflare("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: health_check_status_notification.ALERT_STATE_EVENT_START 32:749b911ea5d04344a58e45edd099b32832:000eaa907ed24e78946d3a93adb2ae5723:ALERT_STATE_EVENT_START10:177009150632:52e53eb5d3bce08c9153e47809a4c2d2 json:$.policy_id + json:$.alert_correlation_id + json:$.alert_event + json:$.ts + hash:json:$.data false
}

func ExampleCloudinary() {
	p := provider.Cloudinary("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: upload 6:upload20:2026-02-03T04:05:06Z32:03ba93d265f5d03258504473134f0366 json:$.notification_type + json:$.timestamp + hash:json:$ true
}

func ExampleCoinbase() {
	p := provider.Coinbase("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payments.transfers.completed evt_1 json:$.eventId true
}

func ExampleCoinbaseCommerce() {
	p := provider.CoinbaseCommerce("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: charge:confirmed evt_1 json:$.event.id true
}

func ExampleContentful() {
	p := provider.Contentful("https://shop.example/hooks", "fakefakefakefakefakefakefakefakefakefakefakefakefakefakefakefake")
	show(p, sample(p, "evt_1", ""))
	// Output: ContentManagement.Entry.publish 31:ContentManagement.Entry.publish5:evt_132:07d299f00d8353043f33086b2f8821c1 header:X-Contentful-Topic + json:$.sys.id + hash:json:$ false
}

func ExampleCustomerIO() {
	p := provider.CustomerIO("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: email.delivered evt_1 json:$.event_id true
}

func ExampleDatadog() {
	p := provider.Datadog("Bearer fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: query_alert_monitor.Triggered 5:evt_113:177009150600032:d27b1a20a47fd14f054fc43cd9a52686 json:$.id + json:$.last_updated + hash:json:$ false
}

func ExampleDiscord() {
	p := provider.Discord("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: discord [[json:$.application_id json:$.event.type json:$.event.timestamp hash:json:$.event.data?]]
}

func ExampleDiscordInteractions() {
	p := provider.DiscordInteractions("00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: discord-interactions [[json:$.id]]
}

func ExampleDiscourse() {
	p := provider.Discourse("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: post_created 25:https://forum.example.com5:evt_1 header:X-Discourse-Instance + header:X-Discourse-Event-Id false
}

func ExampleDocuSign() {
	p := provider.DocuSign("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: envelope-completed 18:envelope-completed5:evt_120:2026-02-03T04:05:06Z json:$.event + json:$.data.envelopeId + json:$.generatedDateTime + json:$.data.recipientId true
}

func ExampleDropbox() {
	p := provider.Dropbox("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: false
}

func ExampleDub() {
	p := provider.Dub("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: link.created evt_1 json:$.id true
}

func ExampleDwolla() {
	p := provider.Dwolla("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: customer_transfer_completed evt_1 json:$.id true
}

func ExampleEBay() {
	p := provider.EBay("https://shop.example/in", "fake-verify-token", "sandbox:fake-client:fake-secret")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: ebay [[json:$.notification.notificationId]]
}

func ExampleEasyPost() {
	p := provider.EasyPost("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: tracker.updated evt_1 json:$.id true
}

func ExampleElevenLabs() {
	p := provider.ElevenLabs("wsec_fake")
	show(p, sample(p, "evt_1", ""))
	// Output: post_call_transcription 23:post_call_transcription10:17700915065:evt_1 json:$.type + json:$.event_timestamp + json:$.data.conversation_id true
}

func ExampleFastSpring() {
	p := provider.FastSpring("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: order.completed evt_1 item:$.id true
}

func ExampleFigma() {
	p := provider.Figma("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: FILE_COMMENT 4:100112:FILE_COMMENT20:2026-02-03T04:05:06Z5:evt_1 json:$.webhook_id + json:$.event_type + json:$.timestamp + json:$.comment_id false
}

func ExampleFintoc() {
	p := provider.Fintoc("whsec_fake")
	show(p, sample(p, "evt_1", ""))
	// Output: evt_1 json:$.id true
}

func ExampleFlutterwave() {
	p := provider.Flutterwave("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: charge.completed 16:charge.completed5:evt_132:e187bede45fad505c8a7a091914e20ed json:$.type + json:$.data.id + hash:json:$.data true
}

func ExampleFlutterwaveLegacy() {
	p := provider.FlutterwaveLegacy("fake-secret")
	show(p, sample(p, "101", ""))
	// Output: charge.completed 16:charge.completed3:10110:successful32:496365f99b6205b098d80a62aedee97d json:$.event + json:$.data.id + json:$.data.status + hash:json:$.data false
}

func ExampleForgejo() {
	p := provider.Forgejo("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: issues.opened evt_1 header:X-Forgejo-Delivery false
}

func ExampleFront() {
	p := provider.Front("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: inbound_received 16:inbound_received5:evt_114:1770091506.12311:cmp_example json:$.type + json:$.payload.id + json:$.payload.emitted_at + json:$.authorization.id true
}

func ExampleGhost() {
	p := provider.Ghost("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: false
}

func ExampleGitLab() {
	p := provider.GitLab("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: merge_request.open evt_1 header:Idempotency-Key false
}

func ExampleGitea() {
	p := provider.Gitea("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: issues.opened evt_1 header:X-Gitea-Delivery false
}

func ExampleGoCardless() {
	p := provider.GoCardless("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payments.confirmed evt_1 item:$.id true
}

func ExampleGooglePlay() {
	p := provider.GooglePlay("push@example.iam.gserviceaccount.com:https://shop.example/hooks")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: google-play [[json:$.message.messageId] [json:$.message.message_id]]
}

func ExampleGooglePubSub() {
	p := provider.GooglePubSub("push@example.iam.gserviceaccount.com:https://shop.example/hooks")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: google-pubsub [[json:$.message.messageId] [json:$.message.message_id]]
}

func ExampleGrafana() {
	p := provider.Grafana("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: firing   false
}

func ExampleGreenhouse() {
	p := provider.Greenhouse("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: hire_candidate evt_1 header:Greenhouse-Event-ID false
}

func ExampleGumroad() {
	p := provider.Gumroad("fake-token")
	show(p, sample(p, "evt_1", ""))
	// Output: sale 19:4:sale4:sale5:evt_132:8faaa832f43ca44afa58104ccac883a0 const:sale + form:resource_name + form:sale_id + content false
}

func ExampleHasura() {
	p := provider.Hasura("Bearer fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: order_changed.UPDATE evt_1 json:$.id false
}

func ExampleHCPTerraform() {
	p := provider.HCPTerraform("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: run:completed 5:evt_120:run-FwnENkvDnrpyFC7M13:run:completed7:applied20:2026-02-03T04:05:06Z json:$.notification_configuration_id + json:$.run_id + item:$.trigger + item:$.run_status + item:$.run_updated_at true
}

func ExampleHeroku() {
	p := provider.Heroku("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: release.create evt_1 json:$.webhook_metadata.event.id true
}

func ExampleHTTPSignature() {
	p := provider.HTTPSignature(provider.HTTPSignatureConfig{
		URL:     "https://shop.example/in",
		Secrets: []string{"fake-secret"},
		Key:     []spec.Value{"header:Idempotency-Key"},
		Headers: []string{"Idempotency-Key"}, // must be signed, so that nobody else can choose it
	})
	show(p, sample(p, "evt_1", ""))
	// Output: order.paid evt_1 header:Idempotency-Key true
}

func ExampleHubSpot() {
	p := provider.HubSpot("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: contact.propertyChange 5:625155:123455:evt_13:12313:177009150600014:lifecyclestage item:$.portalId + item:$.subscriptionId + item:$.eventId + item:$.objectId + item:$.occurredAt + item:$.propertyName true
}

func ExampleHubSpotLegacy() {
	p := provider.HubSpotLegacy("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: contact.propertyChange 5:625155:123455:evt_13:12313:177009150600014:lifecyclestage item:$.portalId + item:$.subscriptionId + item:$.eventId + item:$.objectId + item:$.occurredAt + item:$.propertyName true
}

func ExampleIntercom() {
	p := provider.Intercom("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: conversation.user.replied evt_1 json:$.id true
}

func ExampleJira() {
	p := provider.Jira("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: jira:issue_updated evt_1 header:X-Atlassian-Webhook-Identifier false
}

func ExampleKinde() {
	p := provider.Kinde("https://example.kinde.com")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: kinde [[json:$.event_id]]
}

func ExampleKlaviyo() {
	p := provider.Klaviyo("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: event:klaviyo.email_delivered 29:event:klaviyo.email_delivered5:evt_1 item:$.topic + item:$.external_id true
}

func ExampleKofi() {
	p := provider.Kofi("fake-token")
	show(p, sample(p, "evt_1", ""))
	// Output: Donation evt_1 json:$.message_id false
}

func ExampleLINE() {
	p := provider.LINE("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: message evt_1 item:$.webhookEventId true
}

func ExampleLago() {
	p := provider.Lago("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: invoice.created evt_1 header:X-Lago-Unique-Key false
}

func ExampleLaunchDarkly() {
	p := provider.LaunchDarkly("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: flag.updateOn evt_1 json:$._id true
}

func ExampleLemonSqueezy() {
	p := provider.LemonSqueezy("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: order_created 13:order_created6:orders5:evt_132:711c6d825d89bd8a3d12ce0c4f8fd07c json:$.meta.event_name + json:$.data.type + json:$.data.id + hash:json:$.data.attributes true
}

func ExampleLinear() {
	p := provider.Linear("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: Issue.update evt_1 header:Linear-Delivery false
}

func ExampleLob() {
	p := provider.Lob("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: letter.delivered evt_1 json:$.id true
}

func ExampleLogto() {
	p := provider.Logto("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: User.Created 15:exampleHook100112:User.Created20:2026-02-03T04:05:06Z32:bc1c43b09c704c937bb1f9e9c30ee872 json:$.hookId + json:$.event + json:$.createdAt + hash:json:$ true
}

func ExampleMonday() {
	p := provider.Monday("fake-secret-for-tests-that-is-long-enough")
	show(p, sample(p, "evt_1", ""))
	// Output: create_pulse 8:737596905:evt_132:9921a0adea0314e75728775d38fa907b json:$.event.subscriptionId + json:$.event.triggerUuid + hash:json:$.event false
}

func ExampleMSGraph() {
	p := provider.MSGraph("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: updated 36:7f105c7d-0000-4000-8000-0000000010015:evt_1 item:$.subscriptionId + item:$.id false
}

func ExampleMailchimp() {
	p := provider.Mailchimp("fake-token")
	show(p, sample(p, "evt_1", ""))
	// Output: subscribe 53:9:subscribe19:2026-02-03 04:05:0610:a6b5da10545:evt_132:1a8c805801b0731f394ba0febc0f90da form:type + form:fired_at + form:data[list_id] + form:data[id] + content false
}

func ExampleMailgun() {
	p := provider.Mailgun("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: opened 5:evt_117:1770091506.908181 json:$.event-data.id + json:$.event-data.timestamp false
}

func ExampleMandrill() {
	p := provider.Mandrill("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: open 7:message4:open5:evt_110:177009150632:d34e925f1f6518f842cc5859b2ddcf0b const:message + item:$.event + item:$._id + item:$.ts + hash:item:$ false
}

func ExampleMercadoPago() {
	p := provider.MercadoPago("fake-secret")
	show(p, sample(p, "101", ""))
	// Output: payment.updated 7:payment3:101 json:$.type + json:$.id false
}

func ExampleMessageBird() {
	p := provider.MessageBird("https://shop.example/hooks", "a fake secret of thirty-two bytes")
	show(p, sample(p, "evt_1", ""))
	// Output: message.updated 15:message.updated5:evt_19:delivered32:c5a57ca40a84be5460ff94c53d479699 json:$.type + json:$.message.id + json:$.message.status + hash:json:$ true
}

func ExampleMeta() {
	p := provider.Meta("fake-verify-token", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: page 5:evt_132:2607a5a89dd626c6d3b99909dfc5ea62 item:$.message.mid + hash:item:$ true
}

func ExampleMidtrans() {
	p := provider.Midtrans("SB-Mid-server-fake")
	show(p, sample(p, "evt_1", ""))
	// Output: settlement 33:10:order-10015:evt_110:settlement32:4f795524f2615f8a51464ef4bfdc2da5 json:$.order_id + json:$.transaction_id + json:$.transaction_status + content false
}

func ExampleModernTreasury() {
	p := provider.ModernTreasury("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: evt_1 header:X-Webhook-ID false
}

func ExampleMollie() {
	p := provider.Mollie("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payment-link.paid evt_1 json:$.id true
}

func ExampleMollieClassic() {
	p := provider.MollieClassic("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: evt_1 form:id false
}

func ExampleMux() {
	p := provider.Mux("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: video.asset.ready evt_1 json:$.id true
}

func ExampleNetlify() {
	p := provider.Netlify("a fake secret of thirty-two bytes")
	show(p, sample(p, "evt_1", ""))
	// Output: deploy_created 5:evt_15:ready32:663a4ed0dcef958bb8beaaf0a0bd8b92 json:$.id + json:$.state + hash:json:$ true
}

func ExampleNotion() {
	p := provider.Notion("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: page.properties_updated evt_1 json:$.id true
}

func ExampleOkta() {
	p := provider.Okta("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: user.lifecycle.deactivate evt_1 item:$.uuid false
}

func ExampleOutline() {
	p := provider.Outline("ol_whs_fake")
	show(p, sample(p, "evt_1", ""))
	// Output: documents.update evt_1 json:$.id true
}

func ExamplePaddle() {
	p := provider.Paddle("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: transaction.completed evt_1 json:$.event_id true
}

func ExamplePagerDuty() {
	p := provider.PagerDuty("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: incident.acknowledged evt_1 json:$.event.id true
}

func ExamplePandaDoc() {
	p := provider.PandaDoc("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: document_state_changed evt_1 header:X-PandaDoc-Webhook-Event-Id false
}

func ExamplePayMongo() {
	p := provider.PayMongo("whsk_fake")
	show(p, sample(p, "evt_1", ""))
	// Output: payment.paid evt_1 json:$.data.id true
}

func ExamplePayPal() {
	p := provider.PayPal("FAKE-WEBHOOK-ID")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: paypal [[json:$.id]]
}

func ExamplePaystack() {
	p := provider.Paystack("sk_test_fake")
	show(p, sample(p, "101", ""))
	// Output: charge.success 14:charge.success3:10132:0113030506c9122f518c670f48c4b65a json:$.event + json:$.data.id + hash:json:$.data true
}

func ExamplePersona() {
	p := provider.Persona("wbhsec_fake")
	show(p, sample(p, "evt_1", ""))
	// Output: inquiry.completed evt_1 json:$.data.id true
}

func ExamplePlaid() {
	p := provider.Plaid("sandbox:fake-client:fake-secret")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: plaid []
}

func ExamplePlane() {
	p := provider.Plane("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: issue.update 36:f1a2b3c4-0000-4000-8000-00000000f00120:2026-02-03T04:05:06Z32:a86dd7d788d620d4b41bb372b4f212c7 json:$.webhook_id + json:$.data.updated_at + hash:json:$ true
}

func ExamplePlivo() {
	p := provider.Plivo("https://shop.example/hooks", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: delivered 5:evt_19:delivered form:MessageUUID + form:Status + form:ErrorCode false
}

func ExamplePostmark() {
	p := provider.Postmark("fake-user:fake-password")
	show(p, sample(p, "evt_1", ""))
	// Output: Delivery 8:Delivery5:evt_132:721ad62381bcd4f2f3d81bdfb4d9c499 json:$.RecordType + json:$.MessageID + hash:json:$ false
}

func ExamplePusher() {
	p := provider.Pusher("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: member_added 13:177009150600032:a0b9131eaedaf9664d1be4e3b552e1c2 json:$.time_ms + hash:json:$.events true
}

func ExampleQuickBooks() {
	p := provider.QuickBooks("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: qbo.invoice.updated.v1 36:intuit.EXAMPLEEXAMPLEEXAMPLEEXAMPLE=5:evt_1 item:$.source + item:$.id true
}

func ExampleRazorpay() {
	p := provider.Razorpay("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payment.captured evt_1 header:X-Razorpay-Event-Id false
}

func ExampleRecurly() {
	p := provider.Recurly("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: subscription.renewed evt_1 header:Recurly-Notification-Id false
}

func ExampleRevenueCat() {
	p := provider.RevenueCat("Bearer fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: RENEWAL evt_1 json:$.event.id false
}

func ExampleSanity() {
	p := provider.Sanity("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: update 5:evt_115:ExampleHook0001 header:Idempotency-Key + header:Sanity-Webhook-Id false
}

func ExampleSegment() {
	p := provider.Segment("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: track evt_1 json:$.messageId true
}

func ExampleSendGrid() {
	p := provider.SendGrid("MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE/a3glM880dWcd0xmaIOugkMuVXxNKES5OMs6dx5a8lbinFUjpdGWHnmILO3ImzMFT008h+Bm1FPb73CfPousQA==")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: sendgrid [[item:$.sg_event_id]]
}

func ExampleSentry() {
	p := provider.Sentry("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: error.created 36:a8e5d37a-0000-4000-8000-00000000a0014:10015:evt_1 json:$.installation.uuid + json:$.data.error.project + json:$.data.error.event_id true
}

func ExampleShippo() {
	p := provider.Shippo("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: track_updated   false
}

func ExampleShopify() {
	p := provider.Shopify("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: orders/create 21:example.myshopify.com13:orders/create5:evt_132:1f6ba7ed3a9fd023154669d0f309755f header:X-Shopify-Shop-Domain + header:X-Shopify-Topic + header:X-Shopify-Event-Id + hash:json:$ + header:X-Shopify-Name false
}

func ExampleSinch() {
	p := provider.Sinch("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: DELIVERED 6:report5:evt_19:DELIVERED32:a6f980765b9a925d63fb9d5cf62a16ab const:report + json:$.message_delivery_report.message_id + json:$.message_delivery_report.status + hash:json:$.message_delivery_report true
}

func ExampleSnyk() {
	p := provider.Snyk("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: project_snapshot/v0 evt_1 header:X-Snyk-Transport-ID false
}

func ExampleSonarQube() {
	p := provider.SonarQube("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: SUCCESS evt_1 json:$.taskId true
}

func ExampleSquarespace() {
	p := provider.Squarespace("00112233445566778899aabbccddeeff")
	show(p, sample(p, "evt_1", ""))
	// Output: order.create evt_1 json:$.id true
}

func ExampleSvix() {
	p := provider.Svix("whsec_ZmFrZSBzZWNyZXQgZm9yIHRlc3Rz")
	show(p, sample(p, "evt_1", ""))
	// Output: invoice.paid evt_1 header:svix-id true
}

func ExampleTally() {
	p := provider.Tally("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: FORM_RESPONSE evt_1 json:$.eventId true
}

func ExampleTelegram() {
	p := provider.Telegram("fake-secret")
	show(p, sample(p, "101", ""))
	// Output: 101 json:$.update_id false
}

func ExampleTelnyx() {
	p := provider.Telnyx("AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=")
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: telnyx [[json:$.data.id]]
}

func ExampleTodoist() {
	p := provider.Todoist("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: item:added evt_1 header:X-Todoist-Delivery-ID false
}

func ExampleTrello() {
	p := provider.Trello("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: updateCard 24:5f00000000000000000000025:evt_1 json:$.model.id + json:$.action.id true
}

func ExampleTwilio() {
	p := provider.Twilio("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: delivered evt_1 header:I-Twilio-Idempotency-Token false
}

func ExampleTwilioEvents() {
	p := provider.TwilioEvents("https://shop.example/in", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: com.twilio.messaging.message.delivered 106:/2010-04-01/Accounts/ACexample00000000000000000000000000/Messages/SMexample00000000000000000000000001.json5:evt_1 item:$.source + item:$.id true
}

func ExampleTwitch() {
	p := provider.Twitch("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: stream.online evt_1 header:Twitch-Eventsub-Message-Id true
}

func ExampleTypeform() {
	p := provider.Typeform("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: form_response evt_1 json:$.event_id true
}

func ExampleVercel() {
	p := provider.Vercel("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: deployment.created 18:deployment.created13:177009150600032:65cbe5cdc33e8d0172ea5df1c8eac526 json:$.type + json:$.createdAt + hash:json:$.payload true
}

func ExampleVonage() {
	p := provider.Vonage("a fake secret of thirty-two bytes")
	show(p, sample(p, "evt_1", ""))
	// Output: delivered 5:evt_120:2026-02-03T04:05:06Z9:delivered json:$.message_uuid + json:$.timestamp + json:$.status true
}

func ExampleWebflow() {
	p := provider.Webflow("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: form_submission 15:form_submission20:2026-02-03T04:05:06Z32:cc10cbccaf5e4fea669f5e1dcde98974 json:$.triggerType + json:$.payload.submittedAt + hash:json:$.payload true
}

func ExampleWhatsApp() {
	p := provider.WhatsApp("fake-verify-token", "fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: messages.text 5:evt_132:be9f8b395b99d957e457c53b826b380c item:$.id + hash:item:$ true
}

func ExampleWise() {
	p := provider.Wise(`-----BEGIN PUBLIC KEY-----
MIIBIjANBgkqhkiG9w0BAQEFAAOCAQ8AMIIBCgKCAQEArwy3iXuKBa+JnYptke7v
uuOwdh4e1+dJKTkcutIF9Axgw6RDyED7vzTTvYw1FT4E+lmv+YgjkBg/TOVhgZHY
9eyF+CsWPDJDj1TPF7CmASgbksQyJuVHTOIOoklrBoI2+u48cb4bZqT6c9BxzcNf
ZhPmvYDdoSG8oK4gkO5K7i5Kkd2zij4xf3orjyf++RVxgjCBGdffIEGLx1SE2YEF
z/f9+ESXOZiUXpNAEMSPKJxQmKxVQjSc5y8JzRtDnEEFLNmheVcCffe48NZaXmjr
PcCUwTJaOlyanKdKg/byH4pniJxtxWu6W7dtsuzo9D+vbrhQqRkDf9psVrsGrolV
AwIDAQAB
-----END PUBLIC KEY-----`)
	fmt.Println(p.Name(), p.Spec().Event.Key)
	// Output: wise [[json:$.event_type json:$.data.occurred_at hash:json:$.data]]
}

func ExampleWooCommerce() {
	p := provider.WooCommerce("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: order.updated 70:21:https://shop.example/13:order.updated5:evt_120:2026-02-03T04:05:06Z32:791d436b7bb0bdfbf5c05411b27ad41c header:X-Wc-Webhook-Source + header:X-Wc-Webhook-Topic + json:$.id + json:$.date_modified_gmt + content false
}

func ExampleWorkOS() {
	p := provider.WorkOS("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: dsync.user.updated evt_1 json:$.id true
}

func ExampleWorldlineConnect() {
	p := provider.WorldlineConnect("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: payment.captured evt_1 json:$.id true
}

func ExampleX() {
	p := provider.X("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: 4:post19:10000000000000000015:evt_1 const:post + parent:$.for_user_id + item:$.id_str true
}

func ExampleXendit() {
	p := provider.Xendit("fake-token")
	show(p, sample(p, "evt_1", ""))
	// Output: ewallet.capture 5:event15:ewallet.capture20:2026-02-03T04:05:06Z32:ee0cbb30c0ca85c83521af9fb282976a const:event + json:$.event + json:$.created + hash:json:$.data false
}

func ExampleXero() {
	p := provider.Xero("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: INVOICE.UPDATE 36:c2cc9b6e-0000-4000-8000-0000000010017:INVOICE5:evt_16:UPDATE20:2026-02-03T04:05:06Z item:$.tenantId + item:$.eventCategory + item:$.resourceId + item:$.eventType + item:$.eventDateUtc true
}

func ExampleZendesk() {
	p := provider.Zendesk("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: zen:event-type:ticket.status_changed 10:2022-11-065:evt_1 json:$.zendesk_event_version + json:$.id true
}

func ExampleZoom() {
	p := provider.Zoom("fake-secret")
	show(p, sample(p, "evt_1", ""))
	// Output: meeting.ended 13:meeting.ended13:177009150600032:0394b6b076afa926a64a4c0f49421f57 json:$.event + json:$.event_ts + hash:json:$.payload true
}
