package checkpoint

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strconv"
	"strings"
)

type mode uint8

const (
	modeSingle mode = iota
	modeSentinel
	modeCluster
)

// target is what the URLs say.
type target struct {
	mode             mode
	addrs            []string
	master           string
	user, password   string
	sentinelUser     string
	sentinelPassword string
	db               int
	tls              *tls.Config
}

// schemes are the first words of a URL that we know.
var schemes = map[string]struct {
	mode mode
	tls  bool
}{
	"redis":           {modeSingle, false},
	"rediss":          {modeSingle, true},
	"redis+sentinel":  {modeSentinel, false},
	"rediss+sentinel": {modeSentinel, true},
	"redis+cluster":   {modeCluster, false},
	"rediss+cluster":  {modeCluster, true},
}

// parseURL reads one address. Its errors never repeat the URL, because a password that was not percent-encoded may be
// anywhere in it.
func parseURL(raw string, base *tls.Config) (target, error) {
	scheme, rest, found := strings.Cut(strings.TrimSpace(raw), "://")
	kind, known := schemes[scheme]
	if !found || !known {
		return target{}, errors.New("an address begins with redis://, rediss:// (TLS), redis+sentinel:// or redis+cluster://, " +
			"such as redis://127.0.0.1:6379/0")
	}
	rest, query, _ := strings.Cut(rest, "?")
	hosts, path, _ := strings.Cut(rest, "/")
	t := target{mode: kind.mode}
	if kind.tls {
		t.tls = base.Clone()
		if t.tls == nil {
			t.tls = &tls.Config{MinVersion: tls.VersionTLS12}
		}
	}
	return t, errors.Join(t.readHosts(hosts), t.readPath(path), t.readQuery(query))
}

// readHosts reads user:password@host:port,host:port.
func (t *target) readHosts(text string) error {
	if at := strings.LastIndexByte(text, '@'); at >= 0 {
		user, password, _ := strings.Cut(text[:at], ":")
		text = text[at+1:]
		var errUser, errPassword error
		t.user, errUser = url.PathUnescape(user)
		t.password, errPassword = url.PathUnescape(password)
		if errUser != nil || errPassword != nil {
			return errors.New("the user or password has a % that begins no percent-encoding: write %25 for %, or use a password file")
		}
	}
	port := "6379"
	if t.mode == modeSentinel {
		port = "26379"
	}
	for host := range strings.SplitSeq(text, ",") {
		addr, err := hostPort(host, port)
		if err != nil {
			return err
		}
		t.addrs = append(t.addrs, addr)
	}
	if t.mode == modeSingle && len(t.addrs) > 1 {
		t.mode = modeCluster
	}
	return nil
}

func hostPort(text, port string) (string, error) {
	host := text
	if h, p, err := net.SplitHostPort(text); err == nil {
		host, port = h, p
	} else {
		host = strings.Trim(host, "[]")
		if strings.Contains(host, ":") && net.ParseIP(host) == nil {
			return "", errHost
		}
	}
	n, err := strconv.Atoi(port)
	if host == "" || err != nil || n < 1 || n > 65535 || strings.ContainsAny(host, " #\\") {
		return "", errHost
	}
	return net.JoinHostPort(host, port), nil
}

// errHost has no value: what stands where the host should be may be the rest of a password.
var errHost = errors.New("the host or port can't be read: write host:port; if the password has any of / ? # @ : then " +
	"percent-encode it (%2F %3F %23 %40 %3A) or use a password file")

// readPath reads the database number, behind the master's name for Sentinel.
func (t *target) readPath(path string) error {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	if t.mode == modeSentinel {
		t.master = parts[0]
		if t.master == "" {
			return errors.New("the master's name is missing: write redis+sentinel://host:26379/mymaster/0")
		}
		parts = append(parts[1:], "")
	}
	if parts[0] == "" {
		return nil
	}
	n, err := strconv.Atoi(parts[0])
	if err != nil || n < 0 {
		return errors.New("the database behind the host is no number: write redis://host:6379/0; if the password has a / " +
			"then write %2F for it or use a password file")
	}
	if n > 0 && t.mode == modeCluster {
		return errors.New("a redis cluster has the database 0 only: leave the number out")
	}
	t.db = n
	return nil
}

func (t *target) readQuery(query string) error {
	values, err := url.ParseQuery(query)
	if err != nil {
		return errors.New("the options behind the question mark can't be read: write ?name=value&name=value")
	}
	var errs []error
	tlsOptions := make(map[string]string)
	for name := range values {
		value := values.Get(name)
		switch name {
		case "ca_file", "cert_file", "key_file", "skip_verify":
			tlsOptions[name] = value
		case "sentinel_user":
			t.sentinelUser = value
		case "sentinel_password":
			t.sentinelPassword = value
		default:
			errs = append(errs, fmt.Errorf("unknown option %q: known are ca_file, cert_file, key_file, skip_verify, "+
				"sentinel_user, sentinel_password", name))
		}
	}
	if len(tlsOptions) > 0 {
		errs = append(errs, t.readTLS(tlsOptions))
	}
	return errors.Join(errs...)
}

// join adds another address of the same cluster.
func (t *target) join(other target) error {
	if t.mode == modeSentinel || other.mode == modeSentinel {
		return errors.New("a list is for a cluster: give the sentinels in one address, redis+sentinel://host:26379,host:26379/master")
	}
	if (t.tls == nil) != (other.tls == nil) {
		return errors.New("all addresses of a cluster must be redis:// or all rediss://")
	}
	if t.db > 0 || other.db > 0 {
		return errors.New("a redis cluster has the database 0 only: leave the number out")
	}
	differs := func(a, b string) bool { return b != "" && a != b }
	if differs(t.user, other.user) || differs(t.password, other.password) {
		return errors.New("all addresses of a cluster need the same user and password")
	}
	t.mode = modeCluster
	t.addrs = append(t.addrs, other.addrs...)
	return nil
}

// redact takes the secrets out of a text.
func (t *target) redact(text string) string {
	for _, secret := range []string{t.password, t.sentinelPassword} {
		if secret != "" {
			text = strings.ReplaceAll(text, secret, "***")
		}
	}
	return text
}
