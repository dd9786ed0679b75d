package provider

import (
	"errors"
	"fmt"
	"net/url"
	"time"
)

// Settings is what one endpoint adds to a [Spec].
type Settings struct {
	// Secrets are the secrets that are valid now, in the form that the provider hands out. At least
	// one; several while a secret is being rotated. Every one is tried.
	Secrets []string
	// URL is the address that the provider calls, exactly as registered with it. Only schemes that
	// sign the URL need it (Square). Empty means [hookonce.Request.URL], which is right only where
	// no proxy changes scheme, host or path.
	URL string
	// Tolerance is how far the signed time may be from the time of arrival, behind and ahead. Zero
	// means the provider's own. It is an error for a provider that signs no time.
	Tolerance time.Duration
}

// Format writes nothing but the number of secrets, so that settings can be logged by mistake.
func (s Settings) Format(f fmt.State, _ rune) {
	fmt.Fprintf(f, "{%d secrets, URL %q, tolerance %v}", len(s.Secrets), s.URL, s.Tolerance)
}

// apply checks the settings against the specification, which must be the caller's own, and puts the
// tolerance into it.
func (s Settings) apply(spec Spec) error {
	if len(s.Secrets) == 0 {
		return fmt.Errorf("no secret is given; it needs %s", spec.Secret)
	}
	if s.URL != "" {
		if u, err := url.Parse(s.URL); err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
			return fmt.Errorf("the URL %q is not an absolute http or https URL", s.URL)
		}
	}
	switch {
	case s.Tolerance < 0:
		return fmt.Errorf("the tolerance %v is negative", s.Tolerance)
	case s.Tolerance > 0:
		return spec.tolerate(s.Tolerance)
	}
	return nil
}

// tolerate sets another tolerance. The specification must be the caller's own (see withDefaults).
func (s Spec) tolerate(d time.Duration) error {
	timed := false
	for _, v := range s.Verify {
		if v.Time != nil {
			v.Time.Past, v.Time.Future, timed = d, d, true
		}
	}
	if !timed {
		return errors.New("a tolerance is set, but this provider signs no time; remove it")
	}
	return nil
}
