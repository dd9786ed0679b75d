package deliver

import (
	"encoding/base64"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"time"
)

// destination is a [Destination] made ready for use.
type destination struct {
	url           *url.URL
	authorization string // from the user and password of the address
	timeout       time.Duration
	schedule      Schedule
}

func newDestination(s Destination) (*destination, error) {
	u, err := url.Parse(s.URL)
	if err != nil {
		var cause *url.Error // its text repeats the address, which may hold a password
		if errors.As(err, &cause) {
			err = cause.Err
		}
		return nil, fmt.Errorf("the address can not be read: %w", err)
	}
	if (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" {
		return nil, errors.New("the address must begin with http:// or https:// and name a host")
	}
	d := &destination{url: u, timeout: s.Timeout, schedule: s.Schedule}
	if d.timeout == 0 {
		d.timeout = DefaultTimeout
	}
	if d.schedule == nil {
		d.schedule = DefaultSchedule()
	}
	if u.User != nil {
		password, _ := u.User.Password()
		d.authorization = "Basic " + base64.StdEncoding.EncodeToString([]byte(u.User.Username()+":"+password))
		u.User = nil
	}
	return d, nil
}

// newTransport returns a transport that can keep one connection open for every worker. It knows no
// proxy and no cookies, and leaves the encoding of answers alone, which are hardly read.
func newTransport(workers int) *http.Transport {
	dialer := &net.Dialer{Timeout: 5 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		DialContext:            dialer.DialContext,
		ForceAttemptHTTP2:      true,
		DisableCompression:     true,
		MaxIdleConnsPerHost:    workers,
		IdleConnTimeout:        90 * time.Second,
		TLSHandshakeTimeout:    5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
	}
}
