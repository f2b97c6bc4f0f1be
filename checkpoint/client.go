package checkpoint

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/rs/zerolog"
)

// client returns the client of the kind that the URLs ask for. It connects when it is used.
func (t *target) client(cfg Config) redis.UniversalClient {
	half := max(cfg.Timeout/2, time.Millisecond)
	options := &redis.UniversalOptions{
		Addrs:            t.addrs,
		DB:               t.db,
		MasterName:       t.master,
		Username:         t.user,
		Password:         t.password,
		SentinelUsername: t.sentinelUser,
		SentinelPassword: t.sentinelPassword,
		TLSConfig:        t.tls,
		// Nothing of RESP3 is needed, and old servers and proxies don't know it.
		Protocol: 2,
		// CLIENT SETINFO is unknown to old servers and forbidden to narrow ACL users.
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		// A call must end within cfg.Timeout whatever Redis does, so one repetition (which a failover or a connection
		// that Redis closed while idle needs), and no more: whoever calls has a loop with a wait of its own.
		MaxRetries:            1,
		MinRetryBackoff:       20 * time.Millisecond,
		MaxRetryBackoff:       100 * time.Millisecond,
		MaxRedirects:          3,
		DialTimeout:           half,
		DialerRetries:         1,
		ReadTimeout:           half,
		WriteTimeout:          half,
		PoolTimeout:           half,
		ContextTimeoutEnabled: true,
		// One save a second, a lease and a look from the console.
		PoolSize:              4,
		PipelinePoolSize:      -1,
		ConnMaxIdleTime:       5 * time.Minute,
		FailingTimeoutSeconds: 1,
	}
	switch t.mode {
	case modeSentinel:
		return redis.NewFailoverClient(options.Failover())
	case modeCluster:
		return redis.NewClusterClient(options.Cluster())
	case modeSingle:
	}
	return redis.NewClient(options.Simple())
}

// readTLS adds the URL's options to the TLS configuration.
func (t *target) readTLS(options map[string]string) error {
	if t.tls == nil {
		return errors.New("ca_file, cert_file, key_file and skip_verify are for TLS: begin the address with rediss")
	}
	var errs []error
	if path := options["ca_file"]; path != "" {
		pool := x509.NewCertPool()
		pem, err := os.ReadFile(path)
		if err == nil && !pool.AppendCertsFromPEM(pem) {
			err = fmt.Errorf("%s holds no certificate in PEM form", path)
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("ca_file: %w", err))
		}
		t.tls.RootCAs = pool
	}
	cert, key := options["cert_file"], options["key_file"]
	if (cert == "") != (key == "") {
		errs = append(errs, errors.New("cert_file and key_file go together: give both"))
	} else if cert != "" {
		pair, err := tls.LoadX509KeyPair(cert, key)
		if err != nil {
			errs = append(errs, fmt.Errorf("cert_file: %w", err))
		}
		t.tls.Certificates = []tls.Certificate{pair}
	}
	switch options["skip_verify"] {
	case "true":
		t.tls.InsecureSkipVerify = true
	case "", "false":
	default:
		errs = append(errs, errors.New("skip_verify must be true or false"))
	}
	return errors.Join(errs...)
}

// RouteLibraryLog sends what go-redis says about itself (which sentinel it chose, that a pool could not dial) to log, at debug
// level: what matters comes back as errors. The library has one logger for the process, so main calls this, once.
func RouteLibraryLog(log zerolog.Logger) {
	redis.SetLogger(libraryLog{log.With().Str("component", "redis").Logger()})
}

type libraryLog struct{ log zerolog.Logger }

// Printf implements the interface of go-redis.
func (l libraryLog) Printf(_ context.Context, format string, args ...any) {
	l.log.Debug().Str("text", strings.TrimSpace(fmt.Sprintf(format, args...))).Msg("redis client")
}
