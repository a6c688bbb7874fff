package daemon

// watchServing wakes the reporter when kubelet begins or ceases to be served.
func (l *loop) watchServing() {
	if l.serving == nil {
		return
	}
	if now := l.serving(); now.Reason != l.served.Reason || now.Message != l.served.Message {
		l.served = now
		l.signal()
	}
}
