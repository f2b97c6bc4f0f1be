package rig

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	"example.com/outbox-relay/test/rig/internal/install"
)

const redisPassword = "redis-secret"

// RedisServer is a Redis with a password and an append-only file, so that a restart or a kill loses nothing.
type RedisServer struct {
	control
	Addr     string
	Password string
}

// Redis returns a Redis. Tests that share it keep to keys that begin with their Prefix.
func Redis(t testing.TB, opts ...Option) *RedisServer {
	t.Helper()
	refuseInUnitTests(t)
	s := collect(opts)
	if !s.own {
		server, err := sharedRedis()
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server, err := startRedis(context.WithoutCancel(t.Context()), s)
	if err != nil {
		t.Fatal(err)
	}
	server.own = true
	server.adopt(t)
	return server
}

// URL returns redis://:password@address/0.
func (s *RedisServer) URL() string {
	u := url.URL{Scheme: "redis", User: url.UserPassword("", s.Password), Host: s.Addr, Path: "/0"}
	return u.String()
}

// Prefix returns a beginning for keys that is the test's own. Keys are left: they end with the server.
func (s *RedisServer) Prefix(t testing.TB) string {
	t.Helper()
	return unique("", t) + ":"
}

func startRedis(ctx context.Context, s settings) (*RedisServer, error) {
	program, err := install.Program("redis-server")
	if err != nil {
		return nil, err
	}
	i, err := newInstance("redis", 1)
	if err != nil {
		return nil, err
	}
	server := &RedisServer{control: control{inst: i}, Addr: i.ports[0].Addr(), Password: redisPassword}
	i.command = append([]string{
		program, "--port", strconv.Itoa(i.ports[0].Number), "--bind", "127.0.0.1", "--dir", i.dir.Path,
		"--requirepass", redisPassword, "--save", "", "--appendonly", "yes", "--appendfsync", "no",
	}, s.args...)
	i.ready = server.ping
	if err := i.start(ctx); err != nil {
		return nil, errors.Join(err, i.destroy())
	}
	return server, nil
}

// ping asks once. A server that is still loading its data answers with an error.
func (s *RedisServer) ping(ctx context.Context) error {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, "tcp", s.Addr)
	if err != nil {
		return err
	}
	defer conn.Close() //nolint:errcheck // nothing is pending
	if err := conn.SetDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(conn, "AUTH %s\r\nPING\r\n", s.Password); err != nil {
		return err
	}
	answers := bufio.NewReader(conn)
	for _, want := range []string{"+OK", "+PONG"} {
		line, err := answers.ReadString('\n')
		if err != nil {
			return err
		}
		if strings.TrimSpace(line) != want {
			return fmt.Errorf("ping Redis: %s", strings.TrimSpace(line))
		}
	}
	return nil
}
