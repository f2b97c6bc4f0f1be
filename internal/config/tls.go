package config

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
)

const (
	tlsOff            = "off"
	tlsPreferred      = "preferred"
	tlsRequired       = "required"
	tlsVerifyCA       = "verify-ca"
	tlsVerifyIdentity = "verify-identity"
)

// TLSFiles are the certificates of one connection, as PEM files.
type TLSFiles struct {
	CAFile   string `yaml:"ca_file" doc:"Certificates that the server's must be signed by. Default: the system's."`
	CertFile string `yaml:"cert_file" doc:"Our certificate, where the server asks for one."`
	KeyFile  string `yaml:"key_file" doc:"Its private key."`
}

// TLSConfig returns how to encrypt the connection, nil for tls: off. With tls: preferred (see TLSOptional) the
// connection goes on unencrypted when the server has no TLS.
func (s Server) TLSConfig() (*tls.Config, error) { return s.config(s.TLS, s.Address) }

// TLSOptional reports whether a server without TLS is spoken to in clear.
func (s Server) TLSOptional() bool { return s.TLS == tlsPreferred }

// TLSConfig returns how to encrypt the connections, nil for tls: off. Verifying an identity, the client library puts
// in each broker's name.
func (k Kafka) TLSConfig() (*tls.Config, error) { return k.config(k.TLS, "") }

// TLSConfig returns how to encrypt the connections, nil when no url is a rediss:// one. The servers' identities are
// verified; the client library puts in each server's name.
func (r Redis) TLSConfig() (*tls.Config, error) {
	if !slices.ContainsFunc(r.URL, func(u SecretURL) bool { return strings.HasPrefix(u.Reveal(), "rediss") }) {
		if r.TLSFiles != (TLSFiles{}) {
			return nil, errors.New("ca_file, cert_file and key_file have no effect with redis://; write rediss:// in the url")
		}
		return nil, nil
	}
	return r.config(tlsVerifyIdentity, "")
}

// config builds the settings for a mode; address gives the name that verify-identity compares, "" leaves it open.
func (f TLSFiles) config(mode, address string) (*tls.Config, error) {
	if err := f.check(mode); err != nil {
		return nil, err
	}
	if mode == tlsOff {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if err := f.load(cfg); err != nil {
		return nil, err
	}
	if host, _, err := net.SplitHostPort(address); err == nil {
		cfg.ServerName = host
	}
	switch mode {
	case tlsPreferred, tlsRequired:
		cfg.InsecureSkipVerify = true // asked for: encryption against listeners, not against impostors
	case tlsVerifyCA:
		// Go verifies chain and name together or nothing, so the chain alone is verified here.
		cfg.InsecureSkipVerify = true
		cfg.VerifyConnection = chainVerifier(cfg.RootCAs)
	}
	return cfg, nil
}

// check finds settings that would be silently ignored, and so a connection less safe than it looks.
func (f TLSFiles) check(mode string) error {
	verifies := mode == tlsVerifyCA || mode == tlsVerifyIdentity
	switch {
	case f.CAFile != "" && !verifies:
		return fmt.Errorf("ca_file has no effect with tls: %s; set tls: verify-ca or verify-identity", mode)
	case (f.CertFile == "") != (f.KeyFile == ""):
		return errors.New("cert_file and key_file belong together: set both or none")
	case f.CertFile != "" && mode == tlsOff:
		return errors.New("cert_file has no effect with tls: off; set another tls mode")
	}
	return nil
}

func (f TLSFiles) load(cfg *tls.Config) error {
	if f.CAFile != "" {
		pem, err := os.ReadFile(f.CAFile)
		if err != nil {
			return fmt.Errorf("read ca_file: %w", err)
		}
		cfg.RootCAs = x509.NewCertPool()
		if !cfg.RootCAs.AppendCertsFromPEM(pem) {
			return fmt.Errorf("ca_file %s holds no PEM certificate", f.CAFile)
		}
	}
	if f.CertFile != "" {
		pair, err := tls.LoadX509KeyPair(f.CertFile, f.KeyFile)
		if err != nil {
			return fmt.Errorf("load cert_file and key_file: %w", err)
		}
		cfg.Certificates = []tls.Certificate{pair}
	}
	return nil
}

func chainVerifier(roots *x509.CertPool) func(tls.ConnectionState) error {
	return func(state tls.ConnectionState) error {
		if len(state.PeerCertificates) == 0 {
			return errors.New("the server showed no certificate")
		}
		between := x509.NewCertPool()
		for _, c := range state.PeerCertificates[1:] {
			between.AddCert(c)
		}
		_, err := state.PeerCertificates[0].Verify(x509.VerifyOptions{Roots: roots, Intermediates: between})
		return err
	}
}
