package harness

import "sync"

// journal is what a process has printed. It wakes whoever waits for more. Its methods may be called concurrently.
type journal struct {
	mu    sync.Mutex
	text  []byte
	grown chan struct{} // closed, and made anew, when the text grows
}

func newJournal() *journal { return &journal{grown: make(chan struct{})} }

// Write never fails.
func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.text = append(j.text, p...)
	close(j.grown)
	j.grown = make(chan struct{})
	return len(p), nil
}

// from returns the text from an offset on, and what is closed when there is more.
func (j *journal) from(offset int) (string, <-chan struct{}) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return string(j.text[offset:]), j.grown
}
