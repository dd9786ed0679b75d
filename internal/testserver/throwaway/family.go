package throwaway

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// SignalFamily signals a server's process and those that it started, all at once as far as others can tell: a
// server's child goes on answering for a moment after its parent is gone. The child except is spared; 0: none is.
func SignalFamily(pid, except int, signal syscall.Signal) error {
	if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil { // so that it starts no more
		return err
	}
	// The signal is only on its way: a child that it starts meanwhile would live on, may wait for a lock of one
	// that is dead, and would keep the next server from its memory.
	for deadline := time.Now().Add(time.Minute); running(pid) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	children, err := childrenOf(pid)
	for _, child := range children {
		if child == except {
			continue
		}
		if e := syscall.Kill(child, signal); e != nil && !errors.Is(e, syscall.ESRCH) {
			err = errors.Join(err, e)
		}
	}
	return errors.Join(err, syscall.Kill(pid, signal))
}

// running reports whether the process is neither stopped nor gone, on systems that have /proc; false on others.
func running(pid int) bool {
	state := stateOf(pid)
	return state != "" && !strings.ContainsAny(state, "TtZX")
}

// stateOf returns the letter for what a process does, on systems that have /proc; "" on others, and for none.
func stateOf(pid int) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	state := strings.TrimSpace(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	return state[:min(1, len(state))]
}

// Dead reports whether a process has ended, also one whose parent has not taken note of that: until then it has a number. On
// systems without /proc only one that has none is known to have ended.
func Dead(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.ContainsAny(stateOf(pid), "ZX")
}

// childrenOf returns the processes whose parent is pid, on systems that have /proc; none on others.
func childrenOf(pid int) (children []int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it ended meanwhile
		}
		// PID (NAME) STATE PARENT ..., where the name may contain anything.
		_, rest, _ := strings.Cut(string(text[strings.LastIndexByte(string(text), ')')+1:]), " ")
		if fields := strings.Fields(rest); len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(file)))
			children = append(children, child)
		}
	}
	return children, err
}
