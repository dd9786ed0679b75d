package provider

import "github.com/hookonce/hookonce/provider/spec"

// Cloudinary returns the provider for Cloudinary's notifications, signed with SHA-1 or SHA-256. The secrets are API
// secrets of the account. It panics if a secret is missing or empty.
//
// Notifications have no id. The key is made of their type, their time and a digest of them, all of which the signature
// covers. The signed time may be two hours off in either direction.
func Cloudinary(secrets ...string) *spec.Provider {
	return must(spec.New(cloudinarySpec(), spec.Settings{Secrets: spec.Secrets(secrets...)}))
}

func cloudinarySpec() spec.Spec {
	return spec.Spec{
		Name:   "cloudinary",
		Title:  "Cloudinary",
		Secret: "the API secret of the account",
		Verify: []spec.Verify{cloudinaryVerify(spec.SHA1), cloudinaryVerify(spec.SHA256)},
		Event: spec.Extract{
			Key:      [][]spec.Value{{"json:$.notification_type", "json:$.timestamp", "hash:json:$"}},
			Type:     []spec.Value{"json:$.notification_type"},
			Time:     []spec.Moment{at("json:$.timestamp", spec.RFC3339)},
			Resource: []spec.Value{"json:$.public_id", "json:$.asset_id"},
		},
		Headers: []string{"X-Cld-*"},
		Example: spec.Template{ID: "aB3dE5fG7hJ9kL1mN3pQ5rS7tU9vW1x", Type: "upload", Object: "example/hook-brass", Body: cloudinaryExample},
		Sources: []spec.Source{
			stated("signature, tolerance", "cloudinary/cloudinary_npm: lib/utils/index.js, verifyNotificationSignature"),
			reported("fields", "Cloudinary documentation, Notifications, quoted"),
			reported("key", "inferred: the body has the time of the notification, and no id"),
			notSourced("retries"),
			notSourced("whether the body is the same in every attempt"),
		},
		Traps: []string{
			"there is no id: the asset's as the key loses everything that happens to it after its upload, and the request's may be that of several notifications",
			"the signature is a plain hash that ends in the secret, and SHA-1 unless the account asks for SHA-256",
			"where retries carry another time in their body they pass as new: let the work be one that can be repeated",
		},
	}
}

// cloudinaryVerify is a plain hash over body, time and secret.
func cloudinaryVerify(h spec.Hash) spec.Verify {
	return timed(spec.Verify{
		Kind:      spec.PlainHash,
		Hash:      h,
		Key:       spec.KeyUTF8,
		Encoding:  spec.Hex,
		Signature: spec.Signature{In: "header:X-Cld-Signature"},
		Sign:      []spec.Value{"body", "ts", "secret"},
	}, "header:X-Cld-Timestamp", spec.Seconds, 2*hour)
}

const cloudinaryExample = `{
  "notification_type": "{{type}}",
  "timestamp": "{{time}}",
  "request_id": "{{id}}",
  "asset_id": "0000000000000000000000000000a001",
  "public_id": "{{object}}",
  "version": {{unix}},
  "width": 864,
  "height": 576,
  "format": "jpg",
  "resource_type": "image",
  "bytes": 120253,
  "type": "upload",
  "secure_url": "https://res.cloudinary.com/example/image/upload/hook-brass.jpg"
}`
