//go:build !unit

package checkpoint_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/test/rig"
)

// certificate writes a self-signed certificate for 127.0.0.1 with its key, and returns the two files.
func certificate(t *testing.T) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redis"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	require.NoError(t, err)
	pkcs8, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	dir := t.TempDir()
	cert, key = filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	require.NoError(t, os.WriteFile(cert, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}), 0o600))
	return cert, key
}

func TestTLS(t *testing.T) {
	t.Parallel()
	cert, key := certificate(t)
	port := strconv.Itoa(freePort(t))
	rig.Redis(t, rig.Args("--tls-port", port, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert))
	address := "rediss://:redis-secret@127.0.0.1:" + port
	both := fmt.Sprintf("%s?ca_file=%s&cert_file=%s&key_file=%s", address, cert, cert, key)
	epoch := func(url string) error {
		s, err := checkpoint.Open(checkpoint.Config{URLs: []string{url}}, zerolog.Nop())
		require.NoError(t, err)
		_, err = s.NextEpoch(t.Context(), source)
		require.NoError(t, s.Close())
		return err
	}
	require.NoError(t, epoch(both))
	require.NoError(t, epoch(fmt.Sprintf("%s?skip_verify=true&cert_file=%s&key_file=%s", address, cert, key)))
	// Redis asks for a client's certificate by default.
	require.Error(t, epoch(address+"?ca_file="+cert))
	err := epoch(fmt.Sprintf("%s?cert_file=%s&key_file=%s", address, cert, key))
	require.Error(t, err, "nobody vouches for the server")
	require.ErrorContains(t, err, "certificate")
}

func TestUnixSocket(t *testing.T) {
	t.Parallel()
	socket := filepath.Join(t.TempDir(), "redis.sock")
	server := rig.Redis(t, rig.Args("--unixsocket", socket))
	b := newBench(t, rawClient(t, server), false, "unix://:"+server.Password+"@"+socket)
	lead(t, b, 4)
}
