package main

import (
	"net"
	"path/filepath"
	"testing"
)

func TestServiceManagerIsTold(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "notify")
	manager, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: socket, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer manager.Close()
	if err := notifyReady(&env{environ: []string{"NOTIFY_SOCKET=" + socket}}); err != nil {
		t.Fatal(err)
	}
	told := make([]byte, 100)
	n, err := manager.Read(told)
	if err != nil || string(told[:n]) != "READY=1" {
		t.Errorf("the manager was told %q, %v", told[:n], err)
	}
	if err := notifyReady(&env{}); err != nil {
		t.Errorf("without a manager: %v", err)
	}
	if err := notifyReady(&env{environ: []string{"NOTIFY_SOCKET=" + socket + ".gone"}}); err == nil {
		t.Error("a manager that is gone was told")
	}
}
