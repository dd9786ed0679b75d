//go:build linux

package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
)

// sink is a destination that costs next to nothing: it reads requests off the wire, counts POSTs and
// answers 200. A GET is answered with the count.
type sink struct{ posts atomic.Int64 }

func serveSink() error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	s := new(sink)
	go s.accept(l)
	ready("http://" + l.Addr().String() + "/")
	return nil
}

func (s *sink) accept(l net.Listener) {
	for {
		c, err := l.Accept()
		if err != nil {
			return
		}
		go s.serve(c)
	}
}

func (s *sink) serve(c net.Conn) {
	defer c.Close()
	in := bufio.NewReaderSize(c, 16<<10)
	for {
		post, err := swallow(in)
		if err != nil {
			return
		}
		answer := "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"
		if !post {
			count := strconv.FormatInt(s.posts.Load(), 10)
			answer = fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(count), count)
		}
		if post {
			s.posts.Add(1)
		}
		if _, err := io.WriteString(c, answer); err != nil {
			return
		}
	}
}

// swallow reads one request and reports whether it is a POST.
func swallow(in *bufio.Reader) (post bool, err error) {
	length := 0
	for first := true; ; first = false {
		line, err := in.ReadSlice('\n')
		if err != nil {
			return false, err
		}
		line = bytes.TrimRight(line, "\r\n")
		if first {
			post = bytes.HasPrefix(line, []byte("POST "))
			continue
		}
		if len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if bytes.EqualFold(name, []byte("Content-Length")) {
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return false, err
			}
		}
		if bytes.EqualFold(name, []byte("Transfer-Encoding")) {
			return false, errors.New("the sink reads no chunks")
		}
	}
	_, err = in.Discard(length)
	return post, err
}

// counted asks a sink for its count.
func counted(address string) (int64, error) {
	res, err := http.Get(address)
	if err != nil {
		return 0, err
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		return 0, err
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}
