package endtoend

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testskip"
	"github.com/hookonce/hookonce/provider"
	"github.com/hookonce/hookonce/relay"
)

// readers have what an app takes from examples/gateway say which event a request is: they read it
// as JSON, and write null where it is refused.
var readers = map[string][]string{
	"node": {"node", "--input-type=module", "-e", `
import { readFileSync } from "node:fs";
const given = JSON.parse(readFileSync(0, "utf8"));
const { open } = await import(given.dir + "/node/hookonce.mjs");
console.log(JSON.stringify(open(given.secrets, given.headers, Buffer.from(given.body, "base64"), "crm") ?? null));`},
	"python": {"/usr/bin/python3", "-B", "-c", `
import base64, dataclasses, json, sys
given = json.load(sys.stdin)
sys.path.insert(0, given["dir"] + "/python")
from hookonce import open_delivery
event = open_delivery(given["secrets"], list(given["headers"].items()), base64.b64decode(given["body"]), "crm")
print(json.dumps(event and dataclasses.asdict(event)))`},
}

// readEvent is what the apps find in a request.
type readEvent struct{ Source, Key, Type string }

func read(t *testing.T, reader []string, h http.Header, body []byte) *readEvent {
	t.Helper()
	headers := map[string]string{} // as servers hand them on
	for name := range h {
		headers[strings.ToLower(name)] = h.Get(name)
	}
	dir, err := filepath.Abs(examplesDir + "/gateway")
	if err != nil {
		t.Fatal(err)
	}
	given, err := json.Marshal(map[string]any{"dir": dir, "secrets": []string{shopSecret}, "headers": headers, "body": body})
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(reader[0], reader[1:]...)
	cmd.Stdin = bytes.NewReader(given)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	var found *readEvent
	if err == nil {
		err = json.Unmarshal(out, &found)
	}
	if err != nil {
		t.Fatalf("%s: %v\n%s%s(run scripts/install-servers if it is missing)", reader[0], err, out, said.String())
	}
	return found
}

// TestEffectsInEveryLanguage: what a relay posts is an event of its own in Node and in Python as
// well, and two effects of one event are two. Whoever carries one can make it neither another nor
// the event that asked for it.
func TestEffectsInEveryLanguage(t *testing.T) {
	testskip.Long(t)
	t.Parallel()
	var headers http.Header // of the last request
	var body []byte
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		var err error
		if body, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		headers = r.Header
	}))
	t.Cleanup(server.Close)
	post := relay.POST(nil, server.URL, relay.PostSecrets(shopSecret))
	for language, reader := range readers {
		for _, step := range []string{"receipt", "copy for the files"} {
			e := hookonce.QueuedEffect{
				Effect: hookonce.Effect{Ref: hookonce.Ref{Source: "billing", Key: "evt_1"}, Name: "mail.reçu", Step: step, Payload: []byte(`{"to":"a@b.example"}`)},
				ID:     7, Token: 1, EnqueuedAt: time.Now(),
			}
			if err := post(t.Context(), e); err != nil {
				t.Fatal(err)
			}
			want := readEvent{"crm", e.IdempotencyKey(), "mail.reçu"}
			if got := read(t, reader, headers, body); got == nil || *got != want {
				t.Errorf("%s: %+v, want %+v", language, got, want)
			}
		}
		for forgery, forge := range map[string]func(http.Header){
			"no effect":   func(h http.Header) { h.Del("Hookonce-Effect") },
			"another key": func(h http.Header) { h.Set("Idempotency-Key", "0123456789abcdef0123456789abcdef") },
			"no key, though it is signed": func(h http.Header) {
				h.Del("Idempotency-Key")
				if err := provider.Hookonce(shopSecret).Sign(&hookonce.Request{Header: h, Body: body, Now: time.Now()}); err != nil {
					t.Error(err)
				}
			},
		} {
			forged := headers.Clone()
			forge(forged)
			if got := read(t, reader, forged, body); got != nil {
				t.Errorf("%s, %s: %+v", language, forgery, got)
			}
		}
	}
}
