package secretshape_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/hookonce/hookonce/internal/secretshape"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/provider/spec"
)

func lookup(t testing.TB, name string) spec.Spec {
	t.Helper()
	known, err := provider.Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	return known
}

func TestLook(t *testing.T) {
	environ := []string{"HOOKS=fake", "EMPTY="}
	hex := strings.Repeat("0f", 16)
	for _, c := range []struct {
		provider, text string
		want           secretshape.Kind // empty: nothing is wrong
		sure           bool
		core           string
	}{
		{"stripe", "whsec_fakeSecretForTests", "", false, ""},
		{"stripe", " whsec_fake", secretshape.Spaces, true, "whsec_fake"},
		{"stripe", "whsec_fake\r\n", secretshape.Spaces, true, "whsec_fake"},
		{"github", "\ufeffa fake secret", secretshape.Spaces, true, "a fake secret"},
		{"github", "a fake secret\u200b", secretshape.Spaces, true, "a fake secret"},
		{"stripe", `"whsec_fake"`, secretshape.Quoted, true, "whsec_fake"},
		{"stripe", `\"whsec_fake\"`, secretshape.Quoted, true, "whsec_fake"},
		{"stripe", "“whsec_fake”", secretshape.Quoted, true, "whsec_fake"},
		{"stripe", `whsec_fake"`, secretshape.Quoted, false, "whsec_fake"},
		{"github", "'a fake secret'", secretshape.Quoted, false, "a fake secret"},
		{"github", "It's a Secret to Everybody", "", false, ""},
		{"stripe", "STRIPE_WEBHOOK_SECRET=whsec_fake", secretshape.Assignment, true, "whsec_fake"},
		{"stripe", `export HOOK_SECRET="whsec_fake"`, secretshape.Assignment, true, "whsec_fake"},
		{"github", "A_B=c", secretshape.Assignment, false, "c"},
		{"github", "QUJDREVGRw==", "", false, ""},
		{"github", "HOOKS", secretshape.Variable, true, ""},
		{"github", "HOOK", "", false, ""},
		{"github", "MY_WEBHOOK_SECRET", secretshape.Variable, true, ""},
		{"github", "ABCDEFGH_IJKL", "", false, ""},
		{"github", "${HOOK_SECRET}", secretshape.Variable, true, ""},
		{"github", "process.env.HOOK_SECRET", secretshape.Variable, true, ""},
		{"github", "changeme", secretshape.Placeholder, true, ""},
		{"stripe", "whsec_your_secret_here", secretshape.Placeholder, true, ""},
		{"stripe", "whsec_...", secretshape.Placeholder, true, ""},
		{"stripe", "whsec_fak…ake", secretshape.Placeholder, true, ""},
		{"github", "<your secret>", secretshape.Placeholder, true, ""},
		{"github", "what...ever it is", "", false, ""},
		{"stripe", "whsec_", secretshape.PrefixOnly, true, ""},
		{"supabase", "v1,whsec_", secretshape.PrefixOnly, true, ""},
		{"stripe", "sk_live_fakefakefake", secretshape.APIKey, true, ""},
		{"stripe", "sk_live_", "", false, ""},
		{"github", "ghp_fakefakefakefakefake", secretshape.APIKey, false, ""},
		{"gitlab", "glpat-fakefakefakefake", secretshape.APIKey, false, ""},
		{"slack", "xoxb-0000000000-fake-fake", secretshape.APIKey, true, ""},
		{"twilio", "AC" + hex, secretshape.APIKey, true, ""},
		{"twilio", hex, "", false, ""},
		{"mailgun", "key-" + hex, secretshape.APIKey, false, ""},
		{"slack", "key-" + hex, secretshape.APIKey, true, ""},
		{"paystack", "sk_live_fakefakefake", "", false, ""},
		{"auth0", "Bearer fake", "", false, ""},
		{"twilio", "-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----\n", secretshape.WrongKey, true, "ZmFrZQ=="},
		{"telnyx", "-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----\n", secretshape.WrongKey, true, "ZmFrZQ=="},
		{"wise", "-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----\n", "", false, ""},
		{"wise", `-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----\n`, secretshape.WrongKey, true, "-----BEGIN PUBLIC KEY-----\nZmFrZQ==\n-----END PUBLIC KEY-----\n"},
		{"wise", "-----BEGIN PRIVATE KEY-----\nZmFrZQ==\n-----END PRIVATE KEY-----\n", secretshape.WrongKey, true, ""},
		{"slack", "https://hooks.slack.com/services/fake", secretshape.Address, true, ""},
		{"kinde", "https://fake.kinde.com", "", false, ""},
		{"postmark", "HOOK_USER:fake-password", "", false, ""},
		{"brevo", "HOOK_USER:fake-password", "", false, ""},
		{"brevo", "HOOK_SECRET=user:fake-password", secretshape.Assignment, false, "user:fake-password"},
		{"kinde", "http://fake.kinde.com", secretshape.Address, true, ""},
		{"slack", "whsec_fakefakefake", secretshape.OtherSender, false, ""},
		{"standard", "whsec_ZmFrZQ==", "", false, ""},
		{"polar", "whsec_fakefakefake", "", false, ""},
		{"paddle", "pdl_ntfset_fake", "", false, ""},
	} {
		got, odd := secretshape.Look(c.text, environ, lookup(t, c.provider))
		if odd != (c.want != "") || got.Kind != c.want || got.Sure != c.sure || got.Core != c.core {
			t.Errorf("%s, %q: %+v, want %q, sure %v, core %q", c.provider, c.text, got, c.want, c.sure, c.core)
		}
		if odd && (got.Text == "" || got.Mend == "") {
			t.Errorf("%s, %q: %+v has no words", c.provider, c.text, got)
		}
	}
}

