package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"sync"
	"testing"
)

// fileVariable names the environment variable with the path of the file that describes the servers which another
// process runs for all test binaries. Its name has not the product's prefix: the product refuses unknown ones.
const fileVariable = "RIG_FILE"

// description is the content of that file.
type description struct {
	MySQL, MariaDB *sqlDescription
	Redis          string   // address
	Kafka          []string // brokers
}

type sqlDescription struct{ Addr, DataDir string }

// The servers that the tests of this binary share; each is started or attached to by the first that asks, and ends
// with the process.
var (
	sharedMySQL   = sync.OnceValues(func() (*Server, error) { return shareSQL(FlavorMySQL, startMySQL) })
	sharedMariaDB = sync.OnceValues(func() (*Server, error) { return shareSQL(FlavorMariaDB, startMariaDB) })
	sharedRedis   = sync.OnceValues(shareRedis)
	sharedKafka   = sync.OnceValues(shareKafka)
)

func shareSQL(flavor string, start starter) (*Server, error) {
	described, err := describe()
	if err != nil {
		return nil, err
	}
	found := described.MySQL
	if flavor == FlavorMariaDB {
		found = described.MariaDB
	}
	if found == nil {
		return start(context.Background(), collect(nil)) // lives as long as the process
	}
	return &Server{
		Flavor: flavor, Addr: found.Addr, User: adminUser, Password: adminPassword, DataDir: found.DataDir,
	}, nil
}

func shareRedis() (*RedisServer, error) {
	described, err := describe()
	if err != nil {
		return nil, err
	}
	if described.Redis == "" {
		return startRedis(context.Background(), collect(nil))
	}
	return &RedisServer{Addr: described.Redis, Password: redisPassword}, nil
}

func shareKafka() (*KafkaServer, error) {
	described, err := describe()
	if err != nil {
		return nil, err
	}
	if len(described.Kafka) == 0 {
		return startKafka(context.Background(), collect(nil))
	}
	return &KafkaServer{Brokers: described.Kafka}, nil
}

// describe reads the file of the process that runs the servers; nothing is described when there is none.
func describe() (description, error) {
	var d description
	path := os.Getenv(fileVariable)
	if path == "" {
		return d, nil
	}
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, &d)
	}
	if err != nil {
		return d, fmt.Errorf("attach to the servers of %s=%s (unset it to start your own): %w", fileVariable, path, err)
	}
	return d, nil
}

// errUnit is what a unit test gets that asks for a server.
var errUnit = errors.New("a unit test asked for a server: begin its file with //go:build !unit and call it *_server_test.go")

func refuseInUnitTests(t testing.TB) {
	t.Helper()
	if unitOnly {
		t.Fatal(errUnit)
	}
}
