package hookonce

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
)

// vector is one of the IETF's for structured fields.
type vector struct {
	Name     string
	Raw      []string
	Type     string `json:"header_type"`
	MustFail bool   `json:"must_fail"`
	Expected []any
}

func vectors(t *testing.T, file string) (all []vector) {
	t.Helper()
	data, err := os.ReadFile("testdata/structured-fields/" + file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, &all); err != nil || len(all) == 0 {
		t.Fatalf("%s: %d vectors, %v", file, len(all), err)
	}
	return all
}

func TestStructuredString(t *testing.T) {
	for _, file := range []string{"string.json", "string-generated.json"} {
		for _, v := range vectors(t, file) {
			got, ok := structuredString(v.Raw[0])
			switch {
			case len(v.Raw) != 1 || v.Type != "item":
				t.Errorf("%s: %q is not for strings", file, v.Name)
			case v.MustFail && ok:
				t.Errorf("%s: %s: %q is taken for %q", file, v.Name, v.Raw[0], got)
			case !v.MustFail && (!ok || got != v.Expected[0]):
				t.Errorf("%s: %s: %q = %q, %v; want %q", file, v.Name, v.Raw[0], got, ok, v.Expected[0])
			}
		}
	}
}

func TestParseKey(t *testing.T) {
	long := strings.Repeat("k", 255)
	for name, c := range map[string]struct {
		lines  []string
		strict bool
		key    string // empty: refused
	}{
		"a string":                     {[]string{`"8e03978e"`}, false, "8e03978e"},
		"a string, strictly":           {[]string{`"8e03978e"`}, true, "8e03978e"},
		"bare":                         {[]string{`8e03978e`}, false, "8e03978e"},
		"bare, strictly":               {[]string{`8e03978e`}, true, ""},
		"spaces around":                {[]string{`  "8e03978e" `}, true, "8e03978e"},
		"spaces inside":                {[]string{`"a key"`}, false, "a key"},
		"bare with spaces inside":      {[]string{`a key`}, false, ""},
		"escapes":                      {[]string{`"a\"b\\c"`}, false, `a"b\c`},
		"bare with a backslash":        {[]string{`a\\c`}, false, ""},
		"base64":                       {[]string{`q+/Z9w==`}, false, "q+/Z9w=="},
		"parameters":                   {[]string{`"a";v=1;x;y="z";d=-1.5;t=tok/en;b=:aGk=:;f=?0;at=@1700000000;n=%"f%c3%bc"`}, true, "a"},
		"spaces before a parameter":    {[]string{`"a";  v=1`}, true, "a"},
		"a damaged parameter":          {[]string{`"a";V=1`}, false, ""},
		"a parameter without value":    {[]string{`"a";v=`}, false, ""},
		"text after the string":        {[]string{`"a"b`}, false, ""},
		"two in one line":              {[]string{`"a", "b"`}, false, ""},
		"two bare ones in one line":    {[]string{`a, b`}, false, ""},
		"two lines":                    {[]string{`"a"`, `"a"`}, false, ""},
		"an empty line":                {[]string{``}, false, ""},
		"an empty string":              {[]string{`""`}, false, ""},
		"only spaces":                  {[]string{`  `}, false, ""},
		"not closed":                   {[]string{`"a`}, false, ""},
		"beyond ASCII":                 {[]string{`"füü"`}, false, ""},
		"bare beyond ASCII":            {[]string{`füü`}, false, ""},
		"a control character":          {[]string{"a\x00b"}, false, ""},
		"as long as may be":            {[]string{long}, false, long},
		"as long as may be, quoted":    {[]string{`"` + long + `"`}, false, long},
		"too long":                     {[]string{long + "k"}, false, ""},
		"too long, quoted":             {[]string{`"` + long + `k"`}, false, ""},
		"single quotes are characters": {[]string{`'a'`}, false, `'a'`},
	} {
		key, err := parseKey(c.lines, c.strict, 255)
		if key != c.key || (err == nil) != (c.key != "") {
			t.Errorf("%s: parseKey(%q) = %q, %v; want %q", name, c.lines, key, err, c.key)
		}
	}
}

