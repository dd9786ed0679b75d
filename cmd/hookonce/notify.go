package main

import (
	"fmt"
	"net"

	"github.com/hookonce/hookonce/internal/settings"
)

// notifyReady tells the service manager that started the program, if it asked to be told, that it serves:
// sd_notify(3), for units of Type=notify. Whoever waits for "systemctl start" then waits for the gateway, and hears
// that it failed.
func notifyReady(w *env) error {
	path := settings.Lookup(w.environ, "NOTIFY_SOCKET")
	if path == "" {
		return nil
	}
	conn, err := net.DialUnix("unixgram", nil, &net.UnixAddr{Name: path, Net: "unixgram"})
	if err == nil {
		defer conn.Close()
		_, err = conn.Write([]byte("READY=1"))
	}
	if err != nil {
		return fmt.Errorf("the service manager could not be told that the gateway runs: %w; it listens at NOTIFY_SOCKET, or wants Type=exec", err)
	}
	return nil
}
