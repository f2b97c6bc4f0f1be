package proc

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
)

// Ports are taken below the range that the kernel hands to outgoing connections (32768 and up), so that a server
// which a test has stopped finds its port free when it is started again.
const (
	firstPort = 20000
	portCount = 12000
	portsDir  = "ports"
)

// Port is a TCP port of 127.0.0.1 that no other rig process uses until Release, or until this process ends.
type Port struct {
	Number int
	lock   *os.File
}

// ReservePort finds a free port.
func ReservePort() (*Port, error) {
	dir := filepath.Join(Root(), portsDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("reserve a port: %w", err)
	}
	start := rand.IntN(portCount)
	for i := range portCount {
		number := firstPort + (start+i)%portCount
		lock, err := tryLock(filepath.Join(dir, strconv.Itoa(number)))
		if errors.Is(err, syscall.EWOULDBLOCK) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
		if free(number) {
			return &Port{Number: number, lock: lock}, nil
		}
		if err := lock.Close(); err != nil {
			return nil, fmt.Errorf("reserve a port: %w", err)
		}
	}
	return nil, fmt.Errorf("no free port in %d-%d", firstPort, firstPort+portCount-1)
}

// Addr returns 127.0.0.1:port.
func (p *Port) Addr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(p.Number)) }

// Release lets others have the port.
func (p *Port) Release() error { return p.lock.Close() }

// free tells whether nobody, rig or not, listens on the port.
func free(number int) bool {
	l, err := net.ListenTCP("tcp4", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: number})
	if err != nil {
		return false
	}
	return l.Close() == nil
}
