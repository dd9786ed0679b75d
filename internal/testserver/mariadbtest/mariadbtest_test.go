package mariadbtest

import (
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

func query(t *testing.T, dsn, text string) (answer string) {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), text).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return answer
}

func TestEveryDSNIsAFreshDatabase(t *testing.T) {
	one, two := DSN(t), DSN(t)
	if a, b := query(t, one, "SELECT DATABASE()"), query(t, two, "SELECT DATABASE()"); a == b {
		t.Errorf("both are %s", a)
	}
}

// A killed test process leaves no server behind.
func TestServerEndsWithItsProcess(t *testing.T) {
	const env = "MARIADBTEST_DIE"
	if os.Getenv(env) != "" {
		s, err := start(throwaway.MemoryDir)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("dir %s \n", s.dir)
		self, err := os.FindProcess(os.Getpid())
		if err == nil {
			err = self.Kill()
		}
		t.Fatal("still alive ", err)
	}
	DSN(t) // skips the test where servers are left out
	cmd := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
	cmd.Env = append(os.Environ(), env+"=1")
	out, err := cmd.Output()
	if err == nil {
		t.Fatalf("the process was not killed: %s", out)
	}
	_, rest, _ := strings.Cut(string(out), "dir ")
	dir, _, found := strings.Cut(rest, " ")
	if !found {
		t.Fatalf("no folder in %q", out)
	}
	awaitGone(t, dir)
}

func awaitGone(t *testing.T, dir string) {
	t.Helper()
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return
		}
	}
	t.Errorf("%s is still there", dir)
}
