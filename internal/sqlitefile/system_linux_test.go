package sqlitefile

import (
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func TestNetworkFileSystems(t *testing.T) {
	for magic, want := range map[uint32]bool{unix.NFS_SUPER_MAGIC: true, unix.CIFS_SUPER_MAGIC: true, unix.EXT4_SUPER_MAGIC: false, unix.XFS_SUPER_MAGIC: false} {
		if kind, network := kindOf(magic); network != want || kind == "" {
			t.Errorf("%#x is %q, on a network: %v", magic, kind, network)
		}
	}
	if _, network, err := FileSystem(t.TempDir()); err != nil || network {
		t.Errorf("a temporary folder: on a network %v, %v", network, err)
	}
	if _, _, err := FileSystem(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a folder that is not there has a file system")
	}
}
