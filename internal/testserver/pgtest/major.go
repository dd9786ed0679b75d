package pgtest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// Variable names the environment variable that has all servers run another PostgreSQL than the newest of Debian's: its
// value is a major version, such as 17, or a folder with the programs initdb, pg_ctl and postgres.
const Variable = "HOOKONCE_TEST_POSTGRES"

// Majors are the versions that scripts/install-servers versions brings: initdb, pg_ctl and postgres, and no other programs.
var Majors = []int{15, 16, 17, 18}

// Has reports whether the programs of a major version are on this machine, so that [Options.Major] can ask for it.
func Has(major int) bool { return programsOf(major) != "" }

// programsOf returns the folder with the programs of a major version: Debian's, or else those that
// scripts/install-servers versions brings; empty: there are none.
func programsOf(major int) string {
	for _, dir := range []string{
		fmt.Sprintf("/usr/lib/postgresql/%d/bin", major),
		filepath.Join(cache(), fmt.Sprintf("node_modules/postgresql-%d/native/bin", major)),
	} {
		if _, err := os.Stat(filepath.Join(dir, "initdb")); err == nil {
			return dir
		}
	}
	return ""
}

// cache is where scripts/install-servers keeps what it fetched. Root's is where the server's user can read it.
func cache() string {
	const name = "hookonce/postgresql"
	if os.Geteuid() == 0 {
		return filepath.Join("/var/cache", name)
	}
	dir, _ := os.UserCacheDir()
	return filepath.Join(dir, name)
}

// programs returns the folder with the programs of a server: those of the major version, or if that is 0 those that
// [Variable] asks for, the newest of Debian's, or "", which means that PATH has them.
func programs(major int) (string, error) {
	asked := os.Getenv(Variable)
	if n, err := strconv.Atoi(asked); err == nil && major == 0 {
		major = n
	}
	switch {
	case major != 0:
		if dir := programsOf(major); dir != "" {
			return dir, nil
		}
		return "", fmt.Errorf("pgtest: PostgreSQL %d is missing: run `scripts/install-servers versions`", major)
	case asked != "":
		return asked, nil
	}
	found, err := filepath.Glob("/usr/lib/postgresql/*/bin")
	if err != nil || len(found) == 0 {
		return "", err
	}
	newest := func(a, b string) int { return len(a) - len(b) + strings.Compare(a, b) }
	return slices.MaxFunc(found, newest), nil
}

// program returns the path of one of PostgreSQL's programs in the folder; "": in PATH.
func program(dir, name string) (string, error) {
	return throwaway.Program("PostgreSQL", filepath.Join(dir, name))
}
