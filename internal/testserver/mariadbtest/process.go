package mariadbtest

import (
	"fmt"
	"os"
	"os/exec"

	"github.com/hookonce/hookonce/internal/testserver/throwaway"
)

// program returns the path of one of MariaDB's programs.
func program(name string) (string, error) {
	for _, path := range []string{"/usr/sbin/" + name, "/usr/bin/" + name} {
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		return "", fmt.Errorf("mariadbtest: %s is missing, and this test needs MariaDB: run `scripts/install-servers`, "+
			"or use -short to leave such tests out (%w)", name, err)
	}
	return path, nil
}

// serverUser runs MariaDB where the test runs as root.
const serverUser throwaway.User = "nobody"
