package redisstore_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"strconv"
	"testing"

	"github.com/hookonce/hookonce"
	"github.com/hookonce/hookonce/internal/testserver/cutproxy"
	"github.com/hookonce/hookonce/redisstore"
	"github.com/hookonce/hookonce/storetest"
)

// faulty is the configuration that checks histories while a proxy cuts connections that ask for a script that writes.
func faulty(t testing.TB, server string) storetest.HistoryConfig {
	p := cutproxy.New(t, server, commands)
	cfg := suite(p.Addr())
	return storetest.HistoryConfig{Open: func(t testing.TB) (func(storetest.Options) hookonce.Store, func(bool)) {
		return cfg.Open(t), func(persisted bool) { p.Fail(writes, persisted) }
	}}
}

// writes recognises a script that the server knows and that is not the one that only reads.
func writes(command []byte) bool {
	return bytes.Contains(command, []byte("evalsha")) && !bytes.Contains(command, []byte(redisstore.LookupHash))
}

// commands reads what a client of Redis sends: arrays of strings.
func commands(client io.Reader) cutproxy.Reader {
	in := bufio.NewReader(client)
	return func() ([]byte, bool, error) {
		command, err := in.ReadBytes('\n')
		if err != nil {
			return nil, false, err
		}
		n, err := size(command, '*')
		for ; n > 0 && err == nil; n-- {
			command, err = appendString(in, command)
		}
		return command, true, err
	}
}

func appendString(in *bufio.Reader, command []byte) ([]byte, error) {
	head, err := in.ReadBytes('\n')
	if err != nil {
		return nil, err
	}
	n, err := size(head, '$')
	if err != nil {
		return nil, err
	}
	text := make([]byte, n+len("\r\n"))
	_, err = io.ReadFull(in, text)
	return append(append(command, head...), text...), err
}

func size(head []byte, kind byte) (int, error) {
	if len(head) < 3 || head[0] != kind {
		return 0, fmt.Errorf("%q is not the head of a command", head)
	}
	return strconv.Atoi(string(bytes.TrimSpace(head[1:])))
}
