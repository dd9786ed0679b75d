package sqlite_test

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
	"github.com/hookonce/hookonce/internal/testskip"
)

var powerLosses = flag.Int("powerlosses", 25, "how often the machine of TestPowerLoss loses its power")

// workedFile, in the environment, makes the test binary a process that works on a journal in that file for a while.
const workedFile = "HOOKONCE_TEST_WORKED"

// worked accepts and finishes, and opens the file anew now and then. It writes "accepted key id" and "done key id" when the
// store has said so.
func worked(path string) error {
	for round := range 3 {
		if err := workedOnce(path, round); err != nil {
			return err
		}
	}
	return nil
}

func workedOnce(path string, round int) (err error) {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	last, err := s.LastID(ctx)
	if err != nil {
		return err
	}
	ids := journal.NewIDs(0, last)
	for n := range 40 {
		now := time.Now()
		batch := make([]*journal.Record, 1+n%7)
		for i := range batch {
			batch[i] = &journal.Record{ID: ids.Next(now), Hold: []string{"app"}, Event: &journal.Event{
				Source: "billing", Key: fmt.Sprintf("evt_%d_%d_%d", round, n, i), Body: make([]byte, 6000),
				Destinations: []string{"app"}, ReceivedAt: now,
			}}
		}
		if _, err := s.Accept(ctx, batch, now, now.Add(time.Hour)); err != nil {
			return err
		}
		for _, r := range batch {
			fmt.Println("accepted", r.Key, r.ID)
		}
		done := batch[0]
		applied, err := s.Finish(ctx, []journal.Outcome{{Held: journal.Held{EventID: done.ID, Destination: "app", Token: 1}, State: journal.Done, Started: now}})
		if err != nil || !applied[0] {
			return fmt.Errorf("finish: %v, %w", applied, err)
		}
		fmt.Println("done", done.Key, done.ID)
	}
	return nil
}

// TestPowerLoss records what the store tells the system while it works, and works out what a disk may have when the power
// goes at some moment: everything that was synced, and of the rest any part, in any order, torn at any sector. Whatever was
// acknowledged until then is there when the store is opened on that, and the file is sound.
//
// The driver and the system are the real ones; how a disk loses things is not tried by them but by this test. It leaves out
// the index of the log (-shm), which is made anew. The usual run loses power 25 times; thousands of times:
// go test ./internal/journal/sqlite -run PowerLoss -powerlosses 5000
func TestPowerLoss(t *testing.T) {
	testskip.Race(t)
	testskip.Long(t)
	path := filepath.Join(t.TempDir(), "journal.db")
	calls := traced(t, path)
	if acknowledgements := len(slices.DeleteFunc(slices.Clone(calls), func(c call) bool { return c.name != "write" })); acknowledgements < 100 {
		t.Fatalf("%d calls, of which %d are acknowledgements: too little was recorded", len(calls), acknowledgements)
	}
	seed := rand.Uint64()
	for n := range *powerLosses {
		seed := seed + uint64(n)
		r := rand.New(rand.NewPCG(seed, 1))
		at := 1 + r.IntN(len(calls))
		if !t.Run(fmt.Sprintf("seed %d at call %d", seed, at), func(t *testing.T) { loseThePower(t, calls[:at], r) }) {
			return
		}
	}
}

