package quota_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"

	"github.com/hookonce/hookonce/internal/quota"
)

// What may be added is the most that leaves as much free as is held then, and a half of what is free for whoever holds nothing.
func TestMoreIsTheMostThatLeavesEnough(t *testing.T) {
	for own := range int64(20) {
		for free := int64(-2); free < 60; free++ {
			n := quota.More(own, free)
			switch {
			case n < 0:
				t.Fatalf("More(%d, %d) = %d", own, free, n)
			case own == 0 && n != max(0, (free+1)/2):
				t.Fatalf("More(0, %d) = %d, want a half", free, n)
			case own > 0 && n > 0 && n+quota.Leave(own, n) > free:
				t.Fatalf("More(%d, %d) = %d leaves too little", own, free, n)
			case own > 0 && n+1+quota.Leave(own, n+1) <= free:
				t.Fatalf("More(%d, %d) = %d, and one more would leave enough", own, free, n)
			}
		}
	}
}

// However many take as much as they can, one by one or all that they may at once, and give nothing back: the next gets something.
func TestThereIsAlwaysSomethingLeft(t *testing.T) {
	for name, take := range map[string]func(s *quota.Share, p *quota.Pool){
		"one by one": func(s *quota.Share, _ *quota.Pool) {
			for s.Take(1) {
			}
		},
		"all that they may": func(s *quota.Share, p *quota.Pool) {
			for n := quota.More(s.Used(), p.Size()-p.Used()); n > 0 && s.Take(n); n = quota.More(s.Used(), p.Size()-p.Used()) {
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			var p quota.Pool
			p.Resize(1000, true)
			for i := range 8 {
				s := p.Share()
				free := p.Size() - p.Used()
				if take(s, &p); s.Used() == 0 {
					t.Fatalf("number %d found nothing of %d", i+1, free)
				}
				if left := p.Size() - p.Used(); left < s.Used()-2 {
					t.Errorf("number %d holds %d and has left %d", i+1, s.Used(), left)
				}
			}
		})
	}
}

func TestTake(t *testing.T) {
	for name, c := range map[string]struct {
		several     bool
		others, own int64
		n, beside   int64
		want        bool
	}{
		"one alone takes all":                          {false, 0, 40, 60, 0, true},
		"one alone takes no more than there is":        {false, 0, 40, 61, 0, false},
		"too much while nobody holds anything":         {true, 0, 0, 500, 0, true},
		"too much while somebody holds something":      {true, 1, 0, 100, 0, false},
		"whoever holds nothing gets all that is free":  {true, 40, 0, 60, 0, true},
		"whoever holds something leaves as much":       {true, 0, 20, 30, 0, true},
		"whoever holds something leaves no less":       {true, 0, 20, 31, 0, false},
		"within a share the same rule holds":           {false, 0, 20, 30, 20, true},
		"within a share nobody leaves less":            {false, 0, 20, 31, 20, false},
		"within one of several shares both are left":   {true, 0, 20, 13, 20, true},
		"within one of several shares neither is less": {true, 0, 20, 14, 20, false},
	} {
		t.Run(name, func(t *testing.T) {
			var p quota.Pool
			p.Resize(1000, false)
			other, s := p.Share(), p.Share()
			if !other.Take(c.others) || !s.Take(c.own) {
				t.Fatal("no room in an empty pool")
			}
			p.Resize(100, c.several)
			if got := s.TakeBeside(c.n, c.beside); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
			want := c.own
			if c.want {
				want += c.n
			}
			if s.Used() != want || p.Used() != want+c.others {
				t.Errorf("the share holds %d, and all %d; want %d and %d", s.Used(), p.Used(), want, want+c.others)
			}
		})
	}
}

// What is given back belongs to those who have a claim, and a claim that is given up takes nothing.
func TestClaim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var p quota.Pool
		p.Resize(100, true)
		first, second, third := p.Share(), p.Share(), p.Share()
		if !first.Take(90) {
			t.Fatal("no room in an empty pool")
		}
		claimed := make(chan error, 1)
		go func() { claimed <- second.Claim(t.Context(), 50) }()
		synctest.Wait()
		ctx, cancel := context.WithCancelCause(t.Context())
		gone := errors.New("gone")
		cancel(gone)
		if err := third.Claim(ctx, 60); !errors.Is(err, gone) || third.Used() != 0 {
			t.Errorf("a claim that was given up: error %v, holds %d", err, third.Used())
		}
		first.Give(30)
		synctest.Wait()
		select {
		case err := <-claimed:
			t.Fatalf("claimed 50 of the 40 that are free: %v", err)
		default:
		}
		if third.Take(20) {
			t.Error("took what somebody has a claim to")
		}
		first.Give(10)
		if err := <-claimed; err != nil {
			t.Error(err)
		}
		if got := fmt.Sprint(first.Used(), second.Used(), third.Used(), p.Used()); got != "50 50 0 100" {
			t.Errorf("they hold %s", got)
		}
	})
}
