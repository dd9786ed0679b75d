package callmux

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/quota"
)

// memory returns room for so many bytes.
func memory(bytes int64) *quota.Share {
	var room quota.Pool
	room.Resize(bytes, true)
	return room.Share()
}

// serve connects to the server, and tells when it has ended the connection.
func serve(s *Server, m Memory, trusted func() bool) (near net.Conn, ended <-chan struct{}) {
	near, far := net.Pipe()
	over := make(chan struct{})
	go func() { s.Serve(context.Background(), far, bufio.NewReader(far), all(m), trusted); close(over) }()
	return near, over
}

// A peer that reads no answers has so many calls under way as there may be, and what they hold is counted.
func TestAnswersThatNobodyReadsAreBounded(t *testing.T) {
	s := NewServer(func(_ context.Context, _ time.Duration, p []byte) []byte { return make([]byte, 32<<10) })
	share := memory(64 << 20)
	near, _ := serve(s, share, nil)
	defer near.Close()
	before := runtime.NumGoroutine()
	b := append(frame(nil, kindCall, 1, 3), 1, 0, 'x')
	for range 5000 {
		near.SetWriteDeadline(time.Now().Add(time.Second))
		if _, err := near.Write(b); err != nil {
			break // it takes no more
		}
	}
	if held := share.Used(); held < maxUnder/2*(32<<10) {
		t.Errorf("%d bytes are counted of %d answers of 32 KiB", held, maxUnder)
	}
	if n := runtime.NumGoroutine() - before; n > maxUnder+100 {
		t.Errorf("%d goroutines for one connection of which %d calls may be under way", n, maxUnder)
	}
}

// A frame that says more than a call may have is not taken, and what is taken grows with what comes and has to come in time.
func TestLengthsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		s.Limit(1<<20, nil)
		share := memory(1 << 30)
		for _, size := range []uint32{3 << 30, 1<<20 + 3 + frameHead - 4} {
			near, _ := serve(s, share, nil)
			near.Write(append(binary.BigEndian.AppendUint32(nil, size), kindCall, 0, 0, 0, 1, 1, 0))
			synctest.Wait()
			if n := share.Used(); n != 0 {
				t.Errorf("%d bytes are held for a frame that says %d", n, size)
			}
			near.Close()
		}
		near, _ := serve(s, share, nil)
		defer near.Close()
		near.Write(append(binary.BigEndian.AppendUint32(nil, 1<<20), kindCall, 0, 0, 0, 1, 1, 0))
		began := time.Now()
		for time.Since(began) < time.Minute {
			if _, err := near.Write([]byte{1}); err != nil {
				break
			}
			time.Sleep(time.Second)
		}
		synctest.Wait()
		if took := time.Since(began); took > arrival(1<<20)+2*time.Second || share.Used() != 0 {
			t.Errorf("a call that comes byte by byte is waited for during %s, and %d bytes are held", took, share.Used())
		}
	})
}

// A call that is longer than there may be is answered so, and not as one for which there is no memory now, as long as it comes
// in time; nothing is held of it.
func TestCallsThatAreTooLongAreToldSo(t *testing.T) {
	t.Parallel()
	p := newPair(t, echo)
	p.server.Limit(1<<10, []byte("too long"))
	for size, want := range map[int]string{1 << 10: "re:", 1<<10 + 1: "too long", 1 << 20: "too long"} {
		if answer, err := p.Call(t.Context(), "", make([]byte, size)); err != nil || !strings.HasPrefix(string(answer), want) {
			t.Errorf("%d bytes of %d: %.20q, %v", size, 1<<10, answer, err)
		}
	}
	for pause, inTime := range map[time.Duration]bool{300 * time.Millisecond: true, time.Second: false} {
		synctest.Test(t, func(t *testing.T) {
			s := NewServer(echo)
			s.Limit(1<<10, []byte("too long"))
			share := memory(1 << 30)
			near, _ := serve(s, share, nil)
			defer near.Close()
			near.Write(append(frame(nil, kindCall, 1, 30*readSize+2), 0, 0))
			for range 30 {
				time.Sleep(pause)
				if _, err := near.Write(make([]byte, readSize)); share.Used() != 0 || err != nil && inTime {
					t.Fatalf("while it comes: %v, and %d bytes are held", err, share.Used())
				}
			}
			want := append(frame(nil, kindAnswer, 1, 8), "too long"...)
			got := make([]byte, len(want))
			if _, err := io.ReadFull(near, got); (err == nil) != inTime || inTime && !bytes.Equal(got, want) {
				t.Errorf("it is answered %q, %v", got, err)
			}
		})
	}
}

