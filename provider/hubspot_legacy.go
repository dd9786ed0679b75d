package provider

import "github.com/hookonce/hookonce/provider/spec"

// HubSpotLegacy returns the provider for HubSpot webhooks with the versions 2 and 1 of their signature, in
// the header X-HubSpot-Signature, for those who are sent no version 3: see [HubSpot]. The URL is the
// target URL exactly as it is registered with HubSpot, because version 2 covers it; empty means the URL of
// the request, which is right only where no proxy changes it. The secrets are the client secrets of the
// app. It panics if a secret is missing or empty, or the URL is not one.
//
// The key is that of HubSpot, and signed. No time is signed.
func HubSpotLegacy(url string, secrets ...string) *spec.Provider {
	return must(spec.New(hubspotLegacySpec(), spec.Settings{URL: url, Secrets: spec.Secrets(secrets...)}))
}

func hubspotLegacySpec() spec.Spec {
	s := hubspotSpec()
	s.Name, s.Title = "hubspot-legacy", "HubSpot (signature versions 1 and 2)"
	s.Verify = []spec.Verify{
		hubspotHash("secret", "method", "url", "body"), // version 2
		hubspotHash("secret", "body"),                  // version 1
	}
	s.Traps = []string{
		"versions 1 and 2 are plain hashes of the secret and the rest, not HMACs, and sign no time: a captured request can be replayed as long as its key is not remembered",
		"where HubSpot sends version 3 as well, use hubspot, which accepts nothing else",
		"behind a proxy the request's URL differs from the registered one, and version 2 is rejected",
		"eventId is not guaranteed to be unique: alone as the key it loses events",
		"a hash of the item as the key lets retries through: attemptNumber changes",
		"an item without objectId passes through unkeyed",
	}
	return s
}

// hubspotHash is the older kind of signature.
func hubspotHash(sign ...spec.Value) spec.Verify {
	return spec.Verify{
		Kind:      spec.PlainHash,
		Hash:      spec.SHA256,
		Key:       spec.KeyUTF8,
		Encoding:  spec.Hex,
		Signature: spec.Signature{In: "header:X-HubSpot-Signature"},
		Sign:      sign,
	}
}
