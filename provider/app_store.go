package provider

import (
	"github.com/hookonce/hookonce/provider/internal/scheme"
	"github.com/hookonce/hookonce/provider/spec"
)

// AppStore returns the provider for version 2 of Apple's App Store Server Notifications. In place of a secret it takes
// the apps whose notifications are accepted, as production:bundle_id or sandbox:bundle_id: Apple signs for every app, so
// a genuine signature alone says nothing about which. It panics if one is missing or has another form. Nothing is
// fetched: the certificates are in the notification, and end at Apple Root CA - G3, which is built in.
//
// The key is the notificationUUID. The signature covers the whole notification.
func AppStore(apps ...string) *spec.Provider {
	return must(spec.New(appStoreSpec(), spec.Settings{Secrets: spec.Secrets(apps...)}))
}

func appStoreSpec() spec.Spec {
	return spec.Spec{
		Name:   "app-store",
		Title:  "Apple App Store",
		Secret: "the app, as production:bundle_id or sandbox:bundle_id",
		Verify: []spec.Verify{{Kind: spec.Code, Scheme: scheme.AppStore(scheme.AppleRoot)}},
		Event: spec.Extract{
			Key:    [][]spec.Value{{"json:$.notificationUUID"}},
			Type:   []spec.Value{"json:$.notificationType"},
			Action: []spec.Value{"json:$.subtype"},
			Time:   []spec.Moment{at("json:$.signedDate", spec.Millis)},
			Tenant: []spec.Value{"json:$.data.bundleId", "json:$.summary.bundleId", "json:$.appData.bundleId", "json:$.externalPurchaseToken.bundleId"},
		},
		// A retry may be signed anew, and so may be what the notification holds.
		Dedup:  spec.Dedup{Same: []spec.Value{"json:$.notificationUUID", "json:$.notificationType", "json:$.subtype"}, Retry: spec.Stable},
		Answer: spec.Answer{Reject: 503},
		Limits: spec.Limits{Retry: 157 * hour}, // 1 + 12 + 24 + 48 + 72
		// Apple documents no headers.
		Headers: []string{"X-Apple-*"},
		Example: spec.Template{ID: "002e14d5-51f5-4503-b5a8-c3a1af68eb20", Type: "DID_RENEW", Body: appStoreExample},
		Sources: []spec.Source{
			stated("signature, certificates and their extensions, app and environment", "apple/app-store-server-library-node: jws_verification.ts"),
			stated("root certificate", "apple.com/certificateauthority: Apple Root CA - G3; its fingerprint in internal/scheme/appstore.go"),
			stated("notificationUUID recognises duplicates", "developer.apple.com/documentation/appstoreservernotifications/notificationuuid"),
			stated("retries 1, 12, 24, 48 and 72 hours after the attempt before, in production only", "developer.apple.com/documentation/appstoreservernotifications/responding-to-app-store-server-notifications"),
			reported("a status of the 400s may end the retries since March 2026", "developer.apple.com/forums: posts under App Store Server API"),
			reported("seconds at the most until the answer", "developer.apple.com/forums/thread/779594"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the sandbox signs as production does: an endpoint that takes both takes test purchases for real ones; give each a source",
			"the transaction's id is shared by many notifications: as the key it loses renewals",
			"in the sandbox a notification is sent once, and never again",
			"whether Apple has revoked a certificate is not asked for here: that takes a question to Apple for each",
			"the transaction inside (signedTransactionInfo) is a token of its own: whoever uses it verifies it with Apple's library",
			"notifications of version 1 are not signed, and are refused",
		},
	}
}

const appStoreExample = `{
  "notificationType": "{{event}}",
  "notificationUUID": "{{id}}",
  "version": "2.0",
  "signedDate": {{millis}},
  "data": {
    "appAppleId": 1234567890,
    "bundleId": "com.example.shop",
    "bundleVersion": "1",
    "environment": "Production",
    "status": 1
  }
}`
