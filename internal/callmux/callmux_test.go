package callmux

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hookonce/hookonce/internal/quota"
)

// pair is a client of a server, over pipes that can be cut.
type pair struct {
	*Client
	server *Server
	room   quota.Pool
	dials  atomic.Int64
	mu     sync.Mutex
	conns  []net.Conn
}

func newPair(t *testing.T, handle func(ctx context.Context, left time.Duration, payload []byte) []byte) *pair {
	t.Helper()
	p := &pair{server: NewServer(handle)}
	p.room.Resize(64<<20, true)
	share := p.room.Share()
	p.Client = NewClient(func(context.Context) (io.ReadWriteCloser, error) {
		p.dials.Add(1)
		near, far := net.Pipe()
		p.mu.Lock()
		p.conns = append(p.conns, near)
		p.mu.Unlock()
		go p.server.Serve(context.Background(), far, bufio.NewReader(far), all(share), nil)
		return near, nil
	}, 4<<20)
	t.Cleanup(func() {
		p.Client.Close()
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if err := p.server.Close(ctx); err != nil {
			t.Error(err)
		}
		if n := share.Used(); n != 0 {
			t.Errorf("%d bytes are held of calls that are over", n)
		}
	})
	return p
}

// all is a memory that whoever makes calls uses.
func all(m Memory) func(string) Memory { return func(string) Memory { return m } }

func (p *pair) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		c.Close()
	}
}

func echo(_ context.Context, _ time.Duration, payload []byte) []byte {
	return append([]byte("re:"), payload...)
}

// Each call gets its own answer, whatever their lengths, over few connections.
func TestCallsGetTheirAnswers(t *testing.T) {
	t.Parallel()
	p := newPair(t, echo)
	var group sync.WaitGroup
	for i := range 300 {
		group.Go(func() {
			size := []int{0, 10, 5000, MaxShared - 100, MaxShared + 1, 700 << 10}[i%6]
			if i >= 30 {
				size %= 5000
			}
			say := bytes.Repeat([]byte{byte(i)}, size)
			answer, err := p.Call(t.Context(), "", fmt.Appendf(nil, "%d ", i), say)
			if want := append(fmt.Appendf(nil, "re:%d ", i), say...); err != nil || !bytes.Equal(answer, want) {
				t.Errorf("call %d: %d bytes, %v; want %d", i, len(answer), err, len(want))
			}
		})
	}
	group.Wait()
	if n := p.dials.Load(); n > 20 {
		t.Errorf("%d connections for 300 calls of which 10 are alone", n)
	}
}

// A call that takes long, or is large, or whose answer is, holds nobody up: others are answered while none of these is.
func TestNobodyWaitsForANeighbour(t *testing.T) {
	t.Parallel()
	free := make(chan struct{})
	var entered sync.WaitGroup
	entered.Add(20)
	p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
		if payload[0] == 's' {
			entered.Done()
			<-free
			return make([]byte, 1<<20)
		}
		return payload
	})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			answer, err := p.Call(t.Context(), "", append([]byte("slow"), make([]byte, (i%2)*(1<<20))...))
			if err != nil || len(answer) != 1<<20 {
				t.Errorf("a slow call: %d bytes, %v", len(answer), err)
			}
		})
	}
	entered.Wait()
	for range 50 {
		if answer, err := p.Call(t.Context(), "", []byte("quick")); err != nil || string(answer) != "quick" {
			t.Fatalf("beside slow calls: %q, %v", answer, err)
		}
	}
	close(free)
	group.Wait()
}

// A connection that ends in the middle is an unknown outcome for those whose answers did not come, and for nobody else; the
// next call goes over another one.
func TestAnEndIsAnUnknownOutcome(t *testing.T) {
	t.Parallel()
	entered, free := make(chan struct{}), make(chan struct{})
	p := newPair(t, func(ctx context.Context, _ time.Duration, payload []byte) []byte {
		if string(payload) == "wait" {
			close(entered)
			<-ctx.Done() // which ends with the connection
			<-free
		}
		return payload
	})
	if _, err := p.Call(t.Context(), "", []byte("before")); err != nil {
		t.Fatal(err)
	}
	failed := make(chan error)
	go func() {
		_, err := p.Call(t.Context(), "", []byte("wait"))
		failed <- err
	}()
	<-entered
	p.cut()
	if err := <-failed; !errors.Is(err, ErrBroken) {
		t.Errorf("cut off: %v", err)
	}
	close(free)
	if answer, err := p.Call(t.Context(), "", []byte("after")); err != nil || string(answer) != "after" {
		t.Errorf("afterwards: %q, %v", answer, err)
	}
	if n := p.dials.Load(); n != 2 {
		t.Errorf("%d connections; want one, and another one after its end", n)
	}
}

