package provider

import (
	"net/http"

	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// AmazonSNS returns the provider for Amazon SNS over HTTPS. In place of a secret it takes the ARNs of
// the topics whose messages are accepted: Amazon signs for everybody, so a genuine signature alone says
// nothing about who publishes. It panics if an ARN is missing or is none. Verification fetches
// Amazon's certificate, from Amazon's hosts only, and keeps it.
//
// The key is the MessageId, which the signature covers; attributes of the message are not covered.
// Subscriptions are not confirmed by themselves: the SubscriptionConfirmation passes on as an event, and
// whoever wants the messages opens its SubscribeURL.
func AmazonSNS(topicARNs ...string) *spec.Provider {
	return must(spec.New(amazonSNSSpec(), spec.Settings{Secrets: spec.Secrets(topicARNs...)}))
}

func amazonSNSSpec() spec.Spec {
	return spec.Spec{
		Name:   "aws-sns",
		Title:  "Amazon SNS",
		Secret: "the ARN of the topic",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.AmazonSNS(http.DefaultTransport)}},
		Event: spec.Extract{
			Key:          [][]spec.Value{{"json:$.MessageId"}},
			Subscription: []spec.Value{"header:X-Amz-Sns-Subscription-Arn"},
			Type:         []spec.Value{"json:$.Type"},
			Time:         []spec.Moment{at("json:$.Timestamp", spec.RFC3339)},
			Tenant:       []spec.Value{"json:$.TopicArn"},
		},
		Dedup:  spec.Dedup{Same: []spec.Value{"json:$.Type", "json:$.Subject", "json:$.Message", "json:$.Timestamp"}},
		Answer: spec.Answer{Reject: 503, Deadline: 15 * second},
		Limits: spec.Limits{Retry: hour}, // the most that a delivery policy can ask for
		// https://docs.aws.amazon.com/sns/latest/dg/http-header.html
		Headers: []string{"X-Amz-Sns-Message-Type", "X-Amz-Sns-Message-Id", "X-Amz-Sns-Topic-Arn", "X-Amz-Sns-Subscription-Arn", "X-Amz-Sns-Rawdelivery", "X-Amz-Sns-*"},
		Example: spec.Template{
			ID:     "22b80b92-fdea-4c2c-8f9d-bdfb0c7bf324",
			Type:   "Notification",
			Header: map[string]string{"Content-Type": "text/plain; charset=UTF-8", "X-Amz-Sns-Message-Type": "{{type}}"},
			Body:   amazonSNSExample,
		},
		Sources: []spec.Source{
			stated("signature, certificate, topic", "awsdocs/amazon-sns-developer-guide: doc_source/sns-verify-signature-of-message.md; docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message.html"),
			stated("retries", "awsdocs/amazon-sns-developer-guide: doc_source/sns-message-delivery-retries.md"),
			stated("deadline, a status from 200 to 499 is no failure, three retries 20 s apart unless a policy says otherwise", "awsdocs/amazon-sns-developer-guide: doc_source/SendMessageToHttp.prepare.md"),
			reported("hosts of the certificate", "libraries that follow the documentation pin sns.<region>.amazonaws.com and .com.cn"),
			reported("key", "inferred: MessageId is the message's and not the attempt's, and is signed"),
		},
		Traps: []string{
			"a genuine signature only says that SNS sent the message: anybody can have a topic, so the topic is compared",
			"the subscription has to be confirmed: pass on the event SubscriptionConfirmation, and open its SubscribeURL once",
			"raw message delivery has no signature, and is rejected",
			"SNS takes a 401 or a 413 for a success: what is refused is answered 503, sent again three times, 20 s apart, unless a delivery policy says otherwise, and lost then unless the subscription has a dead-letter queue",
			"MessageAttributes and UnsubscribeURL are not signed",
			"SignatureVersion 1 uses SHA-1; set the topic's attribute SignatureVersion to 2",
			"the certificate is fetched: without a way out to Amazon's hosts nothing can be verified",
		},
	}
}

const amazonSNSExample = `{
  "Type": "{{type}}",
  "MessageId": "{{id}}",
  "TopicArn": "arn:aws:sns:eu-central-1:123456789012:example",
  "Subject": "Order 1001",
  "Message": "{\"order\":\"1001\",\"state\":\"paid\"}",
  "Timestamp": "{{time}}",
  "SignatureVersion": "2",
  "Signature": "EXAMPLE",
  "SigningCertURL": "https://sns.eu-central-1.amazonaws.com/SimpleNotificationService-example.pem",
  "UnsubscribeURL": "https://sns.eu-central-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=arn:aws:sns:eu-central-1:123456789012:example:0"
}`