// What is said of a call that was given up is told to no other one.
func TestCallsThatAreGivenUpAnswerNoOther(t *testing.T) {
	p := newPair(t, echo)
	l, err := p.shared(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	given := 0
	for range 100 {
		l.tryJoin(0)
		if answer, err, _ := l.call(answered{t.Context(), l}, "", 0, nil); err != nil {
			given++
		} else if string(answer) != "at once" {
			t.Fatalf("it is answered %q", answer)
		}
		for _, c := range l.spare {
			if len(c.done) > 0 || c.answer != nil {
				t.Fatalf("the next call begins with the answer %q", c.answer)
			}
		}
	}
	if l.leave(0, 0, nil); given == 0 {
		t.Error("none was given up")
	}
}

// answered is a context that has ended, and whose call is answered before it looks.
type answered struct {
	context.Context
	link *link
}

func (a answered) Deadline() (time.Time, bool) {
	a.link.take(kindAnswer, a.link.next, []byte("at once"))
	return time.Time{}, false
}

func (answered) Done() <-chan struct{} {
	done := make(chan struct{})
	close(done)
	return done
}

// What is short enough to share a connection is copied: whoever says it may use its memory again.
func TestWhatIsShortIsCopied(t *testing.T) {
	t.Parallel()
	for size, copied := range map[int]bool{1: true, MaxShared: true, MaxShared + 1: false} {
		w, say := newWire(nil, nil), bytes.Repeat([]byte("a"), size)
		if err := w.send(t.Context(), kindCall, 1, []byte("first"), say); err != nil {
			t.Fatal(err)
		}
		clear(say)
		if got := bytes.Count(w.pending, []byte("a")) == size; got != copied {
			t.Errorf("%d bytes are copied: %v", size, got)
		}
	}
}

// One whose calls take long, large or small ones, leaves places to others.
func TestSlowOnesLeavePlacesToOthers(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"small": 0, "of 100 KiB": 100 << 10, "large": 130 << 10} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
					if payload[0] == 's' {
						time.Sleep(30 * time.Second)
					}
					return []byte{1}
				})
				p.room.Resize(4<<30, true)
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
				defer cancel()
				for range maxLinks * maxCalls / max(1, size>>13) {
					go p.Call(ctx, "slow", []byte("slow"), make([]byte, size))
				}
				synctest.Wait()
				began := time.Now()
				_, err := p.Call(t.Context(), "quick", []byte("quick"), make([]byte, size))
				if took := time.Since(began); err != nil || took > time.Second {
					t.Errorf("a quick call of another waited %s: %v", took, err)
				}
				time.Sleep(time.Minute)
			})
		})
	}
}

// One who fills the memory leaves that of others alone, on the same connection.
func TestCallsAreInTheMemoryOfWhoeverMakesThem(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		s := NewServer(func(_ context.Context, _ time.Duration, p []byte) []byte {
			if p[0] == 's' {
				<-free
			}
			return p
		})
		long := strings.Repeat("x", maxWho+1)
		pools, asked := map[string]*quota.Share{}, []string{}
		for _, who := range []string{"slow", "quick", "", long[:maxWho]} {
			pools[who] = memory(100)
		}
		c := NewClient(func(context.Context) (io.ReadWriteCloser, error) {
			near, far := net.Pipe()
			go s.Serve(context.Background(), far, bufio.NewReader(far), func(who string) Memory { asked = append(asked, who); return pools[who] }, nil)
			return near, nil
		}, 1<<20)
		defer c.Close()
		go c.Call(t.Context(), "slow", []byte("slow"), make([]byte, 50))
		synctest.Wait()
		if n := pools["slow"].Used(); n != 54 {
			t.Errorf("%d bytes are held of a call of 54", n)
		}
		for range 2 {
			if _, err := c.Call(t.Context(), "slow", []byte("slow")); !errors.Is(err, ErrCrowded) {
				t.Errorf("beyond its memory: %v", err)
			}
			for _, who := range []string{"quick", "", long} {
				if answer, err := c.Call(t.Context(), who, []byte("x")); err != nil || string(answer) != "x" {
					t.Errorf("a call of %.10q: %q, %v", who, answer, err)
				}
			}
		}
		close(free)
		synctest.Wait()
		for who, share := range pools {
			if n := share.Used(); n != 0 {
				t.Errorf("%d bytes are held of calls of %.10q that are over", n, who)
			}
		}
		if len(asked) != len(pools) {
			t.Errorf("asked for the memory of %.10q", asked)
		}
	})
}

