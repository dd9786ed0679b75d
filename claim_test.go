package hookonce_test

import (
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/hookonce/hookonce"
)

func TestFailureKeepsWhatCanBeStored(t *testing.T) {
	const max, lock = hookonce.MaxErrorLen, "\U0001F512"
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{"card declined", "card declined"},
		{"a\x00b\xffc", "a\uFFFDb\uFFFDc"},
		{strings.Repeat("x", max), strings.Repeat("x", max)},
		{strings.Repeat("x", max+1), strings.Repeat("x", max)},
		{"ab" + strings.Repeat(lock, max), "ab" + strings.Repeat(lock, (max-2)/4)},
	} {
		if got := (hookonce.Failure{Err: errors.New(c.text)}).Text(); got != c.want {
			t.Errorf("the text of %.40q is %.40q (%d bytes), want %.40q (%d bytes)", c.text, got, len(got), c.want, len(c.want))
		}
	}
	if got := (hookonce.Failure{}).Text(); got != "" {
		t.Errorf("no error has the text %q", got)
	}
}

func FuzzFailureText(f *testing.F) {
	for _, seed := range []string{"", "card declined", "\x00\xff", strings.Repeat("ä", hookonce.MaxErrorLen)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got := hookonce.Failure{Err: errors.New(text)}.Text()
		if len(got) > hookonce.MaxErrorLen || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Errorf("%q cannot be stored", got)
		}
	})
}

func TestFailureState(t *testing.T) {
	for dead, want := range map[bool]hookonce.State{false: hookonce.StateFailed, true: hookonce.StateDead} {
		if got := (hookonce.Failure{Dead: dead}).State(); got != want {
			t.Errorf("dead %v: state %s, want %s", dead, got, want)
		}
	}
}

// Whoever looks at the error alone must not take work that is held for work that is done.
func TestVerdictErr(t *testing.T) {
	for v, want := range map[hookonce.Verdict]error{
		hookonce.Acquired: nil, hookonce.Duplicate: nil, hookonce.Busy: hookonce.ErrBusy, hookonce.Unkeyed: nil,
		hookonce.Pinned: hookonce.ErrPinned,
	} {
		if err := v.Err(); err != want {
			t.Errorf("%v: %v, want %v", v, err, want)
		}
	}
}
