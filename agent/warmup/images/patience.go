package images

import "time"

const (
	// shortestWait and longestWait bound the pause after a pull that failed.
	shortestWait, longestWait = 5 * time.Second, 5 * time.Minute
	// kubeletFirst is how long a pod's image may be missing before the agent pulls it:
	// kubelet is about to, and then notes who may use it.
	kubeletFirst = 10 * time.Second
)

// patience says when something that failed may be tried again.
type patience map[string]*wait

type wait struct {
	until time.Time
	next  time.Duration
}

func (p patience) failed(key string, now time.Time) {
	w := p[key]
	if w == nil {
		w = &wait{next: shortestWait}
		p[key] = w
	}
	w.until = now.Add(w.next)
	w.next = min(2*w.next, longestWait)
}

// left is how long key has to wait yet.
func (p patience) left(key string, now time.Time) time.Duration {
	if w := p[key]; w != nil {
		return max(0, w.until.Sub(now))
	}
	return 0
}