// loseThePower opens the store on what is left after these calls.
func loseThePower(t *testing.T, calls []call, r *rand.Rand) {
	d := newDisk()
	for _, c := range calls {
		d.tell(c)
	}
	dir := t.TempDir()
	for name, content := range d.left(r) {
		if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	path := filepath.Join(dir, "journal.db")
	s := open(t, path)
	for word, ids := range d.said {
		batch := make([]*journal.Record, 0, len(ids))
		for key := range ids {
			e := entry(key)
			e.Digest = nil
			batch = append(batch, e)
		}
		results, err := s.Accept(t.Context(), batch, time.Now(), time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		for i, res := range results {
			if key := batch[i].Key; res.ID != ids[key] || (word == "done") && !res.Done {
				t.Errorf("%s was %s as %d, and now is %+v", key, word, ids[key], res)
			}
		}
	}
	sound(t, path)
}

// sound has SQLite look through the file.
func sound(t *testing.T, path string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var verdict string
	if err := db.QueryRow("PRAGMA integrity_check").Scan(&verdict); err != nil || verdict != "ok" {
		t.Errorf("the file is not sound: %s, %v", verdict, err)
	}
}

// call is a call of the system that concerns the journal's files, in the order in which calls were complete, but for writes
// of acknowledgements, which stand where they began.
type call struct {
	name string // pwrite64, ftruncate, fsync, unlink, open, write
	file string // base name; of fsync also "." for the folder
	at   int64  // offset, or size
	data []byte
}

// traced runs a worker and returns its calls.
func traced(t *testing.T, path string) []call {
	t.Helper()
	strace, err := exec.LookPath("strace")
	if err != nil {
		t.Fatal("strace is missing: run scripts/install-servers")
	}
	trace := filepath.Join(t.TempDir(), "trace")
	cmd := exec.Command(strace, "-f", "-y", "-xx", "-qq", "-s", "100000", "-o", trace,
		"-e", "trace=open,openat,pwrite64,pwritev,write,writev,ftruncate,fallocate,fsync,fdatasync,unlink,unlinkat,rename,renameat,renameat2", os.Args[0])
	cmd.Env = append(os.Environ(), workedFile+"="+path)
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	f, err := os.Open(trace)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	var calls []call
	begun := map[string]string{} // by thread
	for lines.Scan() {
		thread, text, ok := strings.Cut(lines.Text(), " ")
		if !ok {
			t.Fatalf("not understood: %.200s", lines.Text())
		}
		text = strings.TrimLeft(text, " ")
		if head, cut := strings.CutSuffix(text, " <unfinished ...>"); cut {
			begun[thread] = head
			continue
		}
		if strings.HasPrefix(text, "<... ") {
			_, rest, _ := strings.Cut(text, " resumed>")
			text = begun[thread] + rest
		}
		if c, ours := parsed(t, text, filepath.Dir(path)); ours {
			calls = append(calls, c)
		}
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
	return calls
}

// parsed reads a line of strace, and reports whether it is about the folder or an acknowledgement.
func parsed(t *testing.T, text, dir string) (c call, ours bool) {
	base := func(file string) (string, bool) {
		if file == dir {
			return ".", true
		}
		return filepath.Base(file), filepath.Dir(file) == dir && !strings.HasSuffix(file, "-shm")
	}
	name, rest, called := strings.Cut(text, "(")
	args, result, _ := cutLast(rest, " = ")
	args = strings.TrimSuffix(strings.TrimSpace(args), ")")
	if !called || strings.HasPrefix(result, "-1") {
		return c, false
	}
	c.name = name
	switch name {
	case "open", "openat", "unlink", "unlinkat":
		c.name = strings.TrimSuffix(name, "at")
		c.file, ours = base(string(unescaped(t, between(args, `"`))))
		return c, ours && (c.name == "unlink" || strings.Contains(args, "O_CREAT"))
	}
	_, file, _ := strings.Cut(rest, "<")
	file, _, _ = strings.Cut(file, ">")
	c.file, ours = base(string(unescaped(t, file)))
	switch c.name {
	case "write":
		data := unescaped(t, between(args, `"`))
		return call{name: "write", data: data}, bytes.HasPrefix(data, []byte("accepted ")) || bytes.HasPrefix(data, []byte("done "))
	case "pwrite64":
		c.data = unescaped(t, between(args, `"`))
		_, offset, _ := cutLast(args, ", ")
		c.at = number(t, offset)
		if ours && number(t, result) != int64(len(c.data)) {
			t.Fatalf("a write was cut: %.200s", text)
		}
	case "ftruncate":
		_, size, _ := cutLast(args, ", ")
		c.at = number(t, size)
	case "fsync", "fdatasync":
		c.name = "fsync"
	default:
		if ours {
			t.Fatalf("the store makes a call that this test does not know: %.200s", text)
		}
	}
	return c, ours
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

func between(s, mark string) string {
	_, rest, _ := strings.Cut(s, mark)
	inner, _, _ := strings.Cut(rest, mark)
	return inner
}

func number(t *testing.T, s string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSpace(s), 0, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// unescaped reads what strace -xx writes: \x2f\x74.
func unescaped(t *testing.T, s string) []byte {
	t.Helper()
	if !strings.HasPrefix(s, `\x`) {
		return []byte(s)
	}
	out, err := hex.DecodeString(strings.ReplaceAll(s, `\x`, ""))
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// disk is what has been told to a disk, and what it must have kept.
type disk struct {
	files map[string]*stored
	said  map[string]map[string]int64 // accepted or done: id by key
}

// stored is a file: what was synced, and what was told since.
type stored struct {
	synced  []byte
	since   []call
	named   bool // the folder was synced since it was made
	removed bool
}

func newDisk() *disk {
	return &disk{files: map[string]*stored{}, said: map[string]map[string]int64{"accepted": {}, "done": {}}}
}

func (d *disk) tell(c call) {
	f := d.files[c.file]
	if f == nil || f.removed && c.name == "open" {
		f = &stored{}
		d.files[c.file] = f
	}
	switch c.name {
	case "write":
		delete(d.files, c.file)
		for line := range strings.Lines(string(c.data)) {
			var word, key string
			var id int64
			if n, _ := fmt.Sscan(line, &word, &key, &id); n == 3 {
				d.said[word][key] = id
			}
		}
	case "unlink":
		f.removed, f.named = true, true
	case "fsync":
		if c.file == "." {
			for _, f := range d.files {
				f.named = true
			}
			return
		}
		for _, c := range f.since {
			f.synced = applied(f.synced, c)
		}
		f.since = nil
	case "pwrite64", "ftruncate":
		f.since = append(f.since, c)
	}
}

// applied is the content of a file after a call.
func applied(content []byte, c call) []byte {
	if c.name == "ftruncate" {
		if int64(len(content)) > c.at {
			return content[:c.at:c.at]
		}
		return append(content, make([]byte, c.at-int64(len(content)))...)
	}
	if missing := c.at + int64(len(c.data)) - int64(len(content)); missing > 0 {
		content = append(content, make([]byte, missing)...)
	}
	copy(content[c.at:], c.data)
	return content
}

const sector = 512

// left are the files that may be there after the power was lost. Of what was not synced nothing may be left, or all, or any
// sectors of any calls in any order. A file that was made is not there if neither it nor its folder was synced.
func (d *disk) left(r *rand.Rand) map[string][]byte {
	files := map[string][]byte{}
	mode := r.IntN(4)
	for _, name := range slices.Sorted(maps.Keys(d.files)) {
		f := d.files[name]
		if name == "." || f.removed || !f.named && len(f.synced) == 0 && mode != 1 {
			continue
		}
		content, since := bytes.Clone(f.synced), slices.Clone(f.since)
		switch mode {
		case 0: // nothing
			since = nil
		case 1: // everything
		default:
			r.Shuffle(len(since), func(i, j int) { since[i], since[j] = since[j], since[i] })
			since = since[:r.IntN(len(since)+1)]
		}
		for _, c := range since {
			if mode == 3 && c.name == "pwrite64" {
				content = torn(r, content, c)
				continue
			}
			content = applied(content, c)
		}
		files[name] = content
	}
	return files
}

// torn writes some of the sectors of a call.
func torn(r *rand.Rand, content []byte, c call) []byte {
	for at := 0; at < len(c.data); {
		end := min(at+sector-int(c.at+int64(at))%sector, len(c.data))
		if r.IntN(2) == 0 {
			content = applied(content, call{name: c.name, at: c.at + int64(at), data: c.data[at:end]})
		}
		at = end
	}
	return content
}