// A connection to which its client holds ends when it is old, as soon as its other side is trusted no more, and with a stop,
// which does not wait if nothing is under way.
func TestConnectionsEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		room := memory(64 << 20)
		var trusted atomic.Bool
		trusted.Store(true)
		var clients sync.WaitGroup
		defer clients.Wait()
		hold := func() (ended <-chan struct{}) {
			near, ended := serve(s, room, trusted.Load)
			go io.Copy(io.Discard, near)
			clients.Go(func() {
				for {
					if _, err := near.Write(append(frame(nil, kindPing, 0, 0), append(frame(nil, kindCall, 1, 2), 0, 0)...)); err != nil {
						return
					}
					time.Sleep(3 * time.Second)
				}
			})
			return ended
		}
		began := time.Now()
		select {
		case <-hold():
		case <-time.After(2 * maxAge):
		}
		if took := time.Since(began); took < maxAge || took > maxAge+grace+look {
			t.Errorf("a connection is served for %s", took)
		}
		served := hold()
		time.Sleep(time.Minute)
		trusted.Store(false)
		began = time.Now()
		<-served
		if took := time.Since(began); took > look {
			t.Errorf("whoever is trusted no more is served for %s", took)
		}
		trusted.Store(true)
		hold()
		time.Sleep(time.Minute)
		began = time.Now()
		err := s.Close(t.Context())
		if took := time.Since(began); took > 2*tail || err != nil {
			t.Errorf("with nothing under way Close took %s: %v", took, err)
		}
	})
}

// A connection whose server says that it is to end takes no new calls: they go over another one, and those under way are answered.
func TestClosingIsHeard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		free := make(chan struct{})
		p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
			if payload[0] == 'w' {
				<-free
			}
			return payload
		})
		answered := make(chan error, 1)
		go func() {
			_, err := p.Call(t.Context(), "", []byte("wait"))
			answered <- err
		}()
		synctest.Wait()
		p.server.mu.Lock()
		for e := range p.server.ends {
			e.leave("it is old", grace)
		}
		p.server.mu.Unlock()
		synctest.Wait()
		if _, err := p.Call(t.Context(), "", []byte("new")); err != nil || p.dials.Load() != 2 {
			t.Errorf("a new call: %v, after %d connections", err, p.dials.Load())
		}
		close(free)
		if err := <-answered; err != nil {
			t.Errorf("the call that was under way: %v", err)
		}
	})
}

// New calls go over a new connection when one is old, so that each of several servers behind a name gets some.
func TestConnectionsAreRenewed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, echo)
		for i, after := range []time.Duration{0, renewal - time.Second, time.Second} {
			time.Sleep(after)
			if _, err := p.Call(t.Context(), "", []byte("x")); err != nil || p.dials.Load() != []int64{1, 1, 2}[i] {
				t.Errorf("call %d: %v, over connection %d", i, err, p.dials.Load())
			}
		}
	})
}

// A connection that cannot be made is given up, so that whoever waits for it hears so, and the next call tries again.
func TestDialsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c := NewClient(func(ctx context.Context) (io.ReadWriteCloser, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}, 1<<20)
		defer c.Close()
		for _, size := range []int{1, 1 << 20} {
			began := time.Now()
			_, err := c.Call(t.Context(), "", make([]byte, size))
			if took := time.Since(began); !errors.Is(err, ErrUnreached) || took != dialTimeout {
				t.Errorf("a call of %d bytes: after %s %v", size, took, err)
			}
		}
	})
}

// An answer that is longer than there is room for fails its call, and no other one; a frame of it that no server sends ends the
// connection at once.
func TestAnswersAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
			return make([]byte, 4<<20+int(payload[0]))
		})
		for i, want := range []error{nil, ErrBroken, nil} {
			if answer, err := p.Call(t.Context(), "", []byte{byte(i % 2)}); !errors.Is(err, want) || err == nil && len(answer) != 4<<20 {
				t.Errorf("call %d: %d bytes, %v", i, len(answer), err)
			}
		}
		if n := p.dials.Load(); n != 1 {
			t.Errorf("over %d connections", n)
		}
		near, far := net.Pipe()
		go func() {
			far.Read(make([]byte, 100)) // the call
			far.Write(append(frame(nil, kindPart, 1, maxPart+1), make([]byte, maxPart)...))
		}()
		liar := NewClient(func(context.Context) (io.ReadWriteCloser, error) { return near, nil }, 1<<20)
		defer liar.Close()
		began := time.Now()
		_, err := liar.Call(t.Context(), "", []byte("x"))
		if took := time.Since(began); !errors.Is(err, ErrBroken) || took > 0 {
			t.Errorf("a frame of %d bytes: after %s %v", maxPart+1, took, err)
		}
	})
}