func TestScopedKeysDoNotMeet(t *testing.T) {
	seen := map[string][2]string{}
	for _, c := range [][2]string{{"", "k"}, {"a", "k"}, {"ak", ""}, {"ab", "c"}, {"a", "bc"}, {"any", "k"}, {"", "3:any1:k"}, {"A", "k"}} {
		key := scopedKey(c[0], c[1])
		if other, ok := seen[key]; ok && key != "" {
			t.Errorf("%q and %q have the key %q", c, other, key)
		}
		seen[key] = c
		if err := (Ref{Source: "s", Key: key}).Validate(); err != nil {
			t.Errorf("%q: %v", c, err)
		}
	}
	if strings.Contains(scopedKey("Bearer fake-token", "k"), "fake-token") {
		t.Error("the scope is legible in the key")
	}
}

func FuzzIdempotencyKey(f *testing.F) {
	for _, seed := range []string{`"a"`, `a`, ``, `""`, `"a";v=1`, `"a\"b"`, `a,b`, `'a'`, "\x00", `"a`, `%"x"`, strings.Repeat("k", 300)} {
		f.Add(seed, false)
		f.Add(seed, true)
	}
	f.Fuzz(func(t *testing.T, line string, strict bool) {
		key, err := parseKey([]string{line}, strict, 255)
		if err != nil {
			if key != "" {
				t.Fatalf("%q: refused with the key %q", line, key)
			}
			return
		}
		if key == "" || len(key) > 255 || strings.ContainsFunc(key, func(r rune) bool { return r < ' ' || r > '~' }) {
			t.Fatalf("%q: the key %q", line, key)
		}
		quoted := `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`).Replace(key) + `"`
		if again, err := parseKey([]string{quoted}, true, 255); again != key || err != nil {
			t.Fatalf("%q is %q, and %q is %q, %v", line, key, quoted, again, err)
		}
	})
}

// Fingerprints are stored: those of forms stay what they are from one version to the next.
func TestFingerprintsOfFormsStay(t *testing.T) {
	for name, c := range map[string]struct{ contentType, body, want string }{
		"a field and a file": {
			"multipart/form-data; boundary=b1",
			"--b1\r\nContent-Disposition: form-data; name=\"kind\"\r\n\r\ninvoice\r\n" +
				"--b1\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a\"\r\nContent-Type: text/plain\r\n\r\n" +
				strings.Repeat("0123456789\r\n--not-b1\r\n", 1000) + "\r\n--b1--\r\n",
			"127d4313662402043c3414c77f60af38",
		},
		"odd parts": {
			`multipart/form-data; charset=utf-8; boundary="b 2"`,
			"preamble\r\n--b 2\r\nX-A: 1\r\nx-a: 2\r\nContent-Transfer-Encoding: quoted-printable\r\n\r\na=3D\r\n" +
				"--b 2\r\n\r\n\r\n--b 2--\r\nepilogue",
			"71dd7738a5630454a4685bf7d4f6307b",
		},
		"no parts": {"multipart/form-data; boundary=b1", "--b1--\r\n", "7301184cf92d5e8522612bc3d39070b4"},
	} {
		r := httptest.NewRequest("POST", "/charges?dry=0", nil)
		r.Header.Set("Content-Type", c.contentType)
		if got := hex.EncodeToString(fingerprint(r, []string{"Content-Type"}, []byte(c.body), nil)); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

// A stranger's form costs no more than one that a handler could read, and no second copy of what is in it.
func TestFormDigestIsBounded(t *testing.T) {
	form := func(parts, lines int, content string) []byte {
		return []byte(strings.Repeat("--b\r\n"+strings.Repeat("a:\r\n", lines)+"\r\n"+content+"\r\n", parts) + "--b--\r\n")
	}
	for _, c := range []struct {
		parts, lines, content int
		want                  bool
	}{
		{maxFormParts, 0, 0, true}, {maxFormParts + 1, 0, 0, false}, {200_000, 0, 0, false},
		{maxFormParts, maxFormLines / maxFormParts, 0, true}, {20, maxFormLines / 10, 0, false}, {1, maxFormLines + 1, 0, false},
		{1, 1, 16 << 20, true},
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			const most = 12 << 20
			body := form(c.parts, c.lines, strings.Repeat("x", c.content))
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			digest, _ := formDigest([]string{"multipart/form-data; boundary=b"}, body)
			runtime.ReadMemStats(&after)
			if (digest != nil) != c.want {
				t.Errorf("it is compared by its parts: %v, want %v", digest != nil, c.want)
			}
			if n := after.TotalAlloc - before.TotalAlloc; n > most {
				t.Errorf("%d bytes were taken for it, more than %d", n, most)
			}
		})
	}
}
