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
	"unix":            {modeSingle, false},
}

// parseURL reads one address. Its errors never repeat the URL, because a password that was not percent-encoded may be
// anywhere in it.
func parseURL(raw string, base *tls.Config) (target, error) {
	raw = strings.TrimSpace(raw)
	if addr, err := hostPort(raw, ""); err == nil {
		return target{addrs: []string{addr}}, nil // host:port alone, as in the list of a cluster
	}
	scheme, rest, found := strings.Cut(raw, "://")
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
	if scheme == "unix" {
		return t, errors.Join(t.readSocket(hosts, path), t.readQuery(query))
	}
	return t, errors.Join(t.readHosts(hosts), t.readPath(path), t.readQuery(query))
}

// readSocket reads user:password@/path/of/socket.
func (t *target) readSocket(credentials, path string) error {
	if path == "" || credentials != "" && !strings.HasSuffix(credentials, "@") {
		return errors.New("the socket's path is missing: write unix:///run/redis/redis.sock")
	}
	_, err := t.readUser(credentials)
	t.addrs = []string{"/" + path} // go-redis takes what begins with a slash for a socket
	return err
}

// readUser reads user:password@ and returns what follows.
func (t *target) readUser(text string) (rest string, err error) {
	at := strings.LastIndexByte(text, '@')
	if at < 0 {
		return text, nil
	}
	user, password, _ := strings.Cut(text[:at], ":")
	var errUser, errPassword error
	t.user, errUser = url.PathUnescape(user)
	t.password, errPassword = url.PathUnescape(password)
	if errUser != nil || errPassword != nil {
		return "", errors.New("the user or password has a % that begins no percent-encoding: write %25 for %, or use a password file")
	}
	return text[at+1:], nil
}

// readHosts reads user:password@host:port,host:port.
func (t *target) readHosts(text string) error {
	text, err := t.readUser(text)
	if err != nil {
		return err
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
	if host == "" || err != nil || n < 1 || n > 65535 || strings.ContainsAny(host, " #\\@/?") {
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
	return t.readDB(parts[0])
}

func (t *target) readDB(text string) error {
	n, err := strconv.Atoi(text)
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
	// With an @ it is more likely the rest of a password, which must not be repeated as an unknown option.
	if strings.ContainsRune(query, '@') {
		return errHost
	}
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
		case "db":
			errs = append(errs, t.readDB(value))
		case "sentinel_user":
			t.sentinelUser = value
		case "sentinel_password":
			t.sentinelPassword = value
		default:
			errs = append(errs, fmt.Errorf("unknown option %q: known are db, ca_file, cert_file, key_file, skip_verify, "+
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
