package provider

import "github.com/hookonce/hookonce/provider/spec"

// Dropbox returns the provider for Dropbox's webhooks. The secrets are the app secrets. It panics if a
// secret is missing or empty. The challenge, GET with challenge, is answered.
//
// A notification only lists accounts in which something changed, and the next one may be the same to
// the byte: nothing recognises a copy, and all pass through unkeyed. No time is signed.
func Dropbox(secrets ...string) *spec.Provider {
	return must(spec.New(dropboxSpec(), spec.Settings{Secrets: spec.Secrets(secrets...), Handshakes: true}))
}

func dropboxSpec() spec.Spec {
	return spec.Spec{
		Name:       "dropbox",
		Title:      "Dropbox",
		Secret:     "the app secret",
		Verify:     []spec.Verify{bodyMAC("X-Dropbox-Signature", "", spec.Hex)},
		Dedup:      spec.Dedup{OnRepeat: spec.Off},
		Handshakes: []spec.Handshake{{Method: "GET", Echo: "query:challenge"}},
		Headers:    []string{"X-Dropbox-*"},
		Example:    spec.Template{ID: "AAH4f99T0taONIbKOurWxbNQ6ywGRopQngc", Body: dropboxExample},
		Sources: []spec.Source{
			stated("signature, challenge, what a notification says", "dropbox/mdwebhook: app.py"),
			notSourced("retries"),
			notSourced("deadline"),
		},
		Traps: []string{
			"the body lists accounts and nothing else: a hash of it as the key loses every later change",
			"fetch what changed with the account's cursor; that makes copies harmless",
		},
	}
}

const dropboxExample = `{
  "list_folder": {
    "accounts": [
      "dbid:{{id}}",
      "dbid:AAExampleExampleExampleExampleExample02"
    ]
  },
  "delta": {
    "users": [
      10000001,
      10000002
    ]
  }
}`