// What has no memory is refused, and its neighbours on the same connection are not.
func TestCallsWithoutMemoryAreRefused(t *testing.T) {
	t.Parallel()
	entered, free := make(chan struct{}), make(chan struct{})
	p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
		if payload[0] == 'w' {
			close(entered)
			<-free
		}
		return payload[:1]
	})
	p.room.Resize(200<<10, true)
	held := make(chan error)
	go func() {
		_, err := p.Call(t.Context(), "", append([]byte("wait"), make([]byte, 90<<10)...))
		held <- err
	}()
	<-entered
	for _, size := range []int{100 << 10, 1 << 20} {
		if _, err := p.Call(t.Context(), "", make([]byte, size)); !errors.Is(err, ErrCrowded) {
			t.Errorf("%d bytes beside 90 KiB of 200: %v", size, err)
		}
	}
	if _, err := p.Call(t.Context(), "", []byte("small")); err != nil {
		t.Errorf("a small one: %v", err)
	}
	close(free)
	if err := <-held; err != nil {
		t.Error(err)
	}
}

// A server that closes answers what is under way, and takes nothing new.
func TestCloseAnswersWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	entered, free := make(chan struct{}), make(chan struct{})
	p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
		close(entered)
		<-free
		return payload
	})
	answered := make(chan error)
	go func() {
		answer, err := p.Call(t.Context(), "", []byte("under way"))
		if err == nil && string(answer) != "under way" {
			err = fmt.Errorf("%q", answer)
		}
		answered <- err
	}()
	<-entered
	closed := make(chan error)
	go func() { closed <- p.server.Close(t.Context()) }()
	select {
	case err := <-closed:
		t.Fatalf("it closed beside a call: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	close(free)
	if err := <-answered; err != nil {
		t.Errorf("the call: %v", err)
	}
	if err := <-closed; err != nil {
		t.Error(err)
	}
	if _, err := p.Call(t.Context(), "", []byte("too late")); err == nil {
		t.Error("a closed server answers")
	}
}

// The other side hears how much time there is, and whoever asks waits no longer.
func TestDeadlinesAreTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		told, free := make(chan time.Duration, 2), make(chan struct{})
		p := newPair(t, func(_ context.Context, left time.Duration, payload []byte) []byte {
			told <- left
			<-free
			return payload
		})
		defer close(free)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		began := time.Now()
		if _, err := p.Call(ctx, "", []byte("x")); !errors.Is(err, ErrBroken) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after its time: %v", err)
		}
		if took := time.Since(began); took != 1500*time.Millisecond {
			t.Errorf("it waited for %s", took)
		}
		if left := <-told; left != 1500*time.Millisecond {
			t.Errorf("it was told of %s", left)
		}
	})
}

// A connection whose other side has vanished is given up, with the calls on it; one that answers slowly is not.
func TestSilenceIsTheEnd(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := newPair(t, func(_ context.Context, _ time.Duration, payload []byte) []byte {
			time.Sleep(time.Minute)
			return payload
		})
		if _, err := p.Call(t.Context(), "", []byte("slow")); err != nil {
			t.Errorf("a slow call: %v", err)
		}
		for _, size := range []int{1, 1 << 20} {
			near, far := net.Pipe()
			go io.Copy(io.Discard, far) // which takes everything, and says nothing
			vanished := NewClient(func(context.Context) (io.ReadWriteCloser, error) { return near, nil }, 1<<20)
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			began := time.Now()
			if _, err := vanished.Call(ctx, "", make([]byte, size)); !errors.Is(err, ErrBroken) {
				t.Errorf("a call of nobody: %v", err)
			}
			if took := time.Since(began); took < silence || took > silence+pingAfter {
				t.Errorf("%d bytes: it was given up after %s", size, took)
			}
			cancel()
			vanished.Close()
		}
	})
}

// Whatever is no frame ends its connection, and the server goes on.
func TestNonsenseEndsTheConnection(t *testing.T) {
	t.Parallel()
	p := newPair(t, echo)
	share := p.room.Share()
	frameOf := func(kind byte, size uint32, payload string) []byte {
		b := binary.BigEndian.AppendUint32(nil, size)
		return append(append(b, kind, 0, 0, 0, 1), payload...)
	}
	for name, said := range map[string][]byte{
		"short": frameOf(kindCall, 1, ""), "a kind": frameOf(99, 5, ""), "an answer": frameOf(kindAnswer, 6, "x"),
		"no time": frameOf(kindCall, 5, ""), "nobody": frameOf(kindCall, 6, "\x00"), "a name that is longer than the call": frameOf(kindCall, 8, "\x00\x02a"),
		"a name that is too long": frameOf(kindCall, 500, "\x00\x80\x02"), "a time without end": frameOf(kindCall, 50, strings.Repeat("\xff", 20)), "half a call": frameOf(kindCall, 50, "\x00abc"), "a request": []byte("GET / HTTP/1.1\r\n\r\n"),
	} {
		near, far := net.Pipe()
		done := make(chan struct{})
		go func() { p.server.Serve(context.Background(), far, bufio.NewReader(far), all(share), nil); close(done) }()
		near.SetDeadline(time.Now().Add(10 * time.Second))
		near.Write(said)
		if name == "half a call" {
			near.Close()
		}
		if n, err := near.Read(make([]byte, 1)); err == nil {
			t.Errorf("%s is answered %d bytes", name, n)
		}
		near.Close()
		<-done
	}
	if n := share.Used(); n != 0 {
		t.Errorf("%d bytes are held", n)
	}
	if _, err := p.Call(t.Context(), "", []byte("x")); err != nil {
		t.Error(err)
	}
}
