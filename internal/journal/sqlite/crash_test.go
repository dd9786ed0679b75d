package sqlite_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/journal"
	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// victimFile, in the environment, makes the test binary a process that accepts into that file until
// it is killed.
const victimFile = "HOOKONCE_TEST_VICTIM"

func TestMain(m *testing.M) {
	if path := os.Getenv(victimFile); path != "" {
		fmt.Fprintln(os.Stderr, victim(path))
		os.Exit(1)
	}
	if path := os.Getenv(workedFile); path != "" {
		if err := worked(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if path := os.Getenv(openedFile); path != "" {
		opener(path)
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// victim accepts batches for ever and writes "key id" for each event that was acknowledged.
func victim(path string) error {
	ctx := context.Background()
	s, err := sqlite.Open(ctx, path, sqlite.Options{})
	if err != nil {
		return err
	}
	last, err := s.LastID(ctx)
	if err != nil {
		return err
	}
	ids := journal.NewIDs(0, last)
	for n := 0; ; n++ {
		now := time.Now()
		batch := make([]*journal.Record, 1+n%50)
		for i := range batch {
			key := fmt.Sprintf("evt_%d_%d_%d", os.Getpid(), n, i)
			batch[i] = &journal.Record{ID: ids.Next(now), Hold: []string{"app"}, Event: &journal.Event{
				Source: "billing", Key: key, Body: make([]byte, 2048),
				Destinations: []string{"app"}, ReceivedAt: now,
			}}
		}
		results, err := s.Accept(ctx, batch, now, now.Add(time.Hour))
		if err != nil {
			return err
		}
		for i, r := range results {
			fmt.Println(batch[i].Key, r.ID)
		}
	}
}

// TestKilledProcessLosesNothing kills a process that accepts as fast as it can, several times on the
// same file: whatever it acknowledged is there, and its work is handed back at once.
func TestKilledProcessLosesNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.db")
	acknowledged := map[string]int64{}
	for round := range 5 {
		kill(t, path, 100*(round+1), acknowledged)
		s := open(t, path)
		orphans, err := s.Orphans(t.Context(), time.Now())
		if err != nil {
			t.Fatal(err)
		}
		taken := takeAll(t, s)
		if taken != orphans {
			t.Errorf("%d deliveries were orphaned, %d of them can be taken", orphans, taken)
		}
		if orphans < len(acknowledged) {
			t.Errorf("%d deliveries were orphaned, %d were acknowledged", orphans, len(acknowledged))
		}
		compare(t, s, acknowledged)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
	}
}

// kill runs a victim until it has acknowledged n events, and notes all that it acknowledged.
func kill(t *testing.T, path string, n int, acknowledged map[string]int64) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), victimFile+"="+path)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for i := 0; lines.Scan(); i++ {
		var key string
		var id int64
		if _, err := fmt.Sscan(lines.Text(), &key, &id); err != nil {
			continue // the line that the kill cut short
		}
		acknowledged[key] = id
		if i == n {
			if err := cmd.Process.Kill(); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := cmd.Wait(); cmd.ProcessState.ExitCode() != -1 {
		t.Fatalf("the victim ended by itself: %v", err)
	}
}

// takeAll leases everything that is due and returns how much that was.
func takeAll(t *testing.T, s journal.Store) (n int) {
	t.Helper()
	for {
		now := time.Now()
		work, err := s.Take(t.Context(), now, now.Add(time.Hour), journal.Wanted{Deliveries: 1000})
		if err != nil {
			t.Fatal(err)
		}
		if len(work) == 0 {
			return n
		}
		n += len(work)
	}
}

// compare expects the store to have these keys under these ids.
func compare(t *testing.T, s journal.Store, want map[string]int64) {
	t.Helper()
	var batch []*journal.Record
	for key := range want {
		batch = append(batch, entry(key))
	}
	results, err := s.Accept(t.Context(), batch, time.Now(), time.Now().Add(time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	for i, r := range results {
		if key := batch[i].Key; r.ID != want[key] {
			t.Errorf("%s was acknowledged as %d, and now is %+v", key, want[key], r)
		}
	}
}
