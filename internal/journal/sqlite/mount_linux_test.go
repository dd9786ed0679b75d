package sqlite_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/hookonce/hookonce/internal/journal/sqlite"
)

// openMounted opens a file in a process of its own that sees it mounted, file on file or folder on folder, at another place,
// and returns what that says.
func openMounted(t *testing.T, what, at, path string) string {
	t.Helper()
	cmd := exec.Command("sh", "-c", `mount --make-rprivate / && mount --bind "$1" "$2" && exec "$3"`, "sh", what, at, os.Args[0])
	cmd.Env = append(os.Environ(), openedFile+"="+path)
	cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}}}
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Skipf("this machine lets nobody mount (%v: %s); package sqlitefile has the same cases without mounts", err, out)
	}
	return string(out)
}

// TestMountedFiles mounts the file of a store elsewhere, as containers do, while the store runs and after it was killed.
func TestMountedFiles(t *testing.T) {
	dir := t.TempDir()
	folder, other := filepath.Join(dir, "data"), filepath.Join(dir, "other")
	for _, name := range []string{folder, other} {
		if err := os.Mkdir(name, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	path, single := filepath.Join(folder, "journal.db"), filepath.Join(other, "mine.db")
	if err := os.WriteFile(single, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	acknowledged := map[string]int64{}
	kill(t, path, 20, acknowledged)
	const mountFolder = "mount the folder"
	if said := openMounted(t, path, single, single); !strings.Contains(said, mountFolder) {
		t.Errorf("a single file, after a crash: %s", said)
	}
	if said := openMounted(t, path, path, path); !strings.Contains(said, mountFolder) {
		t.Errorf("a single file, on itself: %s", said)
	}
	if said := openMounted(t, folder, other, filepath.Join(other, "journal.db")); said != "opened\n" {
		t.Errorf("a folder: %s", said)
	}
	s := open(t, path)
	compare(t, s, acknowledged)
	if said := openMounted(t, path, single, single); !strings.Contains(said, mountFolder) {
		t.Errorf("a single file that is open: %s", said)
	}
	if said := openMounted(t, folder, other, filepath.Join(other, "journal.db")); !strings.Contains(said, sqlite.ErrInUse.Error()) {
		t.Errorf("a folder whose file is open: %s", said)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("the store suffered: %v", err)
	}
}
