package canal

// Observer is told what the reader can't return. Its methods must not block; they are called from Next's goroutine.
type Observer interface {
	// Reconnect: the connection was lost for the reason, one of words.Reconnects(), and is being replaced.
	Reconnect(reason string)
}

// NopObserver ignores everything.
type NopObserver struct{}

// Reconnect does nothing.
func (NopObserver) Reconnect(string) {}