// A server has so many connections, and ends those that are more.
func TestConnectionsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		room := memory(1 << 20)
		connect := func() (near net.Conn, ended <-chan struct{}) {
			near, ended = serve(s, room, nil)
			t.Cleanup(func() { near.Close() })
			synctest.Wait()
			return near, ended
		}
		first, ended := connect()
		for range MaxConnections - 1 {
			connect()
		}
		_, more := connect()
		select {
		case <-more:
		default:
			t.Errorf("%d connections are served", MaxConnections+1)
		}
		first.Close()
		<-ended
		_, another := connect()
		select {
		case <-another:
			t.Error("where one has ended no other one is served")
		default:
		}
	})
}

// An answer that is queued is written before the server ends its connection, however late the other side reads it.
func TestQueuedAnswersAreWritten(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		near, _ := serve(s, memory(1<<20), nil)
		defer near.Close()
		near.Write(append(frame(nil, kindCall, 1, 3), 0, 0, 'x'))
		synctest.Wait()
		closed := make(chan error, 1)
		go func() { closed <- s.Close(t.Context()) }()
		time.Sleep(4 * tail)
		said, err := io.ReadAll(near)
		if err != nil || !bytes.Contains(said, []byte("re:x")) {
			t.Errorf("it read %q, %v", said, err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
	})
}

// Whoever says that he is alive and reads nothing holds no answers for long.
func TestWhoReadsNothingIsGivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		near, ended := serve(s, memory(1<<20), nil)
		near.Write(append(frame(nil, kindCall, 1, 3), 0, 0, 'x'))
		began := time.Now()
		for err := error(nil); err == nil; {
			time.Sleep(3 * time.Second)
			_, err = near.Write(frame(nil, kindPing, 0, 0))
		}
		if took := time.Since(began); took > stalled+3*time.Second {
			t.Errorf("it is served for %s", took)
		}
		<-ended
	})
}

// The server waits for calls whose connection has ended.
func TestCloseWaitsForCallsWithoutConnection(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Bool
		p := newPair(t, func(ctx context.Context, _ time.Duration, payload []byte) []byte {
			running.Store(true)
			time.Sleep(5 * time.Second)
			running.Store(false)
			return nil
		})
		go p.Call(t.Context(), "", []byte("x"))
		synctest.Wait()
		p.cut()
		synctest.Wait()
		err := p.server.Close(t.Context())
		if running.Load() {
			t.Errorf("the server says that it is closed, %v, and a call is being carried out", err)
		}
		time.Sleep(10 * time.Second)
	})
}

// A connection that takes no new calls any more is joined by none.
func TestNobodyJoinsWhatIsRetired(t *testing.T) {
	t.Parallel()
	p := newPair(t, echo)
	l, err := p.shared(t.Context(), 1)
	if err != nil {
		t.Fatal(err)
	}
	l.retire()
	if l.tryJoin(1) {
		t.Error("a retired connection is joined")
	}
	l.leave(0, 1, nil)
}

// While one of two servers behind a name has vanished, new calls go to the other one before it is given up.
func TestWhatIsSilentTakesNoNewCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := NewServer(echo)
		room, dials := memory(64<<20), 0
		c := NewClient(func(context.Context) (io.ReadWriteCloser, error) {
			if dials++; dials == 1 {
				near, far := net.Pipe()
				go io.Copy(io.Discard, far)
				return near, nil
			}
			near, _ := serve(s, room, nil)
			return near, nil
		}, 1<<20)
		defer c.Close()
		for i := range 20 {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			_, err := c.Call(ctx, "", []byte("x"))
			cancel()
			if err == nil {
				if i > 2 {
					t.Errorf("%d calls in a row went to a connection that answers nothing", i)
				}
				return
			}
		}
		t.Error("no call was answered")
	})
}

// A connection that was being made when there were to be new ones, as after a reload of certificates, gets no call.
func TestADialIsAsNewAsItsBeginning(t *testing.T) {
	t.Parallel()
	for name, size := range map[string]int{"shared": 1, "alone": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := NewServer(func(context.Context, time.Duration, []byte) []byte { return []byte("new") })
				old := NewServer(func(context.Context, time.Duration, []byte) []byte { return []byte("old") })
				room, free, dials := memory(64<<20), make(chan struct{}), 0
				c := NewClient(func(context.Context) (io.ReadWriteCloser, error) {
					of := s
					if dials++; dials == 1 {
						<-free
						of = old
					}
					near, _ := serve(of, room, nil)
					return near, nil
				}, 1<<20)
				defer c.Close()
				go func() {
					synctest.Wait()
					c.Renew()
					close(free)
				}()
				if answer, err := c.Call(t.Context(), "", make([]byte, size)); string(answer) != "new" || err != nil || dials != 2 {
					t.Errorf("%q, %v, after %d connections", answer, err, dials)
				}
			})
		})
	}
}
