package sqlitefile

import (
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// mountPoints returns where something is mounted, as this process sees it; nothing if that is not known.
func mountPoints() []string {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil
	}
	return points(string(text))
}

// FileSystem says what kind of file system a folder is on, and whether it is one that several machines share.
func FileSystem(dir string) (kind string, network bool, err error) {
	var s unix.Statfs_t
	if err := unix.Statfs(dir, &s); err != nil {
		return "", false, fmt.Errorf("%s: %w", dir, err)
	}
	kind, network = kindOf(uint32(s.Type)) // whose type differs between processors
	return kind, network, nil
}

// kindOf knows the numbers of statfs(2) that several machines may share.
func kindOf(magic uint32) (kind string, network bool) {
	shared := map[uint32]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS", unix.SMB2_SUPER_MAGIC: "SMB",
		unix.AFS_SUPER_MAGIC: "AFS", unix.CEPH_SUPER_MAGIC: "Ceph", unix.OCFS2_SUPER_MAGIC: "OCFS2",
	}
	if kind, ok := shared[magic]; ok {
		return kind, true
	}
	return fmt.Sprintf("a local file system (%#x)", magic), false
}
