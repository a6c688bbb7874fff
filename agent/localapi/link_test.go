package localapi

import (
	"context"
	"errors"
	"net"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	testclock "k8s.io/utils/clock/testing"
)

func TestLink(t *testing.T) {
	refused := &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}
	answered := func(l *Link) { l.Answered() }
	anew := func(l *Link) { l.Anew() }
	failed := func(err error) func(*Link) { return func(l *Link) { l.Failed(err) } }
	type step struct {
		after time.Duration
		do    func(*Link)
	}
	tests := map[string]struct {
		steps []step
		want  []State // entered, in order
	}{
		"nothing was heard for less than the limit: unknown": {
			steps: []step{{after: silenceLimit - time.Second}},
		},
		"silence from the start ends in cut off": {
			steps: []step{{after: silenceLimit}},
			want:  []State{CutOff},
		},
		"refused ends the wait at once": {
			steps: []step{{do: failed(refused)}},
			want:  []State{CutOff},
		},
		"no route ends the wait at once": {
			steps: []step{{do: failed(syscall.ENETUNREACH)}},
			want:  []State{CutOff},
		},
		"no source address, for the link is down, ends the wait at once": {
			steps: []step{{do: failed(syscall.EADDRNOTAVAIL)}},
			want:  []State{CutOff},
		},
		"a name that is not found ends the wait at once": {
			steps: []step{{do: failed(&net.DNSError{IsNotFound: true})}},
			want:  []State{CutOff},
		},
		"a name server that is silent is silence": {
			steps: []step{{do: failed(&net.DNSError{IsTimeout: true})}},
		},
		"a timeout, a reset or a caller that left say nothing": {
			steps: []step{{do: failed(os.ErrDeadlineExceeded)}, {do: failed(syscall.ECONNRESET)}, {do: failed(context.Canceled)}},
		},
		"an answer connects, silence cuts off, an answer connects again": {
			steps: []step{{do: answered}, {after: 9 * time.Second}, {do: answered}, {after: 9 * time.Second}, {after: time.Second}, {do: answered}},
			want:  []State{Connected, CutOff, Connected},
		},
		"a way out that was not there before begins anew, and the silence with it": {
			steps: []step{{do: failed(syscall.ENETUNREACH)}, {after: 20 * time.Second, do: anew}, {after: silenceLimit - time.Second}, {do: answered}},
			want:  []State{CutOff, Connected},
		},
		"a new way out that leads nowhere is found out as at the start": {
			steps: []step{{do: failed(syscall.ENETUNREACH)}, {after: 20 * time.Second, do: anew}, {do: failed(refused)}},
			want:  []State{CutOff, CutOff},
		},
		"a way out changes nothing while connected": {
			steps: []step{{do: answered}, {do: anew}},
			want:  []State{Connected},
		},
		"each change is told once": {
			steps: []step{{do: answered}, {do: answered}, {do: failed(refused)}, {do: failed(refused)}},
			want:  []State{Connected, CutOff},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			clock := testclock.NewFakePassiveClock(time.Unix(0, 0))
			var got []State
			link := newLink(clock, func(state State, _ error) { got = append(got, state) })
			for _, step := range tc.steps {
				clock.SetTime(clock.Now().Add(step.after))
				if step.do != nil {
					step.do(link)
				}
				_, _ = link.State()
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestLinkEndsTheWaitWithTheReason(t *testing.T) {
	link := newLink(testclock.NewFakePassiveClock(time.Unix(0, 0)), func(State, error) {})
	waiting := link.Waiting()
	link.Failed(syscall.ENETUNREACH)
	if got := context.Cause(waiting); !errors.Is(got, syscall.ENETUNREACH) {
		t.Errorf("cause %v", got)
	}
	if link.Waiting().Err() == nil {
		t.Error("who begins to wait while cut off would wait for ever")
	}
	link.Answered()
	if link.Waiting().Err() != nil {
		t.Error("who waits once connected is sent away")
	}
}