// What a specification shows of its secret is no mistake.
func TestWhatSpecificationsShow(t *testing.T) {
	shown := regexp.MustCompile(`\bas in (\S+)`)
	found := 0
	for _, name := range provider.Names() {
		known := lookup(t, name)
		for _, m := range shown.FindAllStringSubmatch(known.Secret, -1) {
			found++
			if f, odd := secretshape.Look(strings.Trim(m[1], ",;."), nil, known); odd && f.Sure {
				t.Errorf("%s: %q shows what %s", name, known.Secret, f.Text)
			}
		}
	}
	if found == 0 {
		t.Error("none shows anything")
	}
}

// What a sender is said to write in front of its secrets is what its specification says of them.
func TestBeginnings(t *testing.T) {
	found := 0
	for _, name := range provider.Names() {
		known := lookup(t, name)
		_, said, says := strings.Cut(known.Secret, "which begins with ")
		begin := secretshape.Beginning(known)
		if begin == "" {
			continue
		}
		if found++; !says || said != begin {
			t.Errorf("%s: %q, and the specification says %q", name, begin, known.Secret)
		}
	}
	if found == 0 {
		t.Error("no sender has one")
	}
}

// FuzzLook: whatever the text, nothing of it is in the words but the beginnings that are known.
func FuzzLook(f *testing.F) {
	for _, text := range []string{`"fake-secret-fake"`, "HOOK_SECRET=fake-secret-fake", "sk_live_fakefakefakefake", "-----BEGIN fake-secret", "process.env.FAKE_SECRET"} {
		f.Add(text, "stripe")
		f.Add(text, "github")
	}
	f.Fuzz(func(t *testing.T, text, name string) {
		known, err := provider.Lookup(name)
		if err != nil {
			known = spec.Spec{Name: name}
		}
		found, odd := secretshape.Look(text, nil, known)
		if !odd {
			return
		}
		const longest = 12 // of the beginnings that are shown: pdl_ntfset_, github_pat_
		for i := 0; i+longest < len(text); i++ {
			if piece := text[i : i+longest+1]; strings.Contains(found.Text+found.Mend, piece) && !strings.Contains(known.Secret+words, piece) {
				t.Fatalf("%q of %q is in %q, %q", piece, text, found.Text, found.Mend)
			}
		}
	})
}

// words are in what is said, whatever the text.
const words = "-----BEGIN PUBLIC KEY----- remove it; file: leaves out one line break at the end, and nothing else the name of the variable"
