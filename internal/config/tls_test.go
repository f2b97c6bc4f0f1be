package config_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/config"
)

// authority signs certificates into a folder of its own.
type authority struct {
	dir  string
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	a := &authority{dir: t.TempDir(), key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "ca"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageCertSign,
	}}
	a.write(t, "ca", a.cert, key)
	return a
}

func (a *authority) issue(t *testing.T, name string) (certFile, keyFile string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	return a.write(t, name, &x509.Certificate{
		SerialNumber: big.NewInt(2), Subject: pkix.Name{CommonName: name}, DNSNames: []string{name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}, key)
}

func (a *authority) write(t *testing.T, name string, cert *x509.Certificate, key *ecdsa.PrivateKey) (certFile, keyFile string) {
	t.Helper()
	der, err := x509.CreateCertificate(rand.Reader, cert, a.cert, &key.PublicKey, a.key)
	require.NoError(t, err)
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	require.NoError(t, err)
	certFile, keyFile = filepath.Join(a.dir, name+".pem"), filepath.Join(a.dir, name+".key")
	require.NoError(t, os.WriteFile(certFile, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(keyFile, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: keyDER}), 0o600))
	return certFile, keyFile
}

// handshake talks TLS to a server that shows the certificate, and returns what the client thought of it and whether the
// client showed one too.
func handshake(t *testing.T, client *tls.Config, certFile, keyFile string) (showed bool, err error) {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	require.NoError(t, err)
	var lc net.ListenConfig
	listener, err := lc.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	served := make(chan bool, 1)
	go func() {
		far, err := listener.Accept()
		if err != nil {
			served <- false
			return
		}
		server := tls.Server(far, &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequestClientCert, MinVersion: tls.VersionTLS12})
		// Whether it fails is the client's verdict, which is returned.
		_ = server.HandshakeContext(t.Context())
		served <- len(server.ConnectionState().PeerCertificates) > 0
		_ = far.Close()
	}()
	var dialer net.Dialer
	near, err := dialer.DialContext(t.Context(), "tcp", listener.Addr().String())
	require.NoError(t, err)
	err = tls.Client(near, client).HandshakeContext(t.Context())
	_ = near.Close()
	_ = listener.Close()
	return <-served, err
}

func TestTLSModes(t *testing.T) {
	t.Parallel()
	ours, theirs := newAuthority(t), newAuthority(t)
	goodCert, goodKey := ours.issue(t, "db.example")
	strangeCert, strangeKey := theirs.issue(t, "db.example")
	ca := config.TLSFiles{CAFile: filepath.Join(ours.dir, "ca.pem")}
	for _, tt := range []struct {
		mode, address       string
		files               config.TLSFiles
		good, strange, name bool // a trusted server, an untrusted one, a trusted one of another name
	}{
		{mode: "preferred", address: "db.example:3306", good: true, strange: true, name: true},
		{mode: "required", address: "db.example:3306", good: true, strange: true, name: true},
		{mode: "verify-ca", address: "db.example:3306", files: ca, good: true, name: true},
		{mode: "verify-identity", address: "db.example:3306", files: ca, good: true},
	} {
		t.Run(tt.mode, func(t *testing.T) {
			t.Parallel()
			server := config.Server{Address: tt.address, TLS: tt.mode, TLSFiles: tt.files}
			assert.Equal(t, tt.mode == "preferred", server.TLSOptional())
			cfg, err := server.TLSConfig()
			require.NoError(t, err)
			_, err = handshake(t, cfg, goodCert, goodKey)
			assert.Equal(t, tt.good, err == nil, "good: %v", err)
			_, err = handshake(t, cfg, strangeCert, strangeKey)
			assert.Equal(t, tt.strange, err == nil, "strange: %v", err)
			server.Address = "other.example:3306"
			cfg, err = server.TLSConfig()
			require.NoError(t, err)
			_, err = handshake(t, cfg, goodCert, goodKey)
			assert.Equal(t, tt.name, err == nil, "name: %v", err)
		})
	}
}

func TestTLSOff(t *testing.T) {
	t.Parallel()
	cfg, err := config.Server{TLS: "off"}.TLSConfig()
	require.NoError(t, err)
	assert.Nil(t, cfg)
	cfg, err = config.Defaults().Kafka.TLSConfig()
	require.NoError(t, err)
	assert.Nil(t, cfg)
	cfg, err = config.Defaults().Redis.TLSConfig()
	require.NoError(t, err)
	assert.Nil(t, cfg)
}

func TestTLSClientCertificateAndRedis(t *testing.T) {
	t.Parallel()
	ours := newAuthority(t)
	cert, key := ours.issue(t, "relay")
	files := config.TLSFiles{CAFile: filepath.Join(ours.dir, "ca.pem"), CertFile: cert, KeyFile: key}
	cfg, err := config.Kafka{TLS: "verify-identity", TLSFiles: files}.TLSConfig()
	require.NoError(t, err)
	assert.Empty(t, cfg.ServerName, "sarama puts in each broker's")
	cfg.ServerName = "relay"
	showed, err := handshake(t, cfg, cert, key)
	require.NoError(t, err)
	assert.True(t, showed)

	cfg, err = config.Redis{URL: []config.SecretURL{config.NewSecretURL("rediss://h:1")}, TLSFiles: files}.TLSConfig()
	require.NoError(t, err)
	require.NotNil(t, cfg)
	assert.False(t, cfg.InsecureSkipVerify)

	_, err = config.Kafka{TLS: "verify-ca", TLSFiles: config.TLSFiles{CAFile: key}}.TLSConfig()
	require.ErrorContains(t, err, "holds no PEM certificate")
	_, err = config.Kafka{TLS: "required", TLSFiles: config.TLSFiles{CertFile: cert, KeyFile: cert}}.TLSConfig()
	require.ErrorContains(t, err, "load cert_file and key_file")
}
