package checkpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"time"
)

// Config says where Redis is and how the relay appears in it.
type Config struct {
	// URLs is one address, or several of a cluster:
	//
	//	redis://user:password@host:6379/0              one server; rediss:// with TLS
	//	redis+sentinel://host:26379,host:26379/master/0  whichever server Sentinel says is the primary
	//	redis+cluster://host:6379                      a cluster behind one address; a list of redis:// or host:port is one too
	//	unix:///run/redis/redis.sock?db=0              one server on this machine
	//
	// Options behind a question mark: db, ca_file, cert_file, key_file, skip_verify=true (TLS), sentinel_user and sentinel_password.
	URLs []string
	// Password, when not empty, is used in place of the one in the URLs.
	Password string
	// Prefix begins each key; the default is "outbox-relay:".
	Prefix string
	// TLS is what rediss:// uses; nil means the system's certificates. The options of the URL are added to it.
	TLS *tls.Config
	// Owner names this relay in what it saves and leads; the default is host/process id.
	Owner string
	// Timeout bounds each call, with dialling and one repetition; the default is 2 s. It never is off.
	Timeout time.Duration
}

// DefaultPrefix begins each key when the configuration names nothing else.
const DefaultPrefix = "outbox-relay:"

// Validate reports every problem of the configuration at once, without passwords.
func (c Config) Validate() error {
	_, err := c.withDefaults().target()
	return err
}

func (c Config) withDefaults() Config {
	if c.Prefix == "" {
		c.Prefix = DefaultPrefix
	}
	if c.Timeout <= 0 {
		c.Timeout = 2 * time.Second
	}
	if c.Owner == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "unknown-host"
		}
		c.Owner = fmt.Sprintf("%s/%d", host, os.Getpid())
	}
	return c
}

// target joins what the URLs say.
func (c Config) target() (target, error) {
	if len(c.URLs) == 0 {
		return target{}, errors.New("redis.url is empty: give an address such as redis://127.0.0.1:6379/0")
	}
	var errs []error
	var joined target
	for i, raw := range c.URLs {
		t, err := parseURL(raw, c.TLS)
		if err != nil {
			errs = append(errs, fmt.Errorf("redis.url %d: %w", i+1, err))
			continue
		}
		if i == 0 || len(joined.addrs) == 0 {
			joined = t
			continue
		}
		if err := joined.join(t); err != nil {
			errs = append(errs, fmt.Errorf("redis.url %d: %w", i+1, err))
		}
	}
	if len(errs) > 0 {
		return target{}, errors.Join(errs...)
	}
	if c.Password != "" {
		joined.password = c.Password
	}
	return joined, nil
}
