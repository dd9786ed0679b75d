package notify

import (
	"crypto/x509"
	"testing"
	"time"
)

// SetSendTime has messages given up after d, until the test ends.
func SetSendTime(t *testing.T, d time.Duration) {
	before := sendTime
	sendTime = d
	t.Cleanup(func() { sendTime = before })
}

// TrustMail has mail servers trusted for which roots vouch, until the test ends.
func TrustMail(t *testing.T, roots *x509.CertPool) {
	mailRoots = roots
	t.Cleanup(func() { mailRoots = nil })
}

// ChatSchemes and Shapes are for the page, Limits is what texts are held against.
var (
	ChatSchemes = chatSchemes
	Shapes      = shapes
	Limits      = limits
)
