package kafka_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
)

func TestSASL(t *testing.T) {
	t.Parallel()
	for mechanism, theirs := range map[string]string{"plain": "PLAIN", "scram-sha-256": "SCRAM-SHA-256", "scram-sha-512": "SCRAM-SHA-512"} {
		t.Run(mechanism, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.EnableSASL(), kfake.Superuser(theirs, "relay", "s3cret"), kfake.SeedTopics(1, "orders"))
			cfg := kafka.Config{Brokers: cluster.ListenAddrs(), SASL: kafka.SASL{Mechanism: mechanism, User: "relay", Password: "s3cret"}}
			client := open(t, cfg)
			require.NoError(t, client.Reachable(t.Context()))
			p, got := producer(t, client)
			send(t, p, record("orders", "a", 0), 0)
			require.NoError(t, got.waitFor(t, 1)[0].Err)

			cfg.SASL.Password = "wr0ng-word"
			stranger := open(t, cfg)
			err := stranger.Reachable(t.Context())
			require.Error(t, err)
			assert.Equal(t, retry.Unreachable, kafka.Classify(err), "no message is at fault")
			assert.NotContains(t, err.Error(), "wr0ng-word")
			_, _, err = stranger.Probe(t.Context(), record("orders", "a", 0))
			require.Error(t, err)
			assert.Equal(t, retry.Unreachable, kafka.Classify(err))
		})
	}
}

// bearer makes a cluster take any token, and returns those it was shown.
func bearer(cluster *kfake.Cluster) func() []string {
	var mu sync.Mutex
	var shown []string
	cluster.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		return req.ResponseKind(), nil, true
	})
	cluster.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		mu.Lock()
		defer mu.Unlock()
		if auth, ok := req.(*kmsg.SASLAuthenticateRequest); ok {
			shown = append(shown, string(auth.SASLAuthBytes))
		}
		return req.ResponseKind(), nil, true
	})
	return func() []string {
		mu.Lock()
		defer mu.Unlock()
		return append([]string(nil), shown...)
	}
}

func TestSASLBearer(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	shown := bearer(cluster)
	client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), SASL: kafka.SASL{Mechanism: "oauthbearer", Password: "tok-1"}})
	require.NoError(t, client.Reachable(t.Context()))
	require.NotEmpty(t, shown())
	assert.Contains(t, shown()[0], "auth=Bearer tok-1")
}

func TestSASLBearerReadsItsFileForEachConnection(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "orders"))
	shown := bearer(cluster)
	file := filepath.Join(t.TempDir(), "token")
	for _, token := range []string{"tok-1", "tok-2"} {
		require.NoError(t, os.WriteFile(file, []byte(token+"\n"), 0o600))
		client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), SASL: kafka.SASL{Mechanism: "oauthbearer", TokenFile: file}})
		require.NoError(t, client.Reachable(t.Context()))
		all := shown()
		assert.Contains(t, all[len(all)-1], "auth=Bearer "+token)
		assert.NotContains(t, all[len(all)-1], "\n")
	}
	require.NoError(t, os.Remove(file))
	client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), SASL: kafka.SASL{Mechanism: "oauthbearer", TokenFile: file}})
	err := client.Reachable(t.Context())
	require.Error(t, err)
	assert.Equal(t, retry.Unreachable, kafka.Classify(err))
}

func TestTLS(t *testing.T) {
	t.Parallel()
	certificate, pool := selfSigned(t)
	cluster := fake(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{certificate}}), kfake.SeedTopics(1, "orders"))
	client := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), TLS: &tls.Config{RootCAs: pool}})
	p, got := producer(t, client)
	send(t, p, record("orders", "a", 0), 0)
	require.NoError(t, got.waitFor(t, 1)[0].Err)

	stranger := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), TLS: &tls.Config{}})
	err := stranger.Reachable(t.Context())
	require.Error(t, err)
	assert.Equal(t, retry.Unreachable, kafka.Classify(err))
	assert.True(t, strings.Contains(err.Error(), "x509") || strings.Contains(err.Error(), "certificate"), "%v", err)
}

func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	parsed, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	pool := x509.NewCertPool()
	pool.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, pool
}
